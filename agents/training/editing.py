"""Edits of levels in a pool. The states of the levels stay, so that policies learn to erase paths that an edit has made
wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.tasks import Task

FEW, MOST = 2, 40
"""Smallest and largest number of edits of a level. An edit is a new wall, gap, source or target."""
REPLACED, OPENED, CLOSED = 0.3, 0.4, 0.15
"""Fractions of the levels that the kind `all-kinds` replaces by other levels, gives a single gap, and gives a single
wall on their solution."""


class EditKind(NamedTuple):
    """A way to edit levels.

    Attributes:
        edit: function that receives the random generator, the (n, H, W) levels to edit, all (P, H, W) levels of the
            pool, and the task, and returns the (n, H, W) edited levels.
        grace: number of iterations by which an edited level is due later than a fresh level.
        cuts: whether an edited level may have no solution. If not, edits that leave no solution are skipped.
    """

    edit: Callable[[np.random.Generator, Tiles, Tiles, Task], Tiles]
    grace: int
    cuts: bool


def _few(rng: np.random.Generator, tiles: Tiles, pool: Tiles, task: Task) -> Tiles:
    return mutate(rng, tiles, "edits", task, n_edits=FEW)


def _all_kinds(rng: np.random.Generator, tiles: Tiles, pool: Tiles, task: Task) -> Tiles:
    # Large changes alone would teach a policy to erase the whole path at any change. After a single gap, the old path
    # can still be walked, so a policy has to find out whether it is still shortest. After a single wall, there may be
    # no path at all, and then a policy must predict an empty path.
    parts = np.round(np.cumsum([REPLACED, OPENED, CLOSED]) * len(tiles)).astype(int)
    edited = tiles.copy()
    replaced, opened, closed, changed = np.split(edited, parts)  # views of `edited`
    replaced[...] = pool[rng.integers(len(pool), size=len(replaced))]
    for level in opened:  # a gap in a random wall inside the border, if there is such a wall
        inner = level[1:-1, 1:-1]
        walls = np.argwhere(inner == Tile.WALL)
        if len(walls):
            inner[tuple(rng.choice(walls))] = Tile.EMPTY
    for level, shown in zip(closed, task.solve(closed), strict=True):  # a wall on an empty tile of the solution
        path = np.argwhere((shown if shown.ndim == 2 else shown.any(axis=0)) & (level == Tile.EMPTY))
        if len(path):
            level[tuple(rng.choice(path))] = Tile.WALL
    numbers = np.round(FEW * (MOST / FEW) ** rng.random(len(changed))).astype(int)  # log-uniform
    for level, n in zip(changed, numbers, strict=True):
        level[...] = mutate(rng, level[None], "edits", task, n_edits=int(n))[0]
    return edited


EDITS = {"few": EditKind(_few, 0, cuts=False), "all-kinds": EditKind(_all_kinds, 8, cuts=True)}
"""Kinds of edits by name."""
