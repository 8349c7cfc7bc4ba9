"""Bounds of a network's sums before the ReLU, for every kind of patch that a rule distinguishes.

The sums are linear in the patch. Their extremes are therefore sums of extremes, over the tiles and over the independent
components of each tile's state (`states`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.terms import Term
from maze_nca_gym.support.options import check

from ...policies.identity import altered, own_class
from ...policies.policy import Policy, program_of
from ...policies.program import RELU
from ..automaton import Automaton, NotCovered
from .patches import KIND_BITS, Codes, mask_of, reading, signals_of
from .states import Component, World, find_worlds

Doubles: TypeAlias = NDArray[np.float64]
POOLED = 2.5
"""Factor of the tolerance for pooled channels, because the error of a single channel is larger than that of a pair."""
PATH_TOLERANCE = 0.5
"""Bound of the path's error: rounding the path removes smaller errors."""
MOST_KINDS = 1 << 22
"""Largest number of kinds of patch that one rule may distinguish."""
MOST_WHOLE = 2.0**22
"""Multiples of 1/2 below this are exact in float32."""
MOST_EXACT = 2**53
"""Whole numbers below this are exact in float64."""
MOST_FLOAT = float(np.finfo(np.float32).max)
ROUNDING = 2.0**-24
"""Largest relative rounding error of one float32 operation."""


class Reads(NamedTuple):
    """The bits of a tile's code that a rule reads at a tap."""

    signals: int
    kind: bool


class Kinds(NamedTuple):
    """The patches of a rule, grouped by the values of the bits that the rule reads. Each group is called a kind of
    patch.

    Attributes:
        reads: the bits that the rule reads at each tap.
        codes: (P, taps) int64, the values of these bits.
        worlds: (P,) int64 indices of the worlds (sets of tile states that occur together) in which the patches occur.
        on: (P,) bool, the rule's result: whether its signal must be on next.
        low, high: (P, R) float64, lower and upper bounds of the sums of R rows of weights, over all patches of a kind.
    """

    reads: Sequence[Reads]
    codes: Codes
    worlds: Codes
    on: NDArray[np.bool_]
    low: Doubles
    high: Doubles


def weights_of(automaton: Automaton, model: Policy) -> tuple[Doubles, Doubles]:
    """Return the weights of an iteration, (C, T + C, taps) at the automaton's taps, and the biases, (C,), both float64.

    The weights come from the network's `program`, provided that this package defines its class and nobody changed the
    object.

    Raises:
        ValueError: iterations that are not a ReLU of one 3x3 convolution with the automaton's pooling; iterations that
            differ from one another; other kinds of tile, or tiles that the rules may not read; weights of low
            precision; or weights that are not finite, because comparisons with NaN would never exceed a bound.
    """
    program, pooled = program_of(model), len(automaton.pooled)
    kinds = tuple(kind.name for kind in automaton.problem.kinds)
    if names := altered(model):
        raise ValueError(
            f"a certificate needs an unchanged network of this package, but this network has other {', '.join(names)}"
        )
    check(own_class(type(model)) is not None, f"a certificate needs a network of this package, not a {type(model)}")
    if program is None:
        raise ValueError("a certificate needs a network whose iterations are all the same and given by a program")
    faults = {
        f"a kernel of 3 x 3, got {program.kernel_size} x {program.kernel_size}": program.kernel_size != 3,
        f"ReLUs, got {program.activation}": program.activation != RELU,
        # the induction step is proven once, so it must be that of every iteration
        "iterations that all end with a ReLU": program.unbounded is not None,
        "iterations that all read the maze": not program.sees_inputs,
        # a limit could clip one channel of a pair and not the other, which would change their difference
        f"no state limit, got {program.state_limit}": program.state_limit is not None,
        f"{pooled or 'no'} pooled channels, as the automaton {automaton.name} has": program.n_maxima != pooled,
        "pooling after the ReLU": program.pool_before_activation,
        f"the kinds of tile {', '.join(kinds)}, got {', '.join(program.inputs)}": program.inputs != kinds,
        f"weights of float32 or float64, got {program.weight.dtype}": program.weight.dtype.itemsize < 4,
    }
    for needed, is_fault in faults.items():
        check(not is_fault, f"a certificate needs a network with {needed}")
    # float64 holds float32 weights exactly; the rounding of float64 sums is a billion times smaller than float32's
    kernel = program.kernel.detach().double().cpu().numpy()
    taps = [offsets(tap)[0] for tap in automaton.taps]
    weight = np.stack([kernel[:, :, 1 + down, 1 + right] for down, right in taps], axis=-1)
    bias = program.bias.detach().double().cpu().numpy()
    n_bad = np.count_nonzero(~np.isfinite(kernel)) + np.count_nonzero(~np.isfinite(bias))
    check(n_bad == 0, f"weights must be finite numbers, got {n_bad:,} that are NaN or infinite")
    unread = np.count_nonzero(kernel) - np.count_nonzero(weight)
    check(unread == 0, f"a certificate needs a network that reads {len(taps)} tiles, got {unread:,} weights at others")
    return weight, bias


