"""Edit streams: a maze, and then 128 edits of one wall each, in a row.

A policy solves the maze, and continues from its state after each edit. To be right after the last one, it must give up
what no longer holds.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.benchmark_sets.cells import rngs
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.solvers import shortest_path

EDITS = 128
"""Number of edits in a stream, which has one level more."""
STREAM = EDITS + 1
"""Number of levels in a stream."""
WALLS = 0.4
"""Probability that an inner tile of the first maze is a wall: close to the percolation threshold, where paths wind
most."""


def stream_levels(size: int, name: str, n: int) -> Tiles:
    """Return the first `n` levels of streams one after the other, (n, size + 2, size + 2) uint8.

    Args:
        size: inner size; the levels have a border.
        name: the name of the set, which seeds it; each stream has its own seed.
        n: a multiple of `STREAM`.
    """
    return np.concatenate([_draw(rng, size) for rng in rngs(name, n // STREAM)])


def _draw(rng: np.random.Generator, size: int) -> Tiles:
    """Return one stream, (STREAM, H, W): a wall is added and one removed in turn, so their number stays about the
    same."""
    levels = [generate(rng, 1, size, "random", wall_probability=WALLS)[0]]
    for i in range(EDITS):
        levels.append(_open(rng, levels[-1]) if i % 2 else _close(rng, levels[-1]))
    return np.stack(levels)


def _close(rng: np.random.Generator, level: Tiles) -> Tiles:
    """Return the level with a new wall on its shortest path, or elsewhere if no other path would be left.

    If a wall anywhere would block the only path, an inner wall is removed instead.
    """
    path = shortest_path(level)
    for candidates in (path & (level == Tile.EMPTY), level == Tile.EMPTY):
        for place in rng.permutation(np.argwhere(candidates)):
            edited = _with(level, place, Tile.WALL)
            if shortest_path(edited[None]).any():
                return edited
    return _open(rng, level)


def _open(rng: np.random.Generator, level: Tiles) -> Tiles:
    """Return the level without one of its inner walls."""
    walls = np.argwhere(level[1:-1, 1:-1] == Tile.WALL) + 1
    return _with(level, rng.choice(walls), Tile.EMPTY)


def _with(level: Tiles, place: np.ndarray, tile: Tile) -> Tiles:
    edited = level.copy()
    edited[tuple(place)] = tile
    return edited
