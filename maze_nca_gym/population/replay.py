"""How often each level of a population is replayed (Jiang et al., *Prioritized Level Replay*, 2021).

Every function gives weights of N >= 1 levels, (N,) float64 >= 0 that sum to 1. Powers are taken as logarithms, so that
no temperature overflows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def by_rank(scores: Floats, temperature: float, k: int) -> Floats:
    """(1 / rank) ** (1 / temperature); a level's rank is one more than the number of levels that score higher.

    Levels that score alike hence weigh alike.
    """
    ranks = len(scores) + 1 - np.searchsorted(np.sort(scores), scores, side="right")
    return _softmax(-np.log(ranks), temperature)


def by_score(scores: Floats, temperature: float, k: int) -> Floats:
    """score ** (1 / temperature), scores below 0 counting as 0; even weights where none is above."""
    if not (scores > 0).any():
        return uniform(scores, temperature, k)
    with np.errstate(divide="ignore"):  # log(0) is -inf, whose weight is 0
        return _softmax(np.log(np.maximum(scores, 0.0)), temperature)


def by_top_k(scores: Floats, temperature: float, k: int) -> Floats:
    """Even weights for the k levels of highest score, the first of those that score alike; 0 for the others."""
    best = np.argsort(-scores, kind="stable")[:k]
    weights = np.zeros(len(scores))
    weights[best] = 1 / len(best)
    return weights


def uniform(scores: Floats, temperature: float, k: int) -> Floats:
    """Even weights."""
    return np.full(len(scores), 1 / len(scores))


PRIORITISATIONS: dict[str, Callable[[Floats, float, int], Floats]] = {
    "rank": by_rank,
    "top-k": by_top_k,
    "proportional": by_score,
    "uniform": uniform,
}
"""Name -> (scores, temperature, k) -> weights."""


def by_staleness(waits: Integers) -> Floats:
    """In proportion to how long ago each level was measured, in ticks; even weights where all were just now."""
    total = waits.sum(dtype=np.float64)
    return waits / total if total > 0 else np.full(len(waits), 1 / len(waits))


def _softmax(logarithms: Floats, temperature: float) -> Floats:
    with np.errstate(over="ignore"):  # a quotient of -inf is a weight of 0
        weights = np.exp((logarithms - logarithms.max()) / temperature)
    return weights / weights.sum()
