"""Edit streams: a maze of cells and walls, and then 32 edits of one passage each, in a row.

A policy solves the maze, and continues from its state after each edit. To be correct after the last edit, it must give
up what no longer holds. The rule is like that of Cleo Spiers' study: Kruskal's algorithm on 12 x 12 cells, further
passages with probability 0.15, every fourth maze cut in two, edits that open or close one passage. Its task differs:
there the start and the goal are fixed, and the cut is upright through the middle. Here the ends are two cells at
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
    """Return the first `n` levels of a set of streams, stream by stream, (n, 2 * cells + 1, 2 * cells + 1) uint8.

    Some have no route from source to target.

    Args:
        cells: number of cells in a row; the levels have a border.
        name: the name of the set, which seeds it; each stream has its own seed.
        n: a multiple of `STREAM`.
    """
    draws = rngs(name, n // STREAM)
    levels = np.zeros((len(draws), STREAM, 2 * cells + 1, 2 * cells + 1), np.uint8)
    levels[:, 0] = draw_mazes(draws, cells, None, FURTHER)
    row, col = np.ogrid[: 2 * cells + 1, : 2 * cells + 1]
    passages = (row + col) % 2 == 1  # tiles between two cells
    passages[[0, -1]] = passages[:, [0, -1]] = False
    for level in levels[CUT - 1 :: CUT, 0]:
        # Walls come between the cells nearer to the source and those nearer to the target. Both parts stay connected:
        # what a cell's shortest way to its end passes is on the same side.
        source, target = (distances(level, np.argwhere(level == end)[0]) for end in (Tile.SOURCE, Tile.TARGET))
        near = source <= target
        parts = np.zeros_like(near)  # where a tile's two neighbours in a row or column are on different sides
        parts[:, 1:-1] |= near[:, :-2] != near[:, 2:]
        parts[1:-1] |= near[:-2] != near[2:]
        level[parts & passages] = Tile.WALL
    for rng, stream in zip(draws, levels, strict=True):
        edited = rng.choice(np.argwhere(passages), EDITS)
        stream[(np.arange(1, STREAM), *edited.T)] = Tile.WALL ^ Tile.EMPTY
        np.bitwise_xor.accumulate(stream, out=stream)  # an edit turns a wall into an empty tile, and back
    return levels.reshape(-1, *levels.shape[2:])
