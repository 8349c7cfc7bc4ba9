"""`solvers` on a device: the same paths and distances, to the tile, for a batch of levels that never leaves it.

This is for levels that are on a GPU and are wanted there, such as thousands of mutated ones in a training loop. On the
CPU `solvers` is about a hundred times faster, and only it takes single levels.

The device runs 8 kernels for every move to the farthest tile of any level, three times as many for the diameter,
however many levels there are. The host waits for it once in 64 kernels (see `floods_torch`). Tiles are not checked for
unknown values, which count as free.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from maze_nca_gym.floods_torch import distance_map, eccentricity_map, lay_out, walk
from maze_nca_gym.levels import Tile

TILES_AT_ONCE = 1 << 22
"""Tiles of the levels that are solved together; larger batches are solved in parts."""


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
        ValueError: no tensor, another shape or dtype; `start` is outside the level or on a wall, or is not given and a
            level has not exactly one source.
    """
    _check_tiles(tiles)
    starts = _sources(tiles) if start is None else _mark_starts(tiles, start)
    return _in_parts(
        lambda part, seeds: distance_map(lay_out(part != Tile.WALL), lay_out(seeds)), torch.int32, tiles, starts
    )


def eccentricities(tiles: Tensor) -> Tensor:
    """Return the same as `solvers.eccentricities`: the distance from every tile to the farthest tile that it reaches.

    Returns:
        (N, H, W) int32 on the device of `tiles`, -1 at walls.

    Raises:
        ValueError: no tensor, or another shape or dtype than (N, H, W) uint8.
    """
    _check_tiles(tiles)
    return _in_parts(lambda part: eccentricity_map(lay_out(part != Tile.WALL)), torch.int32, tiles)


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
    to_target = distance_map(lay_out(tiles != Tile.WALL), lay_out(tiles == Tile.TARGET))
    sources = lay_out(tiles == Tile.SOURCE).flatten(1).int().argmax(dim=1)
    return walk(to_target, sources)


def _diameters(tiles: Tensor) -> Tensor:
    """Return the walk from the first tile of the greatest eccentricity to the farthest tile at which it arrives.

    Of the paths to all farthest tiles it is the first in the order up, left, down, right. That one leads to the tile
    which a breadth-first search finds first.
    """
    free = lay_out(tiles != Tile.WALL)
    starts = eccentricity_map(free).flatten(1).argmax(dim=1)  # the first of equals
    seeds = torch.zeros_like(free).flatten(1).scatter_(1, starts[:, None], True).view_as(free)
    from_start = distance_map(free, seeds)
    farthest = free & (from_start == from_start.amax(dim=(1, 2), keepdim=True))  # none where no tile is free
    return walk(distance_map(free, farthest), starts)


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
