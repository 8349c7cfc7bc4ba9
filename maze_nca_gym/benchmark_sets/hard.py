"""Maze-Hard: open grids without a border on which start and goal are far apart, and nearly every answer is a tie.

The procedure is that of Searchformer (arXiv 2402.14083), of which HRM (arXiv 2506.21734) keeps the longest.
A layout has 30 x 30 tiles, no border, and 270 to 450 walls. It gets up to 100 random pairs of start and goal, and is
kept with the first that is more than 110 moves apart.
About one layout in 1,300 has such a pair, so the package stores which ones do instead of searching each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.families import named_seed
from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.solvers import distances

SIDE = 30
"""Rows and columns; there is no border."""
FEWEST_WALLS, MOST_WALLS = 270, 450
"""Range of the number of walls, drawn uniformly."""
PAIRS = 100
"""Pairs of start and goal that a layout gets."""
MOVES = 110
"""Moves of a shortest path above which a level is kept."""
_MOVES = ((-1, 0), (0, -1), (0, 1), (1, 0))


def hard_levels(name: str, n: int) -> Tiles:
    """Return the first levels of a set, (n, 30, 30) uint8.

    Args:
        name: "maze-hard-30" or "maze-hard-train-30".
        n: how many.
    """
    found = [draw_hard(name, candidate) for candidate in candidates()[name][:n]]
    return np.stack([level for level in found if level is not None])


def search_candidates(name: str) -> Iterator[int]:
    """Yield the numbers of the candidates of a set that are kept, in order, forever; the package stores the first
    ones."""
    candidate = 0
    while True:
        if draw_hard(name, candidate) is not None:
            yield candidate
        candidate += 1


@cache
def candidates() -> dict[str, tuple[int, ...]]:
    """Return the numbers of the candidates that are kept, by the name of their set."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("maze_hard.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines()]
    return {words[0]: tuple(map(int, words[1:])) for words in lines}


def draw_hard(name: str, candidate: int) -> Tiles | None:
    """Return a candidate of a set, (30, 30) uint8, with the first pair that is far enough apart; None if there is no
    such pair.

    Every candidate has a seed of its own: its number of walls is drawn, then their places, then all pairs.
    """
    rng = np.random.default_rng(named_seed(f"benchmark {name}", candidate))
    n_walls = rng.integers(FEWEST_WALLS, MOST_WALLS + 1)
    tiles = np.zeros(SIDE * SIDE, np.uint8)
    tiles[rng.permutation(SIDE * SIDE)[:n_walls]] = Tile.WALL
    free = np.flatnonzero(tiles == Tile.EMPTY)
    pairs = free[rng.integers(len(free), size=(PAIRS, 2))]
    level = tiles.reshape(SIDE, SIDE)
    pairs = pairs[_may_be_far(level, pairs)]
    if not len(pairs):
        return None
    starts = np.stack(np.divmod(pairs[:, 0], SIDE), axis=1)
    maps = distances(np.broadcast_to(level, (len(pairs), SIDE, SIDE)), starts).reshape(len(pairs), SIDE * SIDE)
    far = np.flatnonzero(maps[np.arange(len(pairs)), pairs[:, 1]] > MOVES)
    if not len(far):
        return None
    tiles[pairs[far[0]]] = Tile.SOURCE, Tile.TARGET
    return level


def _may_be_far(level: Tiles, pairs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which of (K, 2) pairs may be more than `MOVES` apart; a single search rules most of them out.

    Two tiles are no farther apart than the detour through a third one, here a free tile near the middle. If neither is
    connected to that tile, their path has no more tiles than the others that are not.
    """
    free = np.argwhere(level == Tile.EMPTY)
    hub = free[np.abs(free - (SIDE - 1) / 2).sum(axis=1).argmin()]
    reach = distances(level, hub).reshape(SIDE * SIDE)
    detours, n_others = reach[pairs], len(free) - np.count_nonzero(reach >= 0)
    together = (detours >= 0).all(axis=1) & (detours.sum(axis=1) > MOVES)
    return together | ((detours < 0).all(axis=1) & (n_others > MOVES + 1))


def label_hard(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the label of each level, (N, H, W) bool: one shortest path, that of a deterministic A* search.

    The tie rule: open tiles are expanded in the order of moves so far plus Manhattan distance to the goal. Ties are
    expanded in the order in which they were found. Neighbours are found in the order up, left, right, down, which is
    row by row. A tile keeps the first parent that reached it with its fewest moves.

    Raises:
        ValueError: a level that is unsolvable, or lacks source or target.
    """
    return np.stack([_a_star(level) for level in tiles]) if len(tiles) else np.zeros(tiles.shape, np.bool_)


def _a_star(level: Tiles) -> NDArray[np.bool_]:
    source, target = (_place(level, tile) for tile in (Tile.SOURCE, Tile.TARGET))
    height, width = level.shape
    free = {(int(row), int(col)) for row, col in np.argwhere(level != Tile.WALL)}
    moves, parents = {source: 0}, {source: source}
    waiting = [(abs(source[0] - target[0]) + abs(source[1] - target[1]), 0, source)]
    n_found, done = 1, set()
    while waiting:
        _, _, tile = heappop(waiting)
        if tile == target:
            return _trace(parents, target, (height, width))
        if tile in done:  # an older entry, from before the tile was reached with fewer moves
            continue
        done.add(tile)
        for down, right in _MOVES:
            other = (tile[0] + down, tile[1] + right)
            if other in free and moves[tile] + 1 < moves.get(other, height * width):
                moves[other], parents[other] = moves[tile] + 1, tile
                estimate = moves[other] + abs(other[0] - target[0]) + abs(other[1] - target[1])
                heappush(waiting, (estimate, n_found, other))
                n_found += 1
    raise ValueError("the level is unsolvable: no path joins source and target")


def _place(level: Tiles, tile: Tile) -> tuple[int, int]:
    places = np.argwhere(level == tile)
    if len(places) != 1:
        raise ValueError(f"a label needs exactly one {tile.name.lower()}, and the level has {len(places)}")
    return int(places[0, 0]), int(places[0, 1])


def _trace(
    parents: dict[tuple[int, int], tuple[int, int]], tile: tuple[int, int], shape: tuple[int, int]
) -> NDArray[np.bool_]:
    path = np.zeros(shape, np.bool_)
    while not path[tile]:  # the source is its own parent
        path[tile] = True
        tile = parents[tile]
    return path
