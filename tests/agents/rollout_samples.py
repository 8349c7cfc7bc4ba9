"""Networks, mazes and oracles of rollouts with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.rollouts import engines
from maze_nca_gym.mazes.levels import one_hot


def network(n_channels: int, seed: int = 0, gain: float = 1.7, n_tiles: int = 4, **arguments: Any) -> NCA:
    """Return a network with larger weights than at the start of a training, so that states neither vanish nor explode.

    A network with maxima has at least the three channels that maxima need.
    """
    n_channels = max(n_channels, 3 * arguments.get("max_pool", False))
    nca = NCA(n_tiles, n_channels, generator=torch.Generator().manual_seed(seed), **arguments)
    with torch.no_grad():
        nca.weights[0].mul_(gain)
    return nca


def mazes(n: int, height: int, width: int, n_tiles: int = 4, seed: int = 0) -> Tensor:
    tiles = np.random.default_rng(seed).integers(0, n_tiles, (n, height, width)).astype(np.uint8)
    return torch.from_numpy(one_hot(tiles, n_tiles))


def in_machine_code(model: Policy, maze: Tensor) -> bool:
    """Return whether `rollout` runs a model on mazes of this shape in machine code."""
    return engines.engine_for(model, maze) is engines.MACHINE_CODE


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def gradients(model: Policy, states: list[Tensor], unused: bool = False) -> list[Tensor]:
    """Return the gradients of a sum over all states with fixed random weights; zeros for unused parameters."""
    loss = sum((noise(*state.shape, seed=i).to(state) * state).sum() for i, state in enumerate(states))
    return list(torch.autograd.grad(loss, list(model.parameters()), materialize_grads=unused))


def in_double(
    model: Policy, maze: Tensor, keep: tuple[int, ...], state: Tensor | None, start: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Check the guarantees of `rollout` and compare gradients with autograd; return the model to single precision."""
    model.double()
    first = None if state is None else state.double()
    with engines.preferring(engines.STEPPING):
        states = rollout(model, maze.double(), keep, first, start_step=start)
    expected = [current.detach() for current in states], gradients(model, states)
    model.float()
    return expected


def assert_near(actual: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    """Compare tensors relative to the largest number of each tensor."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == torch.float32
        assert (a - b).abs().max() <= tolerance * max(1e-3, b.abs().max())
