"""Neighbours of a tile, and small named kernels of them.

A kernel is named after the neighbours that it reads. `C` is the tile itself; `U`, `L`, `D`, `R` are the neighbours
above, left, below and right. A word of these letters is the tile at the end of this walk (`DD` two below, `UR` above
and to the right). `N4` reads the four neighbours, `N5` these and the tile itself, `3x3` all nine tiles.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TypeAlias

Offset: TypeAlias = tuple[int, int]
"""(rows down, columns to the right) from a tile to the tile that is read."""

DIRECTIONS = ("U", "L", "D", "R")
"""The usual order of directions, in which solutions break ties."""
OPPOSITE = {"U": "D", "L": "R", "D": "U", "R": "L"}

_MOVES: dict[str, Offset] = {"C": (0, 0), "U": (-1, 0), "L": (0, -1), "D": (1, 0), "R": (0, 1)}
_SETS: dict[str, tuple[Offset, ...]] = {
    "N4": tuple(_MOVES[letter] for letter in "ULDR"),
    "N5": tuple(_MOVES[letter] for letter in "CULDR"),
    "3x3": tuple((down, right) for down, right in product((-1, 0, 1), repeat=2)),
}


@cache
def offsets(kernel: str) -> tuple[Offset, ...]:
    """Return the offsets of the tiles that a named kernel reads, (rows down, columns to the right).

    The name is "N4", "N5", "3x3", or a walk such as "UL", which leads to a single tile.

    Raises:
        ValueError: unknown name.
    """
    if not isinstance(kernel, str):
        raise ValueError(f"a place is the walk that leads to it, such as 'C', 'U' or 'UL', got {kernel!r}")
    if kernel in _SETS:
        return _SETS[kernel]
    if not kernel or set(kernel) - set(_MOVES):
        raise ValueError(f"unknown kernel {kernel!r}; known: {', '.join(_SETS)} and words of {', '.join(_MOVES)}")
    rows, cols = zip(*(_MOVES[letter] for letter in kernel), strict=True)
    return ((sum(rows), sum(cols)),)
