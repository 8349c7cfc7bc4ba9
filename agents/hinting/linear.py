"""Exact weights by linear programming: for each signal, a sum that is large where its rule switches it on, else small.

One iteration of a network is a sum and a ReLU, so it can follow a rule only if some weighted sum of what the rule reads
tells its two results apart. `separated` gives every automaton this form: it splits each other signal into several whose
alternating sum is the signal. The Game of Life's LIVE, for example, becomes "three or more" without "four or more".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cache, partial, reduce
from math import prod
from operator import or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from maze_nca_gym.levels import Tile

from ..automata.automaton import Automaton
from ..automata.rules import Bits, Rule, View, expression_of, threshold
from .bounds import MOST_KINDS, Doubles
from .patches import Codes, PatchView, is_seen, mask_of
from .worlds import World, find_worlds

MOST_DENOMINATOR = 60
"""Largest number by which the weights of a sum are multiplied to make them whole."""
LARGEST_EXCESS = 100.0
"""Upper bound of a sum where it should be at most 0, if only the number of such cases matters."""
PATIENCE = 20.0
"""Time limit for one linear program, in seconds; the best solution so far is taken."""
MOST_PARTS = 9
"""Largest number of signals into which one is split."""

Leaf = tuple[IntEnum, str]
"""A signal or kind of tile, and the tap at which it is read."""


class Sum(NamedTuple):
    """A weighted sum of what a rule reads.

    Attributes:
        leaves: what is read.
        weights: (F,) float64, the weight of each.
        bias: what is added.
    """

    leaves: tuple[Leaf, ...]
    weights: Doubles
    bias: float


class Cases(NamedTuple):
    """All patches that a rule can tell apart.

    Attributes:
        leaves: everything that it may read to do so.
        read: (P, F) float64 zeros and ones, what is read on each patch.
        on: (P,) bool, the rule's result.
    """

    leaves: tuple[Leaf, ...]
    read: Doubles
    on: NDArray[np.bool_]


def cases_of(automaton: Automaton, rule: Rule) -> Cases:
    """Return what a rule can see at any iteration on any map.

    Raises:
        ValueError: it tells more than `MOST_KINDS` patches apart.
    """
    says = expression_of(rule)
    kinds = {tap: says.kinds(tap) for tap in automaton.taps}
    reads = {tap: mask_of(says.signals(tap)) for tap in automaton.taps}
    found = []
    for world in find_worlds(automaton).worlds:
        taps = [_tiles_at(world, tap, reads[tap], bool(kinds[tap])) for tap in automaton.taps]
        if prod(map(len, taps)) > MOST_KINDS:
            raise ValueError(
                f"a rule of {automaton.name} tells {prod(map(len, taps)):,} patches apart, but at most {MOST_KINDS:,} "
                "are compared: let it read fewer signals or tiles"
            )
        ways = np.indices([len(tiles) for tiles in taps]).reshape(len(taps), -1)
        found.append(np.stack([tiles[way] for tiles, way in zip(taps, ways, strict=True)], axis=1))
    patches = np.unique(np.concatenate(found), axis=0)
    leaves = tuple(
        (seen, tap)
        for tap in automaton.taps
        for seen in (*(automaton.kinds if kinds[tap] else ()), *sorted(says.signals(tap)))
    )
    read = [is_seen(seen, patches[:, automaton.taps.index(tap)]) for seen, tap in leaves]
    return Cases(leaves, np.stack(read, axis=1).astype(np.float64), rule(PatchView(automaton, patches)))


def _tiles_at(world: World, tap: str, read: int, reads_kind: bool) -> Codes:
    """Return the codes of the tiles that a world can have at a tap, restricted to the bits that are read."""
    found = set() if tap == "C" else {0}
    for kind, components in world.items():
        parts = [np.unique(component.states & read) for component in components]
        signals = reduce(np.bitwise_or.outer, parts, np.array(int(kind) + 1 if reads_kind else 0))
        found |= set(signals.ravel().tolist())
    return np.array(sorted(found), np.int64)


def separate(
    cases: Cases, most: float = np.inf, soft: NDArray[np.bool_] | None = None, counted: bool = False
) -> Sum | None:
    """Return a sum with small weights that is at least 1 where a rule is on, and at most 0 elsewhere; None if none is.

    Args:
        cases: what the rule sees.
        most: upper bound of the sum where the rule is on.
        soft: (P,) bool, cases where the sum may exceed 0, but by as little as possible in all.
        counted: whether as few soft cases as possible should exceed 0, by whatever much; that takes longer to find.
    """
    read, on = cases.read, cases.on
    soft = np.zeros(len(on), bool) if soft is None else soft
    n_features, n_soft = read.shape[1], np.count_nonzero(soft)
    # variables: the weights' positive and negative parts, the bias, and the excess of each soft case
    excess = np.zeros((len(read), n_soft))
    excess[np.flatnonzero(soft), np.arange(n_soft)] = -LARGEST_EXCESS if counted else -1
    rows = np.hstack([read, -read, np.ones((len(read), 1)), excess])
    n_weights = 2 * n_features
    # an excess costs far more than any weight
    found = milp(
        np.concatenate([np.ones(n_weights), [0.0], np.full(n_soft, 1000.0)]),
        constraints=LinearConstraint(rows, np.where(on, 1.0, -np.inf), np.where(on, most, 0.0)),
        integrality=np.concatenate([np.zeros(n_weights + 1), np.full(n_soft, float(counted))]),
        bounds=Bounds(
            np.concatenate([np.zeros(n_weights), [-np.inf], np.zeros(n_soft)]),
            np.concatenate([np.full(n_weights + 1, np.inf), np.full(n_soft, 1.0 if counted else np.inf)]),
        ),
        options={"time_limit": PATIENCE},
    )
    if found.x is None:
        return None
    weights, bias = found.x[:n_features] - found.x[n_features:n_weights], found.x[n_weights]
    if soft.any():
        return Sum(cases.leaves, weights, float(bias))
    # with whole numbers float32 makes no errors. A solution is a vertex of what the inequalities allow, so a small
    # factor usually makes it whole; where the sum has an upper bound, it is divided by that again
    for factor in range(1, 1 + MOST_DENOMINATOR):
        part = factor if np.isfinite(most) else 1
        whole, whole_bias = np.round(factor * weights) / part, np.round(factor * bias) / part
        sums = np.round(read @ whole + whole_bias, 9)
        if (sums[on] >= 1).all() and (sums[on] <= most).all() and (sums[~on] <= 0).all():
            return Sum(cases.leaves, whole, float(whole_bias))
    return Sum(cases.leaves, weights, float(bias))


@cache
def separated(automaton: Automaton) -> Automaton:
    """Return an automaton that does the same, with signals that each have a `Sum`; the same one if all have.

    A signal S that has none becomes S_1, S_2, ..., each of which is on only where the one before it is. S is on where
    an odd number of them is.

    Raises:
        ValueError: the rule of the path or of a pooled signal, which cannot be split, has no sum; or a signal would
            have to be split into more than `MOST_PARTS`.
    """
    split = {}
    for signal in automaton.paired:
        cases = cases_of(automaton, automaton.rules[signal])
        if separate(cases) is None:
            split[signal] = list(_nested(automaton, signal, cases))
    return _with_parts(automaton, split) if split else automaton


def _nested(automaton: Automaton, signal: IntEnum, cases: Cases) -> Iterator[Sum]:
    """Yield sums for sets of cases, each within the one before it, whose alternating sum is a signal's rule."""
    left, within = cases.on, np.ones(len(cases.on), bool)
    for _ in range(MOST_PARTS):
        # a sum must be large where the signal is still to be set right, and small outside of the set before it
        for counted in (False, True):
            found = separate(cases._replace(on=left), soft=within & ~left, counted=counted)
            inside = within if found is None else cases.read @ found.weights + found.bias >= 0.5
            if (inside != within).any():
                break
        exact = separate(cases._replace(on=inside))
        if exact is None or (inside == within).all():
            break
        yield exact
        left, within = inside & ~left, inside
        if not left.any():
            return
    raise ValueError(
        f"the rule of {signal.name} in {automaton.name} is no alternating sum of {MOST_PARTS} thresholds or fewer: "
        "compute it in two iterations, with a signal for each of its parts"
    )


