from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import sample

from maze_nca_gym.agents.learned import GCN
from maze_nca_gym.levels import Tile, one_hot

SYMMETRIES = {
    "transposed": lambda grid: grid.transpose(2, 3),
    "turned": lambda grid: grid.rot90(1, (2, 3)),
    "mirrored": lambda grid: grid.flip(3),
}


def random_batch(seed: int, n_channels: int) -> tuple[np.ndarray, torch.Tensor]:
    tiles = sample(np.random.default_rng(seed), "random 0.3", 3, 4, 5)
    return tiles, torch.randn(3, n_channels, 4, 5, generator=torch.Generator().manual_seed(seed))


def dense_iteration(gcn: GCN, tiles: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
    """One iteration of one maze, (H, W) and (C, H, W), in the matrix form of the class."""
    layer = gcn.layers[0 if gcn.shared_weights else step]
    weight, bias = (p.detach().double().numpy() for p in (layer.lin.weight, layer.bias))
    nodes = [t for t in np.ndindex(*tiles.shape) if not gcn.traversable_edges_only or tiles[t] != Tile.WALL]
    linked = [[abs(r - row) + abs(c - col) <= 1 for r, c in nodes] for row, col in nodes]
    adjacency = np.array(linked, float)
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    x = np.array([[*np.eye(gcn.n_tiles)[tiles[t]], *np.maximum(state[:, t[0], t[1]], 0)] for t in nodes])
    mixed = scale @ adjacency @ scale if gcn.normalise_edges else adjacency
    y = mixed @ x @ weight.T + bias
    out = np.zeros(state.shape)
    for (row, col), values in zip(nodes, y, strict=True):
        out[:, row, col] = values if step == gcn.n_iterations - 1 else np.maximum(values, 0)
    return out


@pytest.mark.parametrize(
    "arguments", [{}, {"traversable_edges_only": False}, {"shared_weights": False}, {"normalise_edges": False}]
)
def test_iterations_are_those_of_dense_matrices(arguments):
    gcn = GCN(4, 5, n_iterations=4, **arguments, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for layer in gcn.layers:
            layer.bias.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(4))
    tiles, state = random_batch(0, 5)
    maze, expected = torch.from_numpy(one_hot(tiles, 4)), state.double().numpy()
    for step in range(4):
        expected = np.stack([dense_iteration(gcn, *pair, step) for pair in zip(tiles, expected, strict=True)])
        state = gcn(maze, state, step)
        torch.testing.assert_close(state, torch.from_numpy(expected).float())


def test_the_layer_is_torch_geometrics_own():
    """Its default adds the self-loops that our graphs already have."""
    from torch_geometric.nn import GCNConv

    gcn = GCN(4, 5, n_iterations=1)
    tiles, state = random_batch(1, 5)
    graphs = gcn.encode_maze(torch.from_numpy(one_hot(tiles, 4)))
    layer = GCNConv(9, 5)
    layer.load_state_dict(gcn.layers[0].state_dict())
    without_loops = graphs.edge_index[:, graphs.edge_index[0] != graphs.edge_index[1]]
    expected = layer(torch.cat([graphs.features, graphs.gather(state).relu()], dim=1), without_loops)
    torch.testing.assert_close(graphs.gather(gcn.update(graphs, state, 0)), expected)


@pytest.mark.parametrize("symmetry", SYMMETRIES.values(), ids=SYMMETRIES)
@pytest.mark.parametrize("traversable_edges_only", [True, False])
def test_a_turned_maze_gives_the_turned_state(symmetry, traversable_edges_only):
    gcn = GCN(4, 6, traversable_edges_only=traversable_edges_only)
    tiles, state = random_batch(5, 6)
    maze = torch.from_numpy(one_hot(tiles, 4))
    turned, straight = symmetry(maze), symmetry(state)
    for step in range(4):
        state, straight = gcn(maze, state, step), gcn(turned, straight, step)
        torch.testing.assert_close(straight, symmetry(state), rtol=1e-5, atol=1e-6)


def test_initial_weights_follow_glorots_rule():
    layer = GCN(4, 50).layers[0]
    bound = np.sqrt(6 / (50 + 54))
    assert layer.lin.weight.abs().max() <= bound
    assert layer.lin.weight.std().item() == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert not layer.bias.any()
