"""Effects of options: differences between rows that differ in one option alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, TypeVar

import numpy as np

from ...evaluation.statistics import standard_error

R = TypeVar("R")


class Measured(Protocol):
    """A row with its options, and what was measured of its runs."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options in which rows differ."""

    def by_seed(self, measure: str) -> Mapping[int, float]:
        """Return a measurement by seed, where there is one."""


@dataclass(frozen=True)
class Effect:
    """The mean difference in a measurement that one value of an option makes.

    Attributes:
        option: name of the option.
        value, base: its value, and the one that is compared with, which is that of the first row.
        measure: name of the measurement.
        n_pairs: number of pairs of rows that differ in the option alone.
        difference: mean over seeds and pairs.
        error: standard error of the difference over seeds, for these pairs; None with one seed.
    """

    option: str
    value: Any
    base: Any
    measure: str
    n_pairs: int
    difference: float
    error: float | None


def pairs(
    rows: Iterable[R], options_of: Callable[[R], Mapping[str, Any]], option: str, value: Any, base: Any
) -> list[tuple[R, R]]:
    """Return the pairs of rows with a value of an option and another that agree in all options that both have."""
    rows = list(rows)
    some, others = ([row for row in rows if options_of(row).get(option, ...) == each] for each in (value, base))
    return [(a, b) for a, b in product(some, others) if _agree(options_of(a), options_of(b), option)]


def _agree(first: Mapping[str, Any], second: Mapping[str, Any], besides: str) -> bool:
    return all(first[name] == second[name] for name in first.keys() & second.keys() - {besides})


def find_effects(rows: Sequence[Measured], measures: Sequence[str]) -> list[Effect]:
    """Return the effects of each value of each option but the first, where there are pairs that were measured."""
    found = []
    for option in dict.fromkeys(name for row in rows for name in row.options):
        having = [row.options[option] for row in rows if option in row.options]
        values = [value for i, value in enumerate(having) if value not in having[:i]]  # lists have no hashes
        for value, measure in product(values[1:], measures):
            compared = pairs(rows, lambda row: row.options, option, value, values[0])
            effect = _effect(compared, option, value, values[0], measure)
            found += [] if effect is None else [effect]
    return found


def _effect(
    compared: Sequence[tuple[Measured, Measured]], option: str, value: Any, base: Any, measure: str
) -> Effect | None:
    """Return the effect, from the mean over pairs for each seed: runs of a seed share levels, other seeds do not."""
    by_seed: dict[int, list[float]] = {}
    measured = [(a.by_seed(measure), b.by_seed(measure)) for a, b in compared]
    for first, second in measured:
        for seed in first.keys() & second.keys():
            by_seed.setdefault(seed, []).append(first[seed] - second[seed])
    if not by_seed:
        return None
    means = np.array([np.mean(by_seed[seed]) for seed in sorted(by_seed)])
    n_pairs = sum(bool(first.keys() & second.keys()) for first, second in measured)
    return Effect(option, value, base, measure, n_pairs, float(means.mean()), standard_error(means))
