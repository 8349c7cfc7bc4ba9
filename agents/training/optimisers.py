"""Optimisers, and what they store from update to update."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from . import soap


class Kind(NamedTuple):
    """A kind of optimiser.

    Attributes:
        make: makes an optimiser from parameters and `lr`.
        empty: returns the tensors that it stores for a parameter besides `step`, by torch's names, before the first
            update.
        check: raises ValueError where tensors by such names cannot have resulted from these.
    """

    make: Callable[..., Optimizer]
    empty: Callable[[Tensor], dict[str, Tensor]]
    check: Callable[[Mapping[str, Tensor]], None]


def _adam(parameter: Tensor) -> dict[str, Tensor]:
    return {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}


def _check_squares(kept: Mapping[str, Tensor]) -> None:
    if (kept["exp_avg_sq"] < 0).any():
        raise ValueError(f"means of squares must be at least 0, got {kept['exp_avg_sq'].min().item():g}")


def _check_soap(kept: Mapping[str, Tensor]) -> None:
    _check_squares(kept)
    soap.check(kept)


OPTIMISERS = {"adam": Kind(Adam, _adam, _check_squares), "soap": Kind(soap.SOAP, soap.empty, _check_soap)}
"""Name -> kind."""


RISE = 0.1
START, END = 1 / 25, 1e-5
"""One-cycle: the part of the updates that it rises for, and the first and last rates as parts of the peak."""


def constant(progress: float) -> float:
    """Return 1 throughout."""
    return 1.0


def one_cycle(progress: float) -> float:
    """Return cosine from 1/25 up to 1 at 10 %, then down to 1e-5 (Smith & Topin, "Super-Convergence")."""
    if progress < RISE:
        return _cosine(START, 1.0, progress / RISE)
    return _cosine(1.0, END, (progress - RISE) / (1 - RISE))


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


SCHEDULES: dict[str, Callable[[float], float]] = {"constant": constant, "one-cycle": one_cycle}
"""Name -> (updates made / updates in all) -> learning rate as a part of the peak."""
