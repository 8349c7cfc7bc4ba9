"""Exact weights: a network that does what an automaton does, with the sums of `linear` as weights."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import torch

from ...policies.learned.nca import NCA
from ..automata.automaton import Automaton
from ..automata.rules import TileKind
from .certificate import Certificate, certify
from .linear import Sum, sum_of


def compile_weights(automaton: Automaton) -> tuple[NCA, Certificate]:
    """Return a network that does what an automaton does, with the certificate for its weights.

    Args:
        automaton: one that `separated` returned.

    Raises:
        ValueError: a rule has no sum; the message names the signal.
    """
    sums = {}
    for signal in automaton.signals:
        found = sum_of(automaton, signal)
        if found is None:
            raise ValueError(
                f"the rule of {signal.name} in {automaton.name} is no weighted sum of what it reads; give the result a "
                f"signal of its own, which {signal.name} copies"
            )
        sums[signal] = found
    model = network_of(automaton, sums)
    return model, certify(model, automaton=automaton)


def network_of(automaton: Automaton, sums: Mapping[IntEnum, Sum]) -> NCA:
    """Return a network that switches each signal on where its sum is 1 or more, and off where it is 0 or less."""
    n_kinds = len(automaton.kinds)
    model = NCA(
        n_tiles=n_kinds,
        n_channels=len(automaton.channels),
        cut_corners=automaton.neighbourhood == 5,
        n_iterations=None,
        max_pool=automaton.pooled is not None,
        task=automaton.task,
        channel_names=automaton.channels,
    )
    weight, bias = np.zeros(model.weights[0].shape), np.zeros(model.n_channels)
    for signal, found in sums.items():
        pair = signal in automaton.paired
        first = 2 * signal - len(automaton.answers)
        alone = len(automaton.channels) - 2 if signal is automaton.pooled else int(signal)
        rows = [first, first + 1] if pair else [alone]
        # sums of 1 or more, and of 0 or less, become 3/2 or more, and -1/2 or less, so that a convolution that rounds
        # does no harm; without a pair, 1 stays 1, and 0 becomes -1
        for (seen, tap), value in zip(found.leaves, 2 * found.weights, strict=True):
            place = automaton.taps.index(tap)
            if isinstance(seen, TileKind):
                weight[rows, seen, place] += value
            elif seen is automaton.pooled:
                weight[rows, -2, place] += value
            else:  # a pair is read as the difference of its channels
                read = n_kinds + 2 * seen - len(automaton.answers)
                weight[rows, read, place] += value
                weight[rows, read + 1, place] -= value
        bias[rows] = 2 * found.bias - (0.5 if pair else 1)
        if pair:
            bias[rows[1]] -= 1
    if automaton.pooled is not None:
        bias[-1] = -1  # the maximum over channels is not used
    with torch.no_grad():
        model.weights[0].copy_(torch.from_numpy(weight))
        model.biases[0].copy_(torch.from_numpy(bias))
    return model
