"""Rows D1 to D3 in JAX: one compiled function, channels last, only the used taps, the maze's share computed once.

Convolutions are written as matrix products, because XLA's own convolutions or their gradients are 20 times slower on a
CPU. Each row uses the faster one of two forms, `side_by_side` and `tap_by_tap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from torch import Tensor

from maze_nca_gym.agents.policies.learned import NCA

Weights: TypeAlias = tuple[Any, Any]
"""The (taps, T + C, C) weights of the used taps, and the (C,) bias."""
Convolve: TypeAlias = Callable[[list[Any], Any], Any]
"""(list of the (n, H, W, C) neighbours at each tap, (taps, C, C out) weights) -> (n, H, W, C out)."""


def gradient(nca: NCA, maze: Tensor, target: Tensor, n_steps: int, keep: Sequence[int]) -> Callable[[], Any]:
    """Return a function that computes `training.loss` and its gradient with respect to the weights.

    Args:
        nca: the network, whose weights are copied.
        maze: (n, T, H, W) one-hot mazes.
        target: (n, H, W) solutions.
        n_steps: number of steps.
        keep: numbers of steps after which the path enters the loss.
    """
    inputs, solution = _channels_last(maze), jnp.asarray(target.numpy())

    def loss(weights: Weights) -> Any:
        paths = _paths(nca, weights, inputs, n_steps, side_by_side)[jnp.array(keep) - 1]
        return ((paths - solution) ** 2).mean(axis=(1, 2, 3)).sum()

    function, weights = jax.jit(jax.value_and_grad(loss)), _weights(nca)
    return lambda: jax.block_until_ready(function(weights))


def last_path(nca: NCA, maze: Tensor, n_steps: int) -> Callable[[], Any]:
    """Return a function that computes the path after the last step, (n, H, W).

    Args:
        nca: the network, whose weights are copied.
        maze: (n, T, H, W) one-hot mazes.
        n_steps: number of steps.
    """
    inputs, weights = _channels_last(maze), _weights(nca)
    function = jax.jit(lambda weights: _paths(nca, weights, inputs, n_steps, tap_by_tap)[-1])
    return lambda: jax.block_until_ready(function(weights))


def side_by_side(neighbours: list[Any], weights: Any) -> Any:
    """Convolve by one matrix product, with the channels of all neighbours side by side."""
    return jnp.concatenate(neighbours, axis=-1) @ weights.reshape(-1, weights.shape[-1])


def tap_by_tap(neighbours: list[Any], weights: Any) -> Any:
    """Convolve by one matrix product for each tap."""
    return sum(maps @ weight for maps, weight in zip(neighbours, weights, strict=True))


def _paths(nca: NCA, weights: Weights, maze: Any, n_steps: int, convolve: Convolve) -> Any:
    """Return the path after each step, (n_steps, n, H, W)."""
    kernel, bias = weights
    share = convolve(_neighbours(nca, maze), kernel[:, : nca.n_tiles]) + bias

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = jax.nn.relu(convolve(_neighbours(nca, state), kernel[:, nca.n_tiles :]) + share)
        return state, state[..., 0]

    return lax.scan(step, jnp.zeros_like(share), None, length=n_steps)[1]


def _neighbours(nca: NCA, maps: Any) -> list[Any]:
    """Return (n, H, W, C) maps moved by each used tap, with zeros beyond the edge."""
    size, reach = nca.kernel_size, nca.kernel_size // 2
    padded = jnp.pad(maps, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    corners = [divmod(tap, size) for tap in nca._taps.tolist()]
    return [padded[:, row : row + maps.shape[1], col : col + maps.shape[2]] for row, col in corners]


def _weights(nca: NCA) -> Weights:
    weight, bias = nca.weights[0].detach(), nca.biases[0].detach()
    return jnp.asarray(weight.permute(2, 1, 0).contiguous().numpy()), jnp.asarray(bias.numpy())


def _channels_last(maps: Tensor) -> Any:
    return jnp.asarray(maps.permute(0, 2, 3, 1).contiguous().numpy())
