"""`AdversarialEvolution`: levels that evolve against whatever agent plays them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from maze_nca_gym.envs.level_source import Draw
from maze_nca_gym.envs.maze import MazeEnv, Observation
from maze_nca_gym.envs.spaces import check_seed
from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation
from maze_nca_gym.wrappers.evolution import OPTIONS, start

ROW = np.zeros(1, np.intp)
"""Index of the one environment."""


class AdversarialEvolution(
    gym.Wrapper[Observation, NDArray[np.float32], Observation, NDArray[np.float32]], RecordConstructorArgs
):
    """Serves levels that evolve to maximise the agent's regret (paper, section "Adversarial data generation").

    It sees no agent, only how episodes end. `reset` serves a member of a population, an offspring of members, or a
    fresh level of the environment. When the episode ends, its regret becomes the fitness of a member. Offspring and
    fresh levels enter the population if they are fitter than one that they replace.

    Regret is the final loss against the nearest optimum; the option `score` has other measures.

    A time limit belongs inside, around the environment. An episode cut short by `reset` counts for nothing. Neither
    does one on a level that the user gives, `reset(options={"level": ...})`, or edits in the window.

    What is drawn follows from the seeds given to `reset` and from the episodes since. A seed also seeds a generator of
    the wrapper's own; the environment's is used for its fresh levels only. The population stays as it is.

    **Info** at reset also has `level_id`, the member's id, -1 if the level is no member. There too, `generation` is
    0 for fresh levels, -1 for one that the user gave. At the end of an episode it has `regret`.
    """

    def __init__(
        self,
        env: gym.Env[Observation, NDArray[np.float32]],
        population: LevelPopulation | str | Path | None = None,
        *,
        measure_unfinished: bool = False,
        **options: Any,
    ) -> None:
        """Check every argument, then take over the choice of the environment's levels.

        Args:
            env: a `MazeEnv`, wrapped or not.
            population: a population to continue (several environments may share one), or the path of a saved one; None
                makes a new one.
            measure_unfinished: count an episode that `reset` ends after a step or more as if it had ended there. This
                is for environments whose time limit lies outside this wrapper.
            options: fields of `BreedingSchedule` and, for a new population, of `PopulationConfig`; `n_initial` and
                `window` of `evolution.Evolution`.

        Raises:
            ValueError: an environment without a maze, a missing population file, a population of another task or size,
                an unknown option, or a bad value.
        """
        population = str(population) if isinstance(population, Path) else population
        RecordConstructorArgs.__init__(self, population=population, measure_unfinished=measure_unfinished, **options)
        maze = env.unwrapped if isinstance(env, gym.Env) else None
        if not isinstance(maze, MazeEnv):
            raise ValueError(f"AdversarialEvolution wraps the environments of maze_nca_gym, not {env}")
        self._evolution = start(maze.source, population, options, n_envs=1)
        super().__init__(env)
        self._maze = maze
        self._measure_unfinished = bool(measure_unfinished)
        self._level: Tiles = np.empty((0, *maze.source.shape), np.uint8)
        self._n_steps = 0
        self._running = False
        maze.choose_levels_with(self._choose)

    @property
    def population(self) -> LevelPopulation:
        """The levels as they have evolved so far: `env.population.save(path)`."""
        return self._evolution.population

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode on a level of the population, an offspring or a fresh level, or on `options["level"]`.

        Raises:
            ValueError: a bad seed, option or level; nothing has changed then.
        """
        seed = check_seed(seed)
        with self._evolution.seeded([] if seed is None else [seed]):
            observation, info = self.env.reset(seed=seed, options=options)
        if (options or {}).get("level") is not None:
            self._evolution.ignore(ROW)
        self._n_steps, self._running = 0, True
        self._level = self._maze.state.tiles
        info["level_id"] = int(self._evolution.ids[0])
        info["generation"] = int(self._evolution.generations[0])
        return observation, info

    def _choose(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        if self._measure_unfinished and self._running and self._n_steps:
            self._finish()
        self._running = False
        return self._evolution.next_levels(rows, draw)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Make the action, (C, H, W) float32, the state; when this ends the episode, its level is measured."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._n_steps += 1
        if (terminated or truncated) and self._running:
            info["regret"] = self._finish()
        return observation, reward, terminated, truncated, info

    def _finish(self) -> float:
        """Return the regret of the episode, which the population learns too."""
        self._running = False
        state = self._maze.state
        if not np.array_equal(state.tiles, self._level):  # edited in the window
            self._evolution.ignore(ROW)
        return float(self._evolution.record(ROW, state)[0])


def make(time_limit: int, **options: Any) -> AdversarialEvolution:
    """Return the entry point of the registered environments with evolving levels.

    Episodes that another limit cuts short, the `max_episode_steps` of `gymnasium.make`, are measured at the next reset,
    and no info contains their regret.

    Args:
        time_limit: steps after which an episode is truncated, by a limit inside the wrapper.
        options: options of `AdversarialEvolution` and of `MazeEnv`.

    Raises:
        ValueError: the same errors as from these two.
    """
    own = {name: options.pop(name) for name in list(options) if name in OPTIONS | {"population", "measure_unfinished"}}
    env: Any = TimeLimit(MazeEnv(**options), time_limit)
    return AdversarialEvolution(env, **{"measure_unfinished": True, **own})
