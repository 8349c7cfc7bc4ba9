"""Observation and action spaces, and the checks of actions, seeds and options, made before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from maze_nca_gym.envs.dynamics import STATE_LIMIT
from maze_nca_gym.mazes.levels import as_contiguous
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_count, check_names

_FLOAT32 = np.dtype(np.float32)


def state_space(n_channels: int, height: int, width: int) -> Box:
    """Return the space of the automaton's state, (C, H, W) float32, which is also the space of actions."""
    return Box(-STATE_LIMIT, STATE_LIMIT, (n_channels, height, width), np.float32)


def observation_space(n_tiles: int, n_channels: int, height: int, width: int) -> Dict:
    """Return the space of observations: a dict of the one-hot `maze`, (T, H, W), and the `state`, (C, H, W)."""
    maze = Box(0.0, 1.0, (n_tiles, height, width), np.float32)
    return Dict({"maze": maze, "state": state_space(n_channels, height, width)})


def check_action(action: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return an action as a C-contiguous float32 array of `shape`, (C, H, W) or (N, C, H, W).

    Raises:
        ValueError: another shape, a dtype that is not floating-point, or a value that is not an array.
    """
    if type(action) is np.ndarray and action.dtype is _FLOAT32 and action.shape == shape and action.flags.carray:
        return action
    array = as_array(action, "the action")
    if array.shape != shape:
        raise ValueError(f"the action must have shape {shape}, got {array.shape}")
    if array.dtype.kind != "f":
        raise ValueError(f"the action must be floating-point (float32), got dtype {array.dtype}")
    if array.dtype.itemsize > _FLOAT32.itemsize:  # what is finite must not become infinite
        array = np.where(np.isfinite(array), np.clip(array, -STATE_LIMIT, STATE_LIMIT), array)
    return as_contiguous(array, np.float32)


def check_seed(seed: Any) -> int | None:
    """Return a seed as a Python integer, or None if none is given.

    Raises:
        ValueError: the seed is not an integer >= 0.
    """
    return None if seed is None else check_count("a seed", seed, 0)


def check_reset_options(options: Any, known: tuple[str, ...] = ("level", "index")) -> dict[str, Any]:
    """Return the reset options as a dict, after checking their names; an empty dict for None.

    Raises:
        ValueError: not a mapping of options by name, or an unknown option.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict with any of {', '.join(known)}, got {options!r}")
    check_names("reset()", map(str, options or {}), known)
    return dict(options or {})
