"""Levels in the form that policies read, and the scores of the paths that policies output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.levels import LevelSet, Tile, Tiles, one_hot
from maze_nca_gym.mazes.scoring import OPTIMAL, check_numbers, lengths_of, score, squared_errors
from maze_nca_gym.support.options import check
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.guarantees import DRAWINGS
from ..policies.policy import Policy

ERROR, LENGTH = OPTIMAL + 1, OPTIMAL + 2
"""Indices of two further columns of scores: `squared_errors` of the path, and the number of tiles of the wanted
output."""
BATCH, BATCH_TILES = 256, 1 << 17
"""Default limits of a batch: the largest numbers of levels and of tiles that run at once."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Levels with their solutions, computed once for all policies and measurements that use them.

    Attributes:
        tiles: (N, H, W) uint8.
        target: (N, H, W) bool, the canonical solutions; (N, K, H, W) if the task's answers have K > 1 channels.
        drawing: (N, H, W) bool, the correct output of a policy with an output that is not one path, see `DRAWINGS`;
            None for other policies.
    """

    tiles: Tiles
    target: NDArray[np.bool_]
    drawing: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: slice | NDArray[Any]) -> Batch:
        drawing = None if self.drawing is None else self.drawing[index]
        return Batch(self.tiles[index], self.target[index], drawing)

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """The correct output of the policy, (N, H, W) or (N, K, H, W) bool."""
        return self.target if self.drawing is None else self.drawing


def label(policy: Policy, levels: LevelSet | Tiles | Batch, target: NDArray[np.bool_] | None = None) -> Batch:
    """Return levels with their solutions and with the correct output of a policy on them.

    Args:
        policy: the policy that will run on the levels.
        levels: a set or (N, H, W) tiles, levels of the policy's task; or the result of this function for that policy.
        target: (N, ...) bool, the canonical solutions, if they are known; the levels are then not checked again.

    Raises:
        ValueError: no level at all, levels of another task, or an unsolvable level.
    """
    if isinstance(levels, Batch):
        return levels
    if target is None:
        levels = levels if isinstance(levels, LevelSet) else LevelSet(levels)
        task, has_ends = policy.problem, (levels.tiles >= Tile.SOURCE).any(axis=(1, 2))
        task.check_kinds(levels.tiles)
        wrong = np.flatnonzero(has_ends != task.has_endpoints)
        if task.is_plain and len(wrong):
            has, wanted = ("no", "a") if task.has_endpoints else ("a", "no")
            others = f"level {wrong[0]} has {has} source and target"
            raise ValueError(
                f"the policy is for the task {task.name!r}, whose levels have {wanted} source and target; {others}"
            )
        target = task.solve_all(levels.tiles)
    tiles = levels.tiles if isinstance(levels, LevelSet) else levels
    return Batch(tiles, target, DRAWINGS[policy.output].target(tiles) if policy.output in DRAWINGS else None)


def batches(tiles: Tiles, batch: int | None) -> list[slice]:
    """Return slices that divide levels into batches.

    Args:
        tiles: (N, H, W), the levels.
        batch: the largest number of levels in a batch, or None for a number that keeps the state small.

    Raises:
        ValueError: `batch` is below 1.
    """
    n = len(tiles)
    batch = usual_batch(tiles) if batch is None else batch
    check(batch >= 1, f"batch must be at least 1, got {batch}")
    return [slice(begin, min(begin + batch, n)) for begin in range(0, n, batch)]


def usual_batch(tiles: Tiles) -> int:
    """Return the default number of levels that run at once, for (N, H, W) levels.

    It is `BATCH`, or fewer so that they have at most `BATCH_TILES` tiles.
    """
    return max(1, min(BATCH, BATCH_TILES // max(1, int(np.prod(tiles.shape[1:])))))


def encode(policy: Policy, tiles: Tiles) -> Tensor:
    """Return levels in the form that a policy reads, (B, T, H, W) float32 one-hot tiles on the policy's device.

    Args:
        policy: the policy.
        tiles: (B, H, W) uint8.
    """
    return upload(one_hot(tiles, policy.n_tiles), policy.device)


def path_of(policy: Policy, state: Tensor) -> NDArray[np.float32]:
    """Return the answer in a state of a policy, usually a path.

    Args:
        policy: the policy.
        state: (B, C, H, W) floats, on any device.

    Returns:
        (B, H, W) float32, or (B, K, H, W) if answers of the policy's task have K channels.
    """
    return read_back(state[:, policy.problem.drawn].float())


def score_paths(policy: Policy, levels: Batch, path: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the scores of some paths, (B, 6) float64: the four columns of `score_table`, then `ERROR` and `LENGTH`.

    Args:
        policy: the policy that predicted the paths.
        levels: B levels, from `label`.
        path: (B, H, W) or (B, K, H, W), from `path_of`.
    """
    table, wanted = score_table(policy, levels, path), levels.wanted
    return np.column_stack([table, squared_errors(path, wanted), lengths_of(wanted)])


def score_table(policy: Policy, levels: Batch, path: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the four columns of `Scores.table` for some paths, (B, 4) float64.

    If the policy's output is not one path (`DRAWINGS`), an output is optimal only if its tiles are exactly the wanted
    tiles.

    Args:
        policy: the policy that predicted the paths.
        levels: B levels, from `label`.
        path: (B, H, W) or (B, K, H, W), from `path_of`.
    """
    wanted = levels.wanted
    if levels.drawing is None:
        return score(levels.tiles, path, wanted, policy.problem.judge).table
    check_numbers(path)
    losses = ((path.clip(0, 1) - wanted) ** 2).mean(axis=(1, 2), dtype=np.float64)
    n_tiles = max(1, int(np.prod(wanted.shape[1:])))
    of_nothing = np.maximum(wanted.mean(axis=(1, 2)), 1 / n_tiles)  # see `scoring` about empty answers
    complete = ((path > 0.5) == wanted).all(axis=(1, 2))
    return np.column_stack([losses, 1 - losses / of_nothing, complete, complete])
