"""`dynamics` on a device: the same functions with maze and channels as torch tensors.

Levels are drawn and solved on the CPU. Each step sends it 32 bytes an episode, and the rounded path as a bit a tile: it
decides which paths are another optimum. Scores agree with the CPU's to rounding, since errors are summed in another
order. Which paths are complete or optimal agrees exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from maze_nca_gym import dynamics
from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.levels import Tiles
from maze_nca_gym.scoring import IsOptimal, Scores, score
from maze_nca_gym.transfer import read_back, upload


class TensorState(NamedTuple):
    """`dynamics.State`, of which `maze` and `channels` are tensors on the device; `wanted` is the target there."""

    tiles: Tiles
    maze: Tensor
    target: NDArray[np.bool_]
    length: NDArray[np.int64]
    channels: Tensor
    scores: Scores
    wanted: Tensor


def initial(
    tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int, device: torch.device
) -> TensorState:
    """Return the same as `dynamics.initial` for (N, H, W) tiles and targets, with the tensors on `device`."""
    state = dynamics.initial(tiles, target, n_tiles, n_channels)
    maze, wanted = upload(state.maze, device), upload(target, device)
    channels = torch.zeros(state.channels.shape, device=device)
    return TensorState(tiles, maze, target, state.length, channels, state.scores, wanted)


def transition(state: TensorState, action: Tensor, is_optimal: IsOptimal | None = None) -> TensorState:
    """Return the same as `dynamics.transition`, for an action (N, C, H, W) float32 on the state's device.

    The host waits for the device once, however many episodes there are.

    Raises:
        ValueError: it holds a NaN or infinity.
    """
    channels = action.clamp(-STATE_LIMIT, STATE_LIMIT)
    path = channels[:, 0]
    rounded = path > 0.5
    n_wrong = (rounded != state.wanted).flatten(1).sum(dim=1)
    errors = [_squared_errors(path, wanted) for wanted in (state.wanted, rounded)]
    finite = torch.isfinite(action).flatten(1).all(dim=1)
    figures = torch.stack([finite.double(), n_wrong.double(), *errors], dim=1)
    everything = read_back(torch.cat([figures.view(torch.uint8), _packed(rounded)], dim=1))
    split, area = figures.shape[1] * figures.element_size(), path[0].numel()
    all_finite, n_differing, error, own_error = everything[:, :split].copy().view(np.float64).T
    if not all_finite.all():
        bad = int(np.argmin(all_finite))
        raise ValueError(f"the action must be finite, got NaN or infinity (in episode {bad} of {len(action)})")
    paths = np.unpackbits(everything[:, split:], axis=1, count=area).astype(bool).reshape(path.shape)
    complete = n_differing == 0
    others = _other_optima(state, paths, complete, is_optimal)
    error, length = np.where(others, own_error, error), np.where(others, paths.sum(axis=(1, 2)), state.length)
    scores = np.stack([error / area, 1.0 - error / np.maximum(length, 1), complete, complete | others], axis=1)
    return state._replace(channels=channels, scores=Scores(scores))


def _squared_errors(path: Tensor, wanted: Tensor) -> Tensor:
    """Return the sums of (clip(path, 0, 1) - wanted)^2 over all tiles, (N,) float64."""
    return (path.clamp(0, 1) - wanted.float()).square().flatten(1).sum(dim=1, dtype=torch.float64)


def _packed(mask: Tensor) -> Tensor:
    """Return (N, H, W) bool as eight bits a byte, (N, bytes) uint8, the first one highest, as NumPy packs them."""
    bits = pad(mask.flatten(1), (0, -mask[0].numel() % 8)).view(len(mask), -1, 8)
    return (bits * (1 << torch.arange(7, -1, -1, device=mask.device))).sum(dim=2).to(torch.uint8)


def _other_optima(
    state: TensorState, paths: NDArray[np.bool_], complete: NDArray[np.bool_], is_optimal: IsOptimal | None
) -> NDArray[np.bool_]:
    """Return which paths are another optimum than the target, (N,) bool."""
    doubtful = ~complete
    if is_optimal is None:  # all optima are as long
        doubtful &= paths.sum(axis=(1, 2)) == state.length
    rows = np.flatnonzero(doubtful)
    others = np.zeros(len(paths), np.bool_)
    if len(rows):
        predicted = paths[rows].astype(np.float32)
        others[rows] = score(state.tiles[rows], predicted, state.target[rows], is_optimal).optimal
    return others


def replace(state: TensorState, rows: NDArray[np.intp], fresh: TensorState) -> TensorState:
    """Return the episodes with those at `rows`, (K,) int, replaced by the K fresh ones, in order."""
    where = upload(rows, state.maze.device)
    arrays = [dynamics.assign(getattr(state, n), rows, getattr(fresh, n)) for n in ("tiles", "target", "length")]
    tensors = [getattr(state, n).index_copy(0, where, getattr(fresh, n)) for n in ("maze", "channels", "wanted")]
    scores = Scores(dynamics.assign(state.scores.table, rows, fresh.scores.table))
    return TensorState(arrays[0], tensors[0], arrays[1], arrays[2], tensors[1], scores, tensors[2])
