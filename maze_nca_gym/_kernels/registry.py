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
"""Value of a map at a free tile that no search has reached; in results, no distance.

It is negative, so that one comparison with 0 tells reached tiles and walls from unreached ones.
"""
BLOCKED = 1 << 30
"""Value of a map at a wall or padding, larger than any distance, so that no search enters it."""
SOLVED, UNSOLVABLE, MALFORMED = 0, 1, 2
"""Status of a level; malformed is one without exactly one source and one target."""


def kernel(signature: str, inline: bool = False):
    """Register a function for compilation with a numba signature.

    Args:
        signature: numba's.
        inline: whether numba copies the source into the kernels that call it. That saves time for the small ones and
            for those that have a single caller; a large one with several callers would be compiled for each.
    """

    def register(function):
        REGISTRY.append((function, signature))
        if inline:
            INLINE.add(function)
        return function

    return register
