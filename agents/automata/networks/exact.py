"""Networks with exact weights: the sums of `linear` become the weights of a network that is equivalent to an
automaton."""

from __future__ import annotations

from collections.abc import Container, Mapping
from enum import IntEnum

import numpy as np
import torch

from maze_nca_gym.mazes.terms import TileKind

from ...policies.learned.nca import NCA
from ...policies.weights import constructed
from ..automaton import Automaton
from .certificate import Certificate, certificate_of
from .linear import Sum, no_sum, sum_of


def compile_weights(automaton: Automaton) -> tuple[NCA, Certificate]:
    """Return a network that is equivalent to an automaton, and the certificate of its weights.

    Args:
        automaton: an automaton that `separated` returned.

    Raises:
        ValueError: no weighted sum decides a rule; the message names the signal.
    """
    sums, single = dict[IntEnum, Sum](), list[IntEnum]()
    for signal in automaton.signals:
        total = sum_of(automaton, signal, exactly=True)
        alone = signal not in automaton.paired
        # float32 makes no errors with halves; with a third it would, and they would add up in a single channel
        if alone or (total is not None and (np.append(total.weights, total.bias) % 0.5 == 0).all()):
            single.append(signal)
        else:
            total = sum_of(automaton, signal)
        if total is None:
            raise no_sum(automaton, signal)
        sums[signal] = total
    model = network_of(automaton, sums, single)
    return model, certificate_of(automaton, model)


def network_of(automaton: Automaton, sums: Mapping[IntEnum, Sum], single: Container[IntEnum]) -> NCA:
    """Return a network that switches each signal on where its sum is 1 or more, and off where its sum is 0 or less.

    Args:
        automaton: the automaton.
        sums: the sum of each signal.
        single: signals with one channel, whose sum is exactly 1 where they are on; the answers are among them.
    """
    n_kinds, channels = len(automaton.kinds), automaton.channels_with(single)
    rows_of = automaton.rows(channels)
    arguments = {
        "n_tiles": n_kinds,
        "n_channels": len(channels),
        "cut_corners": automaton.neighbourhood == 5,
        "n_iterations": None,
        "max_pool": bool(automaton.pooled),
        **({"n_maxima": len(automaton.pooled)} if len(automaton.pooled) > 1 else {}),
        "task": automaton.task,
        "channel_names": channels,
    }
    model = constructed(NCA, arguments)
    weight, bias = np.zeros(model.weights[0].shape), np.zeros(model.n_channels)
    for signal, total in sums.items():
        rows = rows_of[signal]
        # sums of 1 or more, and of 0 or less, become 3/2 or more, and -1/2 or less, so that a convolution that rounds
        # does no harm; without a pair, 1 stays 1, and 0 becomes -1
        for (seen, tap), value in zip(total.leaves, 2 * total.weights, strict=True):
            place = automaton.taps.index(tap)
            if isinstance(seen, TileKind):
                weight[rows, seen, place] += value
            else:
                weight[rows, n_kinds + rows_of[seen][0], place] += value
                for high in rows_of[seen][1:]:  # a pair is read as the difference of its channels
                    weight[rows, n_kinds + high, place] -= value
        bias[rows] = 2 * total.bias - (1 if len(rows) == 1 else np.array([0.5, 1.5]))
    if automaton.pooled:
        bias[-1] = -1  # the maximum over channels is not used
    with torch.no_grad():
        model.weights[0].copy_(torch.from_numpy(weight))
        model.biases[0].copy_(torch.from_numpy(bias))
    return model
