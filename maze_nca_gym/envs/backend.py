"""Backends of a vector environment: NumPy on the CPU, or torch on a device."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.spaces import check_action
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.scoring import IsOptimal


def host_array(values: Any) -> Any:
    """Return a tensor as an array of its dtype, (...), and anything else as it is: NumPy does not read from a GPU."""
    if not hasattr(values, "detach"):
        return values
    from maze_nca_gym.support.transfer import read_back  # torch, which is there if there are tensors

    return read_back(values)


class Backend(Protocol):
    """The dynamics of a batch on one device, and the conversion of what users pass and get."""

    def initial(self, tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int) -> Any:
        """Return episodes on the given levels, (N, H, W) uint8 with (N, H, W) bool solutions."""

    def transition(self, state: Any, action: Any, is_optimal: IsOptimal | None) -> Any:
        """Return one iteration."""

    def replace(self, state: Any, rows: NDArray[np.intp], fresh: Any) -> Any:
        """Return the episodes with those at `rows`, (K,) int, replaced by the K fresh ones."""

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> Any:
        """Return the user's action, checked, (N, C, H, W) float32, with zeros where `ignored`, (N,) bool."""

    def out(self, array: Any) -> Any:
        """Return an array or tensor in the form that the user gets."""

    def host(self, channels: Any) -> NDArray[np.float32]:
        """Return the (N, C, H, W) channels as a NumPy array."""


class NumpyBackend:
    """NumPy arrays in and out."""

    initial = staticmethod(dynamics.initial)
    transition = staticmethod(dynamics.transition)
    replace = staticmethod(dynamics.replace)

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the action as a C-contiguous float32 array, (N, C, H, W)."""
        array = check_action(action, shape)
        if ignored.any():
            array = array.copy()
            array[ignored] = 0
        return array

    def out(self, array: NDArray[Any]) -> Any:
        """Return the array, (N, ...) of any dtype, unchanged."""
        return array

    def host(self, channels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the (N, C, H, W) channels unchanged."""
        return channels
