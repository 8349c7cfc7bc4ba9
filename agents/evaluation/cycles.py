"""The long-run behaviour of a policy: a fixed point, a limit cycle, or neither."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.levels import level_hashes
from maze_nca_gym.mazes.scoring import as_one_map
from maze_nca_gym.support.transfer import read_back

from ..policies.policy import Policy
from ..rollouts.iterating import iterate
from ..rollouts.scores import path_of

WINDOW = 64
"""Number of iterations over which repetitions are searched."""


@dataclass(frozen=True)
class Habit:
    """The long-run behaviour of states, or of paths: fractions of levels.

    Attributes:
        fixed_point: fraction of levels on which the state or path does not change any more.
        limit_cycle: fraction on which it repeats with a period of two or more iterations.
        aperiodic: fraction on which it has no period within `WINDOW` iterations.
        periods: period of a cycle in iterations, as text -> fraction of levels with this period.
    """

    fixed_point: float
    limit_cycle: float
    aperiodic: float
    periods: dict[str, float]

    @classmethod
    def of(cls, periods: NDArray[np.int64]) -> Habit:
        """Return the fractions for (N,) int64 periods: 1 for a fixed point, 0 for no period."""
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
    """Return the periods of the state and of its rounded path, (B,) int64 each: 1 for a fixed point, 0 for no period.

    The period of a state, at most `WINDOW` iterations, is proven: every iteration is the same function, so a state that
    occurs again bit for bit occurs forever. The period of a path, at most `WINDOW // 2`, is only observed over the
    `WINDOW` iterations. A path can have a period although the state has none, for example while the state approaches a
    cycle or counts iterations.

    Args:
        policy: a policy with equal iterations from `start_step` on.
        maze: (B, T, H, W) floats, the one-hot tiles.
        state: (B, C, H, W) floats, after enough iterations to settle on every level on which the policy ever settles.
        start_step: the number of iterations that led to `state`.
    """
    of_state = np.zeros(len(state), np.int64)
    hashes = []
    for step, current in enumerate(iterate(policy, maze, WINDOW, state, start_step=start_step)):
        hashes.append(level_hashes(as_one_map(path_of(policy, current) > 0.5).astype(np.uint8)))
        back = read_back((current == state).flatten(1).all(dim=1))
        of_state[back & (of_state == 0)] = step
    return of_state, repeat_periods(np.array(hashes))


def repeat_periods(history: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the smallest period of every column of a (T, B) history, (B,) int64, at most T // 2; 0 for no period."""
    periods = np.zeros(history.shape[1], np.int64)
    for period in range(len(history) // 2, 0, -1):
        periods[(history[period:] == history[:-period]).all(axis=0)] = period
    return periods
