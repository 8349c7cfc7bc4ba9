from __future__ import annotations

from functools import partial
from itertools import product

import networkx as nx
import numpy as np
import torch
from maze_samples import FAMILIES, sample
from tables import for_each

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.policies.learned import GAT, GCN
from maze_nca_gym.agents.policies.learned.graph_policy import TileGraphs, TileMaps
from maze_nca_gym.mazes.levels import Tile, one_hot, parse


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
    edges = [(tuple(one), tuple(other)) for one, other in zip(read.tolist(), reader.tolist(), strict=True)]
    assert len(edges) == len(set(edges))
    assert set(edges) == plain_edges(tiles, traversable_only)
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


@for_each("model", [GCN, GAT, partial(GAT, edge_features=True)])
def test_messages_move_one_tile_per_iteration_and_never_through_walls(model):
    tiles = parse("""
        S.#..
        #.#.#
        ..#.T
        .#...
    """)
    policy = model(4, 3, n_iterations=None)
    with torch.no_grad():
        for layer in policy.layers:
            layer.lin.weight.fill_(0.1)
    maze = torch.from_numpy(one_hot(tiles, 4))[None]
    graph = nx.grid_2d_graph(*tiles.shape)
    graph.remove_nodes_from([tile for tile in list(graph) if tiles[tile] == Tile.WALL])
    for source, n_steps in product(graph, (1, 2)):
        start = torch.ones(1, 3, *tiles.shape, requires_grad=True)
        rollout(policy, maze, n_steps, start)[0, 0][source].backward()
        reached = {tuple(tile) for tile in start.grad[0, 0].nonzero().tolist()}
        assert reached == set(nx.single_source_shortest_path_length(graph, source, cutoff=n_steps))


@for_each("model", [GCN, GAT])
def test_walls_return_to_state_0(model):
    tiles = sample(np.random.default_rng(2), "random 0.3", 3, 4, 5)
    state = torch.randn(3, 4, 4, 5, generator=torch.Generator().manual_seed(2))
    maze, wall = torch.from_numpy(one_hot(tiles, 4)), torch.from_numpy(tiles == Tile.WALL)[:, None]
    policy = model(4, 4)
    after = policy(maze, state)
    assert wall.any()
    assert not after.masked_select(wall).any()
    assert torch.equal(after, policy(maze, state.masked_fill(wall, 1e6)))
    assert GCN(4, 4, traversable_edges_only=False)(maze, state).masked_select(wall).any()


@for_each("precision", [torch.float32, torch.bfloat16])
@for_each(
    "model",
    [
        GCN,
        partial(GCN, traversable_edges_only=False),
        partial(GCN, normalise_edges=False),
        GAT,
        partial(GAT, edge_features=True, shared_weights=False),
    ],
)
def test_maps_of_another_device_give_the_states_and_gradients_of_graphs(model, precision):
    policy, generator = model(4, 6, n_iterations=3), torch.Generator().manual_seed(3)
    for parameter in policy.parameters():
        parameter.data.uniform_(-0.5, 0.5, generator=generator)
    maze = torch.from_numpy(one_hot(sample(np.random.default_rng(4), "random 0.3", 3, 4, 5), 4))
    results = []
    for kind in (TileGraphs, TileMaps):
        state = start = torch.randn(3, 6, 4, 5, generator=generator.manual_seed(5)).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            for step in range(3):
                state = policy.update(kind.of(maze, policy.traversable_edges_only), state, step)
        results.append([state, *torch.autograd.grad(state.square().sum(), [start, *policy.parameters()])])
    close = 1e-5 if precision == torch.float32 else 0.1
    for graph, map in zip(*results, strict=True):
        torch.testing.assert_close(map, graph, rtol=0, atol=close * float(graph.detach().abs().max()))


@for_each("turn", [lambda grid: grid.transpose(2, 3), lambda grid: grid.rot90(1, (2, 3)), lambda grid: grid.flip(3)])
@for_each(
    ("model", "tells_directions_apart"),
    [
        (GCN, False),
        (partial(GCN, traversable_edges_only=False), False),
        (GAT, False),
        (partial(GAT, edge_features=True), True),
    ],
)
def test_a_rotated_maze_has_the_rotated_state_unless_edges_have_features(model, tells_directions_apart, turn):
    tiles, policy = sample(np.random.default_rng(5), "random 0.3", 3, 4, 5), model(4, 6)
    maze, state = (
        torch.from_numpy(one_hot(tiles, 4)),
        torch.randn(3, 6, 4, 5, generator=torch.Generator().manual_seed(5)),
    )
    difference = (policy(turn(maze), turn(state)) - turn(policy(maze, state))).abs().max()
    assert difference > 0.01 if tells_directions_apart else difference < 1e-6
