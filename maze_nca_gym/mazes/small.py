"""Small mazes of a task, on which claims about all mazes are tried: random mazes, all mazes of up to 3 x 3 tiles, and
every maze of a given height and width."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import groupby, islice, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles

SIZES = ((2, 5), (3, 3), (4, 4), (5, 6), (6, 5))
"""Height and width of the random mazes, without their borders."""
LARGER = ((8, 8), (12, 12))
"""Height and width of the larger mazes, without their borders."""
ALL_UP_TO = 3
"""Largest height and width for which `all_mazes` returns all mazes."""
MOST_MAZES = 10_000
"""Largest number of mazes of one height and width in `all_mazes`; if there are more, this many are drawn at random."""
MOST_OF_LIBRARY = 400
"""About the largest number of mazes of one size on which axioms of `mazes.relations` are tried; the tests try more."""
GENERATORS = ("random", "loops", "perfect")
AT_ONCE = 4096
"""Largest number of mazes that `every_maze` yields together."""


class Task(Hashable, Protocol):
    """Protocol for the attributes of a `tasks.Task` that are needed to make small mazes."""

    @property
    def n_tiles(self) -> int:
        """The number of kinds of tile."""

    @property
    def count_limits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the largest number of tiles of each kind that a level may have, each (T,)."""

    def generate(self, rng: np.random.Generator, n: int, size: Any, generator: str, **options: Any) -> Tiles:
        """Return n generated levels, (n, H, W) uint8."""


