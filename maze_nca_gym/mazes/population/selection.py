"""Selection in a population: the levels to replay, and the candidates that replace members.

The frequency of replay follows Jiang et al., *Prioritized Level Replay*, 2021. Powers are computed as logarithms, so
that no temperature overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
    """Return equal weights, (n,), for the k levels of highest score, the first of equal ones; 0 for the others."""
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


class Replacement(NamedTuple):
    """The result of a competition.

    Attributes:
        accepted: indices of the candidates that enter, ascending.
        evicted: indices of the members whose places some of them take, ascending.
    """

    accepted: NDArray[np.int64]
    evicted: NDArray[np.int64]


def unknown(hashes: NDArray[np.uint64], members: set[int]) -> NDArray[np.int64]:
    """Return the indices of (N,) hashes that are neither of members nor of earlier candidates, (K,) int64 ascending."""
    seen: set[int] = set()
    new = []
    for i, value in enumerate(hashes.tolist()):
        if value not in members and value not in seen:
            seen.add(value)
            new.append(i)
    return np.array(new, np.int64)


def first_dropped(keys: NDArray[np.float64], ids: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the indices of the n members of lowest key, (n,) int64 in ascending order of it, the youngest of equals
    first."""
    if n <= 0:
        return np.zeros(0, np.int64)
    lowest = np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])  # faster than sorting all keys
    return lowest[np.lexsort((-ids[lowest], keys[lowest]))[:n]]


def compete(
    candidates: NDArray[np.int64],
    scores: NDArray[np.float64],
    challenged: NDArray[np.int64],
    members: NDArray[np.float64],
    room: int,
) -> Replacement:
    """Let candidates compete with members for places in the population.

    The fittest candidates fill the available room. Each of the others, the fittest first, is compared with the next of
    the challenged members and replaces it if it scores higher. If the challenged members are those of lowest score, the
    levels of highest score overall stay; ties favour members and earlier candidates.

    Args:
        candidates: (K,) indices into `scores` of those that compete, ascending.
        scores: (N,) scores of candidates.
        challenged: (M,) indices into `members` of those that may be dropped, in the order in which they go.
        members: (A,) scores of members.
        room: the number of candidates that enter in any case.
    """
    fittest_first = candidates[np.argsort(-scores[candidates], kind="stable")]
    challengers = fittest_first[room : room + len(challenged)]
    wins = np.logical_and.accumulate(scores[challengers] > members[challenged])
    return Replacement(np.sort(np.concatenate([fittest_first[:room], challengers[wins]])), np.sort(challenged[wins]))
