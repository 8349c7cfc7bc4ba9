"""Floods over all levels of a batch at once, on a device, and the ways that lead back through them.

The levels are stored in one flat *map*, in which a column and a row of padding separate rows and levels. The neighbours
of tile i are at i - stride, i - 1, i + stride and i + 1, with stride = W + 1, and none is on another edge or in another
level.

Floods of all levels advance together, a wave at a time, each with 8 kernels whatever the batch. The end is checked
every `WAVES_PER_CHECK` waves only, because checking waits for the device; waves after the end change nothing. A batch
takes as many waves as its slowest level.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

WAVES_PER_CHECK = 8
"""Waves between two looks at whether a flood has ended: 64 kernels, so that the look itself costs little."""
WORDS_AT_ONCE = 1 << 24
"""64-bit words of an all-pairs flood, which holds four arrays of that size, 512 MiB."""
WORD_BITS = 64


def lay_out(mask: Tensor) -> Tensor:
    """Return (N, H, W) bool with its padding, (N, H + 1, W + 1); flattened, it is the map."""
    return pad(mask, (0, 1, 0, 1))


def distance_map(free: Tensor, seeds: Tensor) -> Tensor:
    """Return (N, H + 1, W + 1) int32, moves from the nearest of the seeds, -1 out of reach."""
    last, reached = _flood(seeds.reshape(1, -1), free.flatten(), free.shape[2])
    return torch.where(reached[0], last, -1).view_as(free)


def eccentricity_map(free: Tensor) -> Tensor:
    """Return (N, H + 1, W + 1) int32, -1 at walls.

    Every free tile of a level has a bit, 64 to the word, and distances are symmetric: the farthest tile that a tile
    reaches is the one whose bit comes to it last.
    """
    bit = free.flatten(1).cumsum(dim=1).flatten() - 1
    n_words = int(bit.max()) // WORD_BITS + 1
    at_once = max(1, WORDS_AT_ONCE // len(bit))
    open_ = free.flatten()
    result = torch.zeros_like(open_, dtype=torch.int32)
    for first in range(0, n_words, at_once):
        words = torch.arange(first, min(first + at_once, n_words), device=free.device)
        seeds = torch.where(open_ & (bit // WORD_BITS == words[:, None]), 1 << bit % WORD_BITS, 0)
        result = torch.maximum(result, _flood(seeds, -open_.long(), free.shape[2])[0])
    return torch.where(open_, result, -1).view_as(free)


def walk(distances: Tensor, starts: Tensor) -> Tensor:
    """Return (N, H + 1, W + 1) bool, the ways from the starts, (N,) places in the map, down to distance 0.

    Each doubling of the way appends the tiles that lie as many steps ahead as it is long.
    """
    steps = _first_steps(distances)
    way = starts[:, None]
    at_start = distances.flatten(1).gather(1, way)
    for _ in range(int(at_start.max()).bit_length()):
        way = torch.cat([way, steps.gather(1, way)], dim=1)
        steps = steps.gather(1, steps)
    path = torch.zeros_like(steps, dtype=torch.bool).scatter_(1, way, True)
    return (path & (at_start >= 0)).view_as(distances)


def _flood(seeds: Tensor, free: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    """Let every bit spread from its seeds over the free tiles of the map.

    Args:
        seeds: (K, P) bool or int64, a bit for each source.
        free: (P,) of that dtype, all its bits set at free tiles.
        stride: how far up and down are.

    Returns:
        (P,) int32, the last wave that brought the tile anything, 0 if none did; (K, P), the bits that came.
    """
    padded = pad(seeds, (stride, stride))
    reached = padded[:, stride:-stride]
    missing = free & ~seeds
    last = torch.zeros_like(free, dtype=torch.int32)
    wave = 0
    while True:
        wave += 1
        fresh = padded[:, : -2 * stride] | padded[:, 2 * stride :]
        fresh |= padded[:, stride - 1 : -stride - 1]
        fresh |= padded[:, stride + 1 : 1 - stride]
        fresh &= missing
        reached |= fresh
        missing ^= fresh
        changed = fresh.any(dim=0)
        last.masked_fill_(changed, wave)
        if wave % WAVES_PER_CHECK == 0 and not changed.any():
            return last, reached


def _first_steps(distances: Tensor) -> Tensor:
    """Return (N, size) int64, the first of the places up, left, down, right that is nearer; the place itself if none
    is."""
    n, height, stride = distances.shape
    flat = distances.flatten()
    nearer = torch.where(flat > 0, flat - 1, -2)  # -2 is nowhere
    around = pad(flat, (stride, stride), value=-1)
    move = torch.zeros_like(flat, dtype=torch.int64)
    for offset in (1, stride, -1, -stride):  # the later one wins, up at last
        move.masked_fill_(around[stride + offset :][: len(flat)] == nearer, offset)
    return move.view(n, -1) + torch.arange(height * stride, device=flat.device)
