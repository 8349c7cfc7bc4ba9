"""Weighted sums from linear programming: for each signal, a sum that is 1 or more where its rule is true, and else 0 or
less.

One iteration of a network is a sum and a ReLU. It can therefore follow a rule only if a weighted sum of the rule's
inputs separates its two results. `separated` gives every automaton this form: it splits each other signal into several
signals, whose alternating sum is the signal. For example, LIVE of the Game of Life becomes "three or more" and "four or
more", and a tile lives if the first is true without the second.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from functools import cache, reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack

from maze_nca_gym.mazes.rules import threshold
from maze_nca_gym.mazes.terms import Rule, Term, TileKind

from ..automaton import Automaton, NotCovered
from .bounds import Doubles, combinations
from .patches import is_seen, mask_of, reading
from .states import find_worlds

MOST_DENOMINATOR = 60
"""Largest factor by which the weights of a sum are multiplied to make them whole numbers."""
FIRST, OTHER = 1e3, 1e-3
"""Costs, relative to the cost of weights, of cases that a sum should exclude, and of cases that it may include."""
N_TRIED = 8
"""Number of cases that are tried in turn as the case to exclude."""
MOST_SPLIT = 1 << 14
"""Largest number of cases of a rule whose signal is split."""
N_PICKED = 1 << 12
"""Number of cases that are selected first, and then added, if there are more than `MOST_SPLIT`."""
ROUNDED = 1 << 20
"""Denominator of the weights that decide a part of a split signal."""
MOST_PARTS = 12
"""Largest number of signals into which one signal is split."""

Leaf = tuple[IntEnum | TileKind, str]
"""A signal or kind of tile, and the tap at which it is read."""


class Sum(NamedTuple):
    """A weighted sum of the kinds of tile and signals that a rule reads.

    Attributes:
        leaves: the kinds of tile and signals, each at a tap.
        weights: (F,) float64, the weight of each leaf.
        bias: the constant term.
    """

    leaves: tuple[Leaf, ...]
    weights: Doubles
    bias: float


class Cases(NamedTuple):
    """All cases that a rule can distinguish.

    Attributes:
        leaves: the kinds of tile and signals that the rule may read, each at a tap.
        read: (P, F) float64 zeros and ones, the values of the leaves in each case.
        on: (P,) bool, the rule's result.
    """

    leaves: tuple[Leaf, ...]
    read: Doubles
    on: NDArray[np.bool_]


def cases_of(automaton: Automaton, rule: Term) -> Cases:
    """Return all cases that can occur for a rule, at any iteration on any map.

    Raises:
        NotCovered: the rule distinguishes too many patches.
    """
    kinds = {tap: rule.kinds(tap) for tap in automaton.taps}
    reads = {tap: mask_of(rule.signals(tap)) for tap in automaton.taps}
    patches_of_worlds = []
    for world in find_worlds(automaton).worlds:
        taps = []
        for tap in automaton.taps:  # the codes of the tiles that the world can have there, restricted to the bits read
            codes = set() if tap == "C" else {0}
            for kind, components in world.items():
                parts = [np.unique(component.states & reads[tap]) for component in components]
                of_kind = reduce(np.bitwise_or.outer, parts, np.array(kind + 1 if kinds[tap] else 0))
                codes |= set(of_kind.ravel().tolist())
            taps.append(np.array(sorted(codes), np.int64))
        ways = combinations(automaton, [len(tiles) for tiles in taps])
        patches_of_worlds.append(np.stack([tiles[way] for tiles, way in zip(taps, ways, strict=True)], axis=1))
    # the patches of a single world are distinct already
    patches = (
        np.unique(np.concatenate(patches_of_worlds), axis=0) if len(patches_of_worlds) > 1 else patches_of_worlds[0]
    )
    leaves = tuple(
        (seen, tap)
        for tap in automaton.taps
        for seen in (*(map(TileKind, automaton.kinds) if kinds[tap] else ()), *sorted(rule.signals(tap)))
    )
    read = [is_seen(seen, patches[:, automaton.taps.index(tap)]) for seen, tap in leaves]
    return Cases(leaves, np.stack(read, axis=1).astype(np.float64), rule.read_by(reading(automaton, patches)))


def separate(cases: Cases, most: float = np.inf, excess: NDArray[np.float64] | None = None) -> Sum | None:
    """Return a sum with small weights that is at least 1 where a rule is true, and at most 0 elsewhere, or None if none
    exists.

    Args:
        cases: the rule's cases.
        most: upper bound of the sum where the rule is true.
        excess: (P,) the cost of each unit above 0 where the rule is false. With cost 0, the default everywhere, the sum
            may not exceed 0.
    """
    if len(cases.on) > MOST_SPLIT:
        return _separate_many(cases, most)
    read, on = cases.read, cases.on
    soft = np.flatnonzero(np.zeros(len(on)) if excess is None else excess)
    n_features, n_weights = read.shape[1], 2 * read.shape[1]
    # variables: the weights' positive and negative parts, the bias, and what exceeds 0 in each soft case
    exceeds = csr_array((np.full(len(soft), -1.0), (soft, np.arange(len(soft)))), (len(read), len(soft)))
    rows = hstack([csr_array(read), csr_array(-read), np.ones((len(read), 1)), exceeds], format="csr")
    solution = milp(
        np.concatenate([np.ones(n_weights), [0.0], excess[soft] if excess is not None else []]),
        constraints=LinearConstraint(rows, np.where(on, 1.0, -np.inf), np.where(on, most, 0.0)),
        bounds=Bounds(np.where(np.arange(rows.shape[1]) == n_weights, -np.inf, 0.0), np.inf),
    )
    if solution.x is None:
        return None
    weights, bias = solution.x[:n_features] - solution.x[n_features:n_weights], float(solution.x[n_weights])
    # float32 makes no errors with whole numbers. A solution is a vertex of the feasible region, so a small factor
    # usually makes all weights whole. If the sum has an upper bound, the rounded weights are divided by the factor
    # again
    for factor in range(1, 1 if len(soft) else 1 + MOST_DENOMINATOR):
        part = factor if np.isfinite(most) else 1
        whole, whole_bias = np.round(factor * weights) / part, np.round(factor * bias) / part
        sums = np.round(read @ whole + whole_bias, 9)
        if (sums[on] >= 1).all() and (sums[on] <= most).all() and (sums[~on] <= 0).all():
            weights, bias = whole, float(whole_bias)
            break
    return Sum(cases.leaves, weights, bias)


def _separate_many(cases: Cases, most: float) -> Sum | None:
    """Return the result of `separate`, computed from few cases, to which the misclassified cases are added step by
    step.

    If no sum separates all cases, usually none separates a few of them, so this takes a second instead of minutes.
    """
    picked = np.random.default_rng(0).choice(len(cases.on), N_PICKED, replace=False)
    while True:
        total = separate(Cases(cases.leaves, cases.read[picked], cases.on[picked]), most)
        if total is None:
            return None
        sums = cases.read @ total.weights + total.bias
        excess = np.where(cases.on, np.maximum(1 - sums, sums - most), sums)
        wrong = np.flatnonzero(excess > 1e-6)
        if not len(wrong):
            return total
        picked = np.union1d(picked, wrong[np.argsort(-excess[wrong])[:N_PICKED]])


def misfits(automaton: Automaton) -> dict[IntEnum, NotCovered]:
    """Return the signals that no network can follow even if they are split, each with the error to raise."""
    errors = dict[IntEnum, NotCovered]()
    for signal in automaton.signals:
        single = signal not in automaton.paired
        try:
            if sum_of(automaton, signal, exactly=single) is not None:
                continue
            if single:
                raise no_sum(automaton, signal)
            nested(automaton, signal)
        except NotCovered as error:
            errors[signal] = error
    return errors


@cache
def _split(automaton: Automaton) -> dict[IntEnum, tuple[Sum, ...]]:
    """Return the sums of every signal that no single sum decides."""
    return {signal: nested(automaton, signal) for signal in automaton.paired if sum_of(automaton, signal) is None}


def parts_of(automaton: Automaton) -> dict[IntEnum, tuple[str, ...]]:
    """Return for each signal the names of the signals that replace it in the automaton that `separated` returns.

    A split signal S is replaced by S_1, S_2 and so on, or by names with more underscores if there are signals of these
    names. Any other signal keeps its name.

    Raises:
        NotCovered: see `separated`.
    """
    split, between = _split(automaton), "_"
    while True:
        names_of = {
            signal: tuple(f"{signal.name}{between}{i + 1}" for i in range(len(split[signal])))
            if signal in split
            else (signal.name,)
            for signal in automaton.signals
        }
        names = [name.lower() for of_signal in names_of.values() for name in of_signal]
        if len({*names}) == len(names):
            return names_of
        between += "_"


@cache
def separated(automaton: Automaton) -> Automaton:
    """Return an equivalent automaton, in which every signal that no single sum decides is split into several signals.

    A signal S becomes S_1, S_2 and so on, each of which is on only where the previous one is on. S is on where an odd
    number of them is on. If no signal needs to be split, the automaton itself is returned. The path and pooled signals
    are never split.

    Raises:
        NotCovered: a signal would have to be split into more than `MOST_PARTS` signals, or its rule has too many cases.
    """
    split = _split(automaton)
    if not split:
        return automaton
    names = parts_of(automaton)
    members = [name for of_signal in names.values() for name in of_signal]
    made: type[IntEnum] = IntEnum(f"{automaton.signals.__name__}Parts", members, start=0)  # type: ignore[misc]
    new = {signal: tuple(made[name] for name in of_signal) for signal, of_signal in names.items()}

    def whole(seen: IntEnum | TileKind, tap: str) -> Term:
        if isinstance(seen, TileKind):
            return Term(seen, tap)
        parts = [Term(part, tap) for part in new[seen]]  # each on only if the previous one is
        odd = [one & ~other for one, other in zip(parts[::2], parts[1::2], strict=False)]
        return reduce(or_, [*odd, parts[-1]] if len(parts) % 2 else odd)

    def of_sum(total: Sum) -> Term:
        # rounded to multiples of 1 / ROUNDED, all sums together change by far less than the 1/2 that they are apart
        pairs = zip(total.weights, total.leaves, strict=True)
        terms = [(_fraction(weight), whole(*leaf)) for weight, leaf in pairs if weight]
        return threshold(terms, Fraction(1, 2) - _fraction(total.bias))

    rules: dict[IntEnum, Rule] = {}
    for signal, parts in new.items():
        if signal in split:
            rules |= dict(zip(parts, map(of_sum, split[signal]), strict=True))
        else:
            rules[parts[0]] = automaton.terms[signal].read_by(whole)
    return replace(
        automaton,
        signals=made,
        rules=rules,
        pooled=tuple(new[signal][0] for signal in automaton.pooled),
        everywhere=tuple(part for signal in automaton.everywhere for part in new[signal]),
        parts=tuple(tuple(part for signal in group for part in new[signal]) for group in automaton.parts),
        invariant=None if automaton.fact is None else automaton.fact.read_by(whole),
        theorem=None,  # it is about the signals before
        slows=None,
        pace=1,
    )


def _fraction(number: float) -> Fraction:
    """Return a number, rounded to a multiple of 1 / `ROUNDED`."""
    return Fraction(round(number * ROUNDED), ROUNDED)


@cache
def sum_of(automaton: Automaton, signal: IntEnum, exactly: bool = False) -> Sum | None:
    """Return a sum that is at least 1 where a signal's rule is true, and at most 0 elsewhere, or None if none exists.

    Args:
        automaton: the automaton.
        signal: one of its signals.
        exactly: whether the sum must be exactly 1 where the rule is true, as signals with a single channel require.

    Raises:
        NotCovered: the rule distinguishes too many patches.
    """
    return separate(cases_of(automaton, automaton.terms[signal]), 1.0 if exactly else np.inf)


def no_sum(automaton: Automaton, signal: IntEnum) -> NotCovered:
    """Return the error that no network can follow a signal's rule."""
    return NotCovered(
        f"the rule of {signal.name} in {automaton.name} is not a weighted sum of what it reads; give the result a "
        f"signal of its own, which {signal.name} copies"
    )


