"""Whether learned weights do what the automaton does, on every maze, of any size, at every iteration.

That is all that a certificate proves, and for float32 arithmetic alone: sums in any order, each operation rounded once,
without TF32, bfloat16 or fast convolutions (`learned.precision`). It takes two things for granted, which are argued in
the automaton's module and tested, not proven:

- The automaton is right. On all mazes of up to 3 x 4 or 4 x 3 tiles it finds the canonical path: 287,852 with a source
  and a target, 9,418 of the diameter.
- A tile can hold nothing but what `worlds` declares. On the same mazes nothing else occurs at any iteration. For the
  shortest path (75 states of a tile, and what is beyond the edge) all of the 75 occur on mazes of up to 3 x 5 tiles.

The tests are in `tests/agents/test_hinting_exhaustive.py`. The proof goes by induction.

Suppose that at some iteration every signal that is on is a pair of channels (h + 1 + e, h) with 0 <= h <= `largest` and
|e| <= `tolerance`, every channel of a signal that is off is 0, and the path is off by less than 1/2 where it is on. If
a signal is pooled, suppose also that its channel is off 1 by at most 1/20 at every tile if the signal is on, else 0,
while the maximum over all channels is anything that this allows. At first all is off, so that it holds. If it then also
holds one iteration later, whatever five tiles a patch is made of, it holds at every iteration, and the path, rounded,
is that of the automaton at every iteration.

One iteration is linear up to the ReLU, so the extremes of its sums over such states are extremes tile by tile, and
component by component (`bounds`). What a rule makes of a patch depends on what it reads alone, so of all tiles that are
alike in this, at one of the five taps, the extremes suffice, and their combinations are few. The sums are bounded with
the rounding errors that float32 makes in any order of summation; the bounds themselves are computed in float64, whose
rounding is neglected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..learned.nca import NCA
from .automata import automaton_of
from .automaton import Automaton
from .bounds import PATH_TOLERANCE, POOLED_TOLERANCE, TOLERANCE, Bounds, Doubles, Kinds, Network
from .config import HintConfig
from .patches import TAPS, Codes, distinct

Wrong: TypeAlias = tuple[int, int, Doubles]
"""A row of a signal, whether its largest sum (1) or its smallest (-1) is wrong, and by how much, (P,)."""


FACTORS = ((1, 0), (0, 1), (1, -1))
"""Of a pair's two channels, what its rows are made of: these, and their difference."""
SLACK = TOLERANCE / 10
"""By how much sums may be off what is demanded."""


class Demand(NamedTuple):
    """That a sum be small.

    Attributes:
        signal: whose pair.
        factors: of its two rows of weights: what is multiplied with what is read.
        read: (F,) float64, patches as `learning.inputs` makes them.
        most: what the sum may be.
    """

    signal: IntEnum
    factors: tuple[int, int]
    read: Doubles
    most: float


