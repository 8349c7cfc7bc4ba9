"""A proof that learned weights do what the automaton does, on every maze, of any size, at every iteration.

A certificate proves only that, and only for float32 arithmetic: sums in any order, each operation rounded once, without
TF32, bfloat16 or fast convolutions (`learned.convolving`). What a tile can hold is found from the rules (`worlds`). Two
things are taken for granted:

- The automaton is right.
- Its invariant holds at every tile, if it has one: `assumed` says so.

`automata.proof` proves both for the shortest path, and for the one that heals that it is right where mazes stay as they
are. The rest is argued in the automaton's module. All of it is tested on all mazes of up to 3 x 4 or 4 x 3 tiles:
287,852 with a source and a target, 9,418 of the diameter.

The tests are in `tests/agents/test_hinting_exhaustive.py`. The proof is an induction over iterations.

Suppose that the following holds at some iteration:

- Every signal that is on is a pair of channels (h + 1 + e, h) with 0 <= h <= `largest` and |e| <= `tolerance`.
- Every channel of a signal that is off is 0.
- The path is off by less than 1/2 where it is on.
- If a signal is pooled and on, its channel is off 1 by at most 1/20 at every tile. If it is off, its channel is 0.
- The maximum over all channels is anything that this allows.

At first all signals are off, so it holds. The certificate shows that it then holds one iteration later, whatever five
tiles form a patch. So it holds at every iteration, and the rounded path is always the automaton's.

One iteration is linear up to the ReLU. So the extremes of its sums over such states are found tile by tile, and
component by component (`bounds`). The result of a rule depends only on what it reads. So of all tiles that are alike in
this, at one of the five taps, only the extremes matter, and their combinations are few. The bounds include the rounding
errors of float32 in any order of summation. They are themselves computed in float64, whose rounding is neglected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..automata import AUTOMATA, Automaton
from ..learned.nca import NCA
from ..policy import Policy
from .bounds import PATH_TOLERANCE, POOLED_TOLERANCE, TOLERANCE, Bounds, Doubles, Kinds, Network
from .config import HintConfig
from .patches import TAPS, Codes, distinct

Wrong: TypeAlias = tuple[int, int, Doubles]
"""A row of a signal, whether its largest sum (1) or its smallest (-1) is wrong, and by how much, (P,)."""
FACTORS = ((1, 0), (0, 1), (1, -1))
"""Combinations of a pair's two channels, one for each of its rows: the first, the second, their difference."""
SLACK = TOLERANCE / 10
"""Error of a sum that is still accepted where something is demanded of it."""


class Demand(NamedTuple):
    """An upper bound on a sum, as an inequality for the weights.

    Attributes:
        signal: the signal of the pair.
        factors: the factors of its two rows of weights, whose sum is multiplied by what is read.
        read: (F,) float64, patches as `learning.inputs` makes them.
        most: the upper bound of the sum.
    """

    signal: IntEnum
    factors: tuple[int, int]
    read: Doubles
    most: float


@dataclass(frozen=True)
class Certificate:
    """Extremes over all mazes and iterations, valid if `holds`.

    Attributes:
        n_patches: the number of kinds of patch that were bounded, each for one signal.
        silent: the largest sum of a channel that must be 0.
        least: the smallest second channel of a signal that is on.
        most: the largest second channel of a signal that is on.
        error: the largest error of a pair's difference, which should be 1.
        path_error: the largest error of the path, which must be below 1/2.
        pooled_error: the largest error of the pooled channel, 0 if none is pooled.
        largest: the upper bound that `most` must meet.
        tolerance: the upper bound that `error` must meet.
        assumed: whether it rests on the automaton's invariant, since the rules alone would allow more.
    """

    n_patches: int
    silent: float
    least: float
    most: float
    error: float
    path_error: float
    pooled_error: float
    largest: float
    tolerance: float
    assumed: bool

    @property
    def holds(self) -> bool:
        """Whether the weights are proven to do what the automaton does, in float32."""
        return (
            self.silent <= 0 <= self.least
            and self.most <= self.largest
            and self.error <= self.tolerance
            and self.path_error < PATH_TOLERANCE  # 1/2 itself would be rounded down
            and self.pooled_error <= POOLED_TOLERANCE
        )