class Network:
    """The weights of a network, as the amount that each possible tile adds to each sum.

    Each channel has a row of weights. Each pair of channels has a further row, the difference of its two rows.

    Args:
        automaton: an automaton with the model's channels, a pair or a single channel for each signal.
        model: a network of any class whose `program` describes it.
        tolerance: the largest error of a pair's difference, which should be 1 where the signal is on.

    Attributes:
        rows: for each signal, the rows of its channels; for a pair, the last row is their difference.
        exact: whether float64 rounds nothing here, so that all bounds are exact rational numbers.
        largest: the upper bound of a pair's second channel: 1 more than the largest possible value, if weights read
            pairs only by their differences and nothing is rounded.

    Raises:
        ValueError: a network that `weights_of` refuses.
    """

    def __init__(self, automaton: Automaton, model: Policy, tolerance: float) -> None:
        self.automaton, self.largest, self.tolerance = automaton, 0.0, tolerance
        self.worlds, self.assumed = find_worlds(automaton)
        weight, bias = weights_of(automaton, model)
        self.rows, n_channels = automaton.rows(model.channel_names), model.n_channels
        pairs = [rows for rows in self.rows.values() if len(rows) == 2]
        low, high = np.array(pairs, int).reshape(-1, 2).T
        for number, rows in enumerate(pairs):
            rows.append(n_channels + number)
        # the difference needs bounds of its own: those of its two channels each assume another size of the pairs that
        # are read, so their difference would be far too wide to prove anything
        self._bias, weights = (np.concatenate([rows, rows[low] - rows[high]]) for rows in (bias, weight))
        highest = self._highest(self._bias, *self._parts(weights))
        self.largest = 1 + float(highest[high].max(initial=0.0))
        self._of_kinds, self._of_signals = self._parts(weights)
        self._added = dict[tuple[int, int], list[Doubles]]()  # by tap and component, which every patch asks for
        # rounding errors of float32 sums in any order (Higham, *Accuracy and Stability of Numerical Algorithms*, 3.1):
        # each of n terms is rounded at most n times, in its product and in n - 1 additions, so the error is at most
        # n u / (1 - n u) times the sum of absolute values, with u = ROUNDING. Terms with a weight of 0 add no error
        n_terms, most = np.count_nonzero(weight, axis=(1, 2)) + 1, self._highest(abs(bias), *self._parts(abs(weight)))
        off = most * n_terms * ROUNDING / (1 - n_terms * ROUNDING)
        # sums of multiples of 1/2 have no error in float32, unless they are too large; so all states that are read are
        # such multiples, if their own sums are
        whole = (weight % 1 == 0).all(axis=(1, 2)) & (bias % 0.5 == 0) & (most < MOST_WHOLE)
        if whole[weight[:, len(automaton.kinds) :].any(axis=(0, 2))].all():
            off[whole] = 0
        off[most >= MOST_FLOAT] = np.inf  # a part of the sum can overflow, and infinities of both signs make NaN
        # the network never computes a difference, so its error is at most that of both sums together
        self._rounding = np.concatenate([off, off[low] + off[high]])
        # every term of a bound is a weight, or half of one, or a weight times a sum of weights: a multiple of the unit
        numbers = [Fraction(number) for number in np.unique(np.append(weight, bias)).tolist()]
        unit = Fraction(1, 2 * max(number.denominator for number in numbers) ** 2)
        absolute = np.concatenate([abs(weight).reshape(len(weight), -1), abs(bias)[:, None]], axis=1)
        total = 2 * max(sum(map(Fraction, row)) for row in absolute.tolist()) + 2
        self.exact = not self._rounding.any() and tolerance == 0 and total * total < unit * MOST_EXACT

    def kinds(self, signal: IntEnum) -> Kinds:
        """Return all kinds of patch for a signal's rule, with bounds for the signal's rows.

        A pair has three rows: its two channels and their difference. A signal with a single channel has one.
        """
        says = self.automaton.terms[signal]
        reads = [Reads(mask_of(says.signals(tap)), bool(says.kinds(tap))) for tap in self.automaton.taps]
        return self._kinds(reads, self.rows[signal], says)

    def highest_maximum(self) -> float:
        """Return the upper bound of the channel that holds the maximum over all channels, before it is replaced."""
        # a rule that reads nothing tells no patches apart, so the bounds are over all patches of a world
        nothing = [Reads(0, False)] * len(self.automaton.taps)
        anything = self._kinds(nothing, [self.rows[self.automaton.pooled[-1]][0] + 1])
        return float(anything.high.max())

    def worst(self, signal: IntEnum, kinds: Kinds, place: int, row: int, sign: int) -> list[int]:
        """Return the patch of a kind with the largest or smallest sum, as the code of the tile at each tap.

        Args:
            signal: the signal for whose rule the kinds were computed.
            kinds: the kinds that `kinds` returned for the signal.
            place: the index of the kind.
            row: 0 or 1 for the sum of the signal's first or second channel, 2 for their difference.
            sign: 1 for the largest sum, -1 for the smallest.
        """
        row, side, worst = self.rows[signal][row], int(sign > 0), []
        for tap, code in enumerate(kinds.codes[place].tolist()):
            reads = kinds.reads[tap]
            cases = [(0.0, 0)] if self.automaton.taps[tap] != "C" and not code else []
            for kind, components in self.worlds[kinds.worlds[place]].items():
                if reads.kind and code & ((1 << KIND_BITS) - 1) != kind + 1:
                    continue
                total = sign * self._of_kinds[side, tap, kind, row]
                tile = kind + 1
                # components are independent, so the most is added by the best state of each
                for component in components:
                    mask = mask_of(component.signals) & reads.signals
                    fits = component.states & mask == code & mask
                    values = np.where(fits, sign * self._of_states(tap, component)[side][:, row], -np.inf)
                    total, tile = total + values.max(), tile | int(component.states[values.argmax()])
                cases.append((float(total), tile))
            worst.append(max(cases)[1])
        return worst

    def _kinds(self, reads: Sequence[Reads], rows: list[int], rule: Term | None = None) -> Kinds:
        codes, worlds, sums = [], [], []
        for place, world in enumerate(self.worlds):
            taps = [self._cases(world, tap, reads[tap], rows) for tap in range(len(self.automaton.taps))]
            # any tiles of a world are combined; that includes patches that never occur, so bounds hold for all
            ways = combinations(self.automaton, [len(cases) for cases in taps])
            worlds.append(np.full(ways.shape[1], place))
            codes.append(np.stack([np.array(list(cases))[way] for cases, way in zip(taps, ways, strict=True)], axis=1))
            terms = (np.array(list(cases.values()))[way] for cases, way in zip(taps, ways, strict=True))
            sums.append(reduce(np.add, terms))
        low, high = np.concatenate(sums).swapaxes(0, 1)
        bias, rounding, patches = self._bias[rows], self._rounding[rows], np.concatenate(codes)
        on = np.zeros(1, np.bool_) if rule is None else rule.read_by(reading(self.automaton, patches))
        return Kinds(reads, patches, np.concatenate(worlds), on, low + bias - rounding, high + bias + rounding)

    def _cases(self, world: World, tap: int, reads: Reads, rows: list[int]) -> dict[int, Doubles]:
        """Return the smallest and largest amounts that a world's tiles add to some rows at a tap, (2, R), by the bits
        read."""
        # beyond the edge of a map all inputs are 0, and so is the code; the centre is always on the map
        extremes = {} if self.automaton.taps[tap] == "C" else {0: np.zeros((2, len(rows)))}
        for kind, components in world.items():
            code = kind + 1 if reads.kind else 0
            of_kind = {code: self._of_kinds[:, tap, kind][:, rows]}
            for component in components:
                # states with the same bits read have the same result, so only their extremes matter
                low, high = (values[:, rows] for values in self._of_states(tap, component))
                codes = component.states & reads.signals
                alike = {
                    int(code): np.array([low[codes == code].min(axis=0), high[codes == code].max(axis=0)])
                    for code in np.unique(codes)
                }
                # components are independent, so codes are joined, and bounds added
                parts = product(of_kind.items(), alike.items())
                of_kind = {code | other: amounts + more for (code, amounts), (other, more) in parts}
            # tiles of different kinds that the rule cannot tell apart are one case, with bounds that cover all
            for code, amounts in of_kind.items():
                known = extremes.get(code)
                if known is not None:
                    amounts = np.array([np.minimum(known[0], amounts[0]), np.maximum(known[1], amounts[1])])
                extremes[code] = amounts
        return extremes

    def _parts(self, weight: Doubles) -> tuple[Doubles, Doubles]:
        """Return the smallest and largest amounts that each kind of tile can add at each tap, (2, taps, T, R), and that
        each signal that is on can add, (2, taps, S, R)."""
        # where a signal is off, its channels are exactly 0, by the ReLU. Where it is on, its first or only channel
        # holds 1 up to an error, and both channels of a pair also a number from 0 to `largest`, the same in both
        automaton, weight, n_kinds = self.automaton, weight.transpose(2, 1, 0), len(self.automaton.kinds)
        of_kinds, channels = weight[:, :n_kinds], weight[:, n_kinds:]
        first = channels[:, [rows[0] for rows in self.rows.values()]]
        common = np.zeros_like(first)
        for signal, rows in self.rows.items():
            if len(rows) > 1:
                common[:, signal] = self.largest * (channels[:, rows[0]] + channels[:, rows[1]])
        off = np.full((len(self.rows), 1), self.tolerance)
        off[list(automaton.answers)] = PATH_TOLERANCE
        most = np.zeros_like(of_kinds[:, :1])
        if automaton.pooled:
            off[list(automaton.pooled)] *= POOLED
            # the maximum over channels depends on no single signal, so it counts with the tile's kind
            most = (1 + self.tolerance + self.largest) * channels[:, -1:]
        spread = off * abs(first)
        return (
            np.stack([of_kinds + np.minimum(most, 0), of_kinds + np.maximum(most, 0)]),
            np.stack([first - spread + np.minimum(common, 0), first + spread + np.maximum(common, 0)]),
        )

    def _highest(self, most: Doubles, of_kinds: Doubles, of_signals: Doubles) -> Doubles:
        """Return upper bounds of sums, (R,), from their biases and what `_parts` returned."""
        for tap in range(len(self.automaton.taps)):
            sums = [
                of_kinds[1, tap, kind] + sum((self._on(part) @ of_signals[1, tap]).max(axis=0) for part in components)
                for world in self.worlds
                for kind, components in world.items()
            ]
            most = most + np.max(sums, axis=0)
        return most

    def _on(self, component: Component) -> Doubles:
        """Return the signals that are on in a component's states, (N, S)."""
        return signals_of(self.automaton, component.states).astype(np.float64)

    def _of_states(self, tap: int, component: Component) -> list[Doubles]:
        """Return the smallest and largest amounts that each state of a component can add at a tap, (N, R) each."""
        known = self._added.get((tap, id(component)))
        if known is None:
            on = self._on(component)
            known = self._added[tap, id(component)] = [on @ side[tap] for side in self._of_signals]
        return known


def combinations(automaton: Automaton, numbers: Sequence[int]) -> Codes:
    """Return all combinations of one case at each tap, (taps, P) int64 indices of the cases, for `numbers` of cases per
    tap.

    Raises:
        NotCovered: there are more than `MOST_KINDS` combinations.
    """
    if prod(numbers) > MOST_KINDS:
        raise NotCovered(
            f"a rule of {automaton.name} distinguishes {prod(numbers):,} kinds of patch, but at most {MOST_KINDS:,} "
            "are compared: let it read fewer signals or tiles"
        )
    return np.indices(numbers).reshape(len(numbers), -1)