@cache
def nested(automaton: Automaton, signal: IntEnum) -> tuple[Sum, ...]:
    """Return sums for sets of cases, each contained in the previous one, whose alternating sum is a signal's rule.

    Raises:
        NotCovered: more than `MOST_PARTS` sums are needed, or the rule has too many cases.
    """
    cases, sums = cases_of(automaton, automaton.terms[signal]), list[Sum]()
    if len(cases.on) > MOST_SPLIT:
        raise NotCovered(
            f"the rule of {signal.name} in {automaton.name} is not a threshold of a sum, and distinguishes "
            f"{len(cases.on):,} patches; at most {MOST_SPLIT:,} are split: compute it in two iterations, with a signal "
            "for each of its parts"
        )
    left, within = cases.on, np.ones(len(cases.on), bool)
    for _ in range(MOST_PARTS):
        # the next set contains all cases of `left`, and few other cases of `within`. Equal costs of all other cases
        # usually work best. If the cases are symmetric, as for a parity, the best sum is then a constant. Therefore
        # some of the other cases are excluded in turn, each by a high cost, which often excludes more cases
        others, inside = np.flatnonzero(within & ~left), within
        by_number = others[np.argsort(cases.read[others].sum(axis=1), kind="stable")]
        ends = np.linspace(0, len(by_number) - 1, N_TRIED).round().astype(int)
        for target in (None, *by_number[np.unique(ends)].tolist()):
            costs = np.zeros(len(left))
            costs[others] = FIRST if target is None else OTHER
            if target is not None:
                costs[target] = FIRST
            total = separate(cases._replace(on=left), excess=costs)
            tried = within if total is None else cases.read @ total.weights + total.bias >= 0.5
            inside = tried if tried.sum() < inside.sum() else inside
            if target is None and inside is tried:
                break
        exact = separate(cases._replace(on=inside))
        if exact is None or (inside == within).all():
            break
        sums.append(exact)
        left, within = inside & ~left, inside
        if not left.any():
            return tuple(sums)
    raise NotCovered(
        f"the rule of {signal.name} in {automaton.name} is not an alternating sum of at most {MOST_PARTS} thresholds: "
        "compute it in two iterations, with a signal for each of its parts"
    )
