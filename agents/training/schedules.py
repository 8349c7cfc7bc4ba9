"""Learning rates as functions of the update, so that there is no state to save."""

from __future__ import annotations

import math
from collections.abc import Callable

RISE = 0.1
START, END = 1 / 25, 1e-5
"""One-cycle: the part of the updates that it rises for, and the first and last rates as parts of the peak."""


def constant(progress: float) -> float:
    """1 throughout."""
    return 1.0


def one_cycle(progress: float) -> float:
    """Cosine from 1/25 up to 1 at 10 %, then down to 1e-5 (Smith & Topin, "Super-Convergence")."""
    if progress < RISE:
        return _cosine(START, 1.0, progress / RISE)
    return _cosine(1.0, END, (progress - RISE) / (1 - RISE))


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


SCHEDULES: dict[str, Callable[[float], float]] = {"constant": constant, "one-cycle": one_cycle}
"""Name -> (updates made / updates in all) -> learning rate as a part of the peak."""
