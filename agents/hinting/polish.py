"""The last digits: once most weights are 0, a signal's own are a small problem that Newton's method solves.

The losses of `learning` are convex and quadratic piece by piece, those of a pair depend on its own two rows alone, and
these have some dozens of weights. So a few steps, each to the minimum of the pieces that count at present, go where
gradient descent needs thousands.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..learned.nca import NCA
from .automaton import Automaton

MOST_STEPS = 60
SMALLEST_STEP = 2.0**-12
"""Part of a step; if not even that lowers the loss, the end is reached."""
RIDGE = 1e-9
"""Added to second derivatives, so that weights that make no difference stay as they are."""


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
    read = read.double()
    for signal in automaton.paired:
        pair, on = slice(2 * signal - 1, 2 * signal + 1), labels[:, signal] > 0
        rows[pair] = _solve(rows[pair], kept[pair] > 0, read, on, margin, largest)
    weight.copy_(rows[:, :-1].view_as(weight))
    bias.copy_(rows[:, -1])


def _solve(pair: Tensor, kept: Tensor, read: Tensor, on: Tensor, margin: float, largest: float) -> Tensor:
    """The (2, F) rows of a pair, by Newton's method with steps that are halved until the loss falls."""
    low, high = read[:, kept[0]], read[:, kept[1]]
    n_low = low.shape[1]
    values = torch.cat([pair[0, kept[0]], pair[1, kept[1]]])
    zeros_low, zeros_high = torch.zeros_like(low), torch.zeros_like(high)
    parts = [
        (torch.cat([low, -high], dim=1)[on], 1.0, False),
        (torch.cat([zeros_low, -high], dim=1)[on], -margin, True),
        (torch.cat([zeros_low, high], dim=1)[on], largest - margin, True),
        (torch.cat([low, zeros_high], dim=1)[~on], -margin, True),
        (torch.cat([zeros_low, high], dim=1)[~on], -margin, True),
    ]
    loss, slope, curvature = _quadratic(parts, values)
    for _ in range(MOST_STEPS):
        step = torch.linalg.solve(curvature + RIDGE * torch.eye(len(values), dtype=torch.float64), slope)
        part = 1.0
        while part >= SMALLEST_STEP:
            found = _quadratic(parts, values - part * step)
            if found[0] < loss:
                break
            part /= 2
        else:
            break
        values = values - part * step
        loss, slope, curvature = found
    solved = torch.zeros_like(pair)
    solved[0, kept[0]], solved[1, kept[1]] = values[:n_low], values[n_low:]
    return solved


def _quadratic(parts: list[tuple[Tensor, float, bool]], values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of squares of what sums miss their bounds by, halved, with its first and second derivatives."""
    loss, slope = values.new_zeros(()), torch.zeros_like(values)
    curvature = values.new_zeros(len(values), len(values))
    for read, bound, one_sided in parts:
        missed = read @ values - bound
        if one_sided:
            read, missed = read[missed > 0], missed[missed > 0]
        loss = loss + missed @ missed / 2
        slope = slope + read.T @ missed
        curvature = curvature + read.T @ read
    return loss, slope, curvature
