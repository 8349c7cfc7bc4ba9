"""Who enters a population, and for whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Outcome(NamedTuple):
    """What comes of a competition.

    Attributes:
        accepted: indices of the candidates that enter, ascending.
        evicted: indices of the members whose places some of them take, ascending.
    """

    accepted: NDArray[np.int64]
    evicted: NDArray[np.int64]


def unknown(hashes: NDArray[np.uint64], members: set[int]) -> NDArray[np.int64]:
    """Indices of the candidates that are neither members nor earlier candidates, ascending."""
    seen: set[int] = set()
    new = []
    for i, value in enumerate(hashes.tolist()):
        if value not in members and value not in seen:
            seen.add(value)
            new.append(i)
    return np.array(new, np.int64)


def first_dropped(keys: NDArray[np.float64], ids: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Indices of the n members of lowest key, in ascending order of it, the youngest of equals first."""
    if n <= 0:
        return np.zeros(0, np.int64)
    lowest = np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])  # sorting all would take most of an insertion
    return lowest[np.lexsort((-ids[lowest], keys[lowest]))[:n]]


def compete(
    candidates: NDArray[np.int64],
    scores: NDArray[np.float64],
    challenged: NDArray[np.int64],
    members: NDArray[np.float64],
    room: int,
) -> Outcome:
    """Let candidates compete with members for their places.

    The fittest candidates fill what room there is. Those left, the fittest first, are each set against the next of the
    members challenged and replace it as long as they score higher. Where those are the members of lowest score, the
    levels of highest score among all stay, of equals the members and the earlier candidates.

    Args:
        candidates: indices into `scores` of those that compete, ascending.
        scores: of candidates.
        challenged: indices into `members` of those that may be dropped, the first to go first.
        members: scores of members.
        room: how many candidates enter in any case.
    """
    fittest_first = candidates[np.argsort(-scores[candidates], kind="stable")]
    challengers = fittest_first[room : room + len(challenged)]
    wins = np.logical_and.accumulate(scores[challengers] > members[challenged])
    return Outcome(np.sort(np.concatenate([fittest_first[:room], challengers[wins]])), np.sort(challenged[wins]))
