"""The policies against which levels evolve, and their regret: how far their paths are from exact solutions."""

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
from ..rollouts import default_steps, find_paths, label, score_paths, try_out


def find_opponents(policies: Mapping[str, Policy], levels: Tiles, steps: int | None) -> dict[str, tuple[Policy, int]]:
    """Return each policy with its number of iterations on a level, after a trial.

    Args:
        policies: the policies, of one task, by name.
        levels: (N, H, W) uint8, the first levels.
        steps: number of iterations; by default as many as any level of this shape can need, since solutions may get
            longer than those of the first levels, or a policy's usual number.

    Raises:
        ValueError: a policy cannot run on such levels, or for that many iterations.
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
        batch: levels that run at once, or None for as many as keep the state small.
        pause: called every few iterations; an exception that it raises ends the measurement.
    """

    opponents: Sequence[tuple[Policy, int]]
    score: str
    batch: int | None
    pause: Callable[[], Any]

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Measurements:
        """Return (N,) regret, 0 for a perfect path, and (N,) the fraction of the policies, in [0, 1], that complete a
        level.

        Args:
            tiles: (N, H, W).
            targets: (N, H, W), the canonical solutions.
        """
        measurements = []
        for number, (policy, _) in enumerate(self.opponents):
            path, levels = self.paths(tiles, number), label(policy, tiles, targets)
            scores = Scores(score_paths(policy, levels, path))
            measurements.append(measure_levels(self.score, tiles, path, levels.wanted, policy.problem.judge, scores))
        return Measurements(*np.mean(measurements, axis=0))

    def paths(self, tiles: Tiles, number: int = 0) -> NDArray[np.float32]:
        """Return the paths, (N, H, W) float32, that the policy with index `number` shows on (N, H, W) levels after its
        last iteration."""
        policy, n_steps = self.opponents[number]
        return find_paths(policy, tiles, n_steps, batch=self.batch, pause=self.pause)
