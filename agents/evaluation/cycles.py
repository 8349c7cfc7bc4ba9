"""The long-run behaviour of a policy: a fixed point, a limit cycle, or neither."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.levels import level_hashes
from maze_nca_gym.transfer import read_back

from ..policy import Policy
from ..rollouts import iterate, path_of

WINDOW = 64
"""Iterations that are looked at."""


@dataclass(frozen=True)
class Habit:
    """Fractions of levels by what something does within the window.

    Attributes:
        fixed_point: it is the same after every iteration.
        limit_cycle: it repeats with a period.
        aperiodic: it does neither.
        periods: period of a cycle in iterations, as text -> fraction of levels that have it.
    """

    fixed_point: float
    limit_cycle: float
    aperiodic: float
    periods: dict[str, float]

    @classmethod
    def of(cls, periods: NDArray[np.int64]) -> Habit:
        """Count (N,) periods: 1 at a fixed point, 0 where there is none."""
        counts = Counter(periods[periods > 1].tolist())
        return cls(
            float((periods == 1).mean()),
            float((periods > 1).mean()),
            float((periods == 0).mean()),
            {str(period): count / len(periods) for period, count in sorted(counts.items())},
        )


def find_periods(
    policy: Policy, maze: Tensor, state: Tensor, start_step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the periods of the state and of its rounded path, (B,) int64 each: 1 at rest, 0 where there is none.

    A state's period, of at most `WINDOW` iterations, is proven. For an iteration is the same function of the state at
    every step, so what is back to the bit comes back forever. A path's, of at most half of `WINDOW`, is what all of
    the window showed. It exists too where the state approaches a cycle, or counts on while the path is steady.

    Args:
        policy: it iterates alike from `start_step` on.
        maze: (B, T, H, W).
        state: (B, C, H, W), to which every level has settled if it ever does.
        start_step: iterations that `state` has already had.
    """
    of_state = np.zeros(len(state), np.int64)
    hashes = []
    for step, current in enumerate(iterate(policy, maze, WINDOW, state, start_step=start_step)):
        hashes.append(level_hashes((path_of(current) > 0.5).astype(np.uint8)))
        back = read_back((current == state).flatten(1).all(dim=1))
        of_state[back & (of_state == 0)] = step
    return of_state, repeat_periods(np.array(hashes))


def repeat_periods(history: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the least period of every column of a (T, B) history, at most T // 2; 0 where there is none."""
    periods = np.zeros(history.shape[1], np.int64)
    for period in range(len(history) // 2, 0, -1):
        periods[(history[period:] == history[:-period]).all(axis=0)] = period
    return periods
