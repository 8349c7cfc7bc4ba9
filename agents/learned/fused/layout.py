"""How maps and weights lie in memory for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .blocks import HEIGHT, LANES, WIDTH

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """A map of tiles with `channels` floats each: see `kernels`.

    Attributes:
        channels: of a tile in memory, a multiple of `blocks.LANES`.
        size: floats in a map.
        places, taps, rows: as in `kernels`.
        mirrored: the taps of the way back.
    """

    channels: int
    size: int
    places: Integers
    taps: Integers
    mirrored: Integers
    rows: Integers


@lru_cache(maxsize=64)
def layout(n_channels: int, height: int, width: int, kernel_size: int, live: tuple[int, ...]) -> Layout:
    """For maps of some size and a kernel with the live taps at these places, row by row."""
    channels, reach = -(-n_channels // LANES) * LANES, kernel_size // 2
    stride = width + reach
    tiles = [(row + reach) * stride + col + reach for row in range(height) for col in range(width)]
    shifts = [(tap // kernel_size - reach) * stride + tap % kernel_size - reach for tap in live]
    taps = np.array(shifts, np.int64) * channels
    rows = (taps[:, None] + np.arange(channels)).ravel()
    return Layout(
        channels=channels,
        size=((height + 2 * reach) * stride + reach) * channels,
        places=_whole_blocks(np.array(tiles, np.int64) * channels, tiles[-1] * channels),
        taps=taps,
        mirrored=-taps,
        rows=_whole_blocks(rows, 0),
    )


def _whole_blocks(array: Integers, filler: int) -> Integers:
    return np.concatenate([array, np.full(-len(array) % HEIGHT, filler)])


def pack(weight: Floats, channels: int) -> Floats:
    """Write (C out, C in, taps) weights in the order in which the kernels read them, zeros for padded channels."""
    n_out, n_in, n_taps = weight.shape
    dense = np.zeros((n_taps, channels, channels), np.float32)
    dense[:, :n_in, :n_out] = weight.transpose(2, 1, 0)
    step = WIDTH * LANES
    return np.concatenate([dense[:, :, first : first + step].ravel() for first in range(0, channels, step)])


def unpack(rows: Floats, n_channels: int, n_taps: int, channels: int) -> Floats:
    """The (C, C, taps) gradient of the weights from that by rows."""
    dense = rows[: n_taps * channels].reshape(n_taps, channels, channels)
    return np.ascontiguousarray(dense[:, :n_channels, :n_channels].transpose(2, 1, 0))