def automaton_of(policy: Policy) -> Automaton:
    """Return the registered automaton whose channels a network has, or else the first one of its task.

    Raises:
        ValueError: there is none of its task.
    """
    automata = [automaton for automaton in AUTOMATA.values() if automaton.task == policy.task]
    if not automata:
        raise ValueError(f"no automaton of the task {policy.task} is known; `register_automaton` makes one known")
    return next((automaton for automaton in automata if automaton.channels == policy.channel_names), automata[0])


def certify(
    model: NCA, largest: float | None = None, tolerance: float = TOLERANCE, *, automaton: Automaton | None = None
) -> Certificate:
    """Bound the channels of a network that has the channels of an automaton.

    Args:
        model: a network with any weights.
        largest: the upper bound of a pair's second channel; by default that with which the automaton is learned.
        tolerance: the largest error of a pair's difference, which should be 1.
        automaton: what the network should do; by default that of its channels (`automaton_of`).

    Raises:
        ValueError: a network of another shape.
    """
    automaton = automaton_of(model) if automaton is None else automaton
    _check(model, automaton)
    largest = HintConfig.of(automaton).largest if largest is None else largest
    network = Network(automaton, model, largest, tolerance)
    path, *pairs = (network.kinds(signal) for signal in (automaton.signals(0), *automaton.paired))
    single = [path] if automaton.pooled is None else [path, network.kinds(automaton.pooled)]
    # off must be exactly 0: a ReLU makes that of any sum up to 0, and errors end there
    silent = [*(_silent(kinds, 2) for kinds in pairs), *(_silent(kinds, 1) for kinds in single)]
    return Certificate(
        n_patches=sum(len(kinds.on) for kinds in (*single, *pairs)),
        silent=max(silent if automaton.pooled is None else [*silent, network.highest_maximum()]),
        # on, the second channel's sum must pass the ReLU as it is, or the difference of both would change
        least=float(min(kinds.bounds.low[kinds.on, 1].min() for kinds in pairs)),
        most=float(max(kinds.bounds.high[kinds.on, 1].max() for kinds in pairs)),
        error=max(_error(kinds, 2) for kinds in pairs),
        path_error=_error(path, 0),
        pooled_error=max([_error(kinds, 0) for kinds in single[1:]], default=0.0),
        largest=largest,
        tolerance=tolerance,
        assumed=network.assumed,
    )


def _check(model: NCA, automaton: Automaton) -> None:
    channels, pools = automaton.channels, automaton.pooled is not None
    if model.channel_names != channels or not model.cut_corners or model.kernel_size != 3 or model.max_pool != pools:
        raise ValueError(
            f"a certificate is for networks with a 3x3 kernel without corners, {'a' if pools else 'no'} pooling and "
            f"the {len(channels)} channels that are learned from hints, got a {model.kernel_size}x{model.kernel_size} "
            f"kernel{'' if model.cut_corners else ' with corners'} and channels {', '.join(model.channel_names)}"
        )
    # the induction takes one step: it needs the same weights at every iteration, with a ReLU after each
    if model.stationary_from != 0:
        raise ValueError("a certificate is for networks whose iterations are all the same")
    # a pair's channels may be cut off at different heights of their sums, which changes their difference
    if model.state_limit is not None:
        raise ValueError(f"a certificate is for networks without a state limit, got one of {model.state_limit:g}")


def _silent(kinds: Kinds, n_rows: int) -> float:
    """Return the largest sum of the first rows where the signal is off."""
    return float(kinds.bounds.high[~kinds.on, :n_rows].max(initial=-np.inf))


def _error(kinds: Kinds, row: int) -> float:
    """Return the largest error of a row where the signal is on, so that it should be 1."""
    low, high = (sums[kinds.on, row] for sums in kinds.bounds)
    return float(max((high - 1).max(), (1 - low).max()))


