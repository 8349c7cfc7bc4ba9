"""`VectorAdversarialEvolution`: one population of levels that evolve in N environments at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from maze_nca_gym.envs.backend import host_array
from maze_nca_gym.envs.level_source import Draw
from maze_nca_gym.envs.spaces import check_seed, is_sequence
from maze_nca_gym.envs.vector import Infos, MazeVectorEnv
from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation
from maze_nca_gym.wrappers.evolution import OPTIONS, start


class VectorAdversarialEvolution(VectorWrapper[Any, Any, Any, Any, Any], RecordConstructorArgs):
    """`AdversarialEvolution` for environments made by `gymnasium.make_vec`: all of them share one population.

    With one environment it is the same, bit for bit, in every autoreset mode. With more, episodes that end in the same
    step are measured together, and levels are chosen together. Short episodes are measured first, so that a population
    fills with levels that are solved soon before those that are not.

    **Info** wherever episodes begin also has `level_id` and `generation`, (N,) int64; where they end, `regret`, (N,)
    float64, which in autoreset mode SAME_STEP is within `final_info`. All come with `_key` masks.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        population: LevelPopulation | str | Path | None = None,
        **options: Any,
    ) -> None:
        """Check every argument, then take over the choice of the environments' levels.

        Args:
            env: a `MazeVectorEnv`, wrapped or not, of any autoreset mode, device and output.
            population: a population to continue, or the path of a saved one; None makes a new one.
            options: fields of `BreedingSchedule` and, for a new population, of `PopulationConfig`; `n_initial` and
                `window` of `evolution.Evolution`.

        Raises:
            ValueError: an environment that is no batch of mazes, an unknown option or a bad value. A missing population
                file, or a population of another task or size.
        """
        population = str(population) if isinstance(population, Path) else population
        RecordConstructorArgs.__init__(self, population=population, **options)
        mazes = env.unwrapped if isinstance(env, VectorEnv) else None
        if not isinstance(mazes, MazeVectorEnv):
            raise ValueError(f"VectorAdversarialEvolution wraps the batched environments of maze_nca_gym, not {env}")
        self._evolution = start(mazes.source, population, options, mazes.num_envs)
        super().__init__(env)
        self._mazes = mazes
        self._running = np.zeros(mazes.num_envs, np.bool_)
        self._measured = np.zeros(mazes.num_envs, np.bool_)
        self._regrets = np.zeros(mazes.num_envs)
        mazes.choose_levels_with(self._choose)

    @property
    def population(self) -> LevelPopulation:
        """The levels as they have evolved so far: `env.population.save(path)`."""
        return self._evolution.population

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start all episodes, or those of `options["reset_mask"]`.

        Raises:
            ValueError: a bad seed, option or level; nothing has changed then.
        """
        given: Any = seed if is_sequence(seed) else [seed]
        with self._evolution.seeded([each for each in map(check_seed, given) if each is not None]):
            mazes: Any = self.env  # Gymnasium's types leave sequences of seeds out
            observation, infos = mazes.reset(seed=seed, options=options)
        if (options or {}).get("level") is not None:
            self._evolution.ignore(np.flatnonzero(_started(infos)))
        return observation, self._begin(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        """Return one step; where it ends episodes, their levels are measured."""
        self._measured = np.zeros(self.num_envs, np.bool_)
        observation, rewards, terminated, truncated, infos = self.env.step(actions)
        self._measure()
        if self._measured.any():
            final = infos.get("final_info", infos)
            final.update(self._mazes.masked({"regret": self._regrets}, self._measured))
        return observation, rewards, terminated, truncated, self._begin(infos)

    def _choose(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        self._measure()  # of episodes that end in this very step nothing is left afterwards
        return self._evolution.next_levels(rows, draw)

    def _measure(self) -> None:
        """Pass the episodes that have ended, and were still running, to the population."""
        rows = np.flatnonzero(self._running & self._mazes.ended)
        if len(rows):
            self._regrets[rows] = self._evolution.record(rows, self._mazes.state)
            self._running[rows], self._measured[rows] = False, True

    def _begin(self, infos: Infos) -> Infos:
        """Add to infos what the levels are that episodes begin on."""
        started = _started(infos)
        if not started.any():
            return infos
        self._running |= started
        levels = {"level_id": self._evolution.ids, "generation": self._evolution.generations}
        return {**infos, **self._mazes.masked(levels, started)}


def _started(infos: Infos) -> NDArray[np.bool_]:
    """Return where episodes have begun, (N,) bool, according to the environments' infos."""
    if "_solution_length" not in infos:
        return np.zeros(0, np.bool_)
    mask = infos["_solution_length"]
    return np.asarray(host_array(mask))


def make(
    num_envs: int, time_limit: int, max_episode_steps: int | None = None, **options: Any
) -> VectorAdversarialEvolution:
    """Return the vector entry point of the registered environments with evolving levels.

    Args:
        num_envs: N.
        time_limit: steps after which an episode is truncated.
        max_episode_steps: replaces `time_limit` if it is not None.
        options: options of `VectorAdversarialEvolution` and of `MazeVectorEnv`.

    Raises:
        ValueError: the same errors as from these two.
    """
    own = {name: options.pop(name) for name in list(options) if name in OPTIONS | {"population"}}
    limit = time_limit if max_episode_steps is None else max_episode_steps
    return VectorAdversarialEvolution(MazeVectorEnv(num_envs, max_episode_steps=limit, **options), **own)
