"""Edit streams: a maze of cells and walls, followed by 32 edits of one passage each.

A policy solves the maze, and continues from its state after each edit. To be correct after the last edit, it must undo
every part of its state that an edit made false. The rule is like the rule of Cleo Spiers' study: Kruskal's algorithm on
12 x 12 cells, further passages with probability 0.15, every fourth maze cut in two, and edits that open or close one
passage. The task differs from that study. Its start and goal are fixed, and here they are two random cells. Its cut
is upright through the middle, and here the cut runs halfway between the ends. Here all passages are equally likely to
be edited.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.mazes.benchmark_sets.cells import draw_mazes, rngs
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances

EDITS = 32
"""Number of edits in a stream."""
STREAM = EDITS + 1
"""Number of levels in a stream: the maze, and a level after each edit."""
FURTHER = 0.15
"""Probability that a wall between two cells that Kruskal's algorithm did not open becomes a passage too."""
CUT = 4
"""Every stream whose number, from 1, is a multiple of this begins with a maze that is cut in two."""


def stream_levels(cells: int, name: str, n: int) -> Tiles:
    """Return the first `n` levels of a set of streams, stream by stream, (n, 2 * cells + 1, 2 * cells + 1) uint8.

    Some levels have no route from source to target.

    Args:
        cells: number of cells in a row; the levels have a border.
        name: the name of the set, from which the seed of each stream is made.
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
