"""Edit streams: a maze of cells and walls, and then 32 edits of one passage each, in a row.

A policy solves the maze, and continues from its state after each edit. To be right after the last one, it must give up
what no longer holds. The rule is like that of Cleo Spiers' study: Kruskal's algorithm on 12 x 12 cells, further
passages with probability 0.15, every fourth maze cut in two, edits that open or close one passage. Its task is another
one: there the start and the goal are fixed, and the cut is upright through the middle. Here the ends are two cells at
random, a cut runs halfway between them, and all passages are equally likely to be edited.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.mazes.benchmark_sets.cells import draw_mazes, rngs
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances

EDITS = 32
"""Number of edits in a stream, which has one level more."""
STREAM = EDITS + 1
"""Number of levels in a stream."""
FURTHER = 0.15
"""Probability that a wall between two cells, which Kruskal's algorithm left, is a passage too."""
CUT = 4
"""One in this many streams begins with a maze that is cut in two."""


def stream_levels(cells: int, name: str, n: int) -> Tiles:
    """Return the first `n` levels of streams one after the other, (n, 2 * cells + 1, 2 * cells + 1) uint8.

    Some have no route from source to target.

    Args:
        cells: cells in a row; the levels have a border.
        name: the name of the set, which seeds it; each stream has its own seed.
        n: a multiple of `STREAM`.
    """
    draws = rngs(name, n // STREAM)
    bases = draw_mazes(draws, cells, None, FURTHER)
    for i in range(CUT - 1, len(bases), CUT):
        bases[i] = _cut(bases[i])
    return np.concatenate([_edit(rng, base) for rng, base in zip(draws, bases, strict=True)])


def _passages(side: int) -> np.ndarray:
    """Return which tiles lie between two cells, (side, side) bool."""
    row, col = np.ogrid[:side, :side]
    between = (row + col) % 2 == 1
    between[[0, -1]] = between[:, [0, -1]] = False
    return between


def _cut(level: Tiles) -> Tiles:
    """Return the level with walls between the cells nearer to its source and those nearer to its target.

    Both parts stay connected: what a cell's shortest way to its end passes is on the same side.
    """
    from_source, from_target = (distances(level, np.argwhere(level == end)[0]) for end in (Tile.SOURCE, Tile.TARGET))
    near = from_source <= from_target
    parts = np.zeros_like(near)  # where a tile's two neighbours in a row or column are on different sides
    parts[:, 1:-1] |= near[:, :-2] != near[:, 2:]
    parts[1:-1] |= near[:-2] != near[2:]
    return np.where(parts & _passages(len(level)), np.uint8(Tile.WALL), level)


def _edit(rng: np.random.Generator, level: Tiles) -> Tiles:
    """Return a stream that begins with a level, (STREAM, H, W)."""
    edits = np.zeros((STREAM, *level.shape), np.uint8)
    row, col = rng.choice(np.argwhere(_passages(len(level))), EDITS).T
    edits[np.arange(1, STREAM), row, col] = Tile.WALL ^ Tile.EMPTY
    edits[0] = level
    return np.bitwise_xor.accumulate(edits)  # an edit turns a wall into an empty tile, and back
