"""`AdversarialEvolution` and its vector form: wrappers with levels that evolve against the agent that plays them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from maze_nca_gym.envs.backend import host_array
from maze_nca_gym.envs.level_source import DrawOwn
from maze_nca_gym.envs.maze import MazeEnv, Observation
from maze_nca_gym.envs.spaces import check_seed
from maze_nca_gym.envs.vector import Infos, MazeVectorEnv
from maze_nca_gym.envs.wrappers.evolution import OPTIONS, Evolution
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population import LevelPopulation
from maze_nca_gym.support.arrays import is_sequence
from maze_nca_gym.support.names import check_flag

ROW = np.zeros(1, np.intp)
"""Index of the only environment."""


class _Evolving(RecordConstructorArgs):
    """The common part of both wrappers: an `Evolution`, which chooses the levels of their environments."""

    env: Any

    def _prepare(
        self,
        mazes: MazeEnv | MazeVectorEnv,
        n_envs: int,
        population: LevelPopulation | str | Path | None,
        options: Mapping[str, Any],
        **own: Any,
    ) -> None:
        """Check the arguments of the constructor, and record them for the specification of the environment."""
        population = os.fspath(population) if isinstance(population, os.PathLike) else population
        RecordConstructorArgs.__init__(self, population=population, **own, **options)
        self._mazes: Any = mazes
        self._evolution = Evolution(mazes.source, population, n_envs, options)

    @property
    def population(self) -> LevelPopulation:
        """The levels as they have evolved so far. `env.population.save(path)` writes them to a file."""
        return self._evolution.population

    def _reset(self, seed: Any, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any], bool]:
        """Reset the environments and seed the evolution.

        Return the observation, the info, and whether the user chose the levels.
        """
        seeds = [value for value in map(check_seed, seed if is_sequence(seed) else [seed]) if value is not None]
        with self._evolution.seeded(seeds):
            observation, info = self.env.reset(seed=seed, options=options)
        return observation, info, any((options or {}).get(name) is not None for name in ("level", "index"))


class AdversarialEvolution(_Evolving, gym.Wrapper[Observation, NDArray[np.float32], Observation, NDArray[np.float32]]):
    """Levels that evolve to maximise the agent's regret (paper, section "Adversarial data generation").

    The wrapper does not see the agent, only how episodes end. `reset` begins on a member of a population, an offspring
    of members, or a fresh level of the environment. When the episode ends, its regret becomes the level's fitness.
    Offspring and fresh levels enter the population while there is room. In a full population they enter if they are
    fitter than a member that they replace.

    Regret is the final loss against the nearest optimum; the option `score` selects other measures.

    A time limit belongs inside this wrapper, around the environment. Three kinds of episodes do not count: an episode
    that `reset` cuts short, an episode on a level that the user gives by `reset(options={"level": ...})`, and an
    episode on a level that the user edits in the window.

    All draws follow from the seeds given to `reset` and from the episodes since. A seed also seeds the wrapper's own
    generator; the environment's generator draws only its fresh levels. A seed does not reset the population.

    **Info** at reset also contains `level_id`, the member's id, or -1 if the level is not a member, and `generation`, 0
    for fresh levels and -1 for a level that the user gave. At the end of an episode it contains `regret`.
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
            population: a population to continue (several environments may share one), or the path of a saved
                population; None makes a new population.
            measure_unfinished: count an episode that `reset` ends after a step or more as if it had ended there. This
                is for environments with a time limit outside this wrapper.
            options: fields of `BreedingSchedule` and, for a new population, of `PopulationConfig`; `n_initial` and
                `window` of `evolution.Evolution`. By default `n_offspring` is 64, or the capacity if that is less.

        Raises:
            ValueError: an environment that is not a maze, a missing population file, a population of another task or
                size, an unknown option, or a bad value.
        """
        maze = env.unwrapped if isinstance(env, gym.Env) else None
        if not isinstance(maze, MazeEnv):
            raise ValueError(f"AdversarialEvolution wraps the environments of maze_nca_gym, not {env}")
        check_flag("measure_unfinished", measure_unfinished)
        self._prepare(maze, 1, population, options, measure_unfinished=measure_unfinished)
        gym.Wrapper.__init__(self, env)
        self._measure_unfinished = measure_unfinished
        self._level: Tiles = np.empty((0, *maze.source.shape), np.uint8)
        self._n_steps = 0
        self._running = False
        maze.choose_levels_with(self._choose)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode on a level of the population, an offspring or a fresh level; return observation and info.

        Args:
            seed: seed of all draws to come, or None to continue.
            options: the same as for `MazeEnv.reset`. A level that they choose does not take part in the evolution.

        Raises:
            ValueError: a bad seed, option or level; nothing has changed then.
        """
        observation, info, is_given = self._reset(seed, options)
        if is_given:  # such levels take no part in the evolution
            self._evolution.ignore(ROW)
        self._n_steps, self._running = 0, True
        self._level = self._mazes.state.tiles
        info["level_id"] = int(self._evolution.ids[0])
        info["generation"] = int(self._evolution.generations[0])
        return observation, info

    def _choose(self, rows: NDArray[np.intp], draw: DrawOwn) -> Tiles:
        if self._measure_unfinished and self._running and self._n_steps:
            self._finish()
        self._running = False
        return self._evolution.next_levels(rows, draw)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Make the action, (C, H, W) float32, the state; return the same values as the environment's `step`.

        If the step ends the episode, the episode's level is measured.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._n_steps += 1
        if (terminated or truncated) and self._running:
            info["regret"] = self._finish()
        return observation, reward, terminated, truncated, info

    def _finish(self) -> float:
        """Pass the episode that has ended to the population; return its regret."""
        self._running = False
        state = self._mazes.state
        if not np.array_equal(state.tiles, self._level):  # edited in the window
            self._evolution.ignore(ROW)
        return float(self._evolution.record(ROW, state)[0])


