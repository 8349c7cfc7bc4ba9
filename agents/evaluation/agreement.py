"""How predicted paths agree with exact search, and how they fail."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.tasks import Task

KINDS = {
    "canonical": "the path that exact search returns",
    "other optimum": "another path, as short (as long, for the diameter)",
    "extra tiles": "an optimal path, and more tiles",
    "longer path": "source and target are joined, with a detour",
    "broken path": "source and target are not joined; for the diameter, the tiles reach less far than they should",
    "through walls": "at least one tile is a wall",
    "nothing": "no tile at all",
}
"""Kinds of path, of which every one is exactly one, and what they are."""
CANONICAL, OTHER, EXTRA, LONGER, BROKEN, WALLS, NOTHING = range(len(KINDS))


def kinds_of(
    task: Task,
    tiles: Tiles,
    path: NDArray[np.bool_],
    target: NDArray[np.bool_],
    optimal: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the kind of every path, (N,), as its place in `KINDS`.

    Args:
        task: what was asked for.
        tiles: (N, H, W) uint8.
        path: (N, H, W) bool, the rounded predictions.
        target: (N, H, W) bool, the canonical solutions.
        optimal: (N,) bool, of `scoring.score`.
    """
    length, longest = _length_within(task, tiles, path), target.sum(axis=(1, 2))
    enough = length == longest if task.has_endpoints else length >= longest
    conditions = [
        (path == target).all(axis=(1, 2)),
        optimal,
        ~path.any(axis=(1, 2)),
        (path & (tiles == Tile.WALL)).any(axis=(1, 2)),
        enough,
        task.has_endpoints & (length > 0),
    ]
    return np.select(conditions, [CANONICAL, OTHER, NOTHING, WALLS, EXTRA, LONGER], BROKEN)


def _length_within(task: Task, tiles: Tiles, path: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (N,) tiles on the task's solution where all but the path is wall; 0 where there is none."""
    ends = tiles >= Tile.SOURCE
    inside = np.where(path | ends, tiles, np.uint8(Tile.WALL))
    length = task.solve(inside).sum(axis=(1, 2), dtype=np.int64)
    return np.where((ends & ~path).any(axis=(1, 2)), 0, length)
