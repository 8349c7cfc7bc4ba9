"""The options of a population of levels and of its breeding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from maze_nca_gym.mazes.mutation import MUTATIONS, find_mutation
from maze_nca_gym.mazes.population.selection import PRIORITISATIONS
from maze_nca_gym.mazes.tasks import TASKS, Task, find_task
from maze_nca_gym.support.options import Above, Between, OneOf, check_options

EVICTIONS = ("fitness", "replay-weight")
MEASURES = ("regret", "loss", "accuracy")
"""Measures of a path that `members.measure_levels` computes. Each of them is a score too."""
SCORES = (*MEASURES, "learnability")
PARENTS = ("random", "fittest", "replay")
"""Names of the ways in which parents of offspring are chosen."""


@dataclass(frozen=True)
class PopulationConfig:
    """Options of a population: how it chooses levels to replay, to mutate and to drop.

    Training, the wrappers and `evolve` take these options under these names.

    Raises:
        ValueError: an unknown name, or a value out of range.
    """

    task: Annotated[str, OneOf(TASKS)] = "shortest-path"
    """Task of the levels: "shortest-path", "diameter", or one of your own."""
    capacity: Annotated[int, Between(1)] = 4000
    """Largest number of levels in the population."""
    prioritisation: Annotated[str, OneOf(PRIORITISATIONS)] = "rank"
    """How replay weights follow from scores: by the rank of the score (rank), equally among the highest scores (top-k),
    in proportion to the score (proportional), or equally among all levels (uniform)."""
    temperature: Annotated[float, Above(0)] = 0.3
    """Temperature of the prioritisations rank and proportional; a lower temperature gives larger weights to the highest
    scores."""
    top_k: Annotated[int, Between(1)] = 4
    """Number of levels to which the prioritisation top-k gives weight."""
    staleness_weight: Annotated[float, Between(0, 1)] = 0.3
    """Fraction of the replay weights that depends on the time since a level was measured, 0 to 1."""
    eviction: Annotated[str, OneOf(EVICTIONS)] = "fitness"
    """The member of a full population that a fitter candidate replaces: the member of lowest score (fitness), or the
    member of lowest replay weight (replay-weight)."""
    score: Annotated[str, OneOf(SCORES)] = "regret"
    """Score of a level, for replay and eviction. regret is the loss against the nearest optimum, as the environment
    scores; loss is the loss against the canonical solution. accuracy is 1 - accuracy, in which the same error weighs
    more the shorter the path, so levels may become trivial. learnability is p (1 - p) with the probability p that the
    agent completes the level; the fitness is then still the regret."""
    mutation: Annotated[str, OneOf(MUTATIONS)] = "flip"
    """How offspring are made: flip changes each tile with a small probability, edits makes a fixed number of changes,
    and swaps exchanges the tiles of a fixed number of pairs."""
    mutation_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options of the mutation, by name."""

    def __post_init__(self) -> None:
        check_options(self)
        find_mutation(self.mutation, self.mutation_options)

    @property
    def problem(self) -> Task:
        """The task of the levels."""
        return find_task(self.task)

    @property
    def measure(self) -> str:
        """The measure in `MEASURES` that is the fitness of a level."""
        return self.score if self.score in MEASURES else "regret"


@dataclass(frozen=True)
class BreedingSchedule:
    """Options of breeding: when offspring compete with the population, and how many.

    Training, the wrappers and `evolve` take these options under these names. Time is counted in updates, episodes and
    rounds respectively. `evolve` breeds in every round, and takes only `n_offspring` and `parents`.

    Raises:
        ValueError: a value out of range, or an unknown way to choose parents.
    """

    replay_probability: Annotated[float, Between(0, 1)] = 0.8
    """Probability that a level is replayed from the population, 0 to 1; in training, the fraction of every batch. All
    other levels are fresh and may enter the population; in the wrappers, offspring that have not been played yet come
    first."""
    evolve_every: Annotated[int, Between(0)] = 200
    """Least number of updates, or of episodes in the wrappers, between two rounds of offspring."""
    evolve_below: Annotated[float | None, Between(0)] = 0.5
    """Threshold of the recent regret, relative to the regret of empty paths: a round takes place only below it. None
    means always. The paper gives no number. Its code has absolute thresholds, 0.01 in 2022 (docs/reproduction.md)."""
    n_offspring: Annotated[int, Between(1, 2**20)] = 64
    """Number of mutated levels in a round, which may replace members of lower score."""
    parents: Annotated[str, OneOf(PARENTS)] = "random"
    """How parents are chosen: random (as in the paper), fittest (highest score, as in its code of 2025) or replay (with
    the probabilities of replay)."""

    def __post_init__(self) -> None:
        check_options(self)

    def is_due(self, n: int, error: Callable[[], float]) -> bool:
        """Return whether a round of offspring is due.

        Args:
            n: the number of updates or episodes since a round was last considered.
            error: returns the agent's mean regret on recent levels, relative to the regret of empty paths.
        """
        return n >= self.evolve_every and (self.evolve_below is None or error() < self.evolve_below)
