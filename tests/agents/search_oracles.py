"""What is true about searches and distances in a maze, in plain Python."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from path_oracles import grid_graph

from maze_nca_gym.levels import Tile

Tiles = NDArray[np.uint8]
Place = tuple[int, int]
PRIORITY = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Moves down, right, up, left, in the order in which the pebble prefers them."""


def depth_first_order(tiles: Tiles, source: Place) -> NDArray[np.int64]:
    """(H, W): the number of each visit, with an explicit stack; -1 where the search never comes."""
    order = np.full(tiles.shape, -1)
    stack, visits = [source], 0
    while stack:
        row, col = stack.pop()
        inside = 0 <= row < tiles.shape[0] and 0 <= col < tiles.shape[1]
        if not inside or tiles[row, col] == Tile.WALL or order[row, col] >= 0:
            continue
        order[row, col] = visits
        visits += 1
        stack.extend((row + down, col + right) for down, right in reversed(PRIORITY))
    return order


def distances(tiles: Tiles, source: Place) -> dict[Place, int]:
    lengths: dict[Place, int] = nx.single_source_shortest_path_length(grid_graph(tiles), source)
    return lengths


def eccentricities(tiles: Tiles) -> NDArray[np.int64]:
    """(H, W) edges to the farthest reachable tile, 0 on walls; floods whole mazes held in one integer each."""
    stride = tiles.shape[1] + 1  # a column of walls keeps the flood from wrapping round
    free = [row * stride + col for row, col in np.argwhere(tiles != Tile.WALL).tolist()]
    mask = sum(1 << place for place in free)
    result = np.zeros(tiles.shape, np.int64)
    for place in free:
        flood, steps = 1 << place, -1
        before = 0
        while flood != before:
            before, steps = flood, steps + 1
            flood = (flood | flood << 1 | flood >> 1 | flood << stride | flood >> stride) & mask
        result[place // stride, place % stride] = steps
    return result


def diameter_path(tiles: Tiles) -> NDArray[np.bool_]:
    """All pairs by networkx, the first strictly longer path wins."""
    best: list[Place] = []
    graph = grid_graph(tiles)
    for source in graph:
        for path in nx.shortest_path(graph, source).values():
            best = path if len(path) > len(best) else best
    return _drawn(tiles, best)


def diameter_path_by_eccentricities(tiles: Tiles) -> NDArray[np.bool_]:
    """The same for large mazes: from the first tile of largest eccentricity, the first farthest path of networkx."""
    if (tiles == Tile.WALL).all():
        return np.zeros(tiles.shape, bool)
    eccentricity = np.where(tiles == Tile.WALL, -1, eccentricities(tiles))
    start = divmod(int(eccentricity.argmax()), tiles.shape[1])
    return _drawn(tiles, max(nx.shortest_path(grid_graph(tiles), start).values(), key=len))


def _drawn(tiles: Tiles, places: list[Place]) -> NDArray[np.bool_]:
    path = np.zeros(tiles.shape, bool)
    for place in places:
        path[place] = True
    return path
