"""Solve mazes with graph libraries, each in its fastest way: NumPy makes the edges, and the library searches.

The levels have a border of walls, so that no edge joins the end of one row to the beginning of the next. A library may
return any optimal solution, not only the canonical one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes import Tile, Tiles


@dataclass(frozen=True)
class Library:
    """The functions with which a graph library solves a maze.

    Attributes:
        graph: (H, W) tiles -> a graph whose node r * W + c is the tile at row r, column c.
        path: (graph, node, node) -> the number of tiles on a shortest path. The function computes the path itself.
        diameter: graph -> the number of tiles on a diameter path; None if the library has no such search.
    """

    graph: Callable[[Tiles], Any]
    path: Callable[[Any, int, int], int]
    diameter: Callable[[Any], int] | None = None

    def path_from_tiles(self, tiles: Tiles) -> int:
        """Return the number of tiles on a shortest path from source to target."""
        return self.path(self.graph(tiles), *ends(tiles))

    def diameter_from_tiles(self, tiles: Tiles) -> int:
        """Return the number of tiles on a diameter path."""
        assert self.diameter is not None
        return self.diameter(self.graph(tiles))


def ends(tiles: Tiles) -> list[int]:
    """Return the nodes of source and target, in either order."""
    return np.flatnonzero(tiles >= Tile.SOURCE).tolist()


def edges(tiles: Tiles) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first nodes and the second nodes of all edges."""
    width = tiles.shape[1]
    free = tiles.ravel() != Tile.WALL
    across = np.flatnonzero(free[:-1] & free[1:])
    down = np.flatnonzero(free[:-width] & free[width:])
    return np.concatenate([across, down]), np.concatenate([across + 1, down + width])


def networkit() -> Library:
    from networkit import GraphFromCoo, distance, setNumberOfThreads

    setNumberOfThreads(1)

    def graph(tiles: Tiles) -> Any:
        return GraphFromCoo(edges(tiles), n=tiles.size)

    def path(graph: Any, source: int, target: int) -> int:
        search = distance.BidirectionalBFS(graph, source, target, True)
        search.run()
        return len(search.getPath()) + 2  # getPath leaves out both ends

    def diameter(graph: Any) -> int:
        search = distance.Diameter(graph)  # exact by default, but without the path
        search.run()
        return search.getDiameter()[0] + 1

    return Library(graph, path, diameter)


def networkit_one_way() -> Library:
    from networkit import distance

    def path(graph: Any, source: int, target: int) -> int:
        search = distance.BFS(graph, source, True, False, target)
        search.run()
        return len(search.getPath(target))

    return Library(networkit().graph, path)


def igraph() -> Library:
    from igraph import Graph

    def graph(tiles: Tiles) -> Any:
        starts, stops = edges(tiles)
        return Graph(tiles.size, list(zip(starts.tolist(), stops.tolist(), strict=True)))

    def path(graph: Any, source: int, target: int) -> int:
        return len(graph.get_shortest_path(source, target))

    def diameter(graph: Any) -> int:
        return len(graph.get_diameter(directed=False))

    return Library(graph, path, diameter)


def networkx() -> Library:
    from networkx import Graph, shortest_path

    def graph(tiles: Tiles) -> Any:
        starts, stops = edges(tiles)
        return Graph(zip(starts.tolist(), stops.tolist(), strict=True))

    def path(graph: Any, source: int, target: int) -> int:
        return len(shortest_path(graph, source, target))

    return Library(graph, path)


def scipy() -> Library:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    def graph(tiles: Tiles) -> Any:
        starts, stops = edges(tiles)
        return csr_array((np.ones(len(starts)), (starts, stops)), shape=(tiles.size, tiles.size))

    def path(graph: Any, source: int, target: int) -> int:
        predecessors = breadth_first_order(graph, source, directed=False)[1].tolist()
        nodes = [target]
        while nodes[-1] != source:
            nodes.append(predecessors[nodes[-1]])
        return len(nodes)

    return Library(graph, path)
