"""The convolution of a hand-coded automaton on the CPU, over its few non-zero weights only.

A table names some 30 of the 1,485 weights of its 3x3 convolution, or some 140 of the 26,350 of a 5x5 one, so
a loop over those is far faster than a dense convolution. As in `HandcodedNCA.convolve`, sums are taken in
float64, where they are exact, so that both give the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


class Taps(NamedTuple):
    """The non-zero weights of a convolution, in the order of their output channels.

    Attributes:
        places: (n, 4) output channel, input channel, rows down and columns to the right of the tile read.
        weights: (n,).
        biases: (C,).
        reach: the largest number of rows or columns, k // 2.
    """

    places: Integers
    weights: Doubles
    biases: Doubles
    reach: int


def taps(weight: Tensor, bias: Tensor) -> Taps:
    """Return the non-zero weights of a (C, inputs, k, k) convolution with padding k // 2."""
    places = weight.nonzero()
    reach = weight.shape[-1] // 2
    centred = places - torch.tensor([0, 0, reach, reach])
    return Taps(centred.numpy(), weight[tuple(places.T)].double().numpy(), bias.double().numpy(), reach)


def convolve(inputs: Tensor, state: Tensor, taps: Taps) -> Tensor:
    """Return the convolution, (B, C, H, W), over the channels of (B, T, H, W) `inputs`, then those of (B, C, H, W)
    `state`."""
    from . import compiled  # here, because importing numba takes a third of a second

    out = torch.empty(state.shape)
    compiled.convolve(inputs.detach().numpy(), state.detach().numpy(), *taps, out.numpy())
    return out
