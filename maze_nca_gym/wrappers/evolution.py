"""The part of evolving levels beside the population: the choice of each episode's level, and the use of its regret.

It depends neither on the agent nor on the environment: `AdversarialEvolution` and `VectorAdversarialEvolution` report
which episodes begin and how they ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.envs.level_source import Draw, LevelSource
from maze_nca_gym.generation import check_fraction
from maze_nca_gym.levels import Tiles
from maze_nca_gym.names import did_you_mean
from maze_nca_gym.population import Candidates, LevelPopulation, PopulationConfig
from maze_nca_gym.population.config import PARENTS, check_count, check_name
from maze_nca_gym.scoring import Scores

REGRETS = ("loss", "accuracy")
NOBODY = -1
"""The id of a level that is no member, and the generation of one that the user gave."""
_STREAM = 0x65766F
"""Sets the generator apart from the environment's, which has the same seed."""


@dataclass(frozen=True)
class Schedule:
    """The choice of levels, and the times at which offspring are made.

    A round of `batch_size` offspring is made when three conditions hold. The offspring of the last round have all been
    played. 1 - the mean accuracy of the last `window` episodes is below `threshold`. `interval` episodes have ended
    since that round.

    Attributes:
        replay_probability: the probability that an episode replays a member of the population, in [0, 1]. The others
            are played on offspring that wait to be measured or, if none waits, on fresh levels of the environment.
        n_initial: the number of fresh levels before anything is replayed, including those of a given population; None
            means half the capacity.
        batch_size: the number of offspring in a round, at most the population's capacity.
        parents: how parents are chosen: "random" (as the paper says), "fittest" (as its code does) or "replay".
        threshold: the agent must first be this good; None means at once (ACCEL). The paper gives no number, its code
            has 0.5. It compares the accuracy, whatever `regret` is, so that it means the same for short paths and long
            ones.
        window: the number of recent episodes in that mean; those on offspring do not count.
        interval: the least number of episodes between two rounds.
        regret: "loss" is the final loss, the mean squared error over all tiles, as in the paper. "accuracy" is 1 -
            final accuracy, 0 for an optimal path and 1 for none; with it levels may become trivial.

    Raises:
        ValueError: a value of another type or out of range.
    """

    replay_probability: float = 0.8
    n_initial: int | None = None
    batch_size: int = 64
    parents: str = "random"
    threshold: float | None = 0.5
    window: int = 64
    interval: int = 200
    regret: str = "loss"

    def __post_init__(self) -> None:
        check_fraction("replay_probability", self.replay_probability)
        check_name("parents", self.parents, PARENTS)
        check_name("regret", self.regret, REGRETS)
        for name, least in (("batch_size", 1), ("window", 1), ("interval", 0)):
            check_count(name, getattr(self, name), least)
        if self.n_initial is not None:
            check_count("n_initial", self.n_initial, 1)
        if self.threshold is not None and not (isinstance(self.threshold, Real) and self.threshold > 0):
            raise ValueError(f"threshold must be a number > 0 or None, got {self.threshold!r}")


