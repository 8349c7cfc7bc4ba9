"""Maze-Unique: perfect mazes whose only path has 100 to 140 moves.

The set is that of Equilibrium Reasoners (EqR, arXiv 2605.21488), rebuilt from its definition and the order of its
draws: the tests compare SHA-256 hashes of all tokens. One stream of random numbers gives 1,000 levels for training and
then 1,000 for the test. The code that has the definition, github.com/locuslab/EqR, is under the Apache License 2.0.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances

SEED = 42
"""Seed of the whole stream."""
SIDE, CELLS = 30, 14
"""Rows and columns of tiles; and of cells, at odd ones. The last two rows and columns of tiles are
wall, since 30 is even."""
LEAST_MOVES, MOST_MOVES = 100, 140
"""Range of the number of moves from start to goal, drawn uniformly."""
SPLIT = 1000
"""Levels for training, and as many for the test."""
_TRIES = 200
"""Number of starts tried on one maze, on which no goal may be that far away, before another maze is carved."""
_CELL_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
"""Neighbours of a cell in the order that a draw indexes: down, up, right, left."""
_IN_A_ROW = range(CELLS)
_NEIGHBOURS = {
    (row, col): [
        (row + down, col + right) for down, right in _CELL_STEPS if row + down in _IN_A_ROW and col + right in _IN_A_ROW
    ]
    for row in _IN_A_ROW
    for col in _IN_A_ROW
}
"""The neighbours of each cell."""


def split_levels(part: int, n: int) -> Tiles:
    """Return the first `n` of the 1,000 training levels (part 0) or test levels (part 1), (n, 30, 30) uint8."""
    return _all_levels()[part * SPLIT :][: min(n, SPLIT)].copy()


@cache
def _all_levels() -> Tiles:
    """Return all levels, each once."""
    rng = np.random.default_rng(SEED)
    levels: dict[bytes, Tiles] = {}
    while len(levels) < 2 * SPLIT:
        # The number of moves is drawn first, then mazes and starts until some goal is that far away.
        n_moves, goals = rng.integers(LEAST_MOVES, MOST_MOVES + 1), np.empty((0, 2), np.intp)
        while not len(goals):
            level = _carve(rng)
            free = np.argwhere(level == Tile.EMPTY)
            for _ in range(_TRIES):
                start = free[rng.integers(len(free))]
                goals = np.argwhere(distances(level, start) == n_moves)
                if len(goals):
                    break
        level[tuple(start)] = Tile.SOURCE
        level[tuple(goals[rng.integers(len(goals))])] = Tile.TARGET
        levels.setdefault(level.tobytes(), level)
    return np.stack(list(levels.values()))


def _carve(rng: np.random.Generator) -> Tiles:
    """Return a perfect maze: a depth-first walk from a random cell, whose row is drawn before its column."""
    level = np.full((SIDE, SIDE), Tile.WALL, np.uint8)
    row, col = int(rng.integers(CELLS)), int(rng.integers(CELLS))
    level[2 * row + 1, 2 * col + 1] = Tile.EMPTY
    walk, seen = [(row, col)], {(row, col)}
    while walk:
        row, col = walk[-1]
        fresh = [cell for cell in _NEIGHBOURS[row, col] if cell not in seen]
        if not fresh:
            walk.pop()
            continue
        cell = fresh[rng.integers(len(fresh))]
        level[row + cell[0] + 1, col + cell[1] + 1] = Tile.EMPTY  # the wall between them is at the mean of their places
        level[2 * cell[0] + 1, 2 * cell[1] + 1] = Tile.EMPTY
        walk.append(cell)
        seen.add(cell)
    return level
