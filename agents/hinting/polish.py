"""The last digits: once most weights are 0, a signal's own are a small problem that Newton's method solves.

The losses of `learning` are convex and quadratic piece by piece, those of a pair depend on its own two rows alone, and
these have some dozens of weights. So a few steps, each to the minimum of the pieces that count at present, go where
gradient descent needs thousands. Rows that are right can ignore how large pairs are at no cost, so this is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..learned.nca import NCA
from .automaton import Automaton
from .patches import TAPS

MOST_STEPS = 60
SMALLEST_STEP = 2.0**-12
"""Part of a step; if not even that lowers the loss, the end is reached."""
STRONGLY = 30.0
"""How much it counts that a row ignores how large pairs are, of which examples show a few cases alone."""
RIDGE = 1e-9
"""Added to second derivatives, so that weights that make no difference stay as they are."""


class Part(NamedTuple):
    """Sums, (N, V) times the values, and what they must be, or at most be if it is a bound."""

    read: Tensor
    wanted: float
    is_bound: bool = True


@torch.no_grad()
def polish(
    automaton: Automaton, model: NCA, read: Tensor, labels: Tensor, kept: Tensor, margin: float, largest: float
) -> None:
    """Minimise the losses on examples over the weights that are left.

    Args:
        automaton: with the model's channels.
        model: whose weights are changed.
        read: (P, F) as from `learning.inputs`.
        labels: (P, S).
        kept: (C, F) as from `learning.prune`.
        margin: as in `HintConfig`.
        largest: likewise.
    """
    (weight,), (bias,) = model.weights, model.biases
    rows = torch.cat([weight.flatten(1), bias[:, None]], dim=1).double()
    read, common = read.double(), _common(automaton, rows.shape[1]) * largest * STRONGLY
    for signal in automaton.paired:
        pair, on = slice(2 * signal - 1, 2 * signal + 1), labels[:, signal] > 0
        rows[pair] = _solve(rows[pair], kept[pair] > 0, read, on, common, margin, largest)
    weight.copy_(rows[:, :-1].view_as(weight))
    bias.copy_(rows[:, -1])


def _common(automaton: Automaton, n_inputs: int) -> Tensor:
    """(N, F) for each pair at each tap 1 at both of its channels: what a row makes of how large they are."""
    n_taps, n_pairs = len(TAPS), len(automaton.paired)
    first = n_taps * (len(automaton.kinds) + 1) + torch.arange(n_pairs).repeat_interleave(n_taps) * 2 * n_taps
    low = first + torch.arange(n_taps).repeat(n_pairs)
    places = torch.arange(len(low))
    common = torch.zeros(len(low), n_inputs, dtype=torch.float64)
    common[places, low] = common[places, low + n_taps] = 1
    return common


def _solve(
    pair: Tensor, kept: Tensor, read: Tensor, on: Tensor, common: Tensor, margin: float, largest: float
) -> Tensor:
    """The (2, F) rows of a pair."""

    def side_by_side(of_low: int, of_high: int, inputs: Tensor) -> Tensor:
        """What both rows make of inputs, those that are left, with a factor for each row."""
        return torch.cat([inputs[:, kept[0]] * of_low, inputs[:, kept[1]] * of_high], dim=1)

    when_on, when_off = read[on], read[~on]
    parts = [
        Part(side_by_side(1, 0, common), 0.0, is_bound=False),
        Part(side_by_side(0, 1, common), 0.0, is_bound=False),
        Part(side_by_side(1, -1, when_on), 1.0, is_bound=False),
        Part(side_by_side(0, -1, when_on), -margin),
        Part(side_by_side(0, 1, when_on), largest - margin),
        Part(side_by_side(1, 0, when_off), -margin),
        Part(side_by_side(0, 1, when_off), -margin),
    ]
    solved = torch.zeros_like(pair)
    solved[kept] = _minimise(parts, pair[kept])
    return solved


def _minimise(parts: Sequence[Part], values: Tensor) -> Tensor:
    """Newton's method from (V,) values, with steps that are halved until the loss falls."""
    loss, slope, curvature = _quadratic(parts, values)
    for _ in range(MOST_STEPS):
        step = torch.linalg.solve(curvature + RIDGE * torch.eye(len(values), dtype=torch.float64), slope)
        part = 1.0
        while (found := _quadratic(parts, values - part * step))[0] >= loss:
            part /= 2
            if part < SMALLEST_STEP:
                return values
        values, (loss, slope, curvature) = values - part * step, found
    return values


def _quadratic(parts: Sequence[Part], values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Half the sum of squares of what sums miss, with its first and second derivatives."""
    loss, slope = values.new_zeros(()), torch.zeros_like(values)
    curvature = values.new_zeros(len(values), len(values))
    for read, wanted, is_bound in parts:
        missed = read @ values - wanted
        if is_bound:
            read, missed = read[missed > 0], missed[missed > 0]
        loss = loss + missed @ missed / 2
        slope = slope + read.T @ missed
        curvature = curvature + read.T @ read
    return loss, slope, curvature
