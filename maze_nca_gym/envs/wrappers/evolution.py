"""The link between episodes and a population of levels: the choice of each episode's level, and the use of its regret.

The link depends neither on the agent nor on the environment: `AdversarialEvolution` and `VectorAdversarialEvolution`
report which episodes begin and how they ended.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs.backend import host_array
from maze_nca_gym.envs.level_source import DrawOwn, LevelSource
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population import BreedingSchedule, Candidates, LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.population.members import measure_levels
from maze_nca_gym.mazes.scoring import Scores
from maze_nca_gym.support.names import check_count, check_keywords
from maze_nca_gym.support.options import check

_PARTS = {
    "breeding": {field.name for field in fields(BreedingSchedule)},
    "population": {field.name for field in fields(PopulationConfig)} - {"task"},
    "own": {"n_initial", "window"},
}
OPTIONS = {name for names in _PARTS.values() for name in names}
"""Names of the options of `Evolution`, and of the wrappers."""
_ALLOWED = "a LevelPopulation, or the path of a file that LevelPopulation.save or `maze-nca-gym evolve` wrote"

NOBODY = -1
"""The id of a level that is not a member, and the generation of a level that the user gave."""
_STREAM = 0x65766F
"""Spawn key that makes the generator independent of the environment's, which has the same seed."""


