"""Guidance: what a solver can say of every tile of a maze besides the solution, for networks to learn.

That of the shortest path asks every tile for the first of four steps that a solution starting there would take. That is
one answer for each possible source, and says nothing about how an automaton finds it. But the answer of a tile can be
known after as many iterations as it has moves to the target. So a network learns where it went wrong before a rollout
has reached the end of a long path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.orders import USUAL_ORDER
from maze_nca_gym.solvers import distances

STEPS = {"up": (-1, 0), "left": (0, -1), "down": (1, 0), "right": (0, 1)}
"""Name -> (rows, columns) to move."""


@dataclass(frozen=True, eq=False)
class Guidance:
    """What the channels after the path should be, and from when on.

    Attributes:
        channels: (N, K, H, W) bool.
        after: (N, H, W) int32, at least 0: the iterations after which a tile counts, since no automaton can know its
            answer earlier.
    """

    channels: NDArray[np.bool_]
    after: NDArray[np.int32]


def first_steps(tiles: Tiles, order: str = USUAL_ORDER) -> Guidance:
    """Return the first steps of canonical shortest paths to the target, in an order of directions.

    Of the four channels up, left, down and right, whatever the order, a tile has that of its step. It has none at the
    target, at walls and where the target cannot be reached. A tile counts after its distance to the target; where there
    is none, from the start.

    Args:
        tiles: (N, H, W) uint8 levels that have one target each.
        order: the order of directions.
    """
    height, width = tiles.shape[1:]
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    away = distances(tiles, targets)
    framed = np.pad(away, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    nearer = np.stack(
        [framed[:, 1 + row : 1 + row + height, 1 + col : 1 + col + width] == away - 1 for row, col in STEPS.values()],
        axis=1,
    )
    nearer &= (away > 0)[:, None]
    places = [USUAL_ORDER.index(towards) for towards in order]
    first = np.zeros_like(nearer)
    first[:, places] = nearer[:, places] & (np.cumsum(nearer[:, places], axis=1) == 1)
    return Guidance(first, np.maximum(away, 0))
