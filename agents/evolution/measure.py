"""What the paths of policies lack of the exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles
from maze_nca_gym.population.members import Measurements, measure
from maze_nca_gym.scoring import Scores
from maze_nca_gym.tasks import find_task

from ..policy import Policy
from ..rollouts import find_paths, score_paths, wanted_of


class EvaluatedPolicy(NamedTuple):
    """A policy and how long it gets for a level.

    Attributes:
        policy: what runs.
        n_steps: iterations, at least 1 and at most as many as it has weights for.
    """

    policy: Policy
    n_steps: int


class Regret:
    """Measures levels after the last iteration, as `population.members.measure`: the means over all policies."""

    def __init__(
        self, evaluated: Sequence[EvaluatedPolicy], measure: str, batch: int | None, pause: Callable[[], Any]
    ) -> None:
        """Remember how to measure.

        Args:
            evaluated: at least one, of one task.
            measure: a name in `population.config.MEASURES`.
            batch: levels that run at once; None for as many as keep the state small.
            pause: called every few iterations; what it raises ends the measuring.
        """
        self._players, self._measure, self._batch, self._pause = evaluated, measure, batch, pause

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        """Return (N,) regret, 0 for a perfect path; and (N,) in [0, 1], the share of the policies that complete a
        level.

        Args:
            tiles: (N, H, W).
            targets: (N, H, W), the canonical solutions.
        """
        measured = [self._measured(evaluated_policy, tiles, targets) for evaluated_policy in self._players]
        return Measurements(*np.mean(measured, axis=0))

    def _measured(self, evaluated_policy: EvaluatedPolicy, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        policy, wanted, path = (
            evaluated_policy.policy,
            wanted_of(evaluated_policy.policy, tiles, targets),
            self.paths(evaluated_policy, tiles),
        )
        scores = Scores(score_paths(policy, tiles, path, wanted))
        return measure(self._measure, tiles, path, wanted, find_task(policy.task).judge, scores)

    def paths(self, evaluated_policy: EvaluatedPolicy, tiles: Tiles) -> NDArray[np.float32]:
        """Return the path with which a policy ends on each level, (N, H, W)."""
        return find_paths(
            evaluated_policy.policy, tiles, evaluated_policy.n_steps, batch=self._batch, pause=self._pause
        )
