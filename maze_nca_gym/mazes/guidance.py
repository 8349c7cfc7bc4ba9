"""Guidance: facts about every tile of a maze in addition to the solution, computed by a solver, for networks to learn.

The shortest path's guidance is the first step, one of four, of a solution that would start at each tile. It is an
answer for each possible source, and does not prescribe how an automaton computes it. A tile's answer can be known after
a number of iterations that equals its distance to the target. Therefore a network learns where it went wrong before a
rollout has reached the end of a long path.

The diameter's guidance is, for each tile, the direction of the centre of its component, and the direction of its
deepest branch. In a tree both are known once all tiles beyond the tile are known, and they lead from the centre along a
longest path. In mazes with loops they are as hard to compute as the path, and do not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import MOST_KINDS, Tile, Tiles, as_tiles
from maze_nca_gym.mazes.orders import USUAL_ORDER, order_code
from maze_nca_gym.mazes.solvers import distances, eccentricities

STEPS = MappingProxyType({"up": (-1, 0), "left": (0, -1), "down": (1, 0), "right": (0, 1)})
"""Names of the steps, and for each the (rows, columns) to move."""


@dataclass(frozen=True, eq=False)
class Guidance:
    """Targets for the channels after the path, and the number of iterations after which they count.

    Attributes:
        channels: (N, K, H, W) bool.
        after: (N, H, W) int32, at least 0: the number of iterations after which a tile counts, because no automaton can
            know its answer earlier.
    """

    channels: NDArray[np.bool_]
    after: NDArray[np.int32]

    def __repr__(self) -> str:
        n, n_channels, height, width = self.channels.shape
        return f"Guidance({n_channels} channels of {n:,} levels of {height} x {width} tiles)"


def first_steps(tiles: Tiles, order: str = USUAL_ORDER) -> Guidance:
    """Return the first steps of canonical shortest paths to the target, in an order of directions.

    The four channels are up, left, down and right, whatever the order is. The channel of a tile's step is on; no
    channel is on at the target, at walls and at tiles that cannot reach the target. A tile counts from the iteration on
    that equals its distance to the target; without a distance, from the start.

    Args:
        tiles: (N, H, W) uint8 levels with one target each.
        order: the order of directions.

    Raises:
        ValueError: `order` is not an order of directions, or a level does not have exactly one target.
    """
    order_code(order)
    tiles = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS)
    n_targets = (tiles == Tile.TARGET).sum(axis=(1, 2))
    for i in np.flatnonzero(n_targets != 1)[:1]:
        raise ValueError(f"first steps lead to exactly one target; level {i} has {n_targets[i]}")
    targets = np.argwhere(tiles == Tile.TARGET)[:, 1:]
    away = distances(tiles, targets)
    nearer = (_around(away, -1) == away - 1) & (away > 0)
    return Guidance(np.stack(list(_first_of(nearer, order, 1)), axis=1), np.maximum(away, 0))


def branches(tiles: Tiles, order: str = USUAL_ORDER) -> Guidance:
    """Return the directions from each tile to the centre of its component, and into its deepest branch.

    Each is four channels, up, left, down and right, whatever the order is. Towards the centre are the neighbours of
    smaller eccentricity. The height of a tile is the length of the longest walk from the tile on which eccentricities
    grow, and its deepest branch is such a walk. If there are several, the first in the order of directions is taken; at
    a centre without another centre beside it, the first two are taken. A tile counts two iterations after its height,
    because in a tree the branches away from the centre have all ended by then.

    Args:
        tiles: (N, H, W) uint8 levels.
        order: the order of directions.

    Returns:
        Guidance of eight channels.

    Raises:
        ValueError: `order` is not an order of directions.
    """
    order_code(order)
    eccentricity = eccentricities(as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS))
    around, free = _around(eccentricity, -1), eccentricity >= 0
    inward, outward = (around >= 0) & (around < eccentricity), (around > eccentricity) & free
    height = np.zeros_like(eccentricity)
    while not np.array_equal(higher := np.where(outward, 1 + _around(height, 0), 0).max(axis=0), height):
        height = higher
    deepest = outward & (_around(height, -1) == height - 1)
    is_centre = ~((around >= 0) & (around <= eccentricity)).any(axis=0)
    channels = np.concatenate([inward, _first_of(deepest, order, np.where(is_centre, 2, 1))])
    return Guidance(np.stack(list(channels), axis=1), np.where(free, height + 2, 0).astype(np.int32))


def _around(values: NDArray[np.int32], beyond: int) -> NDArray[np.int32]:
    """Return the values of the neighbours in the directions of `STEPS`, (4, N, H, W), for (N, H, W) values.

    Neighbours outside of the map have the value `beyond`.
    """
    height, width = values.shape[1:]
    framed = np.pad(values, ((0, 0), (1, 1), (1, 1)), constant_values=beyond)
    return np.stack([framed[:, 1 + row : 1 + row + height, 1 + col : 1 + col + width] for row, col in STEPS.values()])


def _first_of(steps: NDArray[np.bool_], order: str, n: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the first n of (4, N, H, W) steps at each tile, in an order of directions."""
    places = [USUAL_ORDER.index(towards) for towards in order]
    first = np.zeros_like(steps)
    first[places] = steps[places] & (np.cumsum(steps[places], axis=0) <= n)
    return first
