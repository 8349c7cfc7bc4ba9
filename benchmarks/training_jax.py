"""Rows D1 to D3 in JAX: compiled as a whole, channels last, what the maze adds computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from torch import Tensor

from maze_nca_gym.agents.learned import NCA


def gradient(nca: NCA, maze: Tensor, target: Tensor, n_steps: int, keep: Sequence[int]) -> Callable[[], Any]:
    """Computes `training.loss` and its gradient with respect to the kernel, (k, k, T + C, C), and the bias."""
    inputs, solution = _channels_last(maze), jnp.asarray(target.numpy())

    def loss(weights: tuple[Any, Any]) -> Any:
        paths = _paths(weights, inputs, n_steps)[jnp.array(keep) - 1]
        return ((paths - solution) ** 2).mean(axis=(1, 2, 3)).sum()

    function, weights = jax.jit(jax.value_and_grad(loss)), _weights(nca)
    return lambda: jax.block_until_ready(function(weights))


def last_path(nca: NCA, maze: Tensor, n_steps: int) -> Callable[[], Any]:
    """Computes the path after the last step, (n, H, W)."""
    inputs, weights = _channels_last(maze), _weights(nca)
    function = jax.jit(lambda weights: _paths(weights, inputs, n_steps)[-1])
    return lambda: jax.block_until_ready(function(weights))


def _paths(weights: tuple[Any, Any], maze: Any, n_steps: int) -> Any:
    """The path after each step, (n_steps, n, H, W)."""
    kernel, bias = weights
    n_tiles = maze.shape[-1]
    share = _convolve(maze, kernel[:, :, :n_tiles]) + bias

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = jax.nn.relu(_convolve(state, kernel[:, :, n_tiles:]) + share)
        return state, state[..., 0]

    return lax.scan(step, jnp.zeros_like(share), None, length=n_steps)[1]


def _convolve(maps: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(maps, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _weights(nca: NCA) -> tuple[Any, Any]:
    kernel, bias = nca.kernel().detach().permute(2, 3, 1, 0).contiguous(), nca.biases[0].detach()
    return jnp.asarray(kernel.numpy()), jnp.asarray(bias.numpy())


def _channels_last(maps: Tensor) -> Any:
    return jnp.asarray(maps.permute(0, 2, 3, 1).contiguous().numpy())
