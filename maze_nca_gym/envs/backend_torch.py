"""Backends with torch tensors as arrays: NumPy dynamics with tensors around them, or the same functions on a device.

On a device, levels are drawn and solved on the CPU. Each step sends 40 bytes per episode back to the CPU, and the
rounded path at one bit per tile, from which the CPU decides whether the path is another optimum. Scores agree with the
CPU's scores up to rounding, because errors are summed in another order. The paths that are complete or optimal are
exactly the same.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from maze_nca_gym.envs import dynamics
from maze_nca_gym.envs.backend import NumpyBackend
from maze_nca_gym.envs.dynamics import NOT_FINITE, STATE_LIMIT
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.scoring import IsOptimal, Scores, answer_of, score
from maze_nca_gym.support.transfer import read_back, upload

DEVICES = "cpu, cuda, cuda:0 …, mps, xpu"


def find_device(name: str, float64_for: str = "") -> torch.device:
    """Return the torch device of a name, with a warning for devices on which this package is untested.

    Args:
        name: one of `DEVICES`.
        float64_for: the computation that needs float64 on the device, in words; empty if there is none.

    Raises:
        ValueError: there is no such device here, or the device has no float64 although `float64_for` is not empty.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"unknown device {name!r}; known: {DEVICES}") from error
    if device.type == "cpu":
        return device
    if device.type not in ("cuda", "mps", "xpu"):
        raise ValueError(f"device {name!r} is not supported; known: {DEVICES}")
    here = torch.backends.mps.is_available() if device.type == "mps" else getattr(torch, device.type).device_count()
    if (device.index or 0) >= here:
        raise ValueError(f"device={name!r}, but torch finds {here:d} {device.type.upper()} devices here")
    if device.type != "cuda":
        has_float64 = device.type == "xpu" and torch.xpu.get_device_properties(device).has_fp64
        if float64_for and not has_float64:
            raise ValueError(f"device {name!r} has no float64, in which {float64_for} computes; use cpu or cuda")
        warnings.warn(f"this package has never been run on a device {device.type!r}", UserWarning, stacklevel=2)
    return device


