"""The certificate: a proof that a network is equivalent to an automaton on every maze of any size, at every iteration.

A certificate holds for float32 arithmetic: sums in any order, each operation rounded once, without TF32, bfloat16 or
fast convolutions (`NCA._in_float64`). It does not prove two things:

- that the automaton solves mazes;
- that the automaton's invariant, if there is one, holds at every tile. `assumed` states whether the proof relies on the
  invariant.

`proving.proof` proves both for some automata of this package. `proof.ARGUED` lists the automata whose modules argue one
of them on paper. The invariant of the wall follower is proven only with axioms of its author.
`tests/agents/test_hinting_exhaustive.py` tests the automata of the shortest path, of healing and of the diameter on all
mazes of up to 3 x 4 or 4 x 3 tiles: 287,852 mazes with a source and a target, and 9,418 mazes for the diameter.

The proof is an induction over iterations. Suppose that at some iteration:

- Every signal that is on is a pair of channels (h + 1 + e, h) with 0 <= h <= `largest` and |e| <= `tolerance`.
- Every channel of a signal that is off is 0.
- Where the path is on, its channel differs from 1 by less than 1/2.
- If a signal is pooled and on, its channel differs from 1 by at most 2.5 `tolerance` at every tile. If it is off, it is
  0.
- The maximum over all channels has any value that these facts allow.

All signals are off in the first state, so these facts hold there. The certificate shows that they then hold one
iteration later, for every patch of tiles that can occur. So they hold at every iteration, and the rounded path always
equals the automaton's path.

The states that a tile can have are computed from the rules (`states`). The sums of an iteration are linear before the
ReLU, so their extremes are computed tile by tile and component by component (`bounds`). The result of a rule depends
only on the bits that it reads. Tiles with the same values of these bits are therefore one case with its own bounds, and
few combinations of cases at the taps remain. The bounds are computed in float64, and they include the rounding errors
of float32 for any order of summation. If the weights are whole numbers, as in all networks of this package, float64
rounds nothing either, because all terms are multiples of a unit and no sum is too large (`Certificate.exact`).
Otherwise the rounding errors of float64 are neglected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from maze_nca_gym.support.options import check

from ...policies.policy import Policy, rules_of
from ..automaton import Automaton
from ..registry import find_by_digest
from .bounds import PATH_TOLERANCE, POOLED, Network
from .helpers import helped
from .linear import separated
from .patches import Codes, distinct, kinds_of, signals_of

SLACK = 0.01
"""Largest deviation of a difference from 1 for which no patch is reported, since it may be a rounding error."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """Bounds of a network's sums over all mazes and iterations. They are valid if `holds` is true.

    Attributes:
        n_patches: the number of kinds of patch for which sums were bounded, over all signals.
        silent: the largest sum, before the ReLU, of a channel that must be 0.
        least: the smallest second channel of a signal that is on.
        most: the largest second channel of a signal that is on.
        error: the largest error of a pair's difference, which should be 1 where its signal is on.
        path_error: the largest error of the path where it is on, which must be below 1/2.
        pooled_error: the largest error of pooled channels where they are on, or 0 if no signal is pooled.
        largest: the upper bound of `most`, which holds if weights read pairs only by their differences.
        tolerance: the upper bound of `error`, or 0 for whole weights, for which float32 makes no errors.
        assumed: whether the proof relies on the automaton's invariant, which excludes states that the rules allow.
        exact: whether float64 rounded none of the sums, so that all these numbers are exact.
        helpers: the auxiliary signals that `helpers.helped` added to the automaton, each with its rule.
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
    exact: bool
    helpers: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the weights are proven equivalent to the automaton, in float32."""
        return (
            self.silent <= 0 <= self.least
            and self.most <= self.largest
            and self.error <= self.tolerance
            and self.path_error < PATH_TOLERANCE  # strictly: 1/2 itself would be rounded to 0
            and self.pooled_error <= POOLED * self.tolerance
        )

    @property
    def numbers(self) -> dict[str, float]:
        """The fields by name as numbers, without the helpers."""
        return {name: value for name, value in asdict(self).items() if name != "helpers"}

    def __repr__(self) -> str:
        result = "holds" if self.holds else "does not hold"
        condition = ", if the automaton's invariant does" if self.assumed else ""
        added = f"; with {', '.join(self.helpers)}" if self.helpers else ""
        return f"<Certificate: {result}{condition}; {self.n_patches:,} kinds of patch{added}>"


def certify(model: Policy, *, automaton: Automaton | None = None) -> Certificate:
    """Try to prove that a network is equivalent to an automaton; `holds` of the certificate states whether it is
    proven.

    A proof is possible only for weights that read pairs by their differences, such as compiled and learned weights, and
    only for unchanged classes of this package, because nothing shows that another class computes its `program`.

    Args:
        model: a network with channels of the automaton's signals, or of the signals into which these are split: one
            channel for each answer, and for each other signal one, or two whose difference is the signal. The weights
            are arbitrary. An iteration must be one 3x3 convolution and a ReLU.
        automaton: the automaton that the network should follow; by default the automaton for which the network was
            made, which a model file stores as the digest of its rules.

    Raises:
        ValueError: a network with other channels or another architecture than networks learned from hints; weights that
            are not finite; a class that someone has changed; or no automaton is given, and the automaton for which the
            network was made is not known.
    """
    if not isinstance(model, Policy):
        raise ValueError(f"model must be a Policy, such as load(name) returns, got {type(model).__name__}")
    automaton = followed(model, automaton)
    if not _has_channels(automaton, model):
        raise ValueError(
            f"a certificate needs a network with the {len(automaton.channels)} channels of the automaton "
            f"{automaton.name}, got {', '.join(model.channel_names)}"
        )
    return certificate_of(automaton, model)


def certificate_of(automaton: Automaton, model: Policy) -> Certificate:
    """Return the certificate of a network that has the automaton's channels.

    Raises:
        ValueError: a network of another architecture or class, or with weights that are not finite, see `certify`.
    """
    certificate = _certificate(Network(automaton, model, tolerance=0.0))
    error = max(certificate.error, certificate.pooled_error / POOLED)
    if error and certificate.silent <= 0 <= certificate.least:
        # weights that are no whole numbers cause errors of rounding, and reading these causes larger ones
        certificate = _certificate(Network(automaton, model, tolerance=1.25 * error))
    return certificate


def _has_channels(automaton: Automaton, model: Policy) -> bool:
    single = [signal for signal in automaton.signals if signal.name.lower() in model.channel_names]
    return {*automaton.answers} <= {*single} and model.channel_names == automaton.channels_with(single)


def followed(model: Policy, automaton: Automaton | None = None) -> Automaton:
    """Return the automaton that a network follows, perhaps with auxiliary and split signals. It is the given automaton,
    or the automaton for which the network was made.

    Raises:
        ValueError: no automaton is given, and the automaton for which the network was made is not known.
    """
    if automaton is None:
        words = "the network was not made for an automaton, or does not say for which: give `certify` the `automaton`"
        check(bool(rules_of(model)), words)
        automaton = find_by_digest(rules_of(model), model.task)
    return automaton if _has_channels(automaton, model) else separated(helped(automaton))


def _certificate(network: Network) -> Certificate:
    automaton = network.automaton
    kinds_of_patch = {signal: network.kinds(signal) for signal in automaton.signals}
    pairs = [kinds for signal, kinds in kinds_of_patch.items() if len(network.rows[signal]) > 1]
    errors = dict.fromkeys(("answers", "pooled", "others"), 0.0)
    for signal, kinds in kinds_of_patch.items():
        group = "answers" if signal in automaton.answers else "pooled" if signal in automaton.pooled else "others"
        low, high = kinds.low[kinds.on, -1], kinds.high[kinds.on, -1]  # of the only channel, or of the difference
        errors[group] = float(max((high - 1).max(initial=errors[group]), (1 - low).max(initial=0.0)))
    # a channel that is off must be exactly 0. The ReLU makes any sum up to 0 exactly that, which ends all errors
    silent = [kinds.high[~kinds.on, :2].max(initial=-np.inf) for kinds in kinds_of_patch.values()]
    if automaton.pooled:
        silent.append(network.highest_maximum())
    return Certificate(
        n_patches=sum(len(kinds.on) for kinds in kinds_of_patch.values()),
        silent=float(max(silent)),
        # where a signal is on, the ReLU must not clip the second channel, or the pair's difference would change
        least=min((float(kinds.low[kinds.on, 1].min()) for kinds in pairs if kinds.on.any()), default=0.0),
        most=max((float(kinds.high[kinds.on, 1].max()) for kinds in pairs if kinds.on.any()), default=0.0),
        error=errors["others"],
        path_error=errors["answers"],
        pooled_error=errors["pooled"],
        largest=network.largest,
        tolerance=network.tolerance,
        assumed=network.assumed,
        exact=network.exact,
        helpers=tuple(f"{name} = {rule}" for name, rule in automaton.helpers.items()),
    )


def worst_patch(automaton: Automaton, model: Policy) -> str:
    """Return a sentence about the patch on which a network is most wrong: the sum, its value, and the states of the
    tiles.

    Args:
        automaton: the automaton that the network should follow.
        model: a network that `certify` accepts, with any weights.
    """
    automaton = followed(model, automaton)
    network = Network(automaton, model, tolerance=0.0)
    worst_patches = [(worst, signal) for signal in automaton.signals for worst in _wrong(network, signal, 1)]
    if not worst_patches:
        return "no sum is wrong but for rounding"
    worst, signal = max(worst_patches, key=lambda patch_of_signal: patch_of_signal[0].excess)
    of_pair = ("its first channel", "its second channel", "the difference of its channels")
    channel = of_pair[worst.row] if len(network.rows[signal]) > 1 else "its channel"
    held = []
    for tap, code in zip(automaton.taps, np.array(worst.codes), strict=True):
        on = [automaton.signals(int(i)).name for i in np.flatnonzero(signals_of(automaton, code))]
        kind = automaton.problem.kinds[kinds_of(automaton, code).argmax()].name
        held.append(f"{tap}: {' '.join([kind, *on]) if code else 'no tile'}")
    return (
        f"the worst is {signal.name}, where the sum of {channel} can be "
        f"{worst.sign * worst.sum:.3g}, too {'large' if worst.sign > 0 else 'small'} by {worst.excess:.3g}, "
        f"on {'; '.join(held)}"
    )


def counterexamples(automaton: Automaton, model: Policy, most: int) -> Codes:
    """Return (P, taps) int64 patches on which a sum violates the certificate's bounds, the worst patch of each kind.

    Args:
        automaton: the automaton that the network should follow.
        model: a network that `certify` accepts, with any weights.
        most: the largest number of kinds of patch for each signal and kind of error. The worst kinds are returned.
    """
    network = Network(automaton, model, tolerance=0.0)
    patches = [worst.codes for signal in automaton.signals for worst in _wrong(network, signal, most)]
    return distinct(automaton, [np.array(patches, np.int64).reshape(-1, len(automaton.taps))])


class _Worst(NamedTuple):
    """The worst patch of a kind: the sum of a row, times `sign`, exceeds its bound by `excess`."""

    codes: list[int]
    row: int
    sign: int
    sum: float
    excess: float


def _wrong(network: Network, signal: IntEnum, most: int) -> Iterator[_Worst]:
    """Yield the worst patches for each error that a signal can make: a row, and whether its sums are too large."""
    kinds = network.kinds(signal)
    on, low, high = kinds.on, kinds.low.T, kinds.high.T
    if len(low) == 1:
        ways = [(0, 1, np.where(on, high[0] - 1 - SLACK, high[0])), (0, -1, np.where(on, 1 - SLACK - low[0], -np.inf))]
    else:
        # rows 0 and 1 are the channels of a pair, row 2 is their difference. Where the signal is off, both sums must be
        # below 0. Where it is on, the second must be from 0 to `largest`, and the difference bounds the first
        ways = [
            (0, 1, np.where(on, -np.inf, high[0])),
            (1, 1, np.where(on, high[1] - network.largest, high[1])),
            (1, -1, np.where(on, -low[1], -np.inf)),
            (2, 1, np.where(on, high[2] - 1 - SLACK, -np.inf)),
            (2, -1, np.where(on, 1 - SLACK - low[2], -np.inf)),
        ]
    for row, sign, excess in ways:
        # the smallest sum is minus the largest sum of the negated weights, so only largest sums remain to be handled
        sums = high[row] if sign > 0 else -low[row]
        places = np.argsort(-excess)[:most]
        for place in places[excess[places] > 0].tolist():
            codes = network.worst(signal, kinds, place, row, sign)
            yield _Worst(codes, row, sign, float(sums[place]), float(excess[place]))
