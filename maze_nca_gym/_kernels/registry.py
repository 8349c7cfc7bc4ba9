"""What the kernels share: their registry and the numbers that stand for things."""

from collections.abc import Callable
from typing import Any

REGISTRY: list[tuple[Callable[..., Any], str]] = []
"""Every kernel with its numba signature, each after those it calls."""

EMPTY, WALL, SOURCE, TARGET = 0, 1, 2, 3
"""`levels.Tile` as plain numbers."""
UNSEEN = -1
"""In a map: a free tile that no search has reached. In results: no distance."""
BLOCKED = 1 << 30
"""In a map: a wall, or padding."""
SOLVED, UNSOLVABLE, MALFORMED = 0, 1, 2
"""What becomes of a level; malformed is one without exactly one source and one target."""


def kernel(signature: str):
    """Register a function for compilation with a numba signature."""

    def register(function):
        REGISTRY.append((function, signature))
        return function

    return register
