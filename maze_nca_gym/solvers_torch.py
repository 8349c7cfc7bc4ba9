"""`solvers` on a device: the same paths and distances, to the tile, for a batch of levels that never leaves it.

This is for levels that are on a GPU and are wanted there, such as thousands of mutated ones in a training loop. On the
CPU `solvers` is about a hundred times faster, and only it takes single levels.

The device runs 8 kernels for every move to the farthest tile of any level, three times as many for the diameter. The
number of levels does not matter. The host waits for it once in 64 kernels (`WAVES_PER_CHECK`). Tiles are not checked
for unknown values, which count as free.

The levels are stored in one flat *map*, in which a column and a row of padding separate rows and levels. The neighbours
of tile i are at i - stride, i - 1, i + stride and i + 1, with stride = W + 1. None is on another edge or in another
level.

Floods of all levels advance together, a wave at a time, each with 8 kernels whatever the batch. The end is checked
every `WAVES_PER_CHECK` waves only, because checking waits for the device; waves after the end change nothing. A batch
takes as many waves as its slowest level.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import pad

from maze_nca_gym.levels import Tile

TILES_AT_ONCE = 1 << 22
"""Tiles of the levels that are solved together; larger batches are solved in parts."""
WAVES_PER_CHECK = 8
"""Waves between two looks at whether a flood has ended: 64 kernels, so that the look itself costs little."""
WORDS_AT_ONCE = 1 << 24
"""64-bit words of an all-pairs flood, which holds four arrays of that size, 512 MiB."""
WORD_BITS = 64


def shortest_path(tiles: Tensor) -> Tensor:
    """Return the same as `solvers.shortest_path`: the canonical shortest path from source to target.

    Args:
        tiles: (N, H, W) uint8 with exactly one source and one target a level.

    Returns:
        (N, H, W) bool on the same device, without a path tile where the target is out of reach.

    Raises:
        ValueError: no tensor, another shape or dtype, or any level lacks or repeats source or target.
    """
    _check_tiles(tiles)
    _check_endpoints(tiles)
    return _in_parts(_shortest_paths, torch.bool, tiles)


def diameter(tiles: Tensor) -> Tensor:
    """Return the same as `solvers.diameter`: the canonical longest of the shortest paths between any two connected
    tiles.

    Args:
        tiles: (N, H, W) uint8; mazes need not be connected.

    Returns:
        (N, H, W) bool on the same device, without a path tile where no tile is free.

    Raises:
        ValueError: no tensor, or another shape or dtype.
    """
    _check_tiles(tiles)
    return _in_parts(_diameters, torch.bool, tiles)


def distances(tiles: Tensor, start: ArrayLike | Tensor | None = None) -> Tensor:
    """Return the same as `solvers.distances`: the number of moves from `start` to every tile.

    Args:
        tiles: (N, H, W) uint8.
        start: (row, col), or (N, 2) of them; by default the levels' sources.

    Returns:
        (N, H, W) int32 on the same device, -1 at walls and where `start` does not reach.

    Raises:
        ValueError: no tensor, or another shape or dtype. `start` is outside the level or on a wall, or is not given and
            a level has not exactly one source.
    """
    _check_tiles(tiles)
    starts = _sources(tiles) if start is None else _mark_starts(tiles, start)
    return _in_parts(
        lambda part, seeds: _distance_map(_lay_out(part != Tile.WALL), _lay_out(seeds)), torch.int32, tiles, starts
    )


def eccentricities(tiles: Tensor) -> Tensor:
    """Return the same as `solvers.eccentricities`: the distance from every tile to the farthest tile that it reaches.

    Returns:
        (N, H, W) int32 on the device of `tiles`, -1 at walls.

    Raises:
        ValueError: no tensor, or another shape or dtype than (N, H, W) uint8.
    """
    _check_tiles(tiles)
    return _in_parts(lambda part: _eccentricity_map(_lay_out(part != Tile.WALL)), torch.int32, tiles)


def _in_parts(solve: Callable[..., Tensor], dtype: torch.dtype, *batches: Tensor) -> Tensor:
    """Apply `solve` to the batches, without its padding, in as many calls as memory requires."""
    n, height, width = batches[0].shape
    result = torch.empty(batches[0].shape, dtype=dtype, device=batches[0].device)
    at_once = max(1, TILES_AT_ONCE // (height * width))
    for first in range(0, n, at_once):
        part = slice(first, first + at_once)
        result[part] = solve(*(batch[part] for batch in batches))[:, :height, :width]
    return result


def _shortest_paths(tiles: Tensor) -> Tensor:
    to_target = _distance_map(_lay_out(tiles != Tile.WALL), _lay_out(tiles == Tile.TARGET))
    sources = _lay_out(tiles == Tile.SOURCE).flatten(1).int().argmax(dim=1)
    return _walk(to_target, sources)


def _diameters(tiles: Tensor) -> Tensor:
    """Return the walk from the first tile of the greatest eccentricity to the farthest tile at which it arrives.

    Of the paths to all farthest tiles it is the first in the order up, left, down, right. That one leads to the tile
    which a breadth-first search finds first.
    """
    free = _lay_out(tiles != Tile.WALL)
    starts = _eccentricity_map(free).flatten(1).argmax(dim=1)  # the first of equals
    seeds = torch.zeros_like(free).flatten(1).scatter_(1, starts[:, None], True).view_as(free)
    from_start = _distance_map(free, seeds)
    farthest = free & (from_start == from_start.amax(dim=(1, 2), keepdim=True))  # none where no tile is free
    return _walk(_distance_map(free, farthest), starts)


def _check_tiles(tiles: Tensor) -> None:
    if not isinstance(tiles, Tensor):
        raise ValueError(f"tiles must be a torch.Tensor, got {type(tiles).__name__}; `solvers` takes arrays")
    if tiles.layout != torch.strided or tiles.is_meta:
        what = "without values, on the meta device" if tiles.is_meta else f"of layout {tiles.layout}"
        raise ValueError(f"tiles must be a dense tensor with values, got one {what}")
    if tiles.ndim != 3:
        raise ValueError(f"tiles must have shape (N, H, W), got {tuple(tiles.shape)}")
    if 0 in tiles.shape[1:]:
        raise ValueError(f"a level needs at least one tile, got shape {tuple(tiles.shape)}")
    if tiles.dtype != torch.uint8:
        raise ValueError(f"tiles must be uint8, got {tiles.dtype}")


def _check_endpoints(tiles: Tensor) -> None:
    counts = torch.stack([(tiles == tile).sum(dim=(1, 2)) for tile in (Tile.SOURCE, Tile.TARGET)])
    wrong = (counts != 1).any(dim=0)
    if wrong.any():
        i = int(wrong.int().argmax())
        n_sources, n_targets = counts[:, i].tolist()
        raise ValueError(
            f"a shortest path needs exactly one source and one target; level {i} has {n_sources} and {n_targets}"
        )


def _sources(tiles: Tensor) -> Tensor:
    """Return (N, H, W) bool, True at the source."""
    counts = (tiles == Tile.SOURCE).sum(dim=(1, 2))
    if (counts != 1).any():
        i = int((counts != 1).int().argmax())
        raise ValueError(f"without `start`, a level needs exactly one source; level {i} has {int(counts[i])}")
    return tiles == Tile.SOURCE


def _mark_starts(tiles: Tensor, start: ArrayLike | Tensor) -> Tensor:
    """Return (N, H, W) bool, True at the start."""
    n, height, width = tiles.shape
    starts = start.cpu().numpy() if isinstance(start, Tensor) else np.asarray(start)
    if starts.dtype.kind not in "iu" or starts.shape not in {(2,), (n, 2)}:
        raise ValueError(f"start must be (row, col) or ({n}, 2) integers, got {start!r}")
    rows, cols = np.broadcast_to(starts, (n, 2)).T.astype(np.int64)
    if (rows < 0).any() or (cols < 0).any() or (rows >= height).any() or (cols >= width).any():
        raise ValueError(f"start must lie inside the {height} x {width} tiles, got {start!r}")
    places = torch.from_numpy(rows * width + cols).to(tiles.device)
    marked = torch.zeros_like(tiles, dtype=torch.bool).flatten(1).scatter_(1, places[:, None], True).view_as(tiles)
    if (marked & (tiles == Tile.WALL)).any():
        raise ValueError(f"start must be a free tile, got {start!r}, which is a wall")
    return marked


def _lay_out(mask: Tensor) -> Tensor:
    """Return (N, H, W) bool with its padding, (N, H + 1, W + 1); flattened, it is the map."""
    return pad(mask, (0, 1, 0, 1))


def _distance_map(free: Tensor, seeds: Tensor) -> Tensor:
    """Return (N, H + 1, W + 1) int32, moves from the nearest of the seeds, -1 out of reach."""
    last, reached = _flood(seeds.reshape(1, -1), free.flatten(), free.shape[2])
    return torch.where(reached[0], last, -1).view_as(free)


def _eccentricity_map(free: Tensor) -> Tensor:
    """Return (N, H + 1, W + 1) int32, -1 at walls.

    Every free tile of a level has a bit, 64 to the word. Distances are symmetric, so the farthest tile that a tile
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


def _walk(distances: Tensor, starts: Tensor) -> Tensor:
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
