"""What a run that learns from hints is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from maze_nca_gym.families import FAMILIES
from maze_nca_gym.names import unknown_name

USUAL: dict[str, dict[str, Any]] = {
    "shortest-path": {},
    "diameter": {
        "sizes": (4, 5, 6),
        "n_levels": 4,
        "n_recombined": 300_000,
        "largest": 20.0,
        "ridge": 1e-3,
        "balanced": True,
        "extremes": True,
        "sparsity": 3e-5,
        "n_updates": 3_000,
    },
}
"""What is not as in `HintConfig`, by task."""
USUAL_OF_HEALING: dict[str, Any] = {
    "sizes": (4, 6, 9),
    "n_levels": 16,
    "n_recombined": 200_000,
    "ridge": 1e-3,
    "balanced": True,
    "extremes": True,
    "sparsity": 3e-5,
    "n_dense": 0,
    "n_updates": 3_000,
}
"""And of what heals."""
LEAST_SIZE = 4
"""Smaller levels of some families do not exist."""


@dataclass(frozen=True)
class HintConfig:
    """Everything that decides the weights which a run ends with."""

    task: str = "shortest-path"
    """What the automaton finds."""
    heals: bool = False
    """Whether it begins again when the maze changes; there is one for the shortest path."""
    families: tuple[str, ...] = tuple(FAMILIES)
    """Kinds of level on which the automaton is watched."""
    sizes: tuple[int, ...] = (4, 6, 9, 12)
    """Their inner sizes."""
    n_levels: int = 64
    """Of each family, variant and size; half of them have no wall around."""
    n_recombined: int = 50_000
    """Patches put together from single tiles that were seen, besides the patches seen; 0 for none."""

    n_updates: int = 4_000
    """Updates of the weights."""
    batch_size: int = 2_048
    """Patches of an update, each drawn with the same probability, however often it was seen."""
    learning_rate: float = 0.02
    """Of Adam, at first; it falls to 0 as a cosine."""
    margin: float = 0.25
    """By how much a sum must be below 0 where a channel has to be silent, and above it where not."""
    largest: float = 10.0
    """Of a signal's second channel: the first is larger by 1."""
    extremes: bool = False
    """Learn from second channels of 0 and of `largest` more than from others."""
    jitter: float = 0.1
    """By how much that 1 is missed in the states learned from, at first; it falls to 0."""
    ridge: float = 1e-4
    """Added to the inputs' second moments before they are made alike in all directions."""
    balanced: bool = False
    """Draw half of each batch so that each signal comes on as often as any other."""
    sparsity: float = 0.0
    """Cost of the sum of all weights' sizes, at first; it falls to 0 with the learning rate."""
    n_dense: int = 2
    """Where weights cost something: rounds of learning with patches on which the certificate failed, before ..."""
    least_weight: float = 0.1
    """... weights below this are set to 0 for good; those that matter are above 1."""
    n_updates_again: int = 1_000
    """Updates of each round, and of the one after that."""
    n_rounds: int = 30
    """Rounds of asking the certificate what is wrong and making that right (`Cuts`), at most."""
    n_worst: int = 100
    """What a round adds for each signal and each way to be wrong in it, at most."""
    seed: int = 0
    """Of all that is drawn: initial weights, levels, patches."""

    def __post_init__(self) -> None:
        if self.heals and self.task != "shortest-path":
            raise ValueError(f"only an automaton of the shortest path heals, none of the {self.task}")
        _check_families(self.families)
        _check_counts(self)
        for name, least in (("learning_rate", 0.0), ("largest", 0.0), ("ridge", 0.0), ("margin", -1e-9)):
            _check_number(name, getattr(self, name), least, math.inf)
        for name in ("sparsity", "least_weight"):
            _check_number(name, getattr(self, name), -1e-9, math.inf)
        _check_number("jitter", self.jitter, -1e-9, 1.0)
        if self.largest <= 2 * self.margin:
            raise ValueError(f"largest must be more than twice the margin {self.margin}, got {self.largest}")

    @classmethod
    def of(cls, task: str, **given: Any) -> HintConfig:
        """The configuration of a task, as by default where nothing is given.

        Raises:
            ValueError: an unknown task, or a value of the wrong type or out of range.
        """
        if task not in USUAL:
            raise ValueError(unknown_name("task", task, USUAL))
        usual = USUAL_OF_HEALING if given.get("heals") else USUAL[task]
        return cls(**{"task": task, **usual, **given})

    @property
    def n_updates_in_all(self) -> int:
        """With those of rounds."""
        return self.n_updates + (self.n_updates_again * (self.n_dense + 1) if self.sparsity else 0)

    def again(self, dense: bool) -> HintConfig:
        """That of a round which follows; there is nothing left to spare once small weights are 0."""
        sparsity = self.sparsity if dense else 0.0
        return replace(self, n_updates=self.n_updates_again, learning_rate=self.learning_rate / 2, sparsity=sparsity)

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> HintConfig:
        """Return the configuration of what `to_json` gave.

        Raises:
            ValueError: an unknown or missing field, or a bad value.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != names:
            raise ValueError(f"a configuration must hold exactly {', '.join(sorted(names))}, got {values!r}")
        fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**fixed)


def changes(config: HintConfig) -> dict[str, Any]:
    """The fields that are not as by default for the task."""
    usual = HintConfig.of(config.task, heals=config.heals)
    pairs = ((field.name, getattr(config, field.name)) for field in fields(HintConfig))
    return {name: value for name, value in pairs if value != getattr(usual, name)}


def _check_families(families: tuple[str, ...]) -> None:
    if not families:
        raise ValueError(f"families must name at least one family; known: {', '.join(FAMILIES)}")
    for family in families:
        if family not in FAMILIES:
            raise ValueError(unknown_name("family of levels", family, FAMILIES))


def _check_counts(config: HintConfig) -> None:
    if not config.sizes:
        raise ValueError(f"sizes must hold at least one integer from {LEAST_SIZE} on")
    counts = {"n_levels": 2, "n_recombined": 0, "n_updates": 1, "batch_size": 1, "seed": 0}
    counts |= {"n_dense": 0, "n_updates_again": 1, "n_rounds": 0, "n_worst": 1}
    given = [("sizes", size, LEAST_SIZE) for size in config.sizes]
    given += [(name, getattr(config, name), least) for name, least in counts.items()]
    for name, value, least in given:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be an integer from {least} on, got {value!r}")


def _check_number(name: str, value: float, above: float, below: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
        least = "of at least 0" if above < 0 else f"above {above:g}"
        most = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(f"{name} must be a number {least}{most}, got {value!r}")