def counterexamples(automaton: Automaton, model: NCA, largest: float, most: int, margin: float = 0.0) -> Codes:
    """Return (P, 5) int64 patches, the worst of their kind, on which a sum is not what the certificate demands.

    Args:
        automaton: what the network should do.
        model: a network with any weights that `certify` accepts.
        largest: the upper bound of a pair's second channel.
        most: the largest number of kinds for each signal and kind of error; the worst ones are taken.
        margin: sums closer to 0 than half of this count as errors, and so do differences off by half of `TOLERANCE`.
    """
    network = Network(automaton, model, largest, TOLERANCE)
    found = [worst.codes for signal in network.automaton.signals for worst in _wrong(network, signal, most, margin / 2)]
    return distinct(network.automaton, [np.array(found, np.int64).reshape(-1, len(TAPS))])


def demands(automaton: Automaton, model: NCA, largest: float, most: int, margin: float) -> Iterator[Demand]:
    """Yield what the network's pairs must meet and do not, each on its worst inputs.

    Args:
        automaton: what the network should do.
        model: a network with any weights that `certify` accepts.
        largest: the upper bound of a pair's second channel.
        most: the largest number of kinds of patch for each signal and kind of error; the worst ones are taken.
        margin: the smallest distance of sums from 0; a pair's difference may be off by half of `TOLERANCE`.
    """
    network = Network(automaton, model, largest, TOLERANCE)
    for signal in network.automaton.paired:
        for worst in _wrong(network, signal, most, margin):
            # without this, rounding in the solution of the constraints would ask for the same ones for ever
            if worst.excess > SLACK:
                read = network.worst_inputs(signal, worst.codes, worst.row, worst.sign)
                yield Demand(signal, FACTORS[worst.row], worst.sign * read, worst.sum - worst.excess)


class _Worst(NamedTuple):
    """The worst patch of a kind: the sum of a row, times the sign, exceeds its bound by `excess`."""

    codes: list[int]
    row: int
    sign: int
    sum: float
    excess: float


def _wrong(network: Network, signal: IntEnum, most: int, margin: float) -> Iterator[_Worst]:
    kinds = network.kinds(signal)
    ways = _ways_of_one if kinds.bounds.low.shape[1] == 1 else _ways_of_pair
    for row, sign, excess in ways(kinds.on, kinds.bounds, network.largest, margin):
        # a smallest sum is the largest of the weights with the other sign: all that follows looks for largest ones
        sums = kinds.bounds.high[:, row] if sign > 0 else -kinds.bounds.low[:, row]
        places = np.argsort(-excess)[:most]
        for place in places[excess[places] > 0].tolist():
            codes = network.worst(signal, kinds, place, row, sign)
            yield _Worst(codes, row, sign, float(sums[place]), float(excess[place]))


def _ways_of_one(on: NDArray[np.bool_], bounds: Bounds, largest: float, margin: float) -> Iterator[Wrong]:
    """Yield the possible errors of a signal that is one channel."""
    low, high = bounds.low[:, 0], bounds.high[:, 0]
    yield 0, 1, np.where(on, high - 1 - POOLED_TOLERANCE, high + margin)
    yield 0, -1, np.where(on, 1 - POOLED_TOLERANCE - low, -np.inf)


def _ways_of_pair(on: NDArray[np.bool_], bounds: Bounds, largest: float, margin: float) -> Iterator[Wrong]:
    """Yield the possible errors of a pair: rows 0 and 1 are its channels, row 2 their difference."""
    low, high = bounds.low.T, bounds.high.T
    # off: both sums below 0. On: the second from 0 to `largest`; the first follows from the difference
    yield 0, 1, np.where(on, -np.inf, high[0] + margin)
    yield 1, 1, np.where(on, high[1] - largest, high[1]) + margin
    yield 1, -1, np.where(on, margin - low[1], -np.inf)
    # half of what is allowed is asked for, so that weights that just meet the demand have the rest for rounding
    yield 2, 1, np.where(on, high[2] - 1 - TOLERANCE / 2, -np.inf)
    yield 2, -1, np.where(on, 1 - TOLERANCE / 2 - low[2], -np.inf)