def _with_parts(automaton: Automaton, split: Mapping[IntEnum, Sequence[Sum]]) -> Automaton:
    """Return the automaton whose signals are split into those of some sums."""
    names = {
        signal: [f"{signal.name}_{i}" for i in range(1, 1 + len(split[signal]))] if signal in split else [signal.name]
        for signal in automaton.signals
    }
    members = [name for of_signal in names.values() for name in of_signal]
    made: type[IntEnum] = IntEnum(f"{automaton.signals.__name__}Parts", members, start=0)  # type: ignore[misc]
    new = {signal: tuple(made[name] for name in of_signal) for signal, of_signal in names.items()}
    rules: dict[IntEnum, Rule] = {}
    for signal, parts in new.items():
        sums = split.get(signal)
        of_parts: list[Rule] = [partial(_rule_of, each) for each in sums] if sums else [automaton.rules[signal]]
        rules |= {part: _seeing(new, rule) for part, rule in zip(parts, of_parts, strict=True)}
    return replace(
        automaton,
        signals=made,
        rules=rules,
        pooled=None if automaton.pooled is None else new[automaton.pooled][0],
        everywhere=tuple(part for signal in automaton.everywhere for part in new[signal]),
        parts=tuple(tuple(part for signal in group for part in new[signal]) for group in automaton.parts),
        invariant=None if automaton.invariant is None else _seeing(new, automaton.invariant),
        theorem=None,  # it is about the signals before
    )


def _rule_of(found: Sum, see: View) -> Bits:
    terms = [
        (float(weight), see.tile(seen, tap) if isinstance(seen, Tile) else see(seen, tap))
        for (seen, tap), weight in zip(found.leaves, found.weights, strict=True)
        if weight
    ]
    return threshold(terms, 0.5 - found.bias)


def _seeing(new: Mapping[IntEnum, tuple[IntEnum, ...]], rule: Rule) -> Rule:
    return lambda see: rule(_Joined(new, see))


class _Joined:
    """A view in which the parts of a signal are seen as one."""

    def __init__(self, new: Mapping[IntEnum, tuple[IntEnum, ...]], see: View) -> None:
        self._new, self._see = new, see
        self.tile = see.tile

    def __call__(self, signal: IntEnum, tap: str = "C") -> Bits:
        parts = [self._see(part, tap) for part in self._new[signal]]
        if len(parts) == 1:
            return parts[0]
        # an odd number is on: an odd one without the next
        found = [one & ~other for one, other in zip(parts[::2], parts[1::2], strict=False)]
        return reduce(or_, [*found, parts[-1]] if len(parts) % 2 else found)
