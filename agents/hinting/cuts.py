"""Repair of the last errors: each one that the certificate finds becomes a linear inequality for the weights.

Once most weights are 0, those of a signal are few, and what they must satisfy is linear in them: on every possible
input, a sum has to stay below a bound. There are too many inputs to list, but few of them matter. So each round adds
the inputs on which the present weights are wrong (a cutting-plane method). Newton's method then minimises the squared
violations, until the weights satisfy all inequalities so far.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from ..automata.automaton import Automaton
from ..learned.nca import NCA
from .certificate import Demand

MOST_STEPS = 60
SMALLEST_STEP = 2.0**-12
"""Smallest fraction of a Newton step to try; if even that does not lower the loss, the method stops."""
RIDGE = 1e-9
"""Number added to the diagonal of the Hessian: it is singular for weights that no violated constraint reads."""


class Cuts:
    """The constraints on a network's pairs so far.

    Rows are restricted to reading pairs by their differences, with opposite weights for the two channels. That loses
    nothing, since the signal is the difference.

    Args:
        automaton: an automaton with the network's channels.
        kept: (C, F) from `learning.prune`: 1 for weights that may change, otherwise 0.
    """

    def __init__(self, automaton: Automaton, kept: Tensor) -> None:
        self._read_of = _differences(automaton, kept.shape[1])
        self._kept = (kept.double() @ self._read_of.abs().T) > 0
        self._demands: defaultdict[IntEnum, list[Demand]] = defaultdict(list)

    def add(self, demands: Iterable[Demand]) -> None:
        """Add constraints to those so far."""
        for demand in demands:
            self._demands[demand.signal].append(demand)

    @torch.no_grad()
    def meet(self, model: NCA) -> None:
        """Change the weights until they satisfy the constraints, as far as possible."""
        # in float64, so that the constraints hold far more closely than the tolerance before weights become float32
        (weight,), (bias,) = model.weights, model.biases
        rows = torch.cat([weight.flatten(1), bias[:, None]], dim=1).double()
        # the rows of the matrix are orthogonal, so dividing by their squared lengths, 2 or 1, inverts it
        lengths = (self._read_of**2).sum(dim=1)
        for signal, demands in self._demands.items():
            # the demands on a difference tie the two channels of a pair together; different pairs are independent
            pair = slice(2 * signal - 1, 2 * signal + 1)
            kept, values = self._kept[pair], rows[pair] @ self._read_of.T / lengths
            read, most = self._side_by_side(demands, kept)
            solved = torch.zeros_like(values)
            solved[kept] = _minimise(read, most, values[kept])
            rows[pair] = solved @ self._read_of
        weight.copy_(rows[:, :-1].view_as(weight))
        bias.copy_(rows[:, -1])

    def _side_by_side(self, demands: list[Demand], kept: Tensor) -> tuple[Tensor, Tensor]:
        """Return the constraints on the remaining weights of both rows: factors, (D, V), and upper bounds, (D,)."""
        read = torch.from_numpy(np.stack([demand.read for demand in demands])) @ self._read_of.T
        factors = torch.tensor([demand.factors for demand in demands], dtype=torch.float64)
        most = torch.tensor([demand.most for demand in demands], dtype=torch.float64)
        return torch.cat([read[:, kept[i]] * factors[:, i : i + 1] for i in range(2)], dim=1), most


def _differences(automaton: Automaton, n_inputs: int) -> Tensor:
    """Return the (V, F) matrix that replaces the two channels of each pair at each tap by their difference."""
    # inputs are ordered by channel, then by tap: the kinds and the path, then the pairs, low before high
    n_taps, n_pairs = len(automaton.taps), len(automaton.paired)
    first = n_taps * (len(automaton.kinds) + 1) + torch.arange(n_pairs).repeat_interleave(n_taps) * 2 * n_taps
    low = first + torch.arange(n_taps).repeat(n_pairs)
    read_of = torch.eye(n_inputs, dtype=torch.float64)
    read_of[low, low + n_taps] = -1
    is_high = torch.zeros(n_inputs, dtype=torch.bool)
    is_high[low + n_taps] = True
    return read_of[~is_high]


def _minimise(read: Tensor, most: Tensor, values: Tensor) -> Tensor:
    """Return (V,) values that minimise the squared violations, by Newton's method with step halving."""
    loss, slope, curvature = _quadratic(read, most, values)
    for _ in range(MOST_STEPS):
        if not loss:  # squared violations are exactly 0 once there are none
            return values
        step = torch.linalg.solve(curvature + RIDGE * torch.eye(len(values), dtype=torch.float64), slope)
        # the loss is quadratic only as long as the same constraints are violated, so a full step may overshoot
        part = 1.0
        while (found := _quadratic(read, most, values - part * step))[0] >= loss:
            part /= 2
            if part < SMALLEST_STEP:
                return values
        values, (loss, slope, curvature) = values - part * step, found
    return values


def _quadratic(read: Tensor, most: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return half the sum of the squared violations of `read @ values <= most`, its gradient and its Hessian."""
    missed = read @ values - most
    read, missed = read[missed > 0], missed[missed > 0]
    return missed @ missed / 2, read.T @ missed, read.T @ read