@lru_cache(maxsize=64)
def small_mazes(task: Task, seed: int = 0) -> tuple[Tiles, ...]:
    """Return small random (H, W) levels of a task, with and without loops and borders.

    In half of the levels, three tenths of the empty tiles become walls, so there may be no way from one tile to
    another. Kinds of tile that no generated level has are put on every other level, in place of empty tiles.
    """
    rng, mazes = np.random.default_rng(seed), list[Tiles]()
    for size in SIZES:
        for generator in GENERATORS:
            for border in (True, False):
                levels = task.generate(rng, 1, size, generator, border=border)
                closed = (levels == Tile.EMPTY) & (rng.random(levels.shape) < 0.3)
                mazes += [*levels, *np.where(closed, np.uint8(Tile.WALL), levels)]
    _, most = task.count_limits
    counts = np.bincount(np.concatenate([maze.ravel() for maze in mazes]), minlength=task.n_tiles)
    for kind in np.flatnonzero(counts == 0):
        for maze in mazes[::2]:
            places = rng.permutation(np.flatnonzero(maze == Tile.EMPTY))
            maze.flat[places[: min(most[kind], 1 + len(places) // 4)]] = kind
    return tuple(mazes)


def kinds_once(task: Task) -> tuple[int, ...]:
    """Return the kinds of tile that every level has at most once, such as the source."""
    return tuple(np.flatnonzero(task.count_limits[1] <= 1).tolist())


@lru_cache(maxsize=64)
def larger_mazes(task: Task) -> tuple[Tiles, ...]:
    """Return random levels of a task that are larger than `small_mazes`, with and without borders: one (N, H, W) array
    for each shape."""
    rng, by_border = np.random.default_rng(0), list[Tiles]()
    for size in LARGER:
        levels = [[task.generate(rng, 4, size, name, border=border) for border in (True, False)] for name in GENERATORS]
        by_border += map(np.concatenate, zip(*levels, strict=True))
    return tuple(by_border)


def allowed(task: Task, tiles: Tiles) -> NDArray[np.bool_]:
    """Return for each of (N, H, W) mazes whether its number of tiles of each kind is within the task's limits, (N,)
    bool."""
    least, most = task.count_limits
    of_each = np.stack([(tiles == kind).sum(axis=(1, 2)) for kind in range(task.n_tiles)], axis=1)
    return np.asarray(((of_each >= least) & (of_each <= most)).all(axis=1))


def number_of_mazes(task: Task, n: int) -> int:
    """Return the number of mazes of n tiles that `every_maze` yields.

    It is an upper bound if the task limits the number of tiles of a kind that may occur several times.

    Args:
        task: the task of the mazes.
        n: the number of tiles, the product of height and width.
    """
    least, most = task.count_limits
    n_several = int((most > 1).sum())
    free = {n: 1}  # number of tiles without a kind that occurs once -> number of ways to place these kinds
    for kind in np.flatnonzero(most == 1):
        placed = {left - 1: ways * left for left, ways in free.items() if left}
        unplaced = {} if least[kind] else free
        free = {left: placed.get(left, 0) + unplaced.get(left, 0) for left in {*placed, *unplaced}}
    return sum(ways * n_several**left for left, ways in free.items())


def every_maze(task: Task, height: int, width: int) -> Iterator[Tiles]:
    """Yield every maze of a height and width, solvable or not, in a fixed order, as arrays of at most `AT_ONCE` mazes,
    (N, H, W) uint8.

    The number of tiles of each kind is within the task's limits.

    Args:
        task: the task of the mazes.
        height: the number of rows, at least 1.
        width: the number of columns, at least 1.
    """
    (least, most), n = task.count_limits, height * width
    once, several = np.flatnonzero(most == 1).astype(np.uint8), np.flatnonzero(most > 1).astype(np.uint8)
    waiting, n_waiting = list[Tiles](), 0
    # the kinds that occur once are placed first; all other tiles take every combination of the other kinds
    choices = product(*(range(0 if least[kind] else -1, n) for kind in once))
    for is_there, group in groupby(choices, lambda places: tuple(place >= 0 for place in places)):
        present = np.flatnonzero(is_there)
        n_others = n - len(present)
        n_rest = len(several) ** max(0, n_others)
        while some := list(islice(group, max(1, AT_ONCE // n_rest))):
            columns = _columns(np.array(some, np.int64).reshape(len(some), -1)[:, present], n)
            for begin in range(0, n_rest if len(columns) else 0, AT_ONCE):
                rest = several[_combinations(len(several), n_others, begin)]
                row = np.concatenate([rest, np.broadcast_to(once[present], (len(rest), len(present)))], axis=1)
                mazes = row[np.arange(len(row))[:, None], columns[:, None]].reshape(-1, height, width)
                waiting.append(mazes[allowed(task, mazes)] if least[several].any() else mazes)
                n_waiting += len(waiting[-1])
                if n_waiting >= AT_ONCE:
                    batch = np.concatenate(waiting)
                    yield batch[:AT_ONCE]
                    waiting, n_waiting = [batch[AT_ONCE:]], len(batch) - AT_ONCE
    if n_waiting:
        yield np.concatenate(waiting)


def _columns(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return for each of n tiles the column of its kind in a row of the kinds at all other tiles and then the kinds at
    `places`, (P', n). Of the (P, k) places, those with two kinds at one tile are left out."""
    places = places[(np.diff(np.sort(places, axis=1), axis=1) > 0).all(axis=1)]
    at, k = np.arange(len(places))[:, None], places.shape[1]
    is_other = np.ones((len(places), n), np.bool_)
    is_other[at, places] = False
    columns = is_other.cumsum(axis=1) - 1
    columns[at, places] = n - k + np.arange(k)
    return columns


@lru_cache(maxsize=16)
def _combinations(base: int, n: int, begin: int) -> NDArray[np.int64]:
    """Return at most `AT_ONCE` of the combinations of n numbers below `base`, (N, n), in order from one of them on."""
    numbers = np.arange(begin, min(begin + AT_ONCE, base**n))
    return numbers[:, None] // base ** np.arange(n - 1, -1, -1) % base


@lru_cache(maxsize=64)
def all_mazes(task: Task) -> tuple[Tiles, ...]:
    """Return all mazes of each height and width up to `ALL_UP_TO`, (N, H, W) uint8 each, except mazes of one tile.

    If there are more than `MOST_MAZES` of one height and width, they are a random sample. The number of tiles of each
    kind is within the task's limits.
    """
    rng, n_kinds, mazes = np.random.default_rng(0), task.n_tiles, []
    least, most = task.count_limits
    for height, width in np.ndindex(ALL_UP_TO, ALL_UP_TO):
        shape, n = (height + 1, width + 1), (height + 1) * (width + 1)
        if n_kinds**n <= 16 * MOST_MAZES * 2:
            tiles = np.indices((n_kinds,) * n, np.uint8).reshape(n, -1).T
        else:
            tiles = _drawn(rng, n, least, most, 2 * MOST_MAZES)
        tiles = tiles[allowed(task, tiles[:, None])]
        if len(tiles) > MOST_MAZES:
            tiles = tiles[np.sort(rng.choice(len(tiles), MOST_MAZES, replace=False))]
        if n > 1 and len(tiles):
            mazes.append(np.ascontiguousarray(tiles).reshape(-1, *shape))
    return tuple(mazes)


def _drawn(rng: np.random.Generator, n: int, least: np.ndarray, most: np.ndarray, n_mazes: int) -> np.ndarray:
    """Draw distinct mazes of n tiles in a row, (N, n) uint8.

    Each kind that must occur gets a tile of its own. Each kind of which there may be one tile or none gets such a tile
    with probability 1/2. All other tiles have kinds that may occur several times. `least` and `most`, (T,), limit the
    number of tiles of each kind.
    """
    tiles = rng.choice(np.flatnonzero(most > 1), (n_mazes, n)).astype(np.uint8)
    places = rng.permuted(np.tile(np.arange(n), (n_mazes, 1)), axis=1)
    optional = (most == 1) & (least == 0)
    for place, kind in enumerate(np.flatnonzero((least > 0) | optional)[:n]):
        present = rng.random(n_mazes) < 0.5 if optional[kind] else np.ones(n_mazes, np.bool_)
        tiles[present, places[present, place]] = kind
    return np.unique(tiles, axis=0)


@lru_cache(maxsize=64)
def mazes_to_try(task: Task) -> tuple[Tiles, ...]:
    """Return the mazes on which claims about a task are tried, as arrays of mazes of one shape, (N, H, W) uint8:
    `all_mazes`, then `small_mazes`, then `larger_mazes`."""
    by_shape: dict[tuple[int, ...], list[Tiles]] = {}
    for maze in small_mazes(task):
        by_shape.setdefault(maze.shape, []).append(maze)
    return (*all_mazes(task), *map(np.stack, by_shape.values()), *larger_mazes(task))
