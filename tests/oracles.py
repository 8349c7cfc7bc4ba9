"""Independent solutions with networkx and plain Python.

Nodes are added row by row, and neighbours in the order up, left, down, right. Therefore the first path of networkx is
the canonical path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain, combinations

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile

Place = tuple[int, int]
MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))
ORDERS = st.permutations("ULDR").map("".join)
"""Orders of directions."""


def in_order(order: str) -> list[Place]:
    """Return the moves of an order of directions."""
    return [MOVES["ULDR".index(towards)] for towards in order]


def grid_graph(tiles: NDArray[np.uint8], order: str = "ULDR") -> nx.DiGraph:
    """Return the graph of the free tiles of a level, with neighbours in an order of directions."""
    graph = nx.DiGraph()
    graph.add_nodes_from((int(row), int(col)) for row, col in np.argwhere(tiles != Tile.WALL))
    for row, col in list(graph):
        for d_row, d_col in in_order(order):
            if (row + d_row, col + d_col) in graph:
                graph.add_edge((row, col), (row + d_row, col + d_col))
    return graph


def place_of(tiles: NDArray[np.uint8], tile: Tile) -> Place:
    """Return the only position of a kind of tile."""
    ((row, col),) = np.argwhere(tiles == tile)
    return int(row), int(col)


def mask_of(places: Iterable[Place], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a bool grid of a shape that is True at the positions."""
    mask = np.zeros(shape, np.bool_)
    for place in places:
        mask[place] = True
    return mask


