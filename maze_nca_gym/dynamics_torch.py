"""`dynamics` on a device: the same functions with maze and channels as torch tensors.

Levels are drawn and solved on the CPU, and scores come back to it, 32 bytes an episode. They agree with the CPU's to
rounding (errors are summed in another order); which paths are complete or optimal agrees exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym import dynamics
from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.levels import Tiles
from maze_nca_gym.scoring import IsOptimal, Scores, score


class TensorState(NamedTuple):
    """`dynamics.State`, of which `maze` and `channels` are tensors on the device; `wanted` is the target there."""

    tiles: Tiles
    maze: torch.Tensor
    target: NDArray[np.bool_]
    length: NDArray[np.int64]
    channels: torch.Tensor
    scores: Scores
    wanted: torch.Tensor


def initial(
    tiles: Tiles, target: NDArray[np.bool_], n_tiles: int, n_channels: int, device: torch.device
) -> TensorState:
    """Return the same as `dynamics.initial` for (N, H, W) tiles and targets, with the tensors on `device`."""
    state = dynamics.initial(tiles, target, n_tiles, n_channels)
    maze, channels, wanted = (torch.from_numpy(a).to(device) for a in (state.maze, state.channels, target))
    return TensorState(tiles, maze, target, state.length, channels, state.scores, wanted)


def transition(state: TensorState, action: torch.Tensor, is_optimal: IsOptimal | None = None) -> TensorState:
    """Return the same as `dynamics.transition`, for an action (N, C, H, W) float32 on the state's device.

    Raises:
        ValueError: it holds a NaN or infinity.
    """
    channels = action.clamp(-STATE_LIMIT, STATE_LIMIT)
    path = channels[:, 0]
    rounded = path > 0.5
    finite = torch.isfinite(action).flatten(1).all(dim=1)
    errors = (path.clamp(0, 1) - state.wanted.float()).square().flatten(1).sum(dim=1)
    differing = (rounded != state.wanted).flatten(1).sum(dim=1)
    counts = rounded.flatten(1).sum(dim=1)
    columns = torch.stack([finite.double(), errors.double(), differing.double(), counts.double()])
    all_finite, error, n_differing, n_on = columns.cpu().numpy()  # the one synchronisation of a step
    if not all_finite.all():
        bad = int(np.argmin(all_finite))
        raise ValueError(f"the action must be finite, got NaN or infinity (in episode {bad} of {len(action)})")
    area, complete = path[0].numel(), n_differing == 0
    scores = np.stack([error / area, 1.0 - error / state.length, complete, complete], axis=1)
    may_be_optimal = ~complete if is_optimal is not None else (n_on == state.length) & ~complete
    doubtful = np.flatnonzero(may_be_optimal)
    if len(doubtful):
        scores[doubtful] = _settle(state, path, doubtful, is_optimal)
    return state._replace(channels=channels, scores=Scores(scores))


def _settle(
    state: TensorState, path: torch.Tensor, rows: NDArray[np.intp], is_optimal: IsOptimal | None
) -> NDArray[np.float64]:
    """Return the scores of the few paths that may be another optimum than the target, decided on the CPU."""
    paths = path[torch.from_numpy(rows).to(path.device)].cpu().contiguous().numpy()
    return score(state.tiles[rows], paths, state.target[rows], is_optimal).table


def replace(state: TensorState, rows: NDArray[np.intp], fresh: TensorState) -> TensorState:
    """Return the episodes with those at `rows`, (K,) int, replaced by the K fresh ones, in order."""
    where = torch.from_numpy(rows).to(state.maze.device)
    arrays = [dynamics.assign(getattr(state, n), rows, getattr(fresh, n)) for n in ("tiles", "target", "length")]
    tensors = [getattr(state, n).index_copy(0, where, getattr(fresh, n)) for n in ("maze", "channels", "wanted")]
    scores = Scores(dynamics.assign(state.scores.table, rows, fresh.scores.table))
    return TensorState(arrays[0], tensors[0], arrays[1], arrays[2], tensors[1], scores, tensors[2])
