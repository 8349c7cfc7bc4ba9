"""Statistics of samples: means and fractions with intervals, deviations, rank correlation."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.levels import as_path
from maze_nca_gym.support.arrays import as_array

Z = 1.959963984540054
"""Number of standard deviations within which 95 % of a normal distribution lies."""


@dataclass(frozen=True)
class Estimate:
    """A measured value and its 95 % confidence interval.

    Attributes:
        value: the value on the measured levels.
        low, high: the interval for the value on all levels that the generator can draw; the measured levels are a
            sample of these.
    """

    value: float
    low: float
    high: float

    def text(self, digits: int = 2, factor: float = 100) -> str:
        """Return value and interval, by default in percent: "99.60 (98.98 to 99.84)"."""
        value, low, high = (f"{factor * part:.{digits}f}" for part in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"

    def parts(self) -> dict[str, float]:
        """Return value and ends of the interval by name."""
        return asdict(self)


def proportion(successes: NDArray[np.bool_], n_independent: float | None = None) -> Estimate:
    """Return the fraction of true values among (N,) bools, with Wilson's interval, which is also valid near 0 and 1.

    Args:
        successes: (N,) bool.
        n_independent: number of independent values on which the interval is based, by default N. For groups of n_i
            similar values, such as the mazes of a stream, Kish's N^2 / sum of n_i^2 gives an interval that is wide
            enough even if each group is all correct or all wrong.

    Raises:
        ValueError: N is 0, or a value is neither true nor false (1 nor 0), such as NaN.
    """
    successes = as_path(successes, "successes")
    fraction = float(np.count_nonzero(successes)) / _count(successes)
    n = n_independent or len(successes)
    spread = Z / (1 + Z * Z / n) * math.sqrt(fraction * (1 - fraction) / n + Z * Z / (4 * n * n))
    centre = (fraction + Z * Z / (2 * n)) / (1 + Z * Z / n)
    return Estimate(fraction, min(fraction, max(0.0, centre - spread)), max(fraction, min(1.0, centre + spread)))


def mean(
    values: ArrayLike, most: float = math.inf, least: float = -math.inf, n_independent: float | None = None
) -> Estimate:
    """Return the mean of (N,) values with the normal interval: +-1.96 standard errors.

    If all values are equal, or there is only one, both ends of the interval are the mean. This does not imply that the
    mean is certain.

    Args:
        values: (N,) numbers.
        most, least: the largest and the smallest possible value, beyond which the interval does not go.
        n_independent: number of independent values on which the interval is based, see `proportion`; by default N.

    Raises:
        ValueError: N is 0, or the values are not an array.
    """
    sample = as_array(values, "values")
    n, centre = _count(sample), float(sample.mean())
    spread = Z * (deviation(sample) or 0.0) / math.sqrt(n_independent or n)
    return Estimate(centre, min(centre, max(least, centre - spread)), max(centre, min(most, centre + spread)))


def _count(sample: NDArray[Any]) -> int:
    if not len(sample):
        raise ValueError("an interval needs at least one level, got 0")
    return len(sample)


def deviation(values: ArrayLike) -> float | None:
    """Return the sample standard deviation of (N,) values, or None for fewer than two."""
    sample = as_array(values, "values", np.float64)
    return float(sample.std(ddof=1)) if len(sample) > 1 else None


def standard_error(values: ArrayLike) -> float | None:
    """Return the standard error of the mean of (N,) values, or None for fewer than two."""
    spread = deviation(values)
    return None if spread is None else spread / math.sqrt(len(np.asarray(values)))


def student(values: ArrayLike) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of (N,) values by Student's t, which is valid for small N.

    None for N < 3, because the interval of two values is 12.7 times as wide as their distance, and therefore useless.
    """
    sample, error = np.asarray(values, np.float64), standard_error(values)
    if error is None or len(sample) < 3:
        return None
    from scipy.special import stdtrit  # here, as it is slow to load and `--help` has no use for it

    spread = float(stdtrit(len(sample) - 1, 0.975)) * error
    return float(sample.mean()) - spread, float(sample.mean()) + spread


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Spearman's rank correlation of two sequences of N numbers, from -1 to 1.

    None if it is undefined, because of a NaN or a constant sequence, or if N < 3, because two pairs always give -1 or
    1.
    """
    samples = [as_array(values, "values", np.float64) for values in (first, second)]
    if len(samples[0]) < 3 or np.isnan(samples).any():
        return None
    from scipy.stats import rankdata  # here, as it is slow to load

    ranks = rankdata(samples, axis=1)  # equal values share the mean of their ranks
    return float(np.corrcoef(ranks)[0, 1]) if np.ptp(ranks, axis=1).all() else None
