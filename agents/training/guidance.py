"""Where the solution from every tile begins: what a policy can be shown of a level besides its one solution.

Were the source elsewhere, the level would have another solution, and its first step is one of four. These are answers
to as many levels, and no trace of how an automaton finds them. But no rollout has to reach the end of a long path
before it is told where it went wrong: a tile's answer can be known after as many iterations as it is moves away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.solvers import distances

STEPS = {"up": (-1, 0), "left": (0, -1), "down": (1, 0), "right": (0, 1)}
"""Rows and columns to move; a canonical path takes the first of those that are as good."""
N_STEPS = len(STEPS)


@dataclass(frozen=True, eq=False)
class Guidance:
    """First steps of canonical shortest paths to the target.

    Attributes:
        steps: (N, 4, H, W) bool, up, left, down, right: which one to take, none at the target and out of its reach.
        distances: (N, H, W) int32, moves to the target; 0 at walls and out of its reach, where nothing is to be known.
    """

    steps: NDArray[np.bool_]
    distances: NDArray[np.int32]


def guidance(tiles: Tiles) -> Guidance:
    """Of (N, H, W) levels with a target each."""
    height, width = tiles.shape[1:]
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    away = distances(tiles, targets)
    framed = np.pad(away, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    nearer = np.stack(
        [framed[:, 1 + row : 1 + row + height, 1 + col : 1 + col + width] == away - 1 for row, col in STEPS.values()],
        axis=1,
    )
    nearer &= (away > 0)[:, None]
    first = nearer & (np.cumsum(nearer, axis=1) == 1)
    return Guidance(first, np.maximum(away, 0))
