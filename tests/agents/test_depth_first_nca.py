from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, sample
from oracles import depth_first_order
from tables import for_each

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.policies.handcoded.depth_first import DepthFirstChannel, DepthFirstNCA
from maze_nca_gym.mazes.levels import Tile, one_hot, parse

SIZES = [(3, 3, 20), (4, 7, 20), (9, 5, 12), (13, 16, 2)]
"""Height, width and mazes of each family."""


def mazes(*tiles: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(one_hot(np.stack(tiles)))


@torch.no_grad()  # the autograd graph of all iterations would take gigabytes
def visit_order(tiles: np.ndarray) -> np.ndarray:
    """Return the order in which the pebble visits the tiles, (N, H, W): 0 at the source, -1 for never."""
    policy, maze = DepthFirstNCA(), mazes(*tiles)
    order = torch.full(tiles.shape, -1)
    visits, state = torch.zeros(len(tiles), 1, 1, dtype=torch.int64), rollout(policy, maze, 0)
    for step in range(2 * tiles[0].size):
        before, state = state, policy(maze, state, step)
        pebble = state[:, DepthFirstChannel.PEBBLE] > 0
        order = torch.where(pebble, visits, order)
        visits = visits + pebble.any(dim=(1, 2), keepdim=True)
        if torch.equal(before, state):
            break
    return order.numpy()


def check(tiles: np.ndarray) -> None:
    for level, order in zip(tiles, visit_order(tiles), strict=True):
        row, col = np.argwhere(level == Tile.SOURCE)[0]
        np.testing.assert_array_equal(order, depth_first_order(level, (row, col)), err_msg=str(level))


@for_each(("height", "width", "n_mazes"), SIZES)
def test_visits_in_the_order_of_a_sequential_search(height, width, n_mazes):
    rng = np.random.default_rng(height * width)
    check(np.concatenate([sample(rng, family, n_mazes, height, width) for family in FAMILIES]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_mazes", "height", "width"),
    [(8000, 7, 7), (8000, 16, 16), (2000, 24, 11), (1500, 32, 32), (400, 48, 48), (100, 64, 64)],
)
def test_the_order_on_many_mazes(n_mazes, height, width):
    rng = np.random.default_rng(n_mazes)
    batch = min(200, n_mazes // 4)
    for start in range(0, n_mazes, batch):
        family = list(FAMILIES)[start // batch % len(FAMILIES)]
        check(sample(rng, family, batch, height, width))


@for_each("family", FAMILIES)
def test_it_finishes_within_two_steps_per_tile_and_stays_finished(family):
    policy = DepthFirstNCA()
    tiles = sample(np.random.default_rng(2), family, 4, 9, 8)
    maze = mazes(*tiles)
    visited = np.stack([depth_first_order(t, tuple(np.argwhere(t == Tile.SOURCE)[0])) >= 0 for t in tiles])
    state = torch.zeros(4, policy.n_channels, 9, 8)
    with torch.no_grad():
        for step in range(1, 2 * int(visited.sum(axis=(1, 2)).max()) + 1):
            state = policy(maze, state)
            late = 2 * visited.sum(axis=(1, 2)) <= step
            assert policy.finished(maze, state)[late].all()
    np.testing.assert_array_equal(state[:, DepthFirstChannel.PATH], visited)
    assert torch.equal(policy(maze, state), state)


def test_solved_is_false_before_the_end():
    policy = DepthFirstNCA()
    maze = mazes(parse("S.T"))
    solved = [policy.finished(maze, rollout(policy, maze, n_steps)).item() for n_steps in range(7)]
    assert solved == [False] * 4 + [True] * 3


def test_no_source_and_no_neighbour():
    order = visit_order(np.stack([parse("..\n.."), parse("S#\n#T")]))
    assert order.tolist() == [[[-1, -1], [-1, -1]], [[0, -1], [-1, -1]]]
