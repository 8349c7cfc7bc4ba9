"""The regret of policies on levels: what their paths lack of the exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles
from maze_nca_gym.scoring import Scores

from ..policy import Policy
from ..rollouts import find_paths, score_paths, wanted_of

MEASURES: Mapping[str, Callable[[Scores], NDArray[np.float64]]] = {
    "accuracy": lambda scores: 1 - scores.accuracy,
    "loss": lambda scores: scores.loss,
}
"""Name -> (N,) regret: what the accuracy lacks of 1, or the paper's mean squared error over all tiles.

The former weighs a mistake by the length of the solution: a detour beside a short path is worse than beside a long one.
"""


class Player(NamedTuple):
    """A policy and how long it gets for a level.

    Attributes:
        policy: what runs.
        n_steps: iterations, at least 1 and at most as many as it has weights for.
    """

    policy: Policy
    n_steps: int


class Regret:
    """Measures levels: the regret after the last iteration, the mean over all policies; and the share that complete.

    It is measured against the optimal path that the policy found, or else against the canonical one.
    """

    def __init__(self, players: Sequence[Player], measure: str, batch: int | None, pause: Callable[[], Any]) -> None:
        """Remember how to measure.

        Args:
            players: at least one, of one task.
            measure: a name in `MEASURES`.
            batch: levels that run at once; None for as many as keep the state small.
            pause: called every few iterations; what it raises ends the measuring.
        """
        self._players, self._batch, self._pause = players, batch, pause
        self._regret = MEASURES[measure]

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (N,) regret, 0 for a perfect path; and (N,) in [0, 1], the share of the policies that complete a
        level.

        Args:
            tiles: (N, H, W).
            targets: (N, H, W), the canonical solutions.
        """
        scores = [self._score(player, tiles, targets) for player in self._players]
        regret = np.mean([self._regret(one) for one in scores], axis=0)
        return regret, np.mean([one.complete for one in scores], axis=0, dtype=np.float64)

    def _score(self, player: Player, tiles: Tiles, targets: NDArray[np.bool_]) -> Scores:
        wanted = wanted_of(player.policy, tiles, targets)
        return Scores(score_paths(player.policy, tiles, self.paths(player, tiles), wanted))

    def paths(self, player: Player, tiles: Tiles) -> NDArray[np.float32]:
        """Return the path with which a policy ends on each level, (N, H, W)."""
        return find_paths(player.policy, tiles, player.n_steps, batch=self._batch, pause=self._pause)