class VectorAdversarialEvolution(_Evolving, VectorWrapper):  # no generic class before Gymnasium 1.4
    """`AdversarialEvolution` for environments made by `gymnasium.make_vec`: all of them share one population.

    With one environment it is the same, bit for bit, in every autoreset mode. With several environments, episodes that
    end in the same step are measured together, and levels are chosen together. Short episodes end first, so a
    population first fills with levels that are solved quickly.

    **Info** of a step or reset at which episodes begin also contains `level_id` and `generation`, (N,) int64. Info of a
    step that ends episodes contains `regret`, (N,) float64; in autoreset mode SAME_STEP it is within `final_info`. All
    come with `_key` masks.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], population: LevelPopulation | str | Path | None = None, **options: Any
    ) -> None:
        """Check every argument, then take over the choice of the environments' levels.

        Args:
            env: a `MazeVectorEnv`, wrapped or not, of any autoreset mode, device and output.
            population: a population to continue, or the path of a saved population; None makes a new population.
            options: fields of `BreedingSchedule` and, for a new population, of `PopulationConfig`; `n_initial` and
                `window` of `evolution.Evolution`. By default `n_offspring` is 64, or the capacity if that is less.

        Raises:
            ValueError: an environment that is not a batch of mazes, an unknown option or a bad value. A missing
                population file, or a population of another task or size.
        """
        mazes = env.unwrapped if isinstance(env, VectorEnv) else None
        if not isinstance(mazes, MazeVectorEnv):
            raise ValueError(f"VectorAdversarialEvolution wraps the batched environments of maze_nca_gym, not {env}")
        self._prepare(mazes, mazes.num_envs, population, options)
        VectorWrapper.__init__(self, env)
        self.autoreset_mode = mazes.autoreset_mode
        self._running = np.zeros(mazes.num_envs, np.bool_)
        self._measured = np.zeros(mazes.num_envs, np.bool_)
        self._regrets = np.zeros(mazes.num_envs)
        mazes.choose_levels_with(self._choose)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start all episodes, or the episodes in `options["reset_mask"]`; return batched observations and infos.

        Raises:
            ValueError: a bad seed, option or level; nothing has changed then.
        """
        observation, infos, is_given = self._reset(seed, options)
        if is_given:
            self._evolution.ignore(np.flatnonzero(_started(infos)))
        return observation, self._begin(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        """Make one step, and measure the levels of episodes that end in it; return the same values as the environment's
        `step`."""
        self._measured = np.zeros(self.num_envs, np.bool_)
        observation, rewards, terminated, truncated, infos = self.env.step(actions)
        self._measure()
        if self._measured.any():
            final = infos.get("final_info", infos)
            final.update(self._mazes.masked({"regret": self._regrets}, self._measured))
        return observation, rewards, terminated, truncated, self._begin(infos)

    def _choose(self, rows: NDArray[np.intp], draw: DrawOwn) -> Tiles:
        self._measure()  # now, since episodes that end in this very step are replaced next
        return self._evolution.next_levels(rows, draw)

    def _measure(self) -> None:
        """Pass the episodes that have ended, and were still running, to the population."""
        rows = np.flatnonzero(self._running & self._mazes.ended)
        if len(rows):
            self._regrets[rows] = self._evolution.record(rows, self._mazes.state)
            self._running[rows], self._measured[rows] = False, True

    def _begin(self, infos: Infos) -> Infos:
        """Add ids and generations of the levels of new episodes to infos."""
        started = _started(infos)
        if not started.any():
            return infos
        self._running |= started
        levels = {"level_id": self._evolution.ids, "generation": self._evolution.generations}
        return {**infos, **self._mazes.masked(levels, started)}


def _started(infos: Infos) -> NDArray[np.bool_]:
    """Return which episodes have begun, (N,) bool, according to the environments' infos."""
    return np.asarray(host_array(infos.get("_solution_length", np.zeros(0, np.bool_))))


def make(time_limit: int, **options: Any) -> AdversarialEvolution:
    """Return an environment with evolving levels; the entry point of the registered environments.

    If another limit, the `max_episode_steps` of `gymnasium.make`, cuts an episode short, the episode is measured at the
    next reset, and no info contains its regret.

    Args:
        time_limit: steps after which an episode is truncated, by a limit inside the wrapper.
        options: options of `AdversarialEvolution` and of `MazeEnv`.

    Raises:
        ValueError: the same errors as from these two.
    """
    own = {name: options.pop(name) for name in list(options) if name in OPTIONS | {"population", "measure_unfinished"}}
    env: Any = TimeLimit(MazeEnv(**options), time_limit)
    return AdversarialEvolution(env, **{"measure_unfinished": True, **own})


def make_vec(
    num_envs: int, time_limit: int, max_episode_steps: int | None = None, **options: Any
) -> VectorAdversarialEvolution:
    """Return a vector environment with evolving levels; the entry point of the registered environments.

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
