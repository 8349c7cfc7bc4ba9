"""The options of a run that learns from hints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from maze_nca_gym.families import FAMILIES
from maze_nca_gym.names import unknown_name

from ..automata import AUTOMATA, Automaton
from ..registry import import_own

LEAST_SIZE = 4
"""Smallest inner size; some families have no smaller levels."""


@dataclass(frozen=True)
class HintConfig:
    """All options that determine the weights of a run."""

    automaton: str = "shortest-path"
    """Name of the automaton, as of `find_automaton`."""
    families: tuple[str, ...] = tuple(FAMILIES)
    """Families of the levels on which the automaton is watched."""
    sizes: tuple[int, ...] = (4, 6, 9, 12)
    """Inner sizes of the levels, at least 4."""
    n_levels: int = 64
    """Number of levels of each family, variant and size, at least 2; half of them have no border."""
    n_recombined: int = 50_000
    """Number of patches put together from single tiles seen, in addition to the patches seen; 0 for none."""

    n_updates: int = 4_000
    """Number of updates of the weights."""
    batch_size: int = 2_048
    """Number of patches in an update; all have the same probability, however often they were seen."""
    learning_rate: float = 0.02
    """Initial learning rate of Adam; it falls to 0 as a cosine."""
    margin: float = 0.25
    """Smallest distance of a sum from 0: below 0 where a channel must be 0, above 0 elsewhere."""
    largest: float = 10.0
    """Upper bound of a signal's second channel; the first is larger by 1."""
    extremes: bool = False
    """Draw second channels of 0 and of `largest` more often than other values."""
    jitter: float = 0.1
    """Initial size of the errors added to signals in the states, 0 to 1; it falls to 0."""
    ridge: float = 1e-4
    """Number added to the inputs' second moments before they are whitened."""
    balanced: bool = False
    """Draw half of each batch so that all signals are switched on equally often."""
    sparsity: float = 0.0
    """Initial cost of the sum of absolute weights; it falls to 0 with the learning rate. 0 also skips the rounds
    below."""
    n_dense: int = 2
    """Number of rounds that learn from patches on which the certificate fails, with all weights."""
    least_weight: float = 0.1
    """Threshold below which weights are then set to 0 for good; those that matter are above 1."""
    n_updates_again: int = 1_000
    """Number of updates in each of these rounds, and in the one after them."""
    n_rounds: int = 30
    """Maximum number of repair rounds (`Cuts`), each fixing what the certificate rejects."""
    n_worst: int = 100
    """Largest number of patches that a repair round adds for each signal and each kind of error."""
    seed: int = 0
    """Seed of all randomness: initial weights, levels and patches."""

    def __post_init__(self) -> None:
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
    def of(cls, automaton: str | Automaton, **given: Any) -> HintConfig:
        """Return the configuration for an automaton, with its defaults for all that is not given.

        Raises:
            ValueError: an unknown automaton, or a value of the wrong type or out of range.
        """
        name = automaton if isinstance(automaton, str) else automaton.name
        return cls(**{"automaton": name, **find_automaton(automaton).learning, **given})

    @property
    def n_updates_in_all(self) -> int:
        """Number of updates of a run, those of its rounds included."""
        return self.n_updates + (self.n_updates_again * (self.n_dense + 1) if self.sparsity else 0)

    def again(self, dense: bool) -> HintConfig:
        """Return the configuration of a later round; weights cost nothing once the small ones are 0."""
        sparsity = self.sparsity if dense else 0.0
        return replace(self, n_updates=self.n_updates_again, learning_rate=self.learning_rate / 2, sparsity=sparsity)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON-serialisable dict, which `from_json` reads back."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> HintConfig:
        """Make a configuration from the values that `to_json` returned.

        Raises:
            ValueError: an unknown or missing field, or a bad value.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != names:
            raise ValueError(f"a configuration must hold exactly {', '.join(sorted(names))}, got {values!r}")
        fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**fixed)


def find_automaton(automaton: str | Automaton) -> Automaton:
    """Return an automaton by its name in `AUTOMATA`, as "module:NAME", or as it is.

    Raises:
        ValueError: an unknown name, or no automaton.
    """
    if isinstance(automaton, Automaton):
        return automaton
    if ":" in automaton:
        module, name = automaton.split(":", 1)
        found = getattr(import_own(module, f"the automaton {automaton}"), name, None)
        if not isinstance(found, Automaton):
            raise ValueError(f"the module {module!r} has no Automaton {name!r}")
        return found
    if automaton not in AUTOMATA:
        raise ValueError(unknown_name("automaton", automaton, AUTOMATA, ", or module:NAME"))
    return AUTOMATA[automaton]


def changes(config: HintConfig, automaton: Automaton | None = None) -> dict[str, Any]:
    """Return the fields that differ from the defaults of an automaton, by default that of the configuration."""
    usual = HintConfig.of(config.automaton if automaton is None else automaton)
    pairs = ((field.name, getattr(config, field.name)) for field in fields(HintConfig) if field.name != "automaton")
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
