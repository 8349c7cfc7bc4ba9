"""How good a policy is: named test sets, metrics with intervals, curves, stability, and their figures.

torch is imported when something that needs it is first used, and so is matplotlib.
"""

from __future__ import annotations

from .level_sets import (
    FAMILIES,
    Family,
    held_out_sets,
    is_reserved,
    most_levels,
    reserved_hashes,
    test_levels,
    validation_levels,
)

__all__ = [
    "FAMILIES",
    "Family",
    "held_out_sets",
    "is_reserved",
    "most_levels",
    "reserved_hashes",
    "test_levels",
    "validation_levels",
]
