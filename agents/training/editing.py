"""Edits of a pool's levels that leave their states as they are: policies learn to drop a path that is now wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.mutation import mutate
from maze_nca_gym.mazes.tasks import Task

FEW, MOST = 2, 40
"""Smallest and largest number of edits of a level: new walls, gaps, sources or targets."""
REPLACED, OPENED, CLOSED = 0.3, 0.4, 0.15
"""With `all-kinds`: fractions of the levels that are replaced by others, that get a single gap, and that get a single
wall on their solution."""


class EditKind(NamedTuple):
    """A way to edit levels.

    Attributes:
        edit: returns (n, H, W) edited levels, given the generator, the (n, H, W) levels, the pool's (P, H, W), and
            their task.
        grace: extra iterations before the solution of an edited level is due, compared to a fresh level.
        cuts: whether edited levels may have no solution; otherwise such an edit is skipped.
    """

    edit: Callable[[np.random.Generator, Tiles, Tiles, Task], Tiles]
    grace: int
    cuts: bool


def _few(rng: np.random.Generator, tiles: Tiles, pool: Tiles, task: Task) -> Tiles:
    return mutate(rng, tiles, "edits", task, n_edits=FEW)


def _all_kinds(rng: np.random.Generator, tiles: Tiles, pool: Tiles, task: Task) -> Tiles:
    # Large changes alone would teach a policy to drop everything at any change. A single gap leaves the old path
    # walkable, so a policy has to notice where it is no longer shortest. A single wall can leave no path at all, which
    # a policy must see to draw nothing.
    parts = np.round(np.cumsum([REPLACED, OPENED, CLOSED]) * len(tiles)).astype(int)
    edited = tiles.copy()
    replaced, opened, closed, changed = np.split(edited, parts)  # views of `edited`
    replaced[...] = pool[rng.integers(len(pool), size=len(replaced))]
    for level in opened:  # a gap in a wall that is not at the edge, if there is one
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
