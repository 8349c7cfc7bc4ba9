"""What evolving levels need besides a population: the choice of each episode's level, and the use of its regret.

It depends neither on the agent nor on the environment: `AdversarialEvolution` and `VectorAdversarialEvolution` report
which episodes begin and how they ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs.backend import host_array
from maze_nca_gym.envs.level_source import Draw, LevelSource
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population import BreedingSchedule, Candidates, LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.population.members import Measurements, measure
from maze_nca_gym.mazes.scoring import Scores
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.names import check_count, check_keywords

NOBODY = -1
"""The id of a level that is no member, and the generation of one that the user gave."""
_STREAM = 0x65766F
"""Spawn key that makes the generator independent of the environment's, which has the same seed."""


class Evolution:
    """The levels that N environments play now, and the population that they come from and compete to enter.

    Attributes:
        population: every finished episode changes it.
        ids: (N,) int64 of the members replayed, -1 where the level is no member.
        generations: (N,) int64 of the levels, 0 for fresh ones, -1 for those that the user gave.
    """

    def __init__(
        self,
        population: LevelPopulation,
        schedule: BreedingSchedule,
        shape: tuple[int, ...],
        n_envs: int,
        n_initial: int | None = None,
        window: int = 64,
    ) -> None:
        """Begin without episodes.

        Args:
            population: the levels to replay and breed.
            schedule: which levels are played, and when offspring are made. Its `evolve_every` counts episodes, except
                on levels that the user gave. Its `evolve_below` is compared with 1 - the mean accuracy of recent
                episodes, which means the same for short paths and long ones.
            shape: (H, W) of the levels.
            n_envs: N.
            n_initial: the number of levels to collect before any is replayed, including those already in the
                population; None means half the capacity.
            window: the number of episodes in that mean; episodes on offspring do not count.

        Raises:
            ValueError: a bad number, or one larger than the population's capacity.
        """
        check_count("window", window, 1)
        capacity = population.config.capacity
        if n_initial is None:
            n_initial = max(1, capacity // 2)
        check_count("n_initial", n_initial, 1)
        for name, n in (("n_offspring", schedule.n_offspring), ("n_initial", n_initial)):
            if n > capacity:
                raise ValueError(f"{name}={n} exceeds the capacity of {capacity}")
        self.population = population
        self.ids = np.full(n_envs, NOBODY, np.int64)
        self.generations = np.full(n_envs, NOBODY, np.int64)
        self._entrants: list[Candidates | None] = [None] * n_envs  # levels being played that are not members yet
        self._schedule = schedule
        self._shape = shape
        self._judge = find_task(population.config.task).judge
        self._n_missing = n_initial - len(population)
        self._waiting: deque[Candidates] = deque()
        self._recent: deque[float] = deque(maxlen=window)
        self._n_since_round = 0
        self._rng = np.random.default_rng()

    @contextmanager
    def seeded(self, seeds: Sequence[int]) -> Iterator[None]:
        """Draw from a new generator with these seeds, if there are any; restore the former one if the block fails."""
        before = self._rng
        try:
            if seeds:
                self._rng = np.random.default_rng(np.random.SeedSequence(seeds, spawn_key=(_STREAM,)))
            yield
        except BaseException:
            self._rng = before
            raise

    def next_levels(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        """Return the (n, H, W) levels on which episodes begin in these environments, and forget what was played
        there."""
        if self._is_due():
            candidates = self.population.offspring(self._rng, self._schedule.n_offspring, self._schedule.parents)
            self._waiting.extend(_one_by_one(candidates))
            self._n_since_round = 0
        probability = 0.0 if self._n_missing > 0 else self._schedule.replay_probability
        replayed = self._rng.random(len(rows)) < probability
        levels = np.empty((len(rows), *self._shape), np.uint8)
        self.ignore(rows)
        if replayed.any():
            levels[replayed] = self._replay(rows[replayed])
        if not replayed.all():
            levels[~replayed] = self._try_out(rows[~replayed], draw)
        return levels

    def ignore(self, rows: NDArray[np.intp]) -> None:
        """Note that environments `rows`, (K,) int, play levels that have nothing to do with the population."""
        self.ids[rows] = self.generations[rows] = NOBODY
        for row in rows.tolist():
            self._entrants[row] = None

    def record(self, rows: NDArray[np.intp], state: Any) -> NDArray[np.float64]:
        """Record that the episodes of environments `rows`, (n,) int, have ended in these states; return their regrets.

        Args:
            rows: indices of the environments.
            state: a `dynamics.State` or `backend_torch.TensorState` of all of them.
        """
        scores, path = Scores(state.scores.table[rows]), host_array(state.channels[:, 0])[rows]
        name = self.population.config.measure
        measured = measure(name, state.tiles[rows], path, state.target[rows], self._judge, scores)
        own = self.generations[rows] != NOBODY
        self.population.tick(int(own.sum()))
        self._n_since_round += int(own.sum())
        missing = 1.0 - scores.accuracy
        self._recent.extend(missing[(self.ids[rows] != NOBODY) | (self.generations[rows] == 0)].tolist())
        self._update(rows, measured)
        for row, regret, complete in zip(rows.tolist(), *(each.tolist() for each in measured), strict=True):
            self._enter(row, regret, complete)
        self.ignore(rows)
        return measured.regret

    def _is_due(self) -> bool:
        if self._waiting or self._n_missing > 0 or self._n_since_round < self._schedule.evolve_every:
            return False
        if self._schedule.evolve_below is None:
            return True
        return len(self._recent) == self._recent.maxlen and bool(np.mean(self._recent) < self._schedule.evolve_below)

    def _replay(self, rows: NDArray[np.intp]) -> Tiles:
        """Return members to replay, drawn by their replay probabilities."""
        which = self.population.sample(self._rng, len(rows))
        members = self.population.members[which]
        self.ids[rows], self.generations[rows] = members["id"], members["generation"]
        return self.population.tiles[which]

    def _try_out(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        """Return offspring that have not been played, then fresh levels."""
        new = [self._waiting.popleft() for _ in range(min(len(rows), len(self._waiting)))]
        if len(new) < len(rows):
            new += _one_by_one(self.population.fresh(draw(rows[len(new) :])))
        for row, entrant in zip(rows.tolist(), new, strict=True):
            self._entrants[row] = entrant
            self.generations[row] = entrant.generations[0]
        return np.concatenate([entrant.tiles for entrant in new])

    def _update(self, rows: NDArray[np.intp], measured: Measurements) -> None:
        """Pass the measurements of replayed levels to the population, except for levels that are no longer members."""
        replayed = np.flatnonzero(self.ids[rows] != NOBODY)
        indices = self.population.indices_of(self.ids[rows[replayed]])
        alive = indices >= 0
        self.population.update(indices[alive], *(each[replayed[alive]] for each in measured))

    def _enter(self, row: int, regret: float, complete: float) -> None:
        """Let the level of an episode compete to enter the population, unless it was replayed."""
        entrant = self._entrants[row]
        if entrant is not None:
            self._n_missing -= 1  # no offspring are made while levels are missing, so this one is fresh
            self.population.insert(entrant, [regret], [complete])


def start(
    source: LevelSource, population: LevelPopulation | str | Path | None, options: Mapping[str, Any], n_envs: int
) -> Evolution:
    """Return the evolution of an environment's levels.

    Args:
        source: the environment's source of levels.
        population: a population to continue, or the path of a saved one; None makes a new one.
        options: `n_initial` and `window` of `Evolution`, fields of `BreedingSchedule` and, for a new population, those
            of `PopulationConfig` but for the task. By default there are at most as many offspring as the capacity.
        n_envs: N.

    Raises:
        ValueError: an unknown option, a bad value, no such file, or a population of another task or size.
    """
    check_keywords("an evolution of levels", options, sorted(OPTIONS))
    given = {part: {k: v for k, v in options.items() if k in names} for part, names in _PARTS.items()}
    levels = _find_population(source, population, given["population"])
    usual = {"n_offspring": min(BreedingSchedule.n_offspring, levels.config.capacity)}
    schedule = BreedingSchedule(**{**usual, **given["breeding"]})
    return Evolution(levels, schedule, source.shape, n_envs, **given["own"])


_PARTS = {
    "breeding": {field.name for field in fields(BreedingSchedule)},
    "population": {field.name for field in fields(PopulationConfig)} - {"task"},
    "own": {"n_initial", "window"},
}
OPTIONS = {name for names in _PARTS.values() for name in names}
"""Names of the options of `start`, and of the wrappers."""


def _find_population(
    source: LevelSource, population: LevelPopulation | str | Path | None, options: dict[str, Any]
) -> LevelPopulation:
    if population is None:
        return LevelPopulation(PopulationConfig(task=source.task.name, **options))
    if options:
        raise ValueError(f"a population that is given has its own {', '.join(sorted(options))}: leave them out")
    if isinstance(population, (str, Path)):
        levels = _load_population(population)
    elif isinstance(population, LevelPopulation):
        levels = population
    else:
        raise ValueError(f"population must be {_ALLOWED}, got {type(population).__name__}")
    if levels.config.task != source.task.name:
        raise ValueError(f"the population is of the task {levels.config.task!r}, the environment {source.task.name!r}")
    if len(levels) and levels.tiles.shape[1:] != source.shape:
        raise ValueError(
            f"the population's levels are {levels.tiles.shape[1:]} tiles, the environment's {source.shape}"
        )
    return levels


_ALLOWED = "a LevelPopulation, or the path of a file that LevelPopulation.save or `maze-nca-gym evolve` wrote"


def _load_population(path: str | Path) -> LevelPopulation:
    try:
        return LevelPopulation.load(path)
    except FileNotFoundError as error:
        raise ValueError(f"population={str(path)!r} is no file; it must be {_ALLOWED}") from error


def _one_by_one(candidates: Candidates) -> list[Candidates]:
    return [candidates.take([i]) for i in range(len(candidates))]
