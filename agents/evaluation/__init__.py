"""How good a policy is: named test sets, metrics with intervals, curves, stability, and their figures.

torch is imported when something that needs it is first used, and so is matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maze_nca_gym.families import (
    FAMILIES,
    Family,
    held_out_sets,
    is_reserved,
    most_levels,
    reserved_hashes,
    test_levels,
    validation_levels,
)

if TYPE_CHECKING:
    from ..rollouts import default_steps
    from ..statistics import Estimate, mean, proportion
    from .figures import Result, draw_iterations, draw_sizes, draw_stability
    from .metrics import Evaluation, Metrics, Point, measure
    from .stability import Stability, measure_stability

DEFAULT_N = 128
"""Levels of a test set that are measured unless more are asked for."""

__all__ = [
    "DEFAULT_N",
    "FAMILIES",
    "Estimate",
    "Evaluation",
    "Family",
    "Metrics",
    "Point",
    "Result",
    "Stability",
    "default_steps",
    "draw_iterations",
    "draw_sizes",
    "draw_stability",
    "held_out_sets",
    "is_reserved",
    "mean",
    "measure",
    "measure_stability",
    "most_levels",
    "proportion",
    "reserved_hashes",
    "test_levels",
    "validation_levels",
]

_LAZY = {
    **dict.fromkeys(("Result", "draw_iterations", "draw_sizes", "draw_stability"), ".figures"),
    "default_steps": "..rollouts",
    **dict.fromkeys(("Evaluation", "Metrics", "Point", "measure"), ".metrics"),
    **dict.fromkeys(("Estimate", "mean", "proportion"), "..statistics"),
    **dict.fromkeys(("Stability", "measure_stability"), ".stability"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)
