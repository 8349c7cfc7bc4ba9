"""Backends of a vector environment: NumPy on the CPU, or torch on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.spaces import check_action


def host_array(values: Any) -> Any:
    """Return a tensor as an array of its dtype, (...), because NumPy cannot read from a GPU; return other values
    unchanged."""
    if not hasattr(values, "detach"):
        return values
    from maze_nca_gym.support.transfer import read_back  # torch, which is there if there are tensors

    return read_back(values)


class NumpyBackend:
    """The dynamics of a batch of episodes, with NumPy arrays as actions and results."""

    initial: Callable[..., Any] = staticmethod(dynamics.initial)
    transition: Callable[..., Any] = staticmethod(dynamics.transition)
    replace: Callable[..., Any] = staticmethod(dynamics.replace)

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> Any:
        """Return the action as a C-contiguous float32 array, (N, C, H, W)."""
        array = check_action(action, shape)
        if ignored.any():
            array = array.copy()
            array[ignored] = 0
        return array

    def out(self, *arrays: NDArray[Any]) -> list[Any]:
        """Return the arrays, (N, ...) of any dtype, unchanged."""
        return list(arrays)

    def host(self, channels: Any) -> NDArray[np.float32]:
        """Return the (N, C, H, W) channels unchanged."""
        return channels
