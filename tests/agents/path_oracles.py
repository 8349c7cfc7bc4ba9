"""What is true about a maze, by networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tile

Tiles = NDArray[np.uint8]
Place = tuple[int, int]
DIRECTIONS = ((-1, 0), (0, -1), (1, 0), (0, 1))


def grid_graph(tiles: Tiles) -> nx.Graph:
    """Free tiles as nodes in row-major order, each with its edges in the order up, left, down, right."""
    graph = nx.DiGraph()  # directed both ways: an undirected graph would list neighbours in the order of insertion
    free = [(int(row), int(col)) for row, col in np.argwhere(tiles != Tile.WALL)]
    graph.add_nodes_from(free)
    for row, col in free:
        neighbours = ((row + down, col + right) for down, right in DIRECTIONS)
        graph.add_edges_from(((row, col), place) for place in neighbours if place in graph)
    return graph


def _place(tiles: Tiles, tile: Tile) -> Place:
    row, col = np.argwhere(tiles == tile)[0]
    return int(row), int(col)


def _drawn(tiles: Tiles, places: list[Place]) -> NDArray[np.bool_]:
    path = np.zeros(tiles.shape, bool)
    for place in places:
        path[place] = True
    return path


def canonical_path(tiles: Tiles) -> tuple[NDArray[np.bool_], int]:
    """The path that `networkx.shortest_path(graph, source)` finds, and its edges; empty and 0 if there is
    none."""
    source, target = _place(tiles, Tile.SOURCE), _place(tiles, Tile.TARGET)
    path = nx.shortest_path(grid_graph(tiles), source).get(target, [])
    return _drawn(tiles, path), max(0, len(path) - 1)


def all_paths(tiles: Tiles) -> tuple[NDArray[np.bool_], int]:
    """The union of all shortest paths, and their edges; empty and 0 if there is none."""
    source, target = _place(tiles, Tile.SOURCE), _place(tiles, Tile.TARGET)
    graph = grid_graph(tiles)
    from_source = nx.single_source_shortest_path_length(graph, source)
    from_target = nx.single_source_shortest_path_length(graph, target)
    length = from_source.get(target, 0)
    joined = [p for p, d in from_source.items() if length and p in from_target and d + from_target[p] == length]
    return _drawn(tiles, joined), length
