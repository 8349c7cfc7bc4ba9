"""Exact solutions: distances, shortest paths, eccentricities and diameters.

Every function takes one level, (H, W) tiles, or a batch, (N, H, W), of any height and width, with or without a wall
border. No move wraps around an edge. Source and target are free tiles like any other. A path is the set of its tiles,
and its length is the number of these tiles, both ends included.

If there are several optima, the *canonical* path is returned. The canonical shortest path starts at the source and
takes, at each tile, the first direction that stays on a shortest path, in the order up, left, down, right. The diameter
is the largest eccentricity of a tile over all connected components. The canonical diameter path starts at the first
tile, row by row, that has this eccentricity. It is the canonical shortest path from there to the farthest tile that a
breadth-first search finds first. networkx finds the same paths on the grid graph whose nodes are in row-major order and
whose neighbours are in the order of directions.

Functions whose result depends on the order of directions take another order as `order`, the letters U, L, D and R in
any order. With "DLRU", the shortest path is the path of a breadth-first search from the source that visits the tile
below first, then the tiles to the left, to the right and above. These functions raise ValueError for anything that is
no order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes._kernels.registry import MALFORMED, UNSOLVABLE
from maze_nca_gym.mazes.levels import MOST_KINDS, Tile, Tiles, as_path, as_tiles
from maze_nca_gym.mazes.orders import USUAL_ORDER, order_code
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_count
from maze_nca_gym.support.random_streams import check_rng

# a dtype is cheaper to pass than its class, and a call for one level is short
_UINT8, _BOOL = np.dtype(np.uint8), np.dtype(np.bool_)


def shortest_path(tiles: ArrayLike, order: str = USUAL_ORDER) -> NDArray[np.bool_]:
    """Return the canonical shortest path from source to target.

    Args:
        tiles: (H, W) or (N, H, W) uint8 with exactly one source and one target in each level.
        order: order of directions.

    Returns:
        Bool array of the same shape. In a batch, the path is empty on a level whose target is out of reach:
            `path.any(axis=(1, 2))` is the mask of solvable levels.

    Raises:
        ValueError: a single level is unsolvable, or any level does not have exactly one source and one target.
    """
    tiles, code = _fast_tiles(tiles), order_code(order)
    paths = np.zeros(tiles.shape, _BOOL)
    if tiles.ndim == 2:
        status = kernels.shortest_path(tiles, code, paths)
        if status == UNSOLVABLE:
            raise ValueError("the level is unsolvable: no path joins source and target")
        if status == MALFORMED:
            _raise_malformed("the level", tiles)
        return paths
    malformed = kernels.shortest_paths(tiles, code, paths)
    if malformed >= 0:
        _raise_malformed(f"level {malformed}", tiles[malformed])
    return paths


def shortest_paths_from(
    tiles: ArrayLike, targets: ArrayLike, start: ArrayLike | None = None, order: str = USUAL_ORDER
) -> NDArray[np.bool_]:
    """Return the canonical shortest paths from one tile of a maze to many tiles, in about the time of one path.

    >>> from maze_nca_gym.mazes.levels import parse
    >>> shortest_paths_from(parse("S..\\n.#."), [(0, 2), (1, 0)]).astype(int).tolist()
    [[[1, 1, 1], [0, 0, 0]], [[1, 0, 0], [1, 0, 0]]]

    Args:
        tiles: (H, W) uint8.
        targets: (K, 2) integers, the (row, col) of each target.
        start: (row, col) of the tile where all paths start; by default the level's source.
        order: order of directions.

    Returns:
        (K, H, W) bool. The path to a target that is out of reach is empty.

    Raises:
        ValueError: `start` or a target is outside the level or on a wall, or `start` is not given and the level does
            not have exactly one source.
    """
    level = as_tiles(tiles, ndim=(2,))
    places = as_array(targets, "targets")
    if places.dtype.kind not in "iu" or places.shape[1:] != (2,):
        raise ValueError(f"targets must be (K, 2) integers, got {targets!r}")
    starts = _sources(level[None]) if start is None else _check_places("start", level[None], start)
    ends = _check_places("targets", np.broadcast_to(level, (len(places), *level.shape)), places)
    paths = np.zeros((len(ends), *level.shape), np.bool_)
    kernels.shortest_paths_from(level, order_code(order), starts[0], ends, paths)
    return paths


def count_shortest_paths(tiles: ArrayLike) -> float | NDArray[np.float64]:
    """Return the number of shortest paths from source to target.

    >>> from maze_nca_gym.mazes.levels import parse
    >>> count_shortest_paths(parse("S..\\n...\\n..T"))
    6.0

    Args:
        tiles: (H, W) or (N, H, W) uint8 with exactly one source and one target in each level.

    Returns:
        A float, or (N,) float64 for a batch; 0 where the target is out of reach. Numbers grow exponentially: they are
            exact below 2**53, rounded above, and infinite from 2**1024 on, for example in empty levels of 520 x 520.

    Raises:
        ValueError: a level does not have exactly one source and one target.
    """
    tiles = _fast_tiles(tiles)
    levels = tiles if tiles.ndim == 3 else tiles[None]
    counts, _ = _sample(levels, np.empty(len(levels), np.uint64), 0)
    return counts if tiles.ndim == 3 else float(counts[0])


def sample_shortest_paths(rng: np.random.Generator, tiles: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return random shortest paths from source to target, all equally likely and independent of each other.

    The paths on a level depend on its index in the batch, but neither on the other levels nor on `n`: with a smaller
    `n`, the same first paths are returned.

    Args:
        rng: source of all randomness; one number is drawn for each level.
        tiles: (H, W) or (N, H, W) uint8 with exactly one source and one target in each level.
        n: number of paths of each level, at least 1.

    Returns:
        (n, H, W) or (n, N, H, W) bool. In a batch, the paths are empty on a level whose target is out of reach.

    Raises:
        ValueError: `rng` is no generator, `n` is below 1, a single level is unsolvable, or any level does not have
            exactly one source and one target.
    """
    check_rng(rng)
    n = check_count("n", n)
    tiles = _fast_tiles(tiles)
    levels = tiles if tiles.ndim == 3 else tiles[None]
    counts, paths = _sample(levels, rng.integers(1 << 63, size=len(levels), dtype=np.uint64), n)
    if tiles.ndim == 3:
        return paths
    if counts[0] == 0:
        raise ValueError("the level is unsolvable: no path joins source and target")
    return paths[:, 0]


