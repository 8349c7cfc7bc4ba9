"""A network with hand-written weights, damaged, learns again; plain ReLUs let no gradient through to repair it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maze_nca_gym import generation
from maze_nca_gym.agents import rollout, trace
from maze_nca_gym.agents.exact_weights.shortest_path_weights import ENTER
from maze_nca_gym.agents.learned import NCA, LeakyGradient, SmoothGradient
from maze_nca_gym.agents.learned.nca import Activation
from maze_nca_gym.levels import one_hot
from maze_nca_gym.solvers import shortest_path

N_STEPS = 20
LOSS_AT = (5, 10, 15, 20)


def draw(rng: np.random.Generator, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to n mazes of 4 x 4 inner tiles that the undamaged network solves in 20 iterations, and their paths."""
    tiles = generation.random(rng, 2 * n, 4, wall_probability=0.3)
    paths = shortest_path(tiles)
    easy = np.flatnonzero(2 * paths.sum(axis=(1, 2)) <= N_STEPS)[:n]
    return torch.from_numpy(one_hot(tiles[easy])), torch.from_numpy(paths[easy])


def damaged(activation: Activation, seed: int) -> NCA:
    """Nothing is entered any more: every weight and bias of four channels is noisy, and the biases too low."""
    nca = NCA.from_handcoded("shortest-path")
    nca.activation = activation
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for channel in ENTER:
            weight = nca.weights[0][channel]
            weight += 0.02 * torch.randn(weight.shape, generator=noise) * (weight != 0)
            nca.biases[0][channel] -= 1.02 + 0.06 * torch.rand((), generator=noise)
    return nca


def complete(nca: NCA) -> float:
    maze, path = draw(np.random.default_rng(99), 400)
    with torch.no_grad():
        found = rollout(nca, maze, N_STEPS)[:, 0] > 0.5
    return (found == path).flatten(1).all(dim=1).double().mean().item()


def train(nca: NCA, n_updates: int) -> None:
    """Mean squared error of the path after several iterations, Adam, fresh mazes."""
    rng = np.random.default_rng(0)
    optimiser = torch.optim.Adam(nca.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0.01, n_updates)
    for _ in range(n_updates):
        maze, path = draw(rng, 32)
        states = list(trace(nca, maze, N_STEPS))
        loss = torch.stack([(states[step][:, 0] - path.float()).square().mean() for step in LOSS_AT]).sum()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(nca.parameters(), 1)
        optimiser.step()
        schedule.step()


def test_undamaged_it_solves_them_all():
    assert complete(NCA.from_handcoded("shortest-path")) == 1


def test_a_relu_leaves_no_gradient():
    nca = damaged(torch.relu, 0)
    assert complete(nca) == 0
    train(nca, 3)
    assert not any(parameter.grad.any() for parameter in nca.parameters())
    assert complete(nca) == 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("surrogate", "least"),
    [(SmoothGradient(0.1), 0.97), pytest.param(LeakyGradient(0.03), 0.75, marks=pytest.mark.slow)],
)
def test_a_surrogate_gradient_repairs_it(surrogate, least, seed):
    nca = damaged(surrogate, seed)
    assert complete(nca) == 0
    train(nca, 250)
    assert complete(nca) > least
