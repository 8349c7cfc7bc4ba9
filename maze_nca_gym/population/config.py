"""How a population of levels behaves, and the checks of its arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from maze_nca_gym.files import OTHER_VERSION
from maze_nca_gym.generation import check_fraction
from maze_nca_gym.mutation import find_mutation
from maze_nca_gym.names import unknown_name
from maze_nca_gym.population.selection import PRIORITISATIONS
from maze_nca_gym.tasks import find_task

EVICTIONS = ("fitness", "replay-weight")
MEASURES = ("regret", "loss", "accuracy")
"""Measures of a path that `members.measure` takes, each of which is a score too."""
SCORES = (*MEASURES, "learnability")
PARENTS = ("random", "fittest", "replay")
"""Rules by which parents of offspring are chosen."""


@dataclass(frozen=True)
class PopulationConfig:
    """How a population chooses levels to replay, to mutate and to drop.

    Training, the wrappers and `evolve` take these options under these names.

    Raises:
        ValueError: an unknown name or a value out of range.
    """

    task: str = "shortest-path"
    """Task of the levels: "shortest-path", "diameter", or one of your own."""
    capacity: int = 4000
    """Largest number of levels, at least 1."""
    prioritisation: str = "rank"
    """How scores become replay weights: "rank", "top-k", "proportional" or "uniform"."""
    temperature: float = 0.3
    """Temperature of "rank" and "proportional", > 0; the lower, the larger the weights of the highest scores."""
    top_k: int = 4
    """Number of levels that "top-k" replays, at least 1."""
    staleness_weight: float = 0.3
    """Fraction of the replay weights that depends on how long ago levels were measured, in [0, 1]."""
    eviction: str = "fitness"
    """Member that a fitter candidate replaces in a full population: the one of lowest score ("fitness"), or of lowest
    replay weight ("replay-weight")."""
    score: str = "regret"
    """Score of a level, for replay and eviction. "regret" is the loss against the nearest optimum, as the environment
    scores; "loss" that against the canonical solution. "accuracy" is 1 - accuracy: an error weighs most beside a short
    path then, and levels may become trivial. "learnability" is p (1 - p) with the probability p that the agent
    completes the level; regret is what is measured then."""
    mutation: str = "flip"
    """Name in `mutation.MUTATIONS`."""
    mutation_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options of that mutation."""

    def __post_init__(self) -> None:
        find_task(self.task)
        for name, known in (("prioritisation", PRIORITISATIONS), ("eviction", EVICTIONS), ("score", SCORES)):
            check_name(name, getattr(self, name), known)
        for name in ("capacity", "top_k"):
            check_count(name, getattr(self, name), 1)
        if not isinstance(self.temperature, Real) or not 0 < self.temperature <= sys.float_info.max:
            raise ValueError(f"temperature must be a finite number > 0, got {self.temperature!r}")
        check_fraction("staleness_weight", self.staleness_weight)
        if not isinstance(self.mutation_options, Mapping):
            raise ValueError(f"mutation_options must map names to values, got {self.mutation_options!r}")
        find_mutation(self.mutation, self.mutation_options)
        self._make_plain()

    def _make_plain(self) -> None:
        """Let no NumPy number be among the values, which go into files as JSON."""
        options = {name: v.item() if isinstance(v, np.generic) else v for name, v in self.mutation_options.items()}
        plain = {"capacity": int(self.capacity), "top_k": int(self.top_k), "mutation_options": options}
        plain |= {name: float(getattr(self, name)) for name in ("temperature", "staleness_weight")}
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def measure(self) -> str:
        """What the fitness of a level is, a name in `MEASURES`."""
        return self.score if self.score in MEASURES else "regret"

    @classmethod
    def from_json(cls, values: Any) -> PopulationConfig:
        """Return the configuration that `dataclasses.asdict` turned into JSON.

        Raises:
            ValueError: no object, unknown or missing names, or bad values.
        """
        names = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(
                f"a population's configuration must hold {', '.join(sorted(names))}, got {values!r}{OTHER_VERSION}"
            )
        return cls(**values)


@dataclass(frozen=True)
class BreedingSchedule:
    """When offspring compete with the population, and how many.

    Training, the wrappers and `evolve` take these options under these names; `evolve`, in which every round is due,
    takes the last two.

    Raises:
        ValueError: a value out of range, or an unknown rule for parents.
    """

    replay_probability: float = 0.8
    """Probability that a level is replayed from the population, 0 to 1; in training, that fraction of every batch. The
    others are fresh levels, which may enter the population; in the wrappers, offspring that wait come before these."""
    evolve_every: int = 200
    """Least number of updates, or of episodes in the wrappers, between two rounds of offspring."""
    evolve_below: float | None = 0.5
    """Threshold of the recent regret, relative to that of empty paths: a round takes place below it. None means always.
    The paper gives no number. Its code has absolute ones, 0.01 in 2022 (docs/reproduction.md)."""
    n_offspring: int = 64
    """Number of mutated levels in a round, which may replace members of lower score."""
    parents: str = "random"
    """How parents are chosen: at random (as in the paper), fittest (highest score, its code of 2025) or replay (by
    replay weight)."""

    def __post_init__(self) -> None:
        check_fraction("replay_probability", self.replay_probability)
        check_count("evolve_every", self.evolve_every, 0)
        check_count("n_offspring", self.n_offspring, 1)
        check_name("parents", self.parents, PARENTS)
        below = self.evolve_below
        if below is not None and (isinstance(below, bool) or not isinstance(below, Real) or not below >= 0):
            raise ValueError(f"evolve_below must be a number >= 0 or None, got {below!r}")


def check_name(name: str, value: Any, known: Iterable[str]) -> None:
    """Check a choice.

    Raises:
        ValueError: none of the known ones.
    """
    if not isinstance(value, str) or value not in tuple(known):
        raise ValueError(unknown_name(name, value, known))


def check_count(name: str, value: Any, least: int) -> None:
    """Check a number of things.

    Raises:
        ValueError: no integer, or too few.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")


PAPER_POPULATION = PopulationConfig(
    capacity=10_000,
    prioritisation="uniform",
    top_k=64,
    staleness_weight=0.0,
    score="loss",
    mutation_options={"tile_rate": 0.1, "source_rate": 0.05},
)
"""Population of the paper's training, with the rates of its code."""
PAPER_BREEDING = BreedingSchedule(replay_probability=1.0)
"""Schedule of the paper's training: fresh levels come at the start alone."""
