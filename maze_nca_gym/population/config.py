"""How a population of levels behaves, and the checks of its arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from maze_nca_gym.generation import check_fraction
from maze_nca_gym.mutation import find_mutation
from maze_nca_gym.names import unknown_name
from maze_nca_gym.population.selection import PRIORITISATIONS
from maze_nca_gym.tasks import find_task

EVICTIONS = ("fitness", "replay weight")
SCORES = ("regret", "learnability")
PARENTS = ("random", "fittest", "replay")
"""Rules by which parents of offspring are chosen."""


@dataclass(frozen=True)
class PopulationConfig:
    """How a population chooses levels to replay, to mutate and to drop.

    Attributes:
        task: "shortest-path" or "diameter".
        capacity: the largest number of levels, at least 1.
        prioritisation: how scores become replay weights: "rank", "top-k", "proportional" or "uniform".
        temperature: the temperature of "rank" and "proportional", > 0; the lower, the larger the weights of the highest
            scores.
        top_k: the number of levels that "top-k" replays, at least 1.
        staleness_weight: the fraction of the replay weights that depends on how long ago levels were measured, in [0,
            1].
        eviction: the member that a fitter candidate replaces in a full population: the one of lowest score ("fitness"),
            or of lowest replay weight ("replay weight").
        score: "regret", or "learnability": p (1 - p) with the probability p that the agent completes the level.
        mutation: a name in `mutation.MUTATIONS`.
        mutation_options: the options of that mutation.

    Raises:
        ValueError: an unknown name or a value out of range.
    """

    task: str = "shortest-path"
    capacity: int = 4000
    prioritisation: str = "rank"
    temperature: float = 0.3
    top_k: int = 4
    staleness_weight: float = 0.3
    eviction: str = "fitness"
    score: str = "regret"
    mutation: str = "flip"
    mutation_options: Mapping[str, Any] = field(default_factory=dict, hash=False)

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

    @classmethod
    def from_json(cls, values: Any) -> PopulationConfig:
        """Return the configuration that `dataclasses.asdict` turned into JSON.

        Raises:
            ValueError: no object, unknown or missing names, or bad values.
        """
        names = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(f"a population's configuration must hold {', '.join(sorted(names))}, got {values!r}")
        return cls(**values)


@dataclass(frozen=True)
class BreedingSchedule:
    """When offspring compete with the population, and how many.

    Raises:
        ValueError: a value out of range, or an unknown rule for parents.
    """

    population_fresh: float = 0.0
    """Fraction of every batch that is fresh levels, which may enter the population; the others are replayed from it."""
    evolve_every: int = 200
    """Number of updates between two chances of a round of offspring."""
    evolve_below: float = 0.5
    """Threshold of the regret since the last chance, relative to that of empty paths: a round takes place below it. The
    paper gives no number; its code has 0.5, and 200 updates between two chances."""
    n_offspring: int = 64
    """Number of mutated levels in a round, which may replace members of lower score."""
    parents: str = "random"
    """How parents are chosen: at random (as in the paper), fittest (highest score, as in its code) or replay (drawn as
    for a batch)."""

    def __post_init__(self) -> None:
        check_fraction("population_fresh", self.population_fresh)
        check_count("evolve_every", self.evolve_every, 1)
        check_count("n_offspring", self.n_offspring, 1)
        check_name("parents", self.parents, PARENTS)
        if isinstance(self.evolve_below, bool) or not isinstance(self.evolve_below, Real) or not self.evolve_below >= 0:
            raise ValueError(f"evolve_below must be a number >= 0, got {self.evolve_below!r}")


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
