"""How maps and weights lie in memory; importing this imports numba.

Between two rows of tiles lie `reach` tiles of zeros, which border on both, and above and below lie more of them. So
every neighbour of a tile is some constant distance away, on the map or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .blocks import HEIGHT, WIDTH
from .vectors import LANES

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Form = tuple[Integers, Integers, Integers, int]
"""Places, taps, rows and channels, see `kernels`."""


@dataclass(frozen=True)
class Layout:
    """Of maps with some number of channels, and of the kernels of one convolution.

    Attributes:
        n_channels: C, those in use.
        size: floats in a map.
        form: for the way forward.
        mirrored: for the way back.
    """

    n_channels: int
    size: int
    form: Form
    mirrored: Form

    @property
    def n_taps(self) -> int:
        """Taps with weights."""
        return len(self.form[1])

    @property
    def channels(self) -> int:
        """Floats for each tile: `n_channels`, and zeros that fill up a vector."""
        return self.form[3]

    def pack(self, weight: Floats) -> Floats:
        """(C out, C in, taps) weights in the order in which the machine code reads them."""
        dense = np.zeros((self.n_taps, self.channels, self.channels), np.float32)
        dense[:, : self.n_channels, : self.n_channels] = weight.transpose(2, 1, 0)
        step = WIDTH * LANES
        return np.concatenate([dense[:, :, first : first + step].ravel() for first in range(0, self.channels, step)])

    def unpack(self, sums: Floats) -> Floats:
        """The (C out, C in, taps) gradient from that by rows."""
        dense = sums[: self.n_taps * self.channels].reshape(self.n_taps, self.channels, self.channels)
        return np.ascontiguousarray(dense[:, : self.n_channels, : self.n_channels].transpose(2, 1, 0))


@lru_cache(maxsize=64)
def layout(n_channels: int, height: int, width: int, kernel_size: int, live: tuple[int, ...]) -> Layout:
    """For (height, width) tiles and a kernel with weights on the taps `live`, counted row by row."""
    channels, reach = -(-n_channels // LANES) * LANES, kernel_size // 2
    stride = width + reach
    tiles = [(row + reach) * stride + col + reach for row in range(height) for col in range(width)]
    shifts = [(tap // kernel_size - reach) * stride + tap % kernel_size - reach for tap in live]
    taps = np.array(shifts, np.int64) * channels
    places = _whole_blocks(np.array(tiles, np.int64) * channels, tiles[-1] * channels)
    rows = _whole_blocks((taps[:, None] + np.arange(channels)).ravel(), 0)
    return Layout(
        n_channels,
        size=((height + 2 * reach) * stride + reach) * channels,
        form=(places, taps, rows, channels),
        mirrored=(places, -taps, rows, channels),
    )


def _whole_blocks(array: Integers, filler: int) -> Integers:
    return np.concatenate([array, np.full(-len(array) % HEIGHT, filler, np.int64)])
