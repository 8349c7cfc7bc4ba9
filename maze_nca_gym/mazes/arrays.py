"""The reader of rules and facts for maps: their values as NumPy arrays, at all tiles of several maps at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.facts import CENTRE, Ghosts, Look, Number, Picture, Place, Reading, axiom_of
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.terms import Bits, Read, TileKind

MARGIN = 3
"""Width of the frame beyond the edge in which axioms are tested, because proofs assume axioms of places there too."""
REACH = 2
"""Length of the walks for which pictures of real mazes already contain the frame that is read."""


def reader(kinds: Mapping[int, Bits], look: Look | None = None) -> Callable[[Bits], Read]:
    """Return a function of the (N, S, H, W) signals of maps that returns a `Read`: the values that rules read.

    The `Read` is a function of a signal or `TileKind` and a tap that returns (N, H, W) `Bits`: whether the signal or
    kind is on at the tap, as seen from each tile.

    Args:
        kinds: for each kind of tile, (N, H, W) `Bits`: whether tiles are of that kind.
        look: a `Look` for the nodes of a graph, or None for grids.
    """
    framed = _bordered if look is None else np.asarray
    of_kinds = {kind: framed(tiles) for kind, tiles in kinds.items()}

    def reading(signals: Bits) -> Read:
        held, (height, width) = framed(signals), signals.shape[-2:]

        def read(seen: IntEnum | TileKind, tap: str) -> Bits:
            values = of_kinds[seen] if isinstance(seen, TileKind) else held[:, seen]
            if look is not None:
                return look(values, tap, 0)
            ((down, right),) = offsets(tap)
            return values[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]

        return read

    return reading


def _bordered(values: Bits) -> Bits:
    (height, width) = values.shape[-2:]
    bordered = np.zeros((*values.shape[:-2], height + 2, width + 2), values.dtype)  # faster than np.pad
    bordered[..., 1:-1, 1:-1] = values
    return bordered


def is_of_map(values: NDArray[Any]) -> bool:
    """Return whether a ghost has one value for each map, (..., N, 1, 1) of any dtype."""
    return values.shape[-2:] == (1, 1)


class MazePicture(Picture):
    """The surroundings of all tiles of (N, H, W) mazes at once, as a `Picture` with arrays of that shape as values.

    If numbers of iterations are an array, (T, 1, 1, 1), values that depend on them are (T, N, H, W).

    Args:
        tiles: (N, H, W) uint8.
        ghosts: the ghosts by name, as `Ghosts.ghosts` returns them.
        margin: width of a frame of places beyond the edge, which become part of the arrays.
        look: a `Look` for the nodes of a graph, or None for grids.
    """

    def __init__(self, tiles: Tiles, ghosts: Mapping[str, Any], margin: int = 0, look: Look | None = None) -> None:
        self._look, self._margin = look, margin + (REACH if look is None else 0)
        self._tiles = _framed(tiles.astype(np.int16), self._margin, beyond=-1)
        self._of_tiles = dict[tuple[int | None, Place], NDArray[np.bool_]]()
        self._ghosts = self._held(ghosts)

    def with_ghosts(self, ghosts: Mapping[str, Any]) -> MazePicture:
        """Return a picture of the same mazes with further ghosts."""
        picture = copy(self)
        picture._ghosts = {**self._ghosts, **self._held(ghosts)}
        return picture

    def _held(self, ghosts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return {
            name: value if is_of_map(value) else _framed(value, self._margin, beyond=0)
            for name, value in ((name, np.asarray(value)) for name, value in ghosts.items())
        }

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return the value of a reading at a place as seen from each tile.

        Returns:
            (N, H, W) bool, or (N, H, W) int64 with 0 beyond the edge; for a number of the map (N, 1, 1) int64.
        """
        what, name, at, when = reading
        if at is None:
            return np.asarray(self._value(name, when), np.int64)
        if what in ("true", "number"):
            return self._there(self._value(name, when), at, beyond=False)
        if (name, at) not in self._of_tiles:
            there = self._there(self._tiles, at, beyond=-1)
            self._of_tiles[name, at] = there >= 0 if name is None else there == name
        return self._of_tiles[name, at]

    def _there(self, framed: NDArray[Any], at: Place, beyond: int) -> NDArray[Any]:
        """Return framed values at a place as seen from each tile, without the frame that contains all near places."""
        if self._look is not None:
            return self._look(framed, at, beyond)
        if is_of_map(framed):  # a tile's value, in a maze of one tile, which has no frame
            framed = _framed(framed, self._margin, beyond)
        ((down, right),) = offsets(at)
        if max(abs(down), abs(right)) > REACH:
            framed, down, right = shifted(framed, at, beyond), 0, 0
        height, width = framed.shape[-2:]
        return framed[..., REACH + down : height - REACH + down, REACH + right : width - REACH + right]

    def _value(self, ghost: str, when: Number | None) -> NDArray[Any]:
        values = self._ghosts[ghost]
        if when is None:
            return values
        # nothing is stated of what was before the first iteration, so any value will do
        at_times = values[np.maximum(when, 0)]
        return at_times[:, 0, 0, 0] if np.ndim(when) else at_times


def shifted(values: NDArray[Any], at: Place, beyond: int = 0) -> NDArray[Any]:
    """Return the values at a place as seen from each tile of a map, (..., H, W) like the values.

    Args:
        values: (..., H, W) of any dtype.
        at: the walk that leads from a tile to the place, such as "U" for the tile above.
        beyond: the value of places beyond the edge.
    """
    (height, width), ((down, right),) = values.shape[-2:], offsets(at)
    most = max(abs(down), abs(right))
    framed = _framed(values, most, beyond)
    return framed[..., most + down : most + down + height, most + right : most + right + width]


def _framed(values: NDArray[Any], margin: int, beyond: int) -> NDArray[Any]:
    if not margin:
        return values
    height, width = values.shape[-2:]
    # faster than np.pad. In memory the maps come last: rows are short, and loops over them would be too
    framed = np.empty((height + 2 * margin, width + 2 * margin, *values.shape[:-2]), values.dtype)
    framed.fill(beyond)
    framed = framed.transpose(*range(2, values.ndim), 0, 1)
    framed[..., margin : margin + height, margin : margin + width] = values
    return framed


def broken_axioms(ghosts: Ghosts, tiles: Tiles, n_steps: int = 1) -> dict[str, int]:
    """Return the names of the axioms that are false at some place of real mazes in the first iterations.

    Each name comes with the index of the first maze. Places beyond the edge are checked too, because proofs use the
    axioms there.

    Args:
        ghosts: the ghosts and their axioms.
        tiles: (N, H, W) uint8.
        n_steps: the number of iterations, from 0, for which axioms are checked.
    """
    picture = MazePicture(tiles, ghosts.ghosts(tiles), MARGIN)
    t, broken = np.arange(n_steps)[:, None, None, None], {}
    shape = (n_steps, *tiles.shape[:-2], *(side + 2 * MARGIN for side in tiles.shape[-2:]))
    for axiom, holds in ghosts.axioms(picture, CENTRE, t).items():
        held = np.broadcast_to(np.asarray(holds, np.bool_), shape)
        if not held.all():
            broken[axiom_of(axiom).name] = int(np.argmin(held.all(axis=(0, 2, 3))))
    return broken
