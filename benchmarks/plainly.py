"""Plain code that solves one maze at a time and returns canonical solutions.

The code with NumPy and networkx makes levels and targets as the paper's code does. `searched_path` uses numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from maze_nca_gym.mazes import Tile, Tiles

MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))

Place = tuple[int, int]


def grid_graph(tiles: Tiles) -> Any:
    """Return the graph of the free tiles, row by row, with neighbours in the order up, left, down, right."""
    from networkx import Graph

    graph = Graph()
    free = [(int(row), int(col)) for row, col in np.argwhere(tiles != Tile.WALL)]
    graph.add_nodes_from(free)
    for row, col in free:
        for down, right in MOVES:
            if (row + down, col + right) in graph:
                graph.add_edge((row, col), (row + down, col + right))
    return graph


def shortest_path(tiles: Tiles) -> list[Place] | None:
    """Return the canonical shortest path as (row, col) tiles, or None if there is no path."""
    from networkx import shortest_path

    source, target = (tuple(np.argwhere(tiles == tile)[0].tolist()) for tile in (Tile.SOURCE, Tile.TARGET))
    return shortest_path(grid_graph(tiles), source).get(target)


def diameter(tiles: Tiles) -> list[Place]:
    """Return the canonical diameter path: the first of the longest among the shortest paths of all pairs."""
    from networkx import shortest_path

    graph = grid_graph(tiles)
    longest: list[Place] = []
    for start in graph:
        farthest = max(shortest_path(graph, start).values(), key=len)
        longest = max(longest, farthest, key=len)
    return longest


def solvable_level(rng: np.random.Generator, size: int) -> tuple[Tiles, list[Place]]:
    """Draw random mazes until one has a path from source to target; return this maze and its path."""
    while True:
        tiles = np.full((size + 2, size + 2), Tile.WALL, np.uint8)
        tiles[1:-1, 1:-1] = np.where(rng.random((size, size)) < 0.5, Tile.WALL, Tile.EMPTY)
        ends = rng.choice(size * size, 2, replace=False)
        for place, tile in zip(ends.tolist(), (Tile.SOURCE, Tile.TARGET), strict=True):
            tiles[1 + place // size, 1 + place % size] = tile
        path = shortest_path(tiles)
        if path is not None:
            return tiles, path


def solved_levels(rng: np.random.Generator, n: int, size: int) -> None:
    """Draw `n` solvable levels, and mark their shortest paths and diameter paths in arrays."""
    for _ in range(n):
        tiles, path = solvable_level(rng, size)
        for tiles_on_path in (path, diameter(tiles)):
            target = np.zeros(tiles.shape, np.bool_)
            target[tuple(np.transpose(tiles_on_path))] = True


@njit  # type: ignore[untyped-decorator]
def searched_path(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the canonical shortest path, (H, W) bool, by breadth-first search. Without a path no tile is on."""
    height, width = tiles.shape
    parents = np.full(tiles.shape, -1, np.int64)
    queue = np.empty(height * width, np.int64)
    head = tail = 0
    for row in range(height):
        for col in range(width):
            if tiles[row, col] == 2:
                queue[tail] = parents[row, col] = row * width + col
                tail += 1
    path = np.zeros(tiles.shape, np.bool_)
    while head < tail:
        place = queue[head]
        head += 1
        row, col = place // width, place % width
        if tiles[row, col] == 3:
            path[row, col] = True
            while parents[row, col] != place:
                place = parents[row, col]
                row, col = place // width, place % width
                path[row, col] = True
            break
        for down, right in MOVES:
            r, c = row + down, col + right
            if 0 <= r < height and 0 <= c < width and tiles[r, c] != 1 and parents[r, c] < 0:
                parents[r, c] = place
                queue[tail] = r * width + c
                tail += 1
    return path