class Evolution:
    """The levels that N environments play now, and the population from which they come and which they compete to enter.

    Attributes:
        population: the population, which every finished episode changes.
        ids: (N,) int64, the ids of the members that are replayed, -1 for levels that are not members.
        generations: (N,) int64, the generations of the levels, 0 for fresh levels, -1 for levels that the user gave.
    """

    def __init__(
        self,
        source: LevelSource,
        population: LevelPopulation | str | Path | None,
        n_envs: int,
        options: Mapping[str, Any],
    ) -> None:
        """Begin without episodes.

        Args:
            source: the environments' source of levels.
            population: a population to continue, or the path of a saved population; None makes a new population.
            n_envs: N.
            options: fields of `BreedingSchedule` and, for a new population, fields of `PopulationConfig` except the
                task. By default there are at most `capacity` offspring. `evolve_every` counts episodes, except on
                levels that the user gave. `evolve_below` is compared with 1 - the mean accuracy of recent episodes,
                which means the same for short paths and long ones. Also `n_initial`, the number of levels to collect
                before any is replayed, including those already in the population, by default half the capacity; and
                `window`, by default 64, the number of episodes in that mean; episodes on offspring do not count.

        Raises:
            ValueError: an unknown option, a bad value or a value larger than the population's capacity, no such file,
                or a population of another task or size.
        """
        check_keywords("an evolution of levels", options, sorted(OPTIONS))
        by_part = {part: {k: v for k, v in options.items() if k in names} for part, names in _PARTS.items()}
        self.population = _find_population(source, population, by_part["population"])
        capacity = self.population.config.capacity
        usual = {"n_offspring": min(BreedingSchedule.n_offspring, capacity)}
        self._schedule = BreedingSchedule(**{**usual, **by_part["breeding"]})
        window, n_initial = by_part["own"].get("window", 64), by_part["own"].get("n_initial")
        n_initial = max(1, capacity // 2) if n_initial is None else n_initial
        check_count("window", window, 1)
        check_count("n_initial", n_initial, 1)
        for name, n in (("n_offspring", self._schedule.n_offspring), ("n_initial", n_initial)):
            check(n <= capacity, f"{name}={n} exceeds the capacity of {capacity}")
        self.ids = np.full(n_envs, NOBODY, np.int64)
        self.generations = np.full(n_envs, NOBODY, np.int64)
        self._entrants: list[Candidates | None] = [None] * n_envs  # levels being played that are not members yet
        self._shape, self._judge = source.shape, source.task.judge
        self._n_missing = n_initial - len(self.population)
        self._waiting: deque[Candidates] = deque()
        self._recent: deque[float] = deque(maxlen=window)
        self._n_since_round = 0
        self._rng = np.random.default_rng()

    @contextmanager
    def seeded(self, seeds: Sequence[int]) -> Iterator[None]:
        """Use a new generator with these seeds, if any are given; if the block fails, restore the generator before."""
        before = self._rng
        try:
            if seeds:
                self._rng = np.random.default_rng(np.random.SeedSequence(seeds, spawn_key=(_STREAM,)))
            yield
        except BaseException:
            self._rng = before
            raise

    def next_levels(self, rows: NDArray[np.intp], draw: DrawOwn) -> Tiles:
        """Return the (n, H, W) levels on which episodes begin in some environments, and forget the levels that they
        played.

        The levels are members, drawn by their replay probabilities, or else offspring that have not been played, or
        else fresh levels.

        Args:
            rows: (n,) int, indices of the environments.
            draw: draws fresh levels of these environments.
        """

        def error() -> float:
            return float(np.mean(self._recent)) if len(self._recent) == self._recent.maxlen else math.inf

        schedule = self._schedule
        if not self._waiting and self._n_missing <= 0 and schedule.is_due(self._n_since_round, error):
            children = self.population.offspring(self._rng, schedule.n_offspring, schedule.parents)
            self._waiting.extend(children.take([i]) for i in range(len(children)))
            self._n_since_round = 0
        probability = 0.0 if self._n_missing > 0 else schedule.replay_probability
        replayed = self._rng.random(len(rows)) < probability
        levels = np.empty((len(rows), *self._shape), np.uint8)
        self.ignore(rows)
        old, new = rows[replayed], rows[~replayed]
        if len(old):
            which = self.population.sample(self._rng, len(old))
            members = self.population.members[which]
            self.ids[old], self.generations[old] = members["id"], members["generation"]
            levels[replayed] = self.population.tiles[which]
        if len(new):
            entrants = [self._waiting.popleft() for _ in range(min(len(new), len(self._waiting)))]
            if len(entrants) < len(new):
                fresh = self.population.fresh(draw(new[len(entrants) :]))
                entrants += [fresh.take([i]) for i in range(len(fresh))]
            for row, entrant in zip(new.tolist(), entrants, strict=True):
                self._entrants[row], self.generations[row] = entrant, entrant.generations[0]
            levels[~replayed] = np.concatenate([entrant.tiles for entrant in entrants])
        return levels

    def ignore(self, rows: NDArray[np.intp]) -> None:
        """Note that the environments at `rows`, (K,) int, play levels from outside the population."""
        self.ids[rows] = self.generations[rows] = NOBODY
        for row in rows.tolist():
            self._entrants[row] = None

    def record(self, rows: NDArray[np.intp], state: Any) -> NDArray[np.float64]:
        """Record that the episodes of some environments have ended; return their regrets, (n,) float64.

        Args:
            rows: (n,) int, indices of the environments.
            state: a `dynamics.State` or `backend_torch.TensorState` of all environments.
        """
        scores, path = Scores(state.scores.table[rows]), host_array(state.channels[:, 0])[rows]
        name = self.population.config.measure
        measured = measure_levels(name, state.tiles[rows], path, state.target[rows], self._judge, scores)
        ids, generations = self.ids[rows], self.generations[rows]
        n_own = int((generations != NOBODY).sum())
        self.population.tick(n_own)
        self._n_since_round += n_own
        self._recent.extend((1.0 - scores.accuracy)[(ids != NOBODY) | (generations == 0)].tolist())
        replayed = np.flatnonzero(ids != NOBODY)
        indices = self.population.indices_of(ids[replayed])
        alive = indices >= 0  # others are no longer members
        self.population.update(indices[alive], *(measure[replayed[alive]] for measure in measured))
        for row, regret, complete in zip(rows.tolist(), *(measure.tolist() for measure in measured), strict=True):
            entrant = self._entrants[row]
            if entrant is not None:
                self._n_missing -= 1  # no offspring are made while levels are missing, so this one is fresh
                self.population.insert(entrant, [regret], [complete])
        self.ignore(rows)
        return measured.regret


def _find_population(
    source: LevelSource, population: LevelPopulation | str | Path | None, options: dict[str, Any]
) -> LevelPopulation:
    if population is None:
        return LevelPopulation(PopulationConfig(task=source.task.name, **options))
    check(not options, f"a population that is given has its own {', '.join(sorted(options))}: leave them out")
    if isinstance(population, (str, os.PathLike)):
        try:
            population = LevelPopulation.load(population)
        except FileNotFoundError as error:
            raise ValueError(f"population={str(population)!r} is not a file; it must be {_ALLOWED}") from error
    if not isinstance(population, LevelPopulation):
        raise ValueError(f"population must be {_ALLOWED}, got {type(population).__name__}")
    task, shape = population.config.task, population.tiles.shape[1:]
    check(task == source.task.name, f"the population is of the task {task!r}, the environment {source.task.name!r}")
    if len(population) and shape != source.shape:
        raise ValueError(f"the population's levels are {shape} tiles, the environment's {source.shape}")
    return population
