"""Backends whose arrays are torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym import dynamics_torch
from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.envs.backend import NumpyBackend
from maze_nca_gym.levels import Tiles
from maze_nca_gym.transfer import read_back, upload


def find_device(name: str) -> torch.device:
    """Return the torch device of that name.

    Raises:
        ValueError: there is no such device here.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f'unknown device {name!r}; known: "cpu", "cuda", "cuda:0" …') from error
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f'device {name!r} is not supported; known: "cpu", "cuda", "cuda:0" …')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device={name!r}, but torch finds {torch.cuda.device_count()} CUDA devices here")
    return device


def _check_tensor(action: Any, shape: tuple[int, ...]) -> torch.Tensor:
    if not isinstance(action, torch.Tensor):
        raise ValueError(f'with output="torch" the action must be a torch.Tensor, got {type(action).__name__}')
    if action.layout != torch.strided or action.is_meta:
        what = "without values, on the meta device" if action.is_meta else f"of layout {action.layout}"
        raise ValueError(f"the action must be a dense tensor with values, got one {what}")
    if tuple(action.shape) != shape:
        raise ValueError(f"the action is the next state and must have shape {shape}, got {tuple(action.shape)}")
    if not action.is_floating_point():
        raise ValueError(f"the action must be floating-point (float32), got dtype {action.dtype}")
    action = action.detach()
    if action.dtype == torch.float64:  # what is finite must not become infinite in float32
        action = torch.where(action.isfinite(), action.clamp(-STATE_LIMIT, STATE_LIMIT), action)
    return action


class TorchBackend(NumpyBackend):
    """NumPy dynamics, the arrays wrapped as CPU tensors without a copy."""

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the tensor's values as an array, (N, C, H, W) float32."""
        return super().action(read_back(_check_tensor(action, shape).float()), shape, ignored)

    def out(self, array: NDArray[Any]) -> Any:
        """Return a tensor on the memory of an array, (N, ...) of the same dtype."""
        return torch.from_numpy(array)


class DeviceBackend:
    """Torch dynamics on one device."""

    transition = staticmethod(dynamics_torch.transition)
    replace = staticmethod(dynamics_torch.replace)

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def initial(self, tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int) -> Any:
        """Return episodes on the given levels, (N, H, W) uint8 with (N, H, W) bool solutions."""
        return dynamics_torch.initial(tiles, target, n_tiles, n_channels, self._device)

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> torch.Tensor:
        """Return the action as a float32 tensor on the device, (N, C, H, W)."""
        tensor = _check_tensor(action, shape).to(self._device, torch.float32)
        if ignored.any():
            tensor = tensor.clone()
            tensor[upload(np.flatnonzero(ignored), self._device)] = 0
        return tensor

    def out(self, array: Any) -> Any:
        """Return a tensor on the device."""
        return array if isinstance(array, torch.Tensor) else upload(array, self._device)

    def host(self, channels: torch.Tensor) -> NDArray[np.float32]:
        """Return a NumPy copy of (N, C, H, W) float32 channels."""
        return read_back(channels)
