"""aNCA's mazes: perfect ones by randomised Prim, with the source in the left third and the target in the right one.

The levels are aNCA's own, rebuilt from the rule of its public code (github.com/mspitzna/NCAtorch at c29b0d3) and the
order of its draws: the tests compare SHA-256 hashes of all tokens. One stream of random numbers gives all levels of a
size. That code is under the MIT licence, copyright 2026 Martin Spitznagel, Institute for Machine Learning and Analytics
(IMLA), Hochschule Offenburg.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles

SEED = 0
"""Seed of the stream of each size."""
_NOISE = 23
"""Channels of their first state that are drawn between two mazes; nothing here needs them, but the stream goes on."""
_CELL_STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Neighbours of a cell in the order in which they join the frontier: up, down, left, right."""


def prim_levels(side: int, n: int) -> Tiles:
    """Return the first `n` levels with an odd side, (n, side, side) uint8, border included."""
    rng = np.random.default_rng(SEED)
    levels = np.empty((n, side, side), np.uint8)
    for level in levels:
        level[:] = _carve(rng, side // 2)
        free, col = level == Tile.EMPTY, np.arange(side)
        left, right = (np.argwhere(free & third) for third in (col < side // 3, col >= 2 * side // 3))
        for places, end in ((left, Tile.SOURCE), (right, Tile.TARGET)):
            level[tuple(places[rng.integers(len(places))])] = end
        rng.standard_normal((_NOISE, side, side))
    return levels


def _carve(rng: np.random.Generator, cells: int) -> Tiles:
    """Return a perfect maze of `cells` x `cells` cells: each turn takes any pair of the frontier out of its order."""
    level = np.full((2 * cells + 1, 2 * cells + 1), Tile.WALL, np.uint8)
    row, col = int(rng.integers(cells)), int(rng.integers(cells))
    frontier = [((row, col), (row, col))]  # the first cell joins itself, and is no draw
    seen: set[tuple[int, int]] = set()
    while frontier:
        (row, col), cell = frontier.pop(int(rng.integers(len(frontier))) if seen else 0)
        if cell in seen:
            continue
        seen.add(cell)
        level[row + cell[0] + 1, col + cell[1] + 1] = Tile.EMPTY  # the wall between them is at the mean of their places
        level[2 * cell[0] + 1, 2 * cell[1] + 1] = Tile.EMPTY
        around = [(cell[0] + down, cell[1] + right) for down, right in _CELL_STEPS]
        frontier += [(cell, other) for other in around if 0 <= min(other) <= max(other) < cells and other not in seen]
    return level
