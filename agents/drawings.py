"""Kinds of drawing in channel 0, and the tiles that each should end with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym import solvers
from maze_nca_gym.levels import Tile, Tiles


@dataclass(frozen=True)
class Drawing:
    """A kind of drawing that is not one solution.

    Attributes:
        target: (N, H, W) tiles of solvable levels -> (N, H, W) bool, what it should end with.
        note: one sentence for tables: what is drawn, and against what it is measured.
    """

    target: Callable[[Tiles], NDArray[np.bool_]]
    note: str


def all_shortest_paths(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the tiles of all shortest paths from source to target, (N, H, W) bool.

    A tile is on one if its distances to both ends add up to the distance between them.

    Args:
        tiles: (N, H, W) uint8, solvable levels with a source and a target.
    """
    is_target = tiles == Tile.TARGET
    places = np.argmax(is_target.reshape(len(tiles), -1), axis=1)
    ends = np.stack(np.unravel_index(places, tiles.shape[1:]), axis=1)
    from_source, from_target = solvers.distances(tiles), solvers.distances(tiles, ends)
    length = from_source.max(axis=(1, 2), where=is_target, initial=0)
    return (from_source >= 0) & (from_source + from_target == length[:, None, None])


def reachable(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the tiles that a walk from the source can reach, (N, H, W) bool, for (N, H, W) uint8 levels."""
    return solvers.distances(tiles) >= 0


DRAWINGS = {
    "all shortest paths": Drawing(all_shortest_paths, "draws all shortest paths, and is measured against all of them"),
    "visited tiles": Drawing(
        reachable, "draws the tiles that it visits, and is measured against all tiles in reach of the source"
    ),
}
"""Kind -> what it should be; a policy of any other kind draws one solution ("path")."""
