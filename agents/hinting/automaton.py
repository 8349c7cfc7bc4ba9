"""The automaton that is watched: the canonical shortest path, by nine booleans a tile.

It is that of `handcoded.canonical`, iteration by iteration, without its ages: a tile remembers which neighbours the
flood had reached before it. Written down with and, or and not; no weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile, Tiles

from ..handcoded.kernels import DIRECTIONS, OPPOSITE, offsets

Signals: TypeAlias = NDArray[np.bool_]
"""(N, 9, H, W) bool, in the order of `Signal`."""
Scalar = TypeVar("Scalar", bound=np.generic)


class Signal(IntEnum):
    """What a tile knows.

    `FLOOD` has reached it from the target; the neighbour `NEAR_*` had been reached before, so it is nearer; the path
    comes in by the move `ENTER_*`.
    """

    PATH = 0
    FLOOD = 1
    NEAR_U = 2
    NEAR_L = 3
    NEAR_D = 4
    ENTER_U = 5
    ENTER_L = 6
    ENTER_D = 7
    ENTER_R = 8


NEAR = (Signal.NEAR_U, Signal.NEAR_L, Signal.NEAR_D)
"""If none of these neighbours is nearer, the one to the right is."""
ENTER = (Signal.ENTER_U, Signal.ENTER_L, Signal.ENTER_D, Signal.ENTER_R)


def neighbours(values: NDArray[Scalar], towards: str) -> NDArray[Scalar]:
    """What each tile of (..., H, W) sees in a direction of `DIRECTIONS`, zero beyond the edge."""
    ((down, right),) = offsets(towards)
    height, width = values.shape[-2:]
    padded = np.pad(values, [(0, 0)] * (values.ndim - 2) + [(1, 1), (1, 1)])
    return padded[..., 1 + down : 1 + down + height, 1 + right : 1 + right + width]


def step(tiles: Tiles, signals: Signals) -> Signals:
    """One iteration on (N, H, W) tiles.

    - The flood spreads from the target over free tiles.
    - A neighbour that it reaches before the tile is nearer, and stays so.
    - The path is at the source and wherever it has entered. It goes on to the first neighbour that is nearer, in the
      order up, left, down, right, and is shown where the flood is.
    """
    wall, source, target = (tiles == kind for kind in (Tile.WALL, Tile.SOURCE, Tile.TARGET))
    flood, near = signals[:, Signal.FLOOD], [signals[:, k] for k in NEAR]
    around = {towards: neighbours(flood, towards) for towards in DIRECTIONS}
    on_path = source | np.any([signals[:, k] for k in ENTER], axis=0)
    return np.stack(
        [
            flood & on_path,
            (flood | target | np.any(list(around.values()), axis=0)) & ~wall,
            *(k | (around[towards] & ~flood & ~wall) for k, towards in zip(near, DIRECTIONS, strict=False)),
            *(
                neighbours(on_path & points, OPPOSITE[towards])
                for points, towards in zip(_points(near, flood & ~target), DIRECTIONS, strict=True)
            ),
        ],
        axis=1,
    )


def _points(near: list[Signals], right: Signals) -> Iterator[Signals]:
    """Where a tile points up, left, down, right: at the first nearer neighbour, or else, where it may, to the right."""
    free = np.ones_like(right)
    for k in [*near, right]:
        yield k & free
        free = free & ~k


def trace(tiles: Tiles) -> Iterator[Signals]:
    """All states on (N, H, W) tiles, from the first, in which every signal is off, until none changes any more."""
    signals = np.zeros((len(tiles), len(Signal), *tiles.shape[1:]), np.bool_)
    while True:
        yield signals
        after = step(tiles, signals)
        if np.array_equal(after, signals):
            return
        signals = after
