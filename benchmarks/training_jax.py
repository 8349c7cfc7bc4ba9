"""Rows D1 to D3 in JAX: compiled as a whole, channels last, live taps alone, what the maze adds computed once.

Convolutions are written as matrix products, in the faster of two ways for each row: XLA's own are 20 times slower on a
CPU, or their gradients are.
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
"""Those of live taps, (taps, T + C, C), and the (C,) bias."""
Convolve: TypeAlias = Callable[[list[Any], Any], Any]
"""Of the (n, H, W, C) neighbours at each tap and (taps, C, C out) weights."""


def gradient(nca: NCA, maze: Tensor, target: Tensor, n_steps: int, keep: Sequence[int]) -> Callable[[], Any]:
    """Computes `training.loss` and its gradient with respect to the weights."""
    inputs, solution = _channels_last(maze), jnp.asarray(target.numpy())

    def loss(weights: Weights) -> Any:
        paths = _paths(nca, weights, inputs, n_steps, side_by_side)[jnp.array(keep) - 1]
        return ((paths - solution) ** 2).mean(axis=(1, 2, 3)).sum()

    function, weights = jax.jit(jax.value_and_grad(loss)), _weights(nca)
    return lambda: jax.block_until_ready(function(weights))


def last_path(nca: NCA, maze: Tensor, n_steps: int) -> Callable[[], Any]:
    """Computes the path after the last step, (n, H, W)."""
    inputs, weights = _channels_last(maze), _weights(nca)
    function = jax.jit(lambda weights: _paths(nca, weights, inputs, n_steps, tap_by_tap)[-1])
    return lambda: jax.block_until_ready(function(weights))


def side_by_side(neighbours: list[Any], weights: Any) -> Any:
    """One product with all neighbours."""
    return jnp.concatenate(neighbours, axis=-1) @ weights.reshape(-1, weights.shape[-1])


def tap_by_tap(neighbours: list[Any], weights: Any) -> Any:
    """A product for each."""
    return sum(maps @ weight for maps, weight in zip(neighbours, weights, strict=True))


def _paths(nca: NCA, weights: Weights, maze: Any, n_steps: int, convolve: Convolve) -> Any:
    """The path after each step, (n_steps, n, H, W)."""
    kernel, bias = weights
    share = convolve(_neighbours(nca, maze), kernel[:, : nca.n_tiles]) + bias

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = jax.nn.relu(convolve(_neighbours(nca, state), kernel[:, nca.n_tiles :]) + share)
        return state, state[..., 0]

    return lax.scan(step, jnp.zeros_like(share), None, length=n_steps)[1]


def _neighbours(nca: NCA, maps: Any) -> list[Any]:
    """The maps moved by each live tap, zeros coming in."""
    size, reach = nca.kernel_size, nca.kernel_size // 2
    padded = jnp.pad(maps, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    corners = [divmod(tap, size) for tap in nca._taps.tolist()]
    return [padded[:, row : row + maps.shape[1], col : col + maps.shape[2]] for row, col in corners]


def _weights(nca: NCA) -> Weights:
    weight, bias = nca.weights[0].detach(), nca.biases[0].detach()
    return jnp.asarray(weight.permute(2, 1, 0).contiguous().numpy()), jnp.asarray(bias.numpy())


def _channels_last(maps: Tensor) -> Any:
    return jnp.asarray(maps.permute(0, 2, 3, 1).contiguous().numpy())
