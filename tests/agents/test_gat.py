from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import sample

from maze_nca_gym.agents.learned import GAT
from maze_nca_gym.levels import Tile, one_hot

SYMMETRIES = {
    "transposed": lambda grid: grid.transpose(2, 3),
    "turned": lambda grid: grid.rot90(1, (2, 3)),
    "mirrored": lambda grid: grid.flip(3),
}


def random_batch(seed: int, n_channels: int) -> tuple[np.ndarray, torch.Tensor]:
    tiles = sample(np.random.default_rng(seed), "random 0.3", 3, 4, 5)
    return tiles, torch.randn(3, n_channels, 4, 5, generator=torch.Generator().manual_seed(seed))


def plain_iteration(gat: GAT, tiles: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
    """One iteration of one maze, (H, W) and (C, H, W), in the node form of the class."""
    layer = gat.layers[0 if gat.shared_weights else step]
    p = {name: parameter.detach().double().numpy().squeeze() for name, parameter in layer.named_parameters()}
    height, width = tiles.shape
    out = np.zeros(state.shape)
    projected = {
        (row, col): p["lin.weight"] @ [*np.eye(gat.n_tiles)[tiles[row, col]], *np.maximum(state[:, row, col], 0)]
        for row in range(height)
        for col in range(width)
        if tiles[row, col] != Tile.WALL
    }
    for row, col in projected:
        scores, values = [], []
        for down, right in ((0, 1), (1, 0), (0, 0), (-1, 0), (0, -1)):
            if (row + down, col + right) in projected:
                y = projected[row + down, col + right]
                score = p["att_src"] @ y + p["att_dst"] @ projected[row, col]
                if gat.edge_features:
                    score += p["att_edge"] @ (p["lin_edge.weight"] @ [down, right])
                scores.append(score if score > 0 else 0.2 * score)
                values.append(y)
        attention = np.exp(scores) / np.exp(scores).sum()
        out[:, row, col] = attention @ np.array(values) + p["bias"]
    return out if step == gat.n_iterations - 1 else np.maximum(out, 0)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"edge_features": True}, {"shared_weights": False}, {"shared_weights": False, "edge_features": True}],
)
def test_iterations_are_those_of_the_equation(arguments):
    gat = GAT(4, 5, n_iterations=4, **arguments, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for layer in gat.layers:
            layer.bias.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(4))
    tiles, state = random_batch(0, 5)
    maze, expected = torch.from_numpy(one_hot(tiles, 4)), state.double().numpy()
    for step in range(4):
        expected = np.stack([plain_iteration(gat, *pair, step) for pair in zip(tiles, expected, strict=True)])
        state = gat(maze, state, step)
        torch.testing.assert_close(state, torch.from_numpy(expected).float())


@pytest.mark.parametrize("symmetry", SYMMETRIES.values(), ids=SYMMETRIES)
def test_only_edge_features_tell_directions_apart(symmetry):
    tiles, state = random_batch(5, 6)
    maze = torch.from_numpy(one_hot(tiles, 4))
    for edge_features in (False, True):
        gat = GAT(4, 6, edge_features=edge_features)
        state_of_turned = gat(symmetry(maze), symmetry(state))
        turned_state = symmetry(gat(maze, state))
        difference = (state_of_turned - turned_state).abs().max()
        assert difference > 0.01 if edge_features else difference < 1e-6


def test_attention_is_an_average():
    """With one value everywhere, its weights, which sum to 1, give that value again."""
    gat = GAT(2, 3, n_iterations=1, edge_features=True)
    maze = torch.zeros(1, 2, 4, 5)
    maze[:, 0] = 1
    state = torch.ones(1, 3, 4, 5)
    expected = gat.layers[0].lin.weight @ torch.tensor([1.0, 0, 1, 1, 1])
    torch.testing.assert_close(gat(maze, state), expected[:, None, None].expand_as(state))
