"""95 % intervals of what is measured on a sample of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""Standard deviations of a normal variable within which 95 % of it lies."""


@dataclass(frozen=True)
class Estimate:
    """A figure and the ends of its 95 % interval.

    Attributes:
        value: what was measured.
        low, high: for the figure on all levels that the generator could draw, of which those measured are a sample.
    """

    value: float
    low: float
    high: float


def proportion(successes: NDArray[np.bool_]) -> Estimate:
    """Return the fraction of (N,) that is true, with Wilson's interval, which is sound near 0 and 1 too.

    Raises:
        ValueError: N is 0.
    """
    n = _count(successes)
    fraction = float(np.count_nonzero(successes)) / n
    spread = Z / (1 + Z * Z / n) * math.sqrt(fraction * (1 - fraction) / n + Z * Z / (4 * n * n))
    centre = (fraction + Z * Z / (2 * n)) / (1 + Z * Z / n)
    return Estimate(fraction, min(fraction, max(0.0, centre - spread)), max(fraction, min(1.0, centre + spread)))


def mean(values: NDArray[np.float64]) -> Estimate:
    """Return the mean of (N,), with the normal interval: +-1.96 standard errors.

    Where all values agree, as where there is one alone, both ends are the mean, which says less than it seems.

    Raises:
        ValueError: N is 0.
    """
    n = _count(values)
    centre = float(values.mean())
    spread = Z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Estimate(centre, centre - spread, centre + spread)


def _count(sample: NDArray[np.bool_] | NDArray[np.float64]) -> int:
    if not len(sample):
        raise ValueError("an interval needs at least one level, got 0")
    return len(sample)
