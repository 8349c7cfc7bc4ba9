"""Networks with hand-written weights: exact on every maze, as plain convolutions and ReLUs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, Tiles, sample
from tables import for_each
from torch.nn import functional as F

from maze_nca_gym import generation
from maze_nca_gym.agents import iterate, list_policies, load, rollout
from maze_nca_gym.agents.exact_weights import NETWORKS
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.pretrained import cards
from maze_nca_gym.agents.weights import save_model
from maze_nca_gym.levels import one_hot
from maze_nca_gym.solvers import shortest_path

NAME = "nca-shortest-path-exact-weights"


def mazes(tiles: Tiles) -> torch.Tensor:
    return torch.from_numpy(one_hot(tiles))


def n_edges(paths: np.ndarray) -> np.ndarray:
    """(N,) edges of each path, 0 where there is none."""
    return np.maximum(paths.sum(axis=(1, 2)) - 1, 0)


def check(tiles: Tiles, dtype: torch.dtype = torch.float32) -> int:
    """Complete after exactly 2 L + 2 iterations, in {0, 1}, stable; returns how many mazes had a path."""
    nca, paths = NCA.from_handcoded("shortest-path"), shortest_path(tiles)
    due = 2 * n_edges(paths) + 2
    target, solvable = torch.from_numpy(paths), torch.from_numpy(paths.any(axis=(1, 2)))
    with torch.no_grad():
        for step, state in enumerate(iterate(nca, mazes(tiles).to(dtype), int(due.max()) + 8)):
            path = state[:, 0]
            right = (path == target).flatten(1).all(dim=1)
            assert torch.equal(right, torch.from_numpy(due <= step) | ~solvable)
            assert ((path == 0) | (path == 1)).all()
    return int(solvable.sum())


@pytest.fixture(scope="module")
def nca() -> NCA:
    return NCA.from_handcoded("shortest-path")


@for_each(("height", "width"), [(5, 5), (9, 12), (13, 4)])
def test_every_maze_is_solved_in_the_guaranteed_number_of_iterations(height, width):
    rng = np.random.default_rng([height, width])
    n_solvable = check(np.concatenate([sample(rng, family, 8, height, width) for family in FAMILIES]))
    assert n_solvable > 36, "mazes without a path test little"


def test_bfloat16_is_exact():
    rng = np.random.default_rng(1)
    tiles = [sample(rng, family, 4, 9, 9) for family in ("random 0.3", "perfect", "loops")]
    check(np.concatenate(tiles), torch.bfloat16)


def test_a_long_corridor(nca):
    tiles = sample(np.random.default_rng(3), "spiral", 1, 41, 41)
    tiles[0][tiles[0] > 1] = 0
    tiles[0, 0, 0], tiles[0, 20, 20] = 2, 3
    path = shortest_path(tiles)
    assert path.sum() > 800
    with torch.no_grad():
        np.testing.assert_array_equal(rollout(nca, mazes(tiles), int(2 * path.sum()))[:, 0], path)


def plain_states(nca: NCA, maze: torch.Tensor, n_steps: int) -> Iterator[torch.Tensor]:
    """The states by convolution and ReLU alone."""
    state = torch.zeros(len(maze), 10, *maze.shape[2:])
    for _ in range(n_steps):
        state = F.relu(F.conv2d(torch.cat([maze, state], dim=1), nca.kernel(), nca.biases[0], padding=1))
        yield state


def test_it_is_an_ordinary_network(nca):
    assert type(nca) is NCA
    assert (nca.n_channels, nca.kernel_size, nca.n_weights) == (10, 3, 14 * 10 * 5)
    assert nca.cut_corners
    assert nca.shared_weights
    assert nca.stationary_from == 0
    assert int(nca.kernel().count_nonzero()) == 81
    maze = mazes(sample(np.random.default_rng(5), "loops", 5, 11, 12))
    with torch.no_grad():
        for one, other in zip(plain_states(nca, maze, 60), list(iterate(nca, maze, 60))[1:], strict=True):
            assert torch.equal(one, other)


def test_no_sum_is_too_large_for_bfloat16(nca):
    """Multiples of 1/2 up to 128 in magnitude have at most 8 significant bits."""
    signed = nca.kernel().detach(), nca.biases[0].detach()
    positive, negative = ([(sign * w).relu() for w in signed] for sign in (1, -1))
    rng = np.random.default_rng(6)
    maze = mazes(np.concatenate([sample(rng, family, 2, 9, 9) for family in FAMILIES]))
    with torch.no_grad():
        for state in iterate(nca, maze, 60):
            assert (2 * state == (2 * state).round()).all()
            assert state.min() >= 0
            assert state.max() <= 11.5
            for terms in (positive, negative):
                assert F.conv2d(torch.cat([maze, state], dim=1), *terms, padding=1).max() <= 128


@for_each(("generator", "size"), [("random", 12), ("loops", 11)])
def test_small_errors_of_a_convolution_do_no_harm(nca, generator, size):
    tiles = generation.generate(np.random.default_rng(7), 20, size, generator)
    paths = shortest_path(tiles)
    noise = torch.Generator().manual_seed(0)
    state = torch.zeros(20, 10, *tiles.shape[1:])
    with torch.no_grad():
        for _ in range(int(2 * n_edges(paths).max()) + 2):
            state = nca(mazes(tiles), state)
            state = state + 1e-5 * (2 * torch.rand(state.shape, generator=noise) - 1)
    assert (state[:, 0] - torch.from_numpy(paths).float()).abs().max() < 0.1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_shipped_file_is_what_the_code_makes(tmp_path, name):
    made, shipped = NCA.from_handcoded(name), load(f"nca-{name}-exact-weights")
    assert isinstance(shipped, NCA)
    assert shipped.arguments == made.arguments
    for key, tensor in made.state_dict().items():
        assert torch.equal(shipped.state_dict()[key], tensor)
    copies = [save_model(policy, tmp_path / name).read_bytes() for policy, name in ((made, "a"), (shipped, "b"))]
    assert copies[0] == copies[1]


def test_cards_describe_what_is_shipped():
    for name, card in cards().items():
        assert {"task", "description", "guarantees", "made_by", "data", "measured", "metrics"} <= set(card)
        assert card["metrics"]
        assert all(isinstance(value, float) for value in card["metrics"].values())
        if "unshipped" not in card:
            info = list_policies(all=True)[name]
            expected = card["task"], card["description"], card["guarantees"]["exact"], card["metrics"], card["role"]
            assert (info.task, info.description, info.exact, info.scores, info.role) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n_mazes", "height", "width"),
    [
        *[("random 0.5", 4000, 16, 16), ("random 0.3", 500, 20, 33), ("random 0.1", 1000, 12, 12)],
        *[("random 0.6", 500, 9, 30), ("loops", 500, 31, 17), ("comb", 100, 15, 16), ("spiral", 100, 15, 15)],
        *[("random 0.3", 100, 64, 64), ("open", 32, 64, 64), ("perfect", 16, 63, 63)],
    ],
)
def test_many_mazes(family, n_mazes, height, width):
    rng = np.random.default_rng([n_mazes, height, width])
    for _ in range(0, n_mazes, 100):
        check(sample(rng, family, min(100, n_mazes), height, width))


@pytest.mark.slow
@pytest.mark.parametrize(("generator", "size"), [("random", 16), ("perfect", 21), ("rooms", 24), ("caves", 24)])
def test_bfloat16_is_exact_on_larger_mazes(generator, size):
    check(generation.generate(np.random.default_rng(8), 16, size, generator), torch.bfloat16)
