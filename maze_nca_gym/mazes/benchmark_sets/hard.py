"""Maze-Hard drawn again: open grids without a border on which start and goal are far apart, and nearly every answer is
a tie.

The procedure is Searchformer's (arXiv 2402.14083), of which HRM (arXiv 2506.21734) keeps the longest.
A layout has 30 x 30 tiles, no border, and 270 to 450 walls. It gets up to 100 random pairs of start and goal, and is
kept with the first that is far enough apart. About one layout in a thousand has such a pair, so the package stores
which ones do instead of searching each time.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from maze_nca_gym.mazes.families import named_seed
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances

SIDE = 30
"""Rows and columns; there is no border."""
FEWEST_WALLS, MOST_WALLS = 270, 450
"""Range of the number of walls, drawn uniformly."""
PAIRS = 100
"""Pairs of start and goal that a layout gets."""
LEAST_MOVES = {"test": 109, "train": 111}
"""Split -> fewest moves of a shortest path with which a level is kept.

The shortest of the original's 2,000 paths have 109 moves, which are 110 tiles. The levels for training stay as they
were when `nca-shortest-path-hard` learned from them.
"""
ORDER = "DLRU"
"""Order of directions in which the original's labels break ties: all 2,000 are `shortest_path(tiles, order=ORDER)`."""
_SEEDED_BY = {"test": "benchmark maze-hard-30", "train": "benchmark maze-hard-train-30"}


def hard_levels(split: str, n: int) -> Tiles:
    """Return the first `n` levels of a split, "test" or "train", (n, 30, 30) uint8."""
    levels = [draw_hard(split, candidate) for candidate in candidates()[split][:n]]
    return np.stack([level for level in levels if level is not None])


@cache
def candidates() -> dict[str, tuple[int, ...]]:
    """Return the numbers of the candidates that become levels, by split: the first ones for which `draw_hard` returns a
    level."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("maze_hard.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines()]
    return {words[0]: tuple(map(int, words[1:])) for words in lines}


def draw_hard(split: str, candidate: int) -> Tiles | None:
    """Return a candidate of a split, (30, 30) uint8, with the first pair that is far enough apart, or None if there is
    no such pair.

    Every candidate has a seed of its own: its number of walls is drawn, then their places, then all pairs.
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
