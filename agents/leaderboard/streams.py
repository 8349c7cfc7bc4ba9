"""Policies on edit streams: from a fresh state after each edit, and from the state that the last maze left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles

from ..policy import Policy
from ..rollouts import encode, find_paths, path_of, run_to_end


def restarted_paths(policy: Policy, streams: Tiles, n_steps: int, batch: int | None) -> NDArray[np.bool_]:
    """Return the paths of a policy that begins from a state of zeros on each maze, (S, L, H, W) bool.

    Args:
        policy: the policy.
        streams: (S, L, H, W) uint8, L mazes in a row.
        n_steps: iterations on each maze.
        batch: levels that run at once, by default as many as keep the state small.
    """
    levels = streams.reshape(-1, *streams.shape[2:])
    return (find_paths(policy, levels, n_steps, batch=batch) > 0.5).reshape(streams.shape)


def reused_paths(policy: Policy, streams: Tiles, n_steps: int) -> NDArray[np.bool_]:
    """Return the paths of a policy that goes on from the state of the maze before, (S, L, H, W) bool.

    Args:
        policy: a policy that has weights for any number of iterations.
        streams: (S, L, H, W) uint8, L mazes in a row.
        n_steps: iterations on each maze.
    """
    paths, state = np.empty(streams.shape, np.bool_), None
    for i in range(streams.shape[1]):
        maze = encode(policy, np.ascontiguousarray(streams[:, i]))
        state = run_to_end(policy, maze, n_steps, state, start_step=i * n_steps)
        paths[:, i] = path_of(state) > 0.5
    return paths
