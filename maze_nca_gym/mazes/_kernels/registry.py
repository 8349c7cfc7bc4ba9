"""The registry of the kernels, and the numbers that they share."""

from collections.abc import Callable
from typing import Any

REGISTRY: list[tuple[Callable[..., Any], str]] = []
"""Every kernel with its numba signature."""
INLINE: set[Callable[..., Any]] = set()
"""Kernels whose source numba copies into those that call them."""

EMPTY, WALL, SOURCE, TARGET = 0, 1, 2, 3
"""The values of `levels.Tile` as plain numbers, which machine code needs."""
UNSEEN = -1
"""Value of a map at a free tile that no search has reached; in results, the tile has no distance.

It is the only negative value, so one comparison with 0 separates unreached tiles from reached ones and walls.
"""
BLOCKED = 1 << 30
"""Value of a map at a wall or padding: larger than any distance, and not negative, so no search enters it."""
SOLVED, UNSOLVABLE, MALFORMED = 0, 1, 2
"""Status of a level; MALFORMED means a tile of no kind, or not exactly one source and one target."""
FOREIGN = 0xC0
"""The bits that no tile has: a task has at most 64 kinds of tile, `levels.MOST_KINDS`."""


def kernel(signature: str, inline: bool = False):
    """Register a function for compilation with a numba signature.

    Args:
        signature: numba's.
        inline: whether numba copies the source into the kernels that call it. That saves compile time for small kernels
            and for those with a single caller; a large one with several callers would be compiled once for each.
    """

    def register(function):
        REGISTRY.append((function, signature))
        if inline:
            INLINE.add(function)
        return function

    return register