def _sample(levels: Tiles, seeds: NDArray[np.uint64], n: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the (N,) numbers of shortest paths, and (n, N, H, W) paths that are drawn with the (N,) seeds."""
    counts, paths = np.empty(len(levels)), np.zeros((n, *levels.shape), np.bool_)
    malformed = kernels.sample_paths(levels, seeds, counts, paths)
    if malformed >= 0:
        _raise_malformed(f"level {malformed}", levels[malformed])
    return counts, paths


def diameter(tiles: ArrayLike, order: str = USUAL_ORDER) -> NDArray[np.bool_]:
    """Return the canonical longest of the shortest paths between any two connected tiles (paper, "Computing the
    diameter").

    Args:
        tiles: (H, W) or (N, H, W) uint8; mazes need not be connected.
        order: order of directions.

    Returns:
        Bool array of the same shape; each path has diameter + 1 tiles. In a batch, the path is empty on a level without
            a free tile: `path.any(axis=(1, 2))` is the mask of solvable levels.

    Raises:
        ValueError: a single level has no free tile.
    """
    tiles, code = _fast_tiles(tiles), order_code(order)
    paths = np.zeros(tiles.shape, _BOOL)
    if tiles.ndim == 2:
        status = kernels.diameter(tiles, code, paths)
        if status == UNSOLVABLE:
            raise ValueError("the level has no free tile, hence no diameter")
        if status == MALFORMED:
            _raise_malformed("the level", tiles)
        return paths
    malformed = kernels.diameters(tiles, code, paths)
    if malformed >= 0:
        _raise_malformed(f"level {malformed}", tiles[malformed])
    return paths


def distances(tiles: ArrayLike, start: ArrayLike | None = None) -> NDArray[np.int32]:
    """Return the number of moves from `start` to every tile.

    Args:
        tiles: (H, W) or (N, H, W) uint8.
        start: (row, col), or for a batch also (N, 2) integers, a start for each level; by default each level's source.

    Returns:
        int32 array of the shape of `tiles`, -1 at walls and at tiles that cannot be reached from `start`.

    Raises:
        ValueError: `start` is outside the level or on a wall, or `start` is not given and a level does not have exactly
            one source.
    """
    levels = _as_batch(tiles)
    starts = _sources(levels) if start is None else _check_places("start", levels, start)
    result = np.empty(levels.shape, np.int32)
    kernels.distance_maps(levels, starts, result)
    return result if np.ndim(tiles) == 3 else result[0]


def eccentricities(tiles: ArrayLike) -> NDArray[np.int32]:
    """Return the distance from every tile to the farthest tile that can be reached from it.

    Args:
        tiles: (H, W) or (N, H, W) uint8.

    Returns:
        int32 array of the shape of `tiles`, -1 at walls.
    """
    levels = _as_batch(tiles)
    result = np.empty(levels.shape, np.int32)
    kernels.eccentricity_maps(levels, result)
    return result if np.ndim(tiles) == 3 else result[0]


def is_optimal(tiles: ArrayLike, path: ArrayLike) -> bool | NDArray[np.bool_]:
    """Return whether a set of tiles is *some* optimal solution, canonical or not.

    On a level with source and target, this is a shortest path between them; on a level without, a diameter path.

    Args:
        tiles: (H, W) or (N, H, W) uint8.
        path: bool, or 0 and 1, of the same shape.

    Returns:
        A bool, or an (N,) bool array for a batch; False where the level is unsolvable.

    Raises:
        ValueError: the shapes differ, a path has other values, or a level has a source without a target, two sources …
    """
    levels, paths = _with_paths(tiles, path)
    with_endpoints = (levels >= Tile.SOURCE).any(axis=(1, 2))
    lengths = np.empty(len(levels), np.int64)
    for solve, asked in ((shortest_path, with_endpoints), (diameter, ~with_endpoints)):
        if asked.any():
            lengths[asked] = solve(levels[asked]).sum(axis=(1, 2))
    result = _are_paths(levels, paths, lengths)
    return result if np.ndim(tiles) == 3 else bool(result[0])


def is_valid(tiles: ArrayLike, path: ArrayLike) -> bool | NDArray[np.bool_]:
    """Return whether a set of tiles is a valid path, optimal or not. The solution of the level is not needed for this.

    A valid path is one line of free tiles, without gaps, forks and shortcuts. In a level with source and target it
    joins them, and may be longer than necessary. In a level without, it is a shortest path between its own ends, which
    one breadth-first search decides, and it may be shorter than the diameter.

    Args:
        tiles: (H, W) or (N, H, W) uint8.
        path: bool, or 0 and 1, of the same shape.

    Returns:
        A bool, or an (N,) bool array for a batch.

    Raises:
        ValueError: the shapes differ, or a path has other values.
    """
    levels, paths = _with_paths(tiles, path)
    result = _are_paths(levels, paths, paths.sum(axis=(1, 2)))
    return result if np.ndim(tiles) == 3 else bool(result[0])


def best_path(tiles: ArrayLike, values: ArrayLike, order: str = USUAL_ORDER) -> NDArray[np.bool_]:
    """Return the optimal solution, canonical or not, whose tiles have the greatest sum of values.

    For example, if the values are 1 on the tiles of a predicted path and 0 elsewhere, the result is the optimum that
    shares the most tiles with this path. On a level with source and target, solutions are shortest paths between them;
    on a level without, diameter paths. If several have the same sum, the first of them in the canonical order is
    returned, so equal values everywhere give the canonical path.

    Args:
        tiles: (H, W) or (N, H, W) uint8. In a batch, either all levels have source and target, or none has.
        values: finite numbers, of the same shape.
        order: order of directions.

    Returns:
        Bool array of the same shape. In a batch, the path is empty on a level that has no solution.

    Raises:
        ValueError: shapes differ, a value is not finite, a single level has no solution, or a level has a source
            without a target, two sources …
    """
    levels = _as_batch(tiles)
    gains = np.ascontiguousarray(as_array(values, "values", np.float64))
    if gains.shape != np.shape(tiles):
        raise ValueError(f"values must have the shape of tiles, {np.shape(tiles)}, got {gains.shape}")
    if not np.isfinite(gains).all():
        raise ValueError(f"values must be finite, got {gains[~np.isfinite(gains)][0]}")
    paths = np.zeros(levels.shape, np.bool_)
    statuses = np.empty(len(levels), np.int8)
    endpoints = bool((levels >= Tile.SOURCE).any())
    kernels.choose_paths(levels, order_code(order), gains.reshape(levels.shape), paths, statuses, endpoints)
    for i in np.flatnonzero(statuses == MALFORMED)[:1]:
        _raise_malformed("the level" if np.ndim(tiles) == 2 else f"level {i}", levels[i])
    if np.ndim(tiles) == 3:
        return paths
    if statuses[0] == UNSOLVABLE:
        reason = "no path joins source and target" if endpoints else "it has no free tile"
        raise ValueError(f"the level is unsolvable: {reason}")
    return paths[0]


def _with_paths(tiles: ArrayLike, path: ArrayLike) -> tuple[Tiles, NDArray[np.bool_]]:
    """Return levels and paths, (N, H, W) both, with N = 1 for a single level."""
    levels, paths = _as_batch(tiles), as_path(path)
    if paths.shape != np.shape(tiles):
        raise ValueError(f"path must have the shape of tiles, {np.shape(tiles)}, got {paths.shape}")
    return levels, paths.reshape(levels.shape)


def _are_paths(levels: Tiles, paths: NDArray[np.bool_], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which sets of tiles are paths with the given (N,) numbers of tiles, see `is_valid`."""
    check = kernels.is_optimal_path
    return np.array([check(*level) for level in zip(levels, paths, lengths, strict=True)], dtype=np.bool_)


def _fast_tiles(tiles: ArrayLike) -> Tiles:
    """Return `as_tiles`, but leave it to the kernels to find invalid values in an array of the right layout."""
    if type(tiles) is np.ndarray and tiles.dtype is _UINT8 and tiles.size and tiles.flags.carray:
        return tiles if tiles.ndim == 2 or tiles.ndim == 3 else as_tiles(tiles, n_kinds=MOST_KINDS)
    return as_tiles(tiles, n_kinds=MOST_KINDS)


def _as_batch(tiles: ArrayLike) -> Tiles:
    """Return (N, H, W) tiles, with N = 1 for a single level."""
    levels = as_tiles(tiles, n_kinds=MOST_KINDS)
    return levels if levels.ndim == 3 else levels[None]


def _raise_malformed(which: str, tiles: Tiles) -> None:
    as_tiles(tiles, n_kinds=MOST_KINDS)
    n_sources, n_targets = (tiles == Tile.SOURCE).sum(), (tiles == Tile.TARGET).sum()
    raise ValueError(
        f"a shortest path needs exactly one source and one target; {which} has {n_sources} and {n_targets}"
    )


def _sources(levels: Tiles) -> NDArray[np.int64]:
    """Return (N,) places of the sources, counted row by row."""
    counts = (levels == Tile.SOURCE).sum(axis=(1, 2))
    if (counts != 1).any():
        i = int(np.argmax(counts != 1))
        raise ValueError(f"without `start`, a level needs exactly one source; level {i} has {counts[i]}")
    return (levels == Tile.SOURCE).reshape(len(levels), levels.shape[1] * levels.shape[2]).argmax(axis=1)


def _check_places(name: str, levels: Tiles, places: ArrayLike) -> NDArray[np.int64]:
    """Return (N,) free places of (N, H, W) levels, counted row by row; messages call them `name`."""
    n, height, width = levels.shape
    array = as_array(places, name)
    if array.dtype.kind not in "iu" or array.shape not in {(2,), (n, 2)}:
        raise ValueError(f"{name} must be (row, col) or ({n}, 2) integers, got {places!r}")
    array = np.ascontiguousarray(np.broadcast_to(array, (n, 2)), dtype=np.int64)
    rows, cols = array.T
    if (array < 0).any() or (rows >= height).any() or (cols >= width).any():
        raise ValueError(f"{name} must lie inside the {height} x {width} tiles, got {places!r}")
    if (levels[np.arange(n), rows, cols] == Tile.WALL).any():
        raise ValueError(f"{name} must be a free tile, got {places!r}, which is a wall")
    return rows * width + cols