class Evolution:
    """The levels that N environments play now, and the population that they come from and compete to enter.

    Attributes:
        population: every finished episode changes it.
        ids: (N,) int64 of the members replayed, -1 where the level is no member.
        generations: (N,) int64 of the levels, 0 for fresh ones, -1 for those that the user gave.
    """

    def __init__(self, population: LevelPopulation, schedule: Schedule, shape: tuple[int, ...], n_envs: int) -> None:
        self.population = population
        self.ids = np.full(n_envs, NOBODY, np.int64)
        self.generations = np.full(n_envs, NOBODY, np.int64)
        self._entrants: list[Candidates | None] = [None] * n_envs  # levels played that are no members
        self._schedule = schedule
        self._shape = shape
        n_initial = max(1, population.config.capacity // 2) if schedule.n_initial is None else schedule.n_initial
        self._n_missing = n_initial - len(population)
        self._waiting: deque[Candidates] = deque()
        self._recent: deque[float] = deque(maxlen=schedule.window)
        self._n_since_round = 0
        self._rng = np.random.default_rng()

    @contextmanager
    def seeded(self, seeds: Sequence[int]) -> Iterator[None]:
        """Draw from these seeds from here on, without any as before; and as before if what follows fails."""
        before = self._rng
        try:
            if seeds:
                self._rng = np.random.default_rng(np.random.SeedSequence(seeds, spawn_key=(_STREAM,)))
            yield
        except BaseException:
            self._rng = before
            raise

    def next_levels(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        """Return the (n, H, W) levels on which episodes begin in these environments; what was played there is
        forgotten."""
        if self._is_due():
            self._breed()
        probability = 0.0 if self._n_missing > 0 else self._schedule.replay_probability
        replayed = self._rng.random(len(rows)) < probability
        levels = np.empty((len(rows), *self._shape), np.uint8)
        levels[replayed] = self._replay(rows[replayed])
        levels[~replayed] = self._try_out(rows[~replayed], draw)
        return levels

    def ignore(self, rows: NDArray[np.intp]) -> None:
        """Begin episodes of environments `rows`, (K,) int, on levels that have nothing to do with the population."""
        self.ids[rows] = self.generations[rows] = NOBODY
        for row in rows.tolist():
            self._entrants[row] = None

    def record(self, rows: NDArray[np.intp], scores: Scores) -> NDArray[np.float64]:
        """Record that the episodes there have ended with these scores; return their (n,) float64 regrets."""
        missing = 1.0 - scores.accuracy
        regrets = missing if self._schedule.regret == "accuracy" else scores.loss
        own = self.generations[rows] != NOBODY
        self.population.tick(int(own.sum()))
        self._n_since_round += int(own.sum())
        self._recent.extend(missing[(self.ids[rows] != NOBODY) | (self.generations[rows] == 0)].tolist())
        self._update(rows, regrets, scores.optimal)
        for row, regret, optimal in zip(rows.tolist(), regrets.tolist(), scores.optimal.tolist(), strict=True):
            self._enter(row, regret, optimal)
        self.ignore(rows)
        return regrets

    def _is_due(self) -> bool:
        """Return whether it is time for a round of offspring."""
        if self._waiting or self._n_missing > 0 or self._n_since_round < self._schedule.interval:
            return False
        if self._schedule.threshold is None:
            return True
        return len(self._recent) == self._schedule.window and bool(np.mean(self._recent) < self._schedule.threshold)

    def _breed(self) -> None:
        candidates = self.population.offspring(self._rng, self._schedule.batch_size, self._schedule.parents)
        self._waiting.extend(_one_by_one(candidates))
        self._n_since_round = 0

    def _replay(self, rows: NDArray[np.intp]) -> Tiles:
        """Return members, by their replay probabilities."""
        self.ignore(rows)
        which = self.population.sample(self._rng, len(rows)) if len(rows) else np.zeros(0, np.int64)
        members = self.population.members[which]
        self.ids[rows], self.generations[rows] = members["id"], members["generation"]
        return self.population.tiles[which] if len(rows) else np.empty((0, *self._shape), np.uint8)

    def _try_out(self, rows: NDArray[np.intp], draw: Draw) -> Tiles:
        """Return offspring that wait, then fresh levels."""
        self.ignore(rows)
        new = [self._waiting.popleft() for _ in range(min(len(rows), len(self._waiting)))]
        if len(new) < len(rows):
            new += _one_by_one(self.population.fresh(draw(rows[len(new) :])))
        for row, entrant in zip(rows.tolist(), new, strict=True):
            self._entrants[row] = entrant
            self.generations[row] = entrant.generations[0]
        return np.concatenate([entrant.tiles for entrant in new]) if new else np.empty((0, *self._shape), np.uint8)

    def _update(self, rows: NDArray[np.intp], regrets: NDArray[np.float64], optimal: NDArray[np.bool_]) -> None:
        """Pass measurements to the population, for those of its members that it still has."""
        replayed = np.flatnonzero(self.ids[rows] != NOBODY)
        indices = self.population.indices_of(self.ids[rows[replayed]])
        alive = indices >= 0
        self.population.update(indices[alive], regrets[replayed[alive]], optimal[replayed[alive]])

    def _enter(self, row: int, regret: float, optimal: bool) -> None:
        """Let the level of an episode enter if it is new."""
        entrant = self._entrants[row]
        if entrant is not None:
            self._n_missing -= 1  # as long as any is, there are no offspring
            self.population.insert(entrant, [regret], [optimal])


def start(
    source: LevelSource, population: LevelPopulation | str | Path | None, options: Mapping[str, Any], n_envs: int
) -> Evolution:
    """Return the evolution of an environment's levels.

    Args:
        source: the environment's.
        population: to go on with, or the path of a saved one; None: a new one.
        options: attributes of `Schedule` and, for a new population, of `PopulationConfig` but for the task.
        n_envs: N.

    Raises:
        ValueError: an unknown option, a bad value, no such file, or a population of another task or size.
    """
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        known = ", ".join(sorted(OPTIONS))
        raise ValueError(f"unknown options {', '.join(unknown)}; known: {known}{did_you_mean(unknown[0], OPTIONS)}")
    schedule = Schedule(**{name: value for name, value in options.items() if name in _OF_SCHEDULE})
    of_population = {name: value for name, value in options.items() if name in _OF_POPULATION}
    levels = _find_population(source, population, of_population)
    for name in ("batch_size", "n_initial"):
        if (getattr(schedule, name) or 0) > levels.config.capacity:
            raise ValueError(f"{name}={getattr(schedule, name)} exceeds the capacity of {levels.config.capacity}")
    return Evolution(levels, schedule, source.shape, n_envs)


_OF_SCHEDULE = {field.name for field in fields(Schedule)}
_OF_POPULATION = {field.name for field in fields(PopulationConfig)} - {"task"}
OPTIONS = _OF_SCHEDULE | _OF_POPULATION
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
