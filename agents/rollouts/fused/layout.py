"""The layout of maps and weights in memory; importing this imports numba.

Rows of tiles are separated by `reach` tiles of zeros, which pad the end of one row and the start of the next. More
zeros lie above and below. Therefore every tap is at the same offset from every tile, within the map or beyond its edge.
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
"""Largest fraction of non-zero floats in a map that the sparse kernels run; for larger fractions, dense kernels may be
faster.

If the padded number of channels of a network is not a multiple of `sparse.WIDTH`, the dense kernels run all its maps.
"""
LINE = 64
"""Number of bytes in a cache line."""
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Form = tuple[Integers, Integers, Integers, Integers, int, int, Integers, Integers, Integers]
"""(places, taps, rows, input_rows, channels, depth, distances, groups, pairs), see `kernels`."""


@dataclass(frozen=True)
class MemoryLayout:
    """The places of one network's maps and weights in memory.

    Attributes:
        n_fed: the number of channels of the maze.
        n_channels: the number of channels of the state.
        size: the number of floats in a map.
        most_active: the largest number of non-zero floats in a sparse map, or -1 if no map counts as sparse.
        n_rows: the number of rows of the gradient of the state's weights; some may be padding.
        centre: the index of the tile itself among the taps with weights.
        form: the form for the forward pass, see `kernels`.
        mirrored: the form for the backward pass, with its taps negated.
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
        """Return (C out, C in, taps) weights of the state in the order in which the dense kernels read them.

        With `low`, each float contains the bits of two bfloat16 weights, for two successive inputs.
        """
        return self._pack(weight, self.form[4], low)

    def pack_inputs(self, weight: Floats, bias: Floats) -> Floats:
        """Return the packed weights of the inputs, the maze and a 1.

        Args:
            weight: (C, T, taps), the weights of the maze.
            bias: (C,), the weights of the 1.
        """
        of_one = np.zeros((self.n_channels, 1, weight.shape[2]), np.float32)
        of_one[:, 0, self.centre] = bias
        # With the bias as the weight of one more input, the kernels need no code for it.
        return self._pack(np.concatenate([weight, of_one], axis=1), self.form[5])

    def pack_rows(self, weight: Floats) -> Floats:
        """Return (C out, C in, taps) weights of the state in the order in which the sparse kernels read them."""
        channels = self.form[4]
        dense = zeros((weight.shape[2], channels, channels))
        dense[:, : weight.shape[1], : weight.shape[0]] = weight.transpose(2, 1, 0)
        return dense.ravel()

    def unpack(self, input_sums: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return the gradients of all weights, (C, T + C, taps), and of the (C,) bias, from the kernels' sums."""
        n_taps, channels = len(self.form[1]), self.form[4]
        fed, state = (
            flat[: n_taps * depth].reshape(n_taps, depth, channels)[:, :, : self.n_channels].transpose(2, 1, 0)
            for flat, depth in ((input_sums, self.form[5]), (sums, channels))
        )
        weight = np.concatenate([fed[:, : self.n_fed], state[:, : self.n_channels]], axis=1)
        return weight, np.ascontiguousarray(fed[:, self.n_fed, self.centre])

    def _pack(self, weight: Floats, depth: int, low: bool = False) -> Floats:
        """Return weights in a flat array, ordered by block of output channels, tap, input and output channel."""
        n_out, n_in, n_taps = weight.shape
        channels, step = self.form[4], WIDTH * LANES
        dense = np.zeros((n_taps, depth, channels), np.float32)
        dense[:, :n_in, :n_out] = weight.transpose(2, 1, 0)
        if low:  # pairs of bfloat16 inputs, (taps, depth / 2, channels), as bits of float32
            halves = torch.from_numpy(dense).bfloat16().view(torch.int16).numpy().view(np.uint16).astype(np.uint32)
            dense = (halves[:, ::2] | halves[:, 1::2] << 16).view(np.float32)
        # A block of kernels writes two vectors of channels, and reads its weights from front to back.
        return np.concatenate([dense[:, :, first : first + step].ravel() for first in range(0, channels, step)])


def zeros(shape: tuple[int, ...]) -> Floats:
    """Return an array of zeros that begins at a cache line, so that no vector straddles two cache lines."""
    size = math.prod(shape) * 4
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(np.float32).reshape(shape)


@lru_cache(maxsize=64)
def layout(
    n_fed: int, n_channels: int, height: int, width: int, kernel_size: int, live: tuple[int, ...]
) -> MemoryLayout:
    """Return the layout of a network's maps and weights.

    Args:
        n_fed: the number of channels of the maze.
        n_channels: the number of channels of the state.
        height, width: the numbers of rows and columns of tiles.
        kernel_size: the side of the kernel, odd.
        live: the positions in the kernel that have weights, numbered row by row.
    """
    channels, depth = _whole(n_channels, LANES), _whole(n_fed + 1, UNROLLED)
    reach = kernel_size // 2
    # The zeros after a row are also those before the next one, which halves the padding.
    stride = width + reach
    # Rows of zeros above, and zeros before the first tile, keep every tap within the memory.
    tiles = [(row + reach) * stride + col + reach for row in range(height) for col in range(width)]
    distances = [(tap // kernel_size - reach) * stride + tap % kernel_size - reach for tap in live]
    places, taps = (np.array(array, np.int64) * channels for array in (tiles, distances))
    groups = _filled(taps, 0, TAPS)
    rows, input_rows = ((taps[:, None] + np.arange(n)).ravel() for n in (channels, depth))
    others = (_filled(rows, 0), _filled(input_rows, 0), channels, depth)
    # Without a reach there are no zeros between rows, so all tiles make one long row.
    rows_of_tiles = np.array(tiles).reshape(height if reach else 1, -1)
    pairs = rows_of_tiles[:, ::2].ravel() * channels
    # At least one tile of zeros at the end, also without a reach: the last pair may read one tile beyond the map.
    size = ((height + 2 * reach) * stride + max(reach, 1)) * channels
    return MemoryLayout(
        n_fed,
        n_channels,
        size=size,
        most_active=int(SPARSE * size) if channels % SPARSE_WIDTH == 0 else -1,
        n_rows=max(len(others[0]), len(groups) * channels),
        # The middle tap must be live: the bias is the weight of a 1 at the tile itself.
        centre=live.index(kernel_size**2 // 2),
        form=(_filled(places, places[-1]), taps, *others, taps // channels, groups, pairs),
        mirrored=(_filled(places, places[-1]), -taps, *others, -taps // channels, -groups, pairs),
    )


def _whole(number: int, divisor: int) -> int:
    """Round a number up to a multiple of the divisor."""
    return -(-number // divisor) * divisor


def _filled(array: Integers, filler: int, divisor: int = HEIGHT) -> Integers:
    """Pad an array to a multiple of the divisor."""
    return np.concatenate([array, np.full(-len(array) % divisor, filler, np.int64)])
