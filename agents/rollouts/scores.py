"""Levels as policies read them, and the scores of the paths that policies output."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.levels import LevelSet, Tile, Tiles, one_hot
from maze_nca_gym.scoring import OPTIMAL, score, squared_errors
from maze_nca_gym.tasks import Task, find_task
from maze_nca_gym.transfer import read_back, upload

from ..guarantees import DRAWINGS
from ..policy import PATH, Policy

ERROR, LENGTH = OPTIMAL + 1, OPTIMAL + 2
"""Indices of two more columns of scores: `squared_errors` of the path, and the number of tiles wanted."""
BATCH, BATCH_TILES = 256, 1 << 17
"""Largest numbers of levels and of tiles that run at once by default."""


def task_of(policy: Policy, tiles: Tiles) -> Task:
    """Return the policy's task, if these (N, H, W) levels are of it.

    Raises:
        ValueError: they are not.
    """
    task = find_task(policy.task)
    with_endpoints = (tiles >= Tile.SOURCE).any(axis=(1, 2))
    if (with_endpoints != task.has_endpoints).any():
        has, wanted = ("no ", "a ") if task.has_endpoints else ("a ", "no ")
        raise ValueError(
            f"the policy is for the task {task.name!r}, whose levels have {wanted}source and target; level "
            f"{int(np.argmax(with_endpoints != task.has_endpoints))} has {has}source and target"
        )
    return task


def encode(policy: Policy, tiles: Tiles) -> Tensor:
    """Return (B, T, H, W) float32 one-hot tiles on the policy's device."""
    return upload(one_hot(tiles, policy.n_tiles), policy.device)


def wanted_of(policy: Policy, tiles: Tiles, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return what the policy should draw, (N, H, W) bool: by default the canonical solutions, see `DRAWINGS`.

    Args:
        policy: the policy that draws.
        tiles: (N, H, W), solvable levels.
        targets: (N, H, W) bool, their canonical solutions.
    """
    return DRAWINGS[policy.output].target(tiles) if policy.output in DRAWINGS else targets


class LabelledLevels(NamedTuple):
    """Levels with their solutions, computed once for everything that runs a policy on them.

    Attributes:
        tiles: (N, H, W) uint8, levels of the policy's task.
        targets: (N, H, W) bool, the canonical solutions.
        wanted: (N, H, W) bool, what the policy should draw, from `wanted_of`.
    """

    tiles: Tiles
    targets: NDArray[np.bool_]
    wanted: NDArray[np.bool_]

    def part(self, members: slice) -> LabelledLevels:
        """Return some of the levels."""
        return LabelledLevels(self.tiles[members], self.targets[members], self.wanted[members])


def label(
    policy: Policy, levels: LevelSet | Tiles | LabelledLevels, targets: NDArray[np.bool_] | None = None
) -> LabelledLevels:
    """Return levels with their solutions and with what a policy should draw on them.

    Args:
        policy: the policy that will run on them.
        levels: a set or (N, H, W) tiles, levels of the policy's task; or what this function returned for that policy.
        targets: (N, H, W) bool, the canonical solutions, if they are known.

    Raises:
        ValueError: no level at all, levels of another task, or an unsolvable one.
    """
    if isinstance(levels, LabelledLevels):
        return levels
    tiles = tiles_of(levels)
    task = task_of(policy, tiles)
    targets = task.solve_all(tiles) if targets is None else targets
    return LabelledLevels(tiles, targets, wanted_of(policy, tiles, targets))


def path_of(state: Tensor) -> NDArray[np.float32]:
    """Return (B, H, W) float32, the predicted path."""
    return read_back(state[:, PATH].float())


def score_paths(
    policy: Policy, tiles: Tiles, path: NDArray[np.float32], wanted: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the columns of `Scores.table`, and then `ERROR` and `LENGTH`, (B, 6) float64.

    If the policy outputs something else than one path (`DRAWINGS`), only exactly what was wanted is optimal.

    Args:
        policy: the policy that drew.
        tiles: (B, H, W).
        path: (B, H, W), channel 0.
        wanted: (B, H, W) bool, from `wanted_of`.
    """
    if policy.output in DRAWINGS:
        table = _score_drawing(path, wanted)
    else:
        table = score(tiles, path, wanted, find_task(policy.task).judge).table
    lengths = wanted.sum(axis=(1, 2), dtype=np.float64)
    return np.column_stack([table, squared_errors(path, wanted), lengths])


def _score_drawing(path: NDArray[np.float32], wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    losses = ((path.clip(0, 1) - wanted) ** 2).mean(axis=(1, 2), dtype=np.float64)
    n_tiles = max(1, int(np.prod(wanted.shape[1:])))
    of_nothing = np.maximum(wanted.mean(axis=(1, 2)), 1 / n_tiles)  # see `scoring` about what is empty
    complete = ((path > 0.5) == wanted).all(axis=(1, 2))
    return np.column_stack([losses, 1 - losses / of_nothing, complete, complete])


def score_state(policy: Policy, tiles: Tiles, state: Tensor, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the scores of the path of a (B, C, H, W) float state, (B, 6) float64, as `score_paths`."""
    return score_paths(policy, tiles, path_of(state), wanted)


def usual_batch(tiles: Tiles) -> int:
    """Return the default number of levels that run at once, for levels of the size of these (N, H, W)."""
    return max(1, min(BATCH, BATCH_TILES // max(1, int(np.prod(tiles.shape[1:])))))


def batches(tiles: Tiles, batch: int | None) -> list[slice]:
    """Return slices that divide (N, H, W) levels into batches; by default as large as keeps the state small.

    Raises:
        ValueError: `batch` is below 1.
    """
    n = len(tiles)
    batch = usual_batch(tiles) if batch is None else batch
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    return [slice(begin, min(begin + batch, n)) for begin in range(0, n, batch)]


def tiles_of(levels: LevelSet | Tiles) -> Tiles:
    """Return the (N, H, W) tiles of a set, or the given ones after checking them.

    Raises:
        ValueError: there is no level at all, or the array is not one of tiles.
    """
    return levels.tiles if isinstance(levels, LevelSet) else LevelSet(levels).tiles