def canonical_shortest_path(tiles: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """Return the path from source to target, or None."""
    paths = nx.shortest_path(grid_graph(tiles), place_of(tiles, Tile.SOURCE))
    target = place_of(tiles, Tile.TARGET)
    return mask_of(paths[target], tiles.shape) if target in paths else None


def first_path_of_search(tiles: NDArray[np.uint8], order: str) -> NDArray[np.bool_] | None:
    """Return the path of a breadth-first search from the source, with neighbours in an order of directions."""
    source, target = place_of(tiles, Tile.SOURCE), place_of(tiles, Tile.TARGET)
    before, queue = {source: source}, deque([source])
    while queue:
        row, col = queue.popleft()
        for d_row, d_col in in_order(order):
            to = (row + d_row, col + d_col)
            inside = 0 <= to[0] < tiles.shape[0] and 0 <= to[1] < tiles.shape[1]
            if inside and tiles[to] != Tile.WALL and to not in before:
                before[to] = (row, col)
                queue.append(to)
    if target not in before:
        return None
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return mask_of(path, tiles.shape)


def path_by_distances(tiles: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """Return the path of `canonical_shortest_path` for large levels, by a walk along distances to the target."""
    place, distances = place_of(tiles, Tile.SOURCE), distance_grid(tiles, place_of(tiles, Tile.TARGET))
    path = [place] if distances[place] >= 0 else []
    while path and distances[path[-1]] > 0:
        neighbours = [(path[-1][0] + row, path[-1][1] + col) for row, col in MOVES]
        inside = [(row, col) for row, col in neighbours if 0 <= row < tiles.shape[0] and 0 <= col < tiles.shape[1]]
        path.append(next(near for near in inside if distances[near] == distances[path[-1]] - 1))
    return mask_of(path, tiles.shape) if path else None


def canonical_diameter(tiles: NDArray[np.uint8], order: str = "ULDR") -> NDArray[np.bool_] | None:
    """Return the first of the longest shortest paths between all pairs of tiles, or None without free tiles."""
    graph = grid_graph(tiles, order)
    best: list[Place] = []
    for start in graph:
        for path in nx.shortest_path(graph, start).values():
            best = path if len(path) > len(best) else best
    return mask_of(best, tiles.shape) if best else None


def distance_grid(tiles: NDArray[np.uint8], start: Place) -> NDArray[np.int32]:
    """Return the number of moves from `start` to every tile, -1 if there is no path."""
    distances = np.full(tiles.shape, -1, np.int32)
    for place, length in nx.single_source_shortest_path_length(grid_graph(tiles), start).items():
        distances[place] = length
    return distances


def eccentricity_grid(tiles: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the eccentricity of every tile, -1 at walls."""
    eccentricities, graph = np.full(tiles.shape, -1, np.int32), grid_graph(tiles)
    for place in graph:
        eccentricities[place] = max(nx.single_source_shortest_path_length(graph, place).values())
    return eccentricities


def optimal_shortest_paths(tiles: NDArray[np.uint8]) -> set[frozenset[Place]]:
    """Return all shortest paths from source to target, as sets of tiles."""
    source, target = place_of(tiles, Tile.SOURCE), place_of(tiles, Tile.TARGET)
    try:
        return {frozenset(path) for path in nx.all_shortest_paths(grid_graph(tiles), source, target)}
    except nx.NetworkXNoPath:
        return set()


def optimal_diameters(tiles: NDArray[np.uint8]) -> set[frozenset[Place]]:
    """Return all diameters as sets of tiles: all shortest paths between two tiles at the largest distance."""
    graph = grid_graph(tiles)
    lengths = {start: nx.single_source_shortest_path_length(graph, start) for start in graph}
    diameter = max((max(reached_tiles.values()) for reached_tiles in lengths.values()), default=0)
    return {
        frozenset(path)
        for start, reached_tiles in lengths.items()
        for end, length in reached_tiles.items()
        if length == diameter
        for path in nx.all_shortest_paths(graph, start, end)
    }


def all_shortest_paths(tiles: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], int]:
    """Return the tiles of all shortest paths from source to target, and their moves; none and 0 without a path."""
    source, target = place_of(tiles, Tile.SOURCE), place_of(tiles, Tile.TARGET)
    forth, back = (distance_grid(tiles, place) for place in (source, target))
    length = int(forth[target])
    on_path = (forth >= 0) & (back >= 0) & (forth + back == length)
    return (on_path, length) if length > 0 else (np.zeros(tiles.shape, np.bool_), 0)


def depth_first_order(tiles: NDArray[np.uint8], source: Place) -> NDArray[np.int64]:
    """Return the number of each visit of a search that prefers down, right, up, left; -1 for unvisited tiles."""
    order = np.full(tiles.shape, -1)
    stack, n_visits = [source], 0
    while stack:
        row, col = stack.pop()
        inside = 0 <= row < tiles.shape[0] and 0 <= col < tiles.shape[1]
        if inside and tiles[row, col] != Tile.WALL and order[row, col] < 0:
            order[row, col] = n_visits
            n_visits += 1
            # the last entry is popped first
            stack.extend([(row, col - 1), (row - 1, col), (row, col + 1), (row + 1, col)])
    return order


def all_subsets(shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return every set of tiles, (2 ** (H * W), H, W)."""
    places = [(row, col) for row in range(shape[0]) for col in range(shape[1])]
    sets = chain.from_iterable(combinations(places, size) for size in range(len(places) + 1))
    return np.stack([mask_of(subset, shape) for subset in sets])


def is_connected(tiles: NDArray[np.uint8]) -> bool:
    """Return whether the free tiles are connected."""
    graph = grid_graph(tiles)
    return len(graph) > 0 and nx.is_strongly_connected(graph)


def is_tree(tiles: NDArray[np.uint8]) -> bool:
    """Return whether exactly one path joins any two free tiles."""
    return nx.is_tree(grid_graph(tiles).to_undirected())


@st.composite
def mazes(draw: st.DrawFn, largest: int = 12, least: int = 1) -> NDArray[np.uint8]:
    """Return a strategy of (H, W) mazes of any density, connected or not, with or without a border."""
    shape = draw(st.tuples(st.integers(least, largest), st.integers(least, largest)))
    palette = draw(st.sampled_from([[0, 1], [0, 0, 0, 1], [0, 1, 1, 1]]))
    tiles = draw(hnp.arrays(np.uint8, shape, elements=st.sampled_from(palette)))
    return np.pad(tiles, 1, constant_values=Tile.WALL) if draw(st.booleans()) else tiles


@st.composite
def levels_with_endpoints(draw: st.DrawFn, largest: int = 12) -> NDArray[np.uint8]:
    """Return a strategy of `mazes` with one source and one target, connected or not."""
    tiles = draw(mazes(largest).filter(lambda maze: maze.size > 1)).copy()
    first, second = draw(st.lists(st.integers(0, tiles.size - 1), min_size=2, max_size=2, unique=True))
    tiles.flat[first], tiles.flat[second] = Tile.SOURCE, Tile.TARGET
    return tiles
