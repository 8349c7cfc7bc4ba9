"""The convolution of a hand-coded automaton on the CPU, over its few non-zero weights only.

A table names some 30 of the 1,485 weights of its 3x3 convolution, or some 140 of the 26,350 of a 5x5 one, so
a loop over those is far faster than a dense convolution. As in `HandcodedNCA.convolve`, sums are taken in
float64, where they are exact, so that both give the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]
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
    """The non-zero weights of a (C, inputs, k, k) convolution with padding k // 2."""
    places = weight.nonzero()
    reach = weight.shape[-1] // 2
    centred = places - torch.tensor([0, 0, reach, reach])
    return Taps(centred.numpy(), weight[tuple(places.T)].double().numpy(), bias.double().numpy(), reach)


def convolve(inputs: Tensor, state: Tensor, taps: Taps) -> Tensor:
    """The convolution over the channels of (B, T, H, W) `inputs`, then those of (B, C, H, W) `state`, both
    float32."""
    out = torch.empty(state.shape)
    _compiled()(inputs.detach().numpy(), state.detach().numpy(), *taps, out.numpy())
    return out


@cache
def _compiled() -> Any:
    import numba  # here, because it takes a third of a second

    return numba.njit(cache=True, error_model="numpy")(_convolve)


def _convolve(
    inputs: Floats,
    state: Floats,
    places: Integers,
    weights: Doubles,
    biases: Doubles,
    reach: int,
    out: Floats,
) -> None:
    """Shift whole maps: behind each row lie `reach` zeros, which are also those before the next row."""
    n_inputs, (n_mazes, n_channels, height, width) = inputs.shape[1], state.shape
    stride = width + reach
    size = height * stride
    padded = np.zeros((n_inputs + n_channels, size + 2 * reach * stride + 2 * reach), np.float32)
    total = np.empty(size, np.float64)
    for maze in range(n_mazes):
        for source in range(n_inputs + n_channels):
            channel_map = inputs[maze, source] if source < n_inputs else state[maze, source - n_inputs]
            for row in range(height):
                begin = (row + reach) * stride + reach
                for col in range(width):
                    padded[source, begin + col] = channel_map[row, col]
        tap = 0
        for channel in range(n_channels):
            total[:] = biases[channel]
            while tap < len(weights) and places[tap, 0] == channel:
                begin = (reach + places[tap, 2]) * stride + reach + places[tap, 3]
                read, weight = padded[places[tap, 1], begin : begin + size], weights[tap]
                for tile in range(size):
                    total[tile] += weight * read[tile]
                tap += 1
            for row in range(height):
                for col in range(width):
                    out[maze, channel, row, col] = total[row * stride + col]
