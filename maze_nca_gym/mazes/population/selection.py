"""The weights by which a population chooses levels to replay.

The frequency of replay follows Jiang et al., *Prioritized Level Replay*, 2021. Powers are computed as logarithms, so no
temperature causes an overflow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def by_rank(scores: Floats, temperature: float, k: int) -> Floats:
    """Return weights (1 / rank) ** (1 / temperature) for (n,) scores, scaled to the sum 1. A level's rank is 1 + the
    number of higher scores, so levels of equal score have equal weights."""
    ranks = len(scores) + 1 - np.searchsorted(np.sort(scores), scores, side="right")
    return _softmax(-np.log(ranks), temperature)


def by_score(scores: Floats, temperature: float, k: int) -> Floats:
    """Return weights score ** (1 / temperature) for (n,) scores, scaled to the sum 1. A score below 0 counts as 0, and
    all weights are equal if no score is above 0."""
    if not (scores > 0).any():
        return uniform(scores, temperature, k)
    with np.errstate(divide="ignore"):  # log(0) is -inf, whose weight is 0
        return _softmax(np.log(np.maximum(scores, 0.0)), temperature)


def by_top_k(scores: Floats, temperature: float, k: int) -> Floats:
    """Return equal weights, (n,), for the k levels of highest score, and 0 for all others. If scores are equal, the
    first levels are chosen."""
    best = np.argsort(-scores, kind="stable")[:k]
    weights = np.zeros(len(scores))
    weights[best] = 1 / len(best)
    return weights


def uniform(scores: Floats, temperature: float, k: int) -> Floats:
    """Return equal weights, (n,), for (n,) scores."""
    return np.full(len(scores), 1 / len(scores))


PRIORITISATIONS: dict[str, Callable[[Floats, float, int], Floats]] = {
    "rank": by_rank,
    "top-k": by_top_k,
    "proportional": by_score,
    "uniform": uniform,
}
"""Functions of (n,) scores, a temperature and k that return (n,) weights with the sum 1, by name."""


def by_staleness(waits: Integers) -> Floats:
    """Return weights, (n,), in proportion to the waiting times of levels; all weights are equal if all times are 0.

    Args:
        waits: (n,) int64, the ticks since each level was last measured.
    """
    total = waits.sum(dtype=np.float64)
    return waits / total if total > 0 else np.full(len(waits), 1 / len(waits))


def _softmax(logarithms: Floats, temperature: float) -> Floats:
    with np.errstate(over="ignore"):  # a tiny temperature may give -inf, whose weight is 0
        weights = np.exp((logarithms - logarithms.max()) / temperature)
    return weights / weights.sum()
