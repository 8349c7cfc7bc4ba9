"""The regret of policies on levels: how far their paths are from exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population.members import Measurements, measure
from maze_nca_gym.mazes.scoring import Scores
from maze_nca_gym.mazes.tasks import find_task

from ...policies.policy import Policy
from ...rollouts import find_paths, label, score_paths


class EvaluatedPolicy(NamedTuple):
    """A policy and its number of iterations on a level.

    Attributes:
        policy: the policy.
        n_steps: iterations, at least 1 and at most as many as it has weights for.
    """

    policy: Policy
    n_steps: int


class Regret:
    """Measures levels by `population.members.measure` after the last iteration, averaged over all policies."""

    def __init__(
        self, evaluated: Sequence[EvaluatedPolicy], measure: str, batch: int | None, pause: Callable[[], Any]
    ) -> None:
        """Store what to measure and how.

        Args:
            evaluated: at least one policy, all of one task.
            measure: a name in `population.config.MEASURES`.
            batch: levels that run at once; None for as many as keep the state small.
            pause: called every few iterations; an exception that it raises ends the measurement.
        """
        self._evaluated, self._measure, self._batch, self._pause = evaluated, measure, batch, pause

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        """Return (N,) regret, 0 for a perfect path, and (N,) the fraction of the policies, in [0, 1], that complete a
        level.

        Args:
            tiles: (N, H, W).
            targets: (N, H, W), the canonical solutions.
        """
        measured = [self._measured(evaluated_policy, tiles, targets) for evaluated_policy in self._evaluated]
        return Measurements(*np.mean(measured, axis=0))

    def _measured(self, evaluated_policy: EvaluatedPolicy, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        policy, path = evaluated_policy.policy, self.paths(evaluated_policy, tiles)
        levels = label(policy, tiles, targets)
        scores = Scores(score_paths(policy, levels, path))
        return measure(self._measure, tiles, path, levels.wanted, find_task(policy.task).judge, scores)

    def paths(self, evaluated_policy: EvaluatedPolicy, tiles: Tiles) -> NDArray[np.float32]:
        """Return the path channel of a policy after its last iteration on each level, (N, H, W)."""
        return find_paths(
            evaluated_policy.policy, tiles, evaluated_policy.n_steps, batch=self._batch, pause=self._pause
        )
