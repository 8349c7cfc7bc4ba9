"""How maps lie in memory, and which rollouts have maps small enough for one program each; imports no triton.

Between two rows of tiles lie `reach` places of zeros, which border on both, and before and after the tiles lie more of
them. So every neighbour of a tile is some constant distance away, on the map or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

NARROW, WIDE = 16, 32
"""Channels come in multiples of these; matrix products need 16 at least."""
WIDEST = 64
"""Most channels that are computed at once."""
PLACES = 128
"""Most places that are computed at once."""
CACHE = 2**18
"""Bytes of the caches of one multiprocessor: a larger map would not stay there between two steps."""


@dataclass(frozen=True)
class Form:
    """Form of the maps of one network on mazes of one size.

    Attributes:
        height: rows of tiles.
        width: tiles of a row.
        stride: places of a row.
        margin: places of zeros before the first tile, and after the last place.
        block: places that are computed at once, a power of two.
        n_places: places from the first tile on, a multiple of `block`.
        n_channels: channels of the network.
        channels: floats of a place; those beyond `n_channels` are zero.
        columns: channels that are computed at once, a power of two that divides `channels`.
        distances: from a place to those that it reads, a number for each live tap.
    """

    height: int
    width: int
    stride: int
    margin: int
    block: int
    n_places: int
    n_channels: int
    channels: int
    columns: int
    distances: tuple[int, ...]

    @property
    def end(self) -> int:
        """Number of places of all rows of tiles."""
        return self.height * self.stride

    @property
    def map_size(self) -> int:
        """Floats of a map in a scratch area, with the margins around it."""
        return (self.n_places + 2 * self.margin) * self.channels

    @property
    def fits(self) -> bool:
        """Whether a map stays in the caches of a multiprocessor."""
        return 4 * self.map_size <= CACHE

    def spread(self, tiles: Tensor) -> Tensor:
        """Return (B, c, H, W) floats as (B, n_places, c) places, zero between the rows."""
        rows = F.pad(tiles, (0, self.stride - self.width)).flatten(2)
        return F.pad(rows, (0, self.n_places - self.end)).transpose(1, 2).contiguous()

    def widen(self, places: Tensor) -> Tensor:
        """Return (B, n_places, C) floats with channels of zeros for those that fill a place."""
        return F.pad(places, (0, self.channels - self.n_channels))

    def gather(self, places: Tensor) -> Tensor:
        """Return (k, B, n_places, c) floats as (k, B, c, H, W) tiles."""
        rows = places[:, :, : self.end].unflatten(2, (self.height, self.stride))
        return rows[:, :, :, : self.width].permute(0, 1, 4, 2, 3)

    def pack(self, weight: Tensor) -> Tensor:
        """Return (C out, C in, taps) weights of the state as (taps, channels in, channels out)."""
        n_more = self.channels - self.n_channels
        return F.pad(weight, (0, 0, 0, n_more, 0, n_more)).permute(2, 1, 0).contiguous()

    def scratch(self, n_maps: int, like: Tensor) -> Tensor:
        """Return zeros for `n_maps` maps with the margins around them, flat float32."""
        return torch.zeros(n_maps * self.map_size, dtype=torch.float32, device=like.device)


@lru_cache(maxsize=64)
def form(n_channels: int, height: int, width: int, kernel_size: int, live: tuple[int, ...]) -> Form:
    """Make the form for (height, width) tiles and a kernel with weights on the taps `live`, counted row by row."""
    reach = kernel_size // 2
    stride = width + reach
    least = NARROW if n_channels <= NARROW else WIDE
    channels = _whole(n_channels, least)
    columns = next(number for number in (WIDEST, WIDE, NARROW) if channels % number == 0)
    block = NARROW
    while block < min(PLACES, height * stride):
        block *= 2
    return Form(
        height,
        width,
        stride,
        margin=reach * (stride + 1),
        block=block,
        n_places=_whole(height * stride, block),
        n_channels=n_channels,
        channels=channels,
        columns=columns,
        distances=tuple((tap // kernel_size - reach) * stride + tap % kernel_size - reach for tap in live),
    )


def _whole(number: int, divisor: int) -> int:
    """Return the next multiple."""
    return -(-number // divisor) * divisor
