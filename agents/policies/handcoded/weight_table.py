"""Hand-coded weights as data: a table of weights, each with a named kernel (`neighbours`), defines one convolution.

Most weights of such a convolution are 0. For example, a table has about 30 of the 1,485 weights of its 3x3 convolution,
or about 140 of the 26,350 weights of a 5x5 convolution. Without gradients on a CPU, `convolve` computes with the
non-zero weights only, which is far faster than a dense convolution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.support.tables import Table


class Weight(NamedTuple):
    """A weight of a convolution: channel `out` at a tile adds `value` times the sum of `source` over the tiles of
    `kernel`.

    Attributes:
        out: the state channel.
        source: the input or state channel that is read.
        kernel: a name for `neighbours.offsets`, such as "C" for the tile itself or "N4" for its four neighbours.
        value: the weight.
    """

    out: IntEnum
    source: IntEnum
    kernel: str
    value: float = 1


@dataclass(frozen=True)
class WeightTable:
    """The weights and biases of one convolution over [inputs, state]; weights and biases that are not in the table are
    0.

    Attributes:
        inputs: the static channels, such as the one-hot maze.
        channels: the state channels.
        weights: the weights in any order; several weights for the same tile and channels are added.
        biases: the biases of state channels.
    """

    inputs: type[IntEnum]
    channels: type[IntEnum]
    weights: tuple[Weight, ...]
    biases: Mapping[IntEnum, float] = field(default_factory=dict)

    @property
    def kernel_size(self) -> int:
        """Side of the smallest square around a tile that contains every kernel: 3 or 5 in the paper."""
        reach = max(abs(step) for weight in self.weights for offset in offsets(weight.kernel) for step in offset)
        return 2 * reach + 1

    def convolution(self) -> tuple[Tensor, Tensor]:
        """Return the float32 weight, (C, inputs + C, k, k), and bias, (C,), of the convolution, on the CPU."""
        n_channels, size = len(self.channels), self.kernel_size
        weight = torch.zeros(n_channels, len(self.inputs) + n_channels, size, size, dtype=torch.float32, device="cpu")
        for row in self.weights:
            source = row.source + (0 if isinstance(row.source, self.inputs) else len(self.inputs))
            for down, right in offsets(row.kernel):
                weight[row.out, source, size // 2 + down, size // 2 + right] += row.value
        biases = [float(self.biases.get(channel, 0)) for channel in self.channels]
        return weight, torch.tensor(biases, dtype=torch.float32, device="cpu")

    @cached_property
    def taps(self) -> Taps:
        """The non-zero weights of the convolution."""
        return taps(*self.convolution())

    @cached_property
    def largest_sum(self) -> int:
        """The largest absolute sum of the convolution for inputs and channels between -1 and 1, rounded up."""
        weight, bias = self.convolution()
        return math.ceil((weight.abs().sum(dim=(1, 2, 3)) + bias.abs()).max())

    def printed(self) -> Table:
        """Return the table for readers, with a row for each weight and the bias of its channel; names are in lower
        case."""
        rows = [
            (out.name.lower(), source.name.lower(), kernel, f"{value:g}", f"{self.biases.get(out, 0):g}")
            for out, source, kernel, value in self.weights
        ]
        return Table(("channel", "reads", "at", "weight", "bias"), rows, numbers=("weight", "bias"))


class Taps(NamedTuple):
    """The non-zero weights of a convolution, in the order of their output channels.

    Attributes:
        places: (n, 4) int64: for each weight, its output channel, its input channel, and the offset of the tile that it
            reads, as rows down and columns to the right.
        weights: (n,) float64.
        biases: (C,) float64.
        reach: the largest offset in rows or columns, k // 2.
    """

    places: NDArray[np.int64]
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    reach: int


def taps(weight: Tensor, bias: Tensor) -> Taps:
    """Return the non-zero weights of a convolution with padding k // 2.

    Args:
        weight: (C, inputs, k, k) floats.
        bias: (C,) floats.
    """
    places = weight.nonzero()
    reach = weight.shape[-1] // 2
    centred = places - places.new_tensor([0, 0, reach, reach])
    return Taps(centred.numpy(), weight[tuple(places.T)].double().numpy(), bias.double().numpy(), reach)


def convolve(inputs: Tensor, state: Tensor, taps: Taps) -> Tensor:
    """Return a convolution, (B, C, H, W) float32. Sums are computed in float64, so they are exact for integers.

    Args:
        inputs: (B, T, H, W) float32, the first channels that the convolution reads.
        state: (B, C, H, W) float32, the channels that follow the inputs.
        taps: the non-zero weights.
    """
    from . import compiled  # here, because importing numba takes a third of a second

    out = torch.empty(state.shape, dtype=torch.float32, device="cpu")
    compiled.convolve(inputs.detach().numpy(), state.detach().numpy(), *taps, out.numpy())
    return out
