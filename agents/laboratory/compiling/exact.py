"""Exact weights: a network that does what an automaton does, with the sums of `linear` as weights."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import torch

from maze_nca_gym.mazes.levels import Tile

from ...policies.learned.nca import NCA
from ..automata.automaton import Automaton
from .bounds import Doubles
from .certificate import Certificate, certify, new_network
from .linear import Sum, sum_of


def compile_weights(automaton: Automaton) -> tuple[NCA, Certificate]:
    """Return a network that does what an automaton does, with the certificate for its weights.

    Args:
        automaton: one that `separated` returned.

    Raises:
        ValueError: a rule has no sum; the message names the signal.
    """
    model = network_of(automaton, _sums_of(automaton))
    return model, certify(model, automaton=automaton)


def _sums_of(automaton: Automaton) -> dict[IntEnum, Sum]:
    """Return each signal's sum."""
    sums = {}
    for signal in automaton.signals:
        found = sum_of(automaton, signal)
        if found is None:
            raise ValueError(
                f"the rule of {signal.name} in {automaton.name} is no weighted sum of what it reads; give the result a "
                f"signal of its own, which {signal.name} copies"
            )
        sums[signal] = found
    return sums


def network_of(automaton: Automaton, sums: Mapping[IntEnum, Sum]) -> NCA:
    """Return a network that switches each signal on where its sum is 1 or more, and off where it is 0 or less."""
    model = new_network(automaton)
    weight, bias = np.zeros(model.weights[0].shape), np.zeros(model.n_channels)
    for signal, found in sums.items():
        pair = signal in automaton.paired
        alone = len(automaton.channels) - 2 if signal is automaton.pooled else 0
        rows = [2 * signal - 1, 2 * signal] if pair else [alone]
        # sums of 1 or more, and of 0 or less, become 3/2 or more, and -1/2 or less, so that a convolution that rounds
        # does no harm; without a pair, 1 stays 1, and 0 becomes -1
        for row in rows:
            _write(automaton, weight[row], found)
        bias[rows] = 2 * found.bias - (0.5 if pair else 1)
        if pair:
            bias[rows[1]] -= 1
    if automaton.pooled is not None:
        bias[-1] = -1  # the maximum over channels is not used
    with torch.no_grad():
        model.weights[0].copy_(torch.from_numpy(weight))
        model.biases[0].copy_(torch.from_numpy(bias))
    return model


def _write(automaton: Automaton, row: Doubles, found: Sum) -> None:
    """Add twice a sum to the (T + C, taps) weights of a channel; a pair is read as the difference of its channels."""
    for (seen, tap), weight in zip(found.leaves, 2 * found.weights, strict=True):
        place = automaton.taps.index(tap)
        if isinstance(seen, Tile):
            row[automaton.kinds.index(seen), place] += weight
        elif seen is automaton.pooled:
            row[-2, place] += weight
        else:
            first = len(automaton.kinds) + 2 * seen - 1
            row[first, place] += weight
            row[first + 1, place] -= weight
