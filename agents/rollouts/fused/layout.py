"""How maps and weights lie in memory; importing this imports numba.

Between two rows of tiles lie `reach` tiles of zeros, which border on both, and above and below lie more of them. So
every neighbour of a tile is some constant distance away, on the map or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from .blocks import HEIGHT, UNROLLED, WIDTH
from .sparse import TAPS
from .sparse import WIDTH as SPARSE_WIDTH
from .vectors import LANES

SPARSE = 0.3
"""Maps of which no larger share is not zero have nothing but that read; with more, reading all may be faster.

Networks whose channels `sparse.WIDTH` does not divide always read all.
"""
LINE = 64
"""Bytes of a line of the cache."""
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Form = tuple[Integers, Integers, Integers, Integers, int, int, Integers, Integers, Integers]
"""Places, taps, rows, input_rows, channels, depth, distances, groups and pairs, see `kernels`."""


@dataclass(frozen=True)
class Layout:
    """Layout of the maps and weights of one network.

    Attributes:
        n_fed: the number of channels of the maze.
        n_channels: the number of channels of the state.
        size: floats in a map.
        most_active: the largest number of non-zero floats in a sparse map, or -1 if none counts as sparse.
        n_rows: the rows of the gradient of the state's weights, some of which may mean nothing.
        centre: the place of the tile itself among the live taps.
        form: the form for the way forward.
        mirrored: the form for the way back.
    """

    n_fed: int
    n_channels: int
    size: int
    most_active: int
    n_rows: int
    centre: int
    form: Form
    mirrored: Form

    def pack(self, weight: Floats, low: bool = False) -> Floats:
        """Return (C out, C in, taps) weights of the state in the order in which the machine code reads them.

        With `low`, each float has the bits of two bfloat16 numbers, the weights of two inputs.
        """
        return self._pack(weight, self.form[4], low)

    def pack_inputs(self, weight: Floats, bias: Floats) -> Floats:
        """Return the weights of the maze, (C, T, taps), and the (C,) bias, as weights of a 1 at the tile itself."""
        of_one = np.zeros((self.n_channels, 1, weight.shape[2]), np.float32)
        of_one[:, 0, self.centre] = bias
        # The bias is one more input: the kernels then need no code for it.
        return self._pack(np.concatenate([weight, of_one], axis=1), self.form[5])

    def pack_rows(self, weight: Floats) -> Floats:
        """Return (C out, C in, taps) weights of the state as the machine code for sparse states reads them."""
        channels = self.form[4]
        dense = zeros((weight.shape[2], channels, channels))
        dense[:, : weight.shape[1], : weight.shape[0]] = weight.transpose(2, 1, 0)
        return dense.ravel()

    def unpack(self, input_sums: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return the gradients of all weights, (C, T + C, taps), and of the (C,) bias, from those by row."""
        fed, state = (self._unpack(*of) for of in ((input_sums, self.form[5]), (sums, self.form[4])))
        weight = np.concatenate([fed[:, : self.n_fed], state[:, : self.n_channels]], axis=1)
        return weight, np.ascontiguousarray(fed[:, self.n_fed, self.centre])

    def _pack(self, weight: Floats, depth: int, low: bool = False) -> Floats:
        """Return weights for each pair of vectors: for each tap, for each input, for each channel."""
        n_out, n_in, n_taps = weight.shape
        channels, step = self.form[4], WIDTH * LANES
        dense = np.zeros((n_taps, depth, channels), np.float32)
        dense[:, :n_in, :n_out] = weight.transpose(2, 1, 0)
        if low:
            dense = _paired(dense)
        # One run of memory for each pair of vectors of channels, as the blocks read it from front to back.
        return np.concatenate([dense[:, :, first : first + step].ravel() for first in range(0, channels, step)])

    def _unpack(self, sums: Floats, depth: int) -> Floats:
        n_taps, channels = len(self.form[1]), self.form[4]
        dense = sums[: n_taps * depth].reshape(n_taps, depth, channels)
        return dense[:, :, : self.n_channels].transpose(2, 1, 0)


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return an array whose vectors do not straddle two lines of the cache."""
    size = math.prod(shape) * 4
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(np.float32).reshape(shape)


@lru_cache(maxsize=64)
def layout(n_fed: int, n_channels: int, height: int, width: int, kernel_size: int, live: tuple[int, ...]) -> Layout:
    """Make the layout for (height, width) tiles and a kernel with weights on the taps `live`, counted row by row."""
    channels, depth = _whole(n_channels, LANES), _whole(n_fed + 1, UNROLLED)
    reach = kernel_size // 2
    # The zeros at the end of a row are also those before the next: half the padding.
    stride = width + reach
    # Rows of zeros above, and zeros before the first tile, keep every tap within the memory.
    tiles = [(row + reach) * stride + col + reach for row in range(height) for col in range(width)]
    distances = [(tap // kernel_size - reach) * stride + tap % kernel_size - reach for tap in live]
    places, taps = (np.array(array, np.int64) * channels for array in (tiles, distances))
    groups = _filled(taps, 0, TAPS)
    rows, input_rows = ((taps[:, None] + np.arange(n)).ravel() for n in (channels, depth))
    others = (_filled(rows, 0), _filled(input_rows, 0), channels, depth)
    rows_of_tiles = np.array(tiles).reshape(height if reach else 1, -1)  # without zeros between rows, as one row
    pairs = rows_of_tiles[:, ::2].ravel() * channels
    # One tile more at the end even without a reach: pairs of tiles read one beyond the last.
    size = ((height + 2 * reach) * stride + max(reach, 1)) * channels
    return Layout(
        n_fed,
        n_channels,
        size=size,
        most_active=int(SPARSE * size) if channels % SPARSE_WIDTH == 0 else -1,
        n_rows=max(len(others[0]), len(groups) * channels),
        # The bias is the weight of a 1 at the tile itself, so the middle tap has to be alive.
        centre=live.index(kernel_size**2 // 2),
        form=(_filled(places, places[-1]), taps, *others, taps // channels, groups, pairs),
        mirrored=(_filled(places, places[-1]), -taps, *others, -taps // channels, -groups, pairs),
    )


def _paired(weights: Floats) -> Floats:
    """Return (taps, depth, channels) weights as (taps, depth / 2, channels) pairs of bfloat16 numbers."""
    halves = torch.from_numpy(weights).bfloat16().view(torch.int16).numpy().view(np.uint16).astype(np.uint32)
    return (halves[:, ::2] | halves[:, 1::2] << 16).view(np.float32)


def _whole(number: int, divisor: int) -> int:
    """Return the next multiple."""
    return -(-number // divisor) * divisor


def _filled(array: Integers, filler: int, divisor: int = HEIGHT) -> Integers:
    """Return the array with as many more entries as complete its last block."""
    return np.concatenate([array, np.full(-len(array) % divisor, filler, np.int64)])