@dataclass(frozen=True)
class Certificate:
    """The extremes over all mazes and iterations, if `holds`.

    Attributes:
        n_patches: kinds of patch that were bounded, each for one signal.
        silent: the largest sum of a channel that must be 0.
        least: the smallest of the second channel of a signal that is on.
        most: the largest of those.
        error: the largest by which a pair's difference is off 1.
        path_error: the same of the path, which must be below 1/2.
        pooled_error: the same of what is pooled, 0 if nothing is.
        largest: what `most` may be.
        tolerance: what `error` may be.
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


def certify(model: NCA, largest: float | None = None, tolerance: float = TOLERANCE) -> Certificate:
    """Bound what a network with the channels of an automaton does.

    Args:
        model: any weights.
        largest: bound of a pair's second channel; by default that of `HintConfig` for the model's task.
        tolerance: bound of what a pair's difference is off 1.

    Raises:
        ValueError: a network of another shape.
    """
    automaton = automaton_of(model)
    _check(model, automaton)
    largest = HintConfig.of(automaton.task, heals=automaton.heals).largest if largest is None else largest
    network = Network(automaton, model, largest, tolerance)
    path, *pairs = (network.kinds(signal) for signal in (automaton.signals(0), *automaton.paired))
    single = [path] if automaton.pooled is None else [path, network.kinds(automaton.pooled)]
    silent = [*(_silent(kinds, 2) for kinds in pairs), *(_silent(kinds, 1) for kinds in single)]
    return Certificate(
        n_patches=sum(len(kinds.on) for kinds in (*single, *pairs)),
        silent=max(silent if automaton.pooled is None else [*silent, network.highest_maximum()]),
        least=float(min(kinds.bounds.low[kinds.on, 1].min() for kinds in pairs)),
        most=float(max(kinds.bounds.high[kinds.on, 1].max() for kinds in pairs)),
        error=max(_error(kinds, 2) for kinds in pairs),
        path_error=_error(path, 0),
        pooled_error=max([_error(kinds, 0) for kinds in single[1:]], default=0.0),
        largest=largest,
        tolerance=tolerance,
    )


def _check(model: NCA, automaton: Automaton) -> None:
    channels, pools = automaton.channels, automaton.pooled is not None
    if model.channel_names != channels or not model.cut_corners or model.kernel_size != 3 or model.max_pool != pools:
        raise ValueError(
            f"a certificate is for networks with a 3x3 kernel without corners, {'a' if pools else 'no'} pooling and "
            f"the {len(channels)} channels that are learned from hints, got a {model.kernel_size}x{model.kernel_size} "
            f"kernel{'' if model.cut_corners else ' with corners'} and channels {', '.join(model.channel_names)}"
        )
    if model.uses_step:
        raise ValueError("a certificate is for networks whose iterations are all the same")
    if model.ceiling is not None:
        raise ValueError(f"a certificate is for networks without a ceiling, got one of {model.ceiling:g}")


def _silent(kinds: Kinds, n_rows: int) -> float:
    """The largest sum of the first rows where the signal is off."""
    return float(kinds.bounds.high[~kinds.on, :n_rows].max(initial=-np.inf))


def _error(kinds: Kinds, row: int) -> float:
    """The most by which a row is off 1 where the signal is on."""
    low, high = (sums[kinds.on, row] for sums in kinds.bounds)
    return float(max((high - 1).max(), (1 - low).max()))


def counterexamples(model: NCA, largest: float, most: int, margin: float = 0.0) -> Codes:
    """(P, 5) patches that are the worst of their kind, where a sum is not what the certificate asks for.

    Args:
        model: any weights that `certify` takes.
        largest: bound of a pair's second channel.
        most: kinds for each signal and way to be wrong, the worst ones.
        margin: less than half of it counts as wrong, and so does an error of more than half of `TOLERANCE`.
    """
    network = Network(automaton_of(model), model, largest, TOLERANCE)
    found = [worst.codes for signal in network.automaton.signals for worst in _wrong(network, signal, most, margin / 2)]
    return distinct(network.automaton, [np.array(found, np.int64).reshape(-1, len(TAPS))])


def demands(model: NCA, largest: float, most: int, margin: float) -> Iterator[Demand]:
    """What pairs do not meet, each on the worst inputs there are.

    Args:
        model: any weights that `certify` takes.
        largest: bound of a pair's second channel.
        most: kinds of patch for each signal and way to be wrong, the worst ones.
        margin: by how much sums are to be below or above 0; a pair's difference is to be off 1 by half of `TOLERANCE`.
    """
    network = Network(automaton_of(model), model, largest, TOLERANCE)
    for signal in network.automaton.paired:
        for worst in _wrong(network, signal, most, margin):
            if worst.excess > SLACK:
                read = network.worst_inputs(signal, worst.codes, worst.row, worst.sign)
                yield Demand(signal, FACTORS[worst.row], worst.sign * read, worst.sum - worst.excess)


class _Worst(NamedTuple):
    """The worst patch of a kind: the sum of a row, times the sign, is larger than it may be by `excess`."""

    codes: list[int]
    row: int
    sign: int
    sum: float
    excess: float


def _wrong(network: Network, signal: IntEnum, most: int, margin: float) -> Iterator[_Worst]:
    kinds = network.kinds(signal)
    ways = _ways_of_one if kinds.bounds.low.shape[1] == 1 else _ways_of_pair
    for row, sign, excess in ways(kinds.on, kinds.bounds, network.largest, margin):
        sums = kinds.bounds.high[:, row] if sign > 0 else -kinds.bounds.low[:, row]
        places = np.argsort(-excess)[:most]
        for place in places[excess[places] > 0].tolist():
            codes = network.worst(signal, kinds, place, row, sign)
            yield _Worst(codes, row, sign, float(sums[place]), float(excess[place]))


def _ways_of_one(on: NDArray[np.bool_], bounds: Bounds, largest: float, margin: float) -> Iterator[Wrong]:
    """Of a signal that is one channel."""
    low, high = bounds.low[:, 0], bounds.high[:, 0]
    yield 0, 1, np.where(on, high - 1 - POOLED_TOLERANCE, high + margin)
    yield 0, -1, np.where(on, 1 - POOLED_TOLERANCE - low, -np.inf)


def _ways_of_pair(on: NDArray[np.bool_], bounds: Bounds, largest: float, margin: float) -> Iterator[Wrong]:
    low, high = bounds.low.T, bounds.high.T
    yield 0, 1, np.where(on, -np.inf, high[0] + margin)
    yield 1, 1, np.where(on, high[1] - largest, high[1]) + margin
    yield 1, -1, np.where(on, margin - low[1], -np.inf)
    yield 2, 1, np.where(on, high[2] - 1 - TOLERANCE / 2, -np.inf)
    yield 2, -1, np.where(on, 1 - TOLERANCE / 2 - low[2], -np.inf)
