"""The weights by which a population chooses levels to replay.

The frequency of replay follows Jiang et al., *Prioritized Level Replay*, 2021. Powers are computed as logarithms, so
that no temperature overflows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def by_rank(scores: Floats, temperature: float, k: int) -> Floats:
    """Return (1 / rank) ** (1 / temperature) of (n,) scores; a level's rank is 1 + the number of higher scores.

    Levels of equal score hence have equal weights.
    """
    ranks = len(scores) + 1 - np.searchsorted(np.sort(scores), scores, side="right")
    return _softmax(-np.log(ranks), temperature)


def by_score(scores: Floats, temperature: float, k: int) -> Floats:
    """Return score ** (1 / temperature) of (n,) scores, with those below 0 as 0; equal weights if no score is above
    0."""
    if not (scores > 0).any():
        return uniform(scores, temperature, k)
    with np.errstate(divide="ignore"):  # log(0) is -inf, whose weight is 0
        return _softmax(np.log(np.maximum(scores, 0.0)), temperature)


def by_top_k(scores: Floats, temperature: float, k: int) -> Floats:
    """Return equal weights, (n,), for the k levels of highest score, the first of equal ones, and 0 for the others."""
    best = np.argsort(-scores, kind="stable")[:k]
    weights = np.zeros(len(scores))
    weights[best] = 1 / len(best)
    return weights


def uniform(scores: Floats, temperature: float, k: int) -> Floats:
    """Return equal weights, (n,)."""
    return np.full(len(scores), 1 / len(scores))


PRIORITISATIONS: dict[str, Callable[[Floats, float, int], Floats]] = {
    "rank": by_rank,
    "top-k": by_top_k,
    "proportional": by_score,
    "uniform": uniform,
}
"""Name -> (scores, temperature, k) -> weights."""


def by_staleness(waits: Integers) -> Floats:
    """Return weights, (n,), in proportion to the ticks since each level was measured; equal weights if all were
    measured just now."""
    total = waits.sum(dtype=np.float64)
    return waits / total if total > 0 else np.full(len(waits), 1 / len(waits))


def _softmax(logarithms: Floats, temperature: float) -> Floats:
    with np.errstate(over="ignore"):  # a tiny temperature may give -inf, whose weight is 0
        weights = np.exp((logarithms - logarithms.max()) / temperature)
    return weights / weights.sum()
