from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from maze_samples import FAMILIES, sample
from tables import for_each

from maze_nca_gym.agents.learned.graph_policy import TileGraphs
from maze_nca_gym.levels import Tile, one_hot, parse


def plain_edges(tiles: np.ndarray, traversable_only: bool) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(read, reader) of (B, H, W) tiles, each (maze, row, col)."""
    edges = set()
    for number, maze in enumerate(tiles):
        graph = nx.grid_2d_graph(*maze.shape)
        if traversable_only:
            graph.remove_nodes_from([tile for tile in list(graph) if maze[tile] == Tile.WALL])
        for one, other in [*graph.edges, *((tile, tile) for tile in graph)]:
            edges |= {((number, *one), (number, *other)), ((number, *other), (number, *one))}
    return edges


@for_each("traversable_only", [True, False])
@for_each("family", FAMILIES)
@for_each(("height", "width"), [(6, 7), (1, 5), (2, 2)])
def test_graphs_are_those_of_the_mazes(family, height, width, traversable_only):
    tiles = sample(np.random.default_rng(8), family, 3, height, width)
    graphs = TileGraphs.of(torch.from_numpy(one_hot(tiles, 4)), traversable_only)
    places = np.stack(np.unravel_index(graphs.nodes.numpy(), tiles.shape), axis=1)
    read, reader = (places[nodes] for nodes in graphs.edge_index.numpy())
    found = [(tuple(one), tuple(other)) for one, other in zip(read.tolist(), reader.tolist(), strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == plain_edges(tiles, traversable_only)
    np.testing.assert_array_equal(graphs.positions.numpy(), (read - reader)[:, 1:])
    np.testing.assert_array_equal(graphs.features.argmax(dim=1), tiles.ravel()[graphs.nodes])
    assert (graphs.edge_index[1].diff() >= 0).all()


def test_states_go_to_the_nodes_and_back():
    tiles = parse("""
        S#.
        ..T
    """)[None]
    graphs = TileGraphs.of(torch.from_numpy(one_hot(tiles, 4)), True)
    grid = torch.arange(1.0, 13.0).view(1, 2, 2, 3)
    rows = graphs.gather(grid)
    assert rows.tolist() == [[1, 7], [3, 9], [4, 10], [5, 11], [6, 12]]
    assert graphs.scatter(rows, grid).tolist() == [[[[1, 0, 3], [4, 5, 6]], [[7, 0, 9], [10, 11, 12]]]]