class TorchBackend(NumpyBackend):
    """NumPy dynamics with CPU tensors as arrays, which share their memory with NumPy arrays."""

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the values of an action tensor as an array, (N, C, H, W) float32."""
        return super().action(read_back(_check_tensor(action, shape).float()), shape, ignored)

    def out(self, *arrays: NDArray[Any]) -> list[Any]:
        """Return tensors that share the memory of arrays, (N, ...) of the same dtype."""
        return [torch.from_numpy(array) for array in arrays]


class TensorState(NamedTuple):
    """A `dynamics.State` with `maze` and `channels` as tensors on the device; `wanted` is the target on the device."""

    tiles: Tiles
    maze: Tensor
    target: NDArray[np.bool_]
    length: NDArray[np.int64]
    channels: Tensor
    scores: Scores
    wanted: Tensor


class DeviceBackend(NumpyBackend):
    """The dynamics in torch, on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def initial(self, tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int) -> TensorState:
        """Return the same as `dynamics.initial` for (N, H, W) tiles and targets, with the tensors on the device."""
        state = dynamics.initial(tiles, target, n_tiles, n_channels)
        maze, wanted = upload(state.maze, self._device), upload(target, self._device)
        channels = torch.zeros(state.channels.shape, dtype=torch.float32, device=self._device)
        return TensorState(tiles, maze, target, state.length, channels, state.scores, wanted)

    def transition(self, state: TensorState, action: Tensor, is_optimal: IsOptimal | None = None) -> TensorState:
        """Return the same as `dynamics.transition`, for an action (N, C, H, W) float32 on the device.

        The host waits for the device once, however many episodes there are.

        Raises:
            ValueError: the action contains a NaN or infinity.
        """
        channels = action.clamp(-STATE_LIMIT, STATE_LIMIT)
        path = answer_of(channels, state.wanted)
        rounded = path > 0.5
        n_wrong = (rounded != state.wanted).flatten(1).sum(dim=1)
        # Also the error against the path's own rounding. That one counts if the path is another optimum, which only the
        # host can decide.
        shown, references = path.clamp(0, 1), (state.wanted.float(), rounded.float())
        errors = [(shown - reference).square().flatten(1).sum(dim=1, dtype=torch.float64) for reference in references]
        # one number an episode, in one pass: a NaN or infinity anywhere is its largest magnitude
        finite = torch.linalg.vector_norm(action.flatten(1), torch.inf, dim=1).isfinite()
        flat = rounded.flatten(1)
        figures = torch.stack([finite.double(), n_wrong.double(), flat.sum(dim=1).double(), *errors], dim=1)
        split, area = figures.shape[1] * figures.element_size(), flat.shape[1]
        # Eight tiles a byte, the first one highest, as NumPy packs bits.
        bits = pad(flat, (0, -area % 8)).view(len(flat), -1, 8)
        values = 1 << torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device)
        packed = (bits * values).sum(dim=2, dtype=torch.uint8)
        # Numbers and bits travel as the bytes of one tensor, because every read waits for all queued work.
        everything = read_back(torch.cat([figures.view(torch.uint8), packed], dim=1))
        all_finite, n_differing, n_drawn, error, own_error = everything[:, :split].copy().view(np.float64).T
        if not all_finite.all():
            raise ValueError(f"{NOT_FINITE} (in episode {int(np.argmin(all_finite))} of {len(action)})")
        complete = n_differing == 0
        doubtful, others = ~complete, np.zeros(len(action), np.bool_)  # others are optima, but not the target
        if is_optimal is None:  # all optima have the same number of tiles
            doubtful &= n_drawn == state.length
        if doubtful.any():  # hardly ever: only then are the bits looked at
            paths = np.unpackbits(everything[doubtful, split:], axis=1, count=area).reshape(-1, *path.shape[1:])
            predicted = paths.astype(np.float32)
            others[doubtful] = score(state.tiles[doubtful], predicted, state.target[doubtful], is_optimal).optimal
        error, length = np.where(others, own_error, error), np.where(others, n_drawn, state.length)
        scores = np.stack([error / area, 1.0 - error / np.maximum(length, 1), complete, complete | others], axis=1)
        return state._replace(channels=channels, scores=Scores(scores))

    def replace(self, state: TensorState, rows: NDArray[np.intp], fresh: TensorState) -> TensorState:
        """Return the episodes after K fresh episodes, in order, have replaced the episodes at `rows`, (K,) int."""
        where = upload(rows, self._device)
        arrays = [dynamics.assign(getattr(state, n), rows, getattr(fresh, n)) for n in ("tiles", "target", "length")]
        tensors = [getattr(state, n).index_copy(0, where, getattr(fresh, n)) for n in ("maze", "channels", "wanted")]
        scores = Scores(dynamics.assign(state.scores.table, rows, fresh.scores.table))
        return TensorState(arrays[0], tensors[0], arrays[1], arrays[2], tensors[1], scores, tensors[2])

    def action(self, action: Any, shape: tuple[int, ...], ignored: NDArray[np.bool_]) -> Tensor:
        """Return the action as a float32 tensor on the device, (N, C, H, W)."""
        tensor = _check_tensor(action, shape).to(self._device, torch.float32)
        if ignored.any():
            tensor = tensor.index_fill(0, upload(np.flatnonzero(ignored), self._device), 0)
        return tensor

    def out(self, *arrays: Any) -> list[Any]:
        """Return arrays as tensors on the device, with one upload for all of them; return tensors unchanged."""
        host = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays if not isinstance(array, Tensor)]
        if not host:
            return list(arrays)
        # each begins at a multiple of eight bytes, which numbers of 64 bits need
        rows = [np.pad(array.flatten().view(torch.uint8).numpy(), (0, -array.nbytes % 8)) for array in host]
        uploaded: Any = upload(np.concatenate(rows), self._device)
        parts = zip(host, uploaded.split([len(row) for row in rows]), strict=True)
        sent = (part[: array.nbytes].view(array.dtype).view(array.shape) for array, part in parts)
        return [array if isinstance(array, Tensor) else next(sent) for array in arrays]

    def host(self, channels: Tensor) -> NDArray[np.float32]:
        """Return a NumPy copy of (N, C, H, W) float32 channels."""
        return read_back(channels)


def _check_tensor(action: Any, shape: tuple[int, ...]) -> Tensor:
    if not isinstance(action, Tensor):
        raise ValueError(f'with output="torch" the action must be a torch.Tensor, got {type(action).__name__}')
    if action.layout != torch.strided or action.is_meta:
        kind = "without values, on the meta device" if action.is_meta else f"of layout {action.layout}"
        raise ValueError(f"the action must be a dense tensor with values, got one {kind}")
    if tuple(action.shape) != shape:
        raise ValueError(f"the action must have shape {shape}, got {tuple(action.shape)}")
    if not action.is_floating_point():
        raise ValueError(f"the action must be floating-point (float32), got dtype {action.dtype}")
    action = action.detach()
    if action.dtype == torch.float64:  # what is finite must not become infinite in float32
        action = torch.where(action.isfinite(), action.clamp(-STATE_LIMIT, STATE_LIMIT), action)
    return action
