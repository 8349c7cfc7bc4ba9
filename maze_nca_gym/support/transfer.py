"""Transfers of arrays to a device and back: the only places at which host and device meet.

A GPU works through a queue. The host waits for the end of the queue when it reads a value, and then the GPU is idle
until the host sends more work. Therefore all reads from a device go through this module, where tests count them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def read_back(tensor: Tensor) -> NDArray[Any]:
    """Return the values of a (...) tensor as an array of its dtype; the host waits for a GPU.

    On the CPU the array shares the tensor's memory.
    """
    return on_host(tensor).numpy()


def on_host(tensor: Tensor) -> Tensor:
    """Return a (...) tensor of any dtype on the CPU, without gradients; the host waits for a GPU."""
    return _copied(tensor.detach())


def upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array, (...) of any dtype, as a tensor on a device, without waiting for the device.

    On the CPU the tensor shares the array's memory. For a CUDA GPU the values are copied to pinned memory at once, so
    that the array may change afterwards. For any other device the host waits until the values are there.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.cpu()
