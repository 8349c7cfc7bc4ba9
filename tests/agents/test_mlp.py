from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import sample
from tables import for_each

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.learned import MLP
from maze_nca_gym.levels import one_hot


def random_batch(height: int, width: int, n_channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    tiles = sample(np.random.default_rng(6), "random 0.3", 3, height, width)
    state = torch.randn(3, n_channels, height, width, generator=torch.Generator().manual_seed(6))
    return torch.from_numpy(one_hot(tiles, 4)), state


def plain_iteration(mlp: MLP, maze: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
    """One iteration of one maze, (T, H, W) and (C, H, W), by the text of the class."""
    p = {name: parameter.detach().double().numpy() for name, parameter in mlp.named_parameters()}
    inputs = np.concatenate([maze.ravel(), np.maximum(state, 0).ravel()])
    hidden = np.maximum(p["encoder"] @ inputs + p["encoder_bias"], 0)
    out = p["decoder"] @ hidden + p["decoder_bias"]
    return (out if step == mlp.n_iterations - 1 else np.maximum(out, 0)).reshape(state.shape)


def test_iterations_are_those_of_the_equation():
    mlp = MLP(4, 3, size=(2, 3), n_nodes=30, n_iterations=4, generator=torch.Generator().manual_seed(3))
    maze, state = random_batch(4, 5, 3)
    expected = state.double().numpy()
    for step in range(4):
        expected = np.stack([plain_iteration(mlp, *pair, step) for pair in zip(maze.numpy(), expected, strict=True)])
        state = mlp(maze, state, step)
        torch.testing.assert_close(state, torch.from_numpy(expected).float())


@for_each(("height", "width"), [(5, 4), (3, 5), (4, 6), (18, 18)])
def test_other_sizes_are_refused(height, width):
    mlp = MLP(4, 3, size=(2, 3), n_nodes=5)
    message = f"built for mazes of size 2 x 3, which are 4 x 5 tiles with their border, got {height} x {width} tiles"
    maze, state = random_batch(height, width, 3)
    with pytest.raises(ValueError, match=message):
        mlp(maze, state)
    with pytest.raises(ValueError, match=message):
        rollout(mlp, maze, 2)


def test_one_number_is_the_size_of_a_square():
    assert MLP(4, 3, size=5, n_nodes=2).size == MLP(4, 3, size=(5, 5), n_nodes=2).size == (5, 5)
    assert MLP(4, 3, n_nodes=2).size == (16, 16)


def test_initial_weights_are_bounded_by_the_inputs():
    mlp = MLP(4, 6, size=3, n_nodes=100)
    for weight, bias, n_inputs in (
        (mlp.encoder, mlp.encoder_bias, 10 * 25),
        (mlp.decoder, mlp.decoder_bias, 100),
    ):
        bound = n_inputs**-0.5
        for parameter in (weight, bias):
            assert parameter.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / np.sqrt(3), rel=0.05)
        assert bias.any()
