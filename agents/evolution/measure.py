"""The policies against which levels evolve, and their regret: the distance of their paths from exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population.members import Measurements, measure_levels
from maze_nca_gym.mazes.scoring import Scores

from ..policies.policy import Policy
from ..rollouts.scores import label, score_paths
from ..rollouts.solving import default_steps, find_paths, try_out


def find_opponents(policies: Mapping[str, Policy], levels: Tiles, steps: int | None) -> dict[str, tuple[Policy, int]]:
    """Return each policy with its number of iterations on a level, after a trial run.

    Args:
        policies: the policies, of one task, by name.
        levels: (N, H, W) uint8, the first levels.
        steps: the number of iterations. By default it is enough for any level of this shape, because solutions may
            become longer than the solutions of the first levels; if no such number is known, it is the policy's usual
            number.

    Raises:
        ValueError: a policy cannot run on such levels, or for that number of iterations.
    """
    opponents = {}
    for name, policy in policies.items():
        n_steps = steps
        if n_steps is None and policy.max_steps is None:
            n_steps = policy.guarantees.enough_steps(*levels.shape[1:])
        if n_steps is None:
            n_steps = default_steps(policy, np.zeros(levels[:1].shape, np.bool_))
        try_out(policy, levels, n_steps, name)
        opponents[name] = policy, n_steps
    return opponents


@dataclass(frozen=True)
class Regret:
    """Measures levels by `population.members.measure_levels` after the last iteration, averaged over all policies.

    Attributes:
        opponents: at least one policy, each with its number of iterations on a level, all of one task.
        score: a name in `population.config.MEASURES`.
        batch: number of levels that run at once, or None for a number that keeps the state small.
        pause: called every few iterations; an exception that it raises ends the measurement.
    """

    opponents: Sequence[tuple[Policy, int]]
    score: str
    batch: int | None
    pause: Callable[[], Any]

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        """Return the measurements of N levels, means over the policies.

        They are the regret, (N,) floats, which is 0 for a perfect path, and the fraction of the policies that complete
        a level, (N,) floats in [0, 1].

        Args:
            tiles: (N, H, W) uint8.
            targets: (N, H, W) bool, the canonical solutions.
        """
        measurements = []
        for number, (policy, _) in enumerate(self.opponents):
            path, levels = self.paths(tiles, number), label(policy, tiles, targets)
            scores = Scores(score_paths(policy, levels, path))
            measurements.append(measure_levels(self.score, tiles, path, levels.wanted, policy.problem.judge, scores))
        return Measurements(*np.mean(measurements, axis=0))

    def paths(self, tiles: Tiles, number: int = 0) -> NDArray[np.float32]:
        """Return the paths that a policy shows on (N, H, W) levels after its last iteration, (N, H, W) float32.

        Args:
            tiles: (N, H, W) uint8.
            number: the index of the policy in `opponents`.
        """
        policy, n_steps = self.opponents[number]
        return find_paths(policy, tiles, n_steps, batch=self.batch, pause=self.pause)
