"""Maze-Hard generated again: open grids without a border, with start and goal far apart. Nearly every level has several
shortest paths.

Levels are drawn by Searchformer's procedure (arXiv 2402.14083), and as in HRM (arXiv 2506.21734) only those with the
longest paths are used. A layout has 30 x 30 tiles, no border, and 270 to 450 walls. It gets up to 100 random pairs of
start and goal, and becomes a level with the first pair that is far enough apart. About one layout in a thousand has
such a pair, so the package stores the numbers of these layouts instead of searching each time.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from maze_nca_gym.mazes.families import named_seed
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances

SIDE = 30
"""Number of rows and of columns; there is no border."""
FEWEST_WALLS, MOST_WALLS = 270, 450
"""Range of the number of walls, drawn uniformly."""
PAIRS = 100
"""Largest number of pairs of start and goal that are tried on a layout."""
LEAST_MOVES = {"test": 109, "train": 111}
"""Fewest moves on the shortest path of a level, by split.

The shortest of the original's 2,000 paths have 109 moves, which are 110 tiles. The limit for training levels is higher
because `nca-shortest-path-hard` was trained on levels with this limit.
"""
ORDER = "DLRU"
"""Order of directions with which `shortest_path(tiles, order=ORDER)` returns all 2,000 labels of the original."""
_SEEDED_BY = {"test": "benchmark maze-hard-30", "train": "benchmark maze-hard-train-30"}


def hard_levels(split: str, n: int) -> Tiles:
    """Return the first `n` levels of a split, "test" or "train", (n, 30, 30) uint8."""
    levels = [draw_hard(split, candidate) for candidate in candidates()[split][:n]]
    return np.stack([level for level in levels if level is not None])


@cache
def candidates() -> dict[str, tuple[int, ...]]:
    """Return by split the numbers of the first candidates for which `draw_hard` returns a level, in order."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("maze_hard.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines()]
    return {words[0]: tuple(map(int, words[1:])) for words in lines}


def draw_hard(split: str, candidate: int) -> Tiles | None:
    """Return a candidate of a split as a level, (30, 30) uint8, or None if no pair of start and goal is far enough
    apart.

    Every candidate has its own seed. Its number of walls is drawn first, then their places, then all pairs. The first
    pair that is far enough apart becomes source and target.
    """
    rng, least = np.random.default_rng(named_seed(_SEEDED_BY[split], candidate)), LEAST_MOVES[split]
    n_walls = rng.integers(FEWEST_WALLS, MOST_WALLS + 1)
    tiles = np.zeros(SIDE * SIDE, np.uint8)
    tiles[rng.permutation(SIDE * SIDE)[:n_walls]] = Tile.WALL
    free = np.flatnonzero(tiles == Tile.EMPTY)
    pairs = free[rng.integers(len(free), size=(PAIRS, 2))]
    level = tiles.reshape(SIDE, SIDE)
    # A single search rules most pairs out: two tiles are no farther apart than the detour through a third one, here a
    # free tile near the middle. If neither is connected to it, their path has no more tiles than the others that are
    # not.
    places = np.argwhere(level == Tile.EMPTY)
    reach = distances(level, places[np.abs(places - (SIDE - 1) / 2).sum(axis=1).argmin()]).reshape(SIDE * SIDE)
    detours, n_others = reach[pairs], len(places) - np.count_nonzero(reach >= 0)
    together = (detours >= 0).all(axis=1) & (detours.sum(axis=1) >= least)
    pairs = pairs[together | ((detours < 0).all(axis=1) & (n_others > least))]
    if not len(pairs):
        return None
    starts = np.stack(np.divmod(pairs[:, 0], SIDE), axis=1)
    maps = distances(np.broadcast_to(level, (len(pairs), SIDE, SIDE)), starts).reshape(len(pairs), SIDE * SIDE)
    far = np.flatnonzero(maps[np.arange(len(pairs)), pairs[:, 1]] >= least)
    if not len(far):
        return None
    tiles[pairs[far[0]]] = Tile.SOURCE, Tile.TARGET
    return level
