"""The regret of policies on levels: how far their paths are from exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population.members import Measurements, measure
from maze_nca_gym.mazes.scoring import Scores
from maze_nca_gym.mazes.tasks import find_task

from ...policies.policy import Policy
from ...rollouts import find_paths, label, score_paths


class Regret:
    """Measures levels by `population.members.measure` after the last iteration, averaged over all policies."""

    def __init__(
        self, policies: Sequence[tuple[Policy, int]], measure: str, batch: int | None, pause: Callable[[], Any]
    ) -> None:
        """Store what to measure and how.

        Args:
            policies: at least one, each with its number of iterations on a level, all of one task.
            measure: a name in `population.config.MEASURES`.
            batch: levels that run at once; None for as many as keep the state small.
            pause: called every few iterations; an exception that it raises ends the measurement.
        """
        self._policies, self._measure, self._batch, self._pause = policies, measure, batch, pause

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        """Return (N,) regret, 0 for a perfect path, and (N,) the fraction of the policies, in [0, 1], that complete a
        level.

        Args:
            tiles: (N, H, W).
            targets: (N, H, W), the canonical solutions.
        """
        found = []
        for number, (policy, _) in enumerate(self._policies):
            path, levels = self.paths(tiles, number), label(policy, tiles, targets)
            scores = Scores(score_paths(policy, levels, path))
            found.append(measure(self._measure, tiles, path, levels.wanted, find_task(policy.task).judge, scores))
        return Measurements(*np.mean(found, axis=0))

    def paths(self, tiles: Tiles, number: int = 0) -> NDArray[np.float32]:
        """Return the path channel of one of the policies after its last iteration on each level, (N, H, W)."""
        policy, n_steps = self._policies[number]
        return find_paths(policy, tiles, n_steps, batch=self._batch, pause=self._pause)
