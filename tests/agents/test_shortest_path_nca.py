from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, sample
from oracles import all_shortest_paths, canonical_shortest_path
from tables import for_each, refused

from maze_nca_gym.agents import iterate, rollout
from maze_nca_gym.agents.policies.handcoded.shortest_path import FORMS, ShortestPathNCA
from maze_nca_gym.mazes.levels import Tile, one_hot, parse

NAMES = [(ties, form) for ties, forms in FORMS.items() for form in forms]


def canonical_path(tiles: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the canonical path and its number of moves, or None and 0 without a path."""
    path = canonical_shortest_path(tiles)
    return (np.zeros(tiles.shape, bool), 0) if path is None else (path, int(path.sum()) - 1)


ORACLES = {"canonical": canonical_path, "all": all_shortest_paths}


def mazes(*tiles: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(one_hot(np.stack(tiles)))


def check(policies: list[ShortestPathNCA], ties: str, tiles: np.ndarray) -> int:
    """Compare paths, step counts and stability with networkx, and return the number of mazes with a path."""
    truth = [ORACLES[ties](level) for level in tiles]
    target, lengths = np.stack([path for path, _ in truth]), np.array([length for _, length in truth])
    ends = tiles >= Tile.SOURCE
    for policy in policies:
        per_edge = policy.form.steps_per_edge
        expected = np.where(lengths > 0, per_edge * lengths + 2, -1)
        finished = np.full(len(tiles), -1)
        with torch.no_grad():
            for step, state in enumerate(iterate(policy, mazes(*tiles), int(expected.max()) + 8)):
                path = state[:, 0].numpy()
                joined = (np.where(ends, path, 1) == 1).all(axis=(1, 2))
                finished[(finished < 0) & joined] = step
                over = joined | (lengths == 0)
                np.testing.assert_array_equal(path[over], target[over])
        np.testing.assert_array_equal(finished, expected)
    return int((lengths > 0).sum())


@pytest.mark.parametrize("ties", FORMS)
@for_each(("height", "width", "n"), [(16, 16, 4), (5, 12, 8), (21, 20, 1)])
def test_exact_on_every_kind_of_maze(height, width, n, ties):
    policies, rng = [ShortestPathNCA(ties, form) for form in FORMS[ties]], np.random.default_rng(height)
    tiles = np.concatenate([sample(rng, family, n, height, width) for family in FAMILIES])
    assert check(policies, ties, tiles) > len(tiles) / 4


@pytest.mark.slow
@pytest.mark.parametrize("ties", FORMS)
@pytest.mark.parametrize(
    ("family", "n_mazes", "height", "width"),
    [("random 0.5", 10_000, 16, 16)]
    + [(family, 1000, 32, 32) for family in ("random 0.3", "random 0.5", "loops", "open")]
    + [(family, 1000, 31, 31) for family in ("perfect", "spiral", "comb")]
    + [("random 0.3", 1000, 9, 27), ("open", 1000, 20, 7)],
)
def test_exact_on_many_mazes(family, n_mazes, height, width, ties):
    policies = [ShortestPathNCA(ties, form) for form in FORMS[ties]]
    rng = np.random.default_rng(n_mazes + height)
    assert sum(check(policies, ties, sample(rng, family, 250, height, width)) for _ in range(n_mazes // 250))


@for_each(("ties", "form"), NAMES)
def test_an_unreachable_target_leaves_the_path_empty_and_comes_to_rest(ties, form):
    policy = ShortestPathNCA(ties, form)
    maze = mazes(parse("S.#T.."), parse("S....T"))
    states = iterate(policy, maze, policy.guarantees.enough_steps(1, 6))
    solved = [policy.finished(maze, state).tolist() for state in states]
    assert solved[0] == [False, False]
    assert solved[-1] == [True, True]
    assert [reached for reached, _ in solved] == sorted(reached for reached, _ in solved), "solved, then not"
    assert not rollout(policy, maze, 30)[0, 0].any()


@for_each(("ties", "form"), NAMES)
def test_solved_is_reported_with_the_path(ties, form):
    policy = ShortestPathNCA(ties, form)
    tiles = sample(np.random.default_rng(3), "loops", 10, 11, 9)
    lengths = np.array([all_shortest_paths(level)[1] for level in tiles])
    solved = torch.stack([policy.finished(mazes(*tiles), state) for state in iterate(policy, mazes(*tiles), 80)])
    np.testing.assert_array_equal(solved.int().argmax(dim=0), policy.form.steps_per_edge * lengths + 2)


def test_changed_weights_are_used():
    policy = ShortestPathNCA()
    maze = mazes(parse("S..T"))
    with torch.no_grad():
        policy.bias[policy.form.table.channels["AGE"]] += 3
        assert (policy(maze, torch.zeros(1, 11, 1, 4))[0, 2] == 3).all()
        policy.weight.zero_()
        policy.bias.zero_()
        assert not rollout(policy, maze, 8).any()


@for_each(("ties", "form"), NAMES)
def test_autocast_leaves_ages_beyond_its_precision_alone(ties, form):
    policy = ShortestPathNCA(ties, form)
    tiles = sample(np.random.default_rng(5), "spiral", 2, 27, 27)
    tiles[:] = np.where(tiles >= Tile.SOURCE, Tile.EMPTY, tiles)
    tiles[:, 0, 0], tiles[:, 13, 13] = Tile.SOURCE, Tile.TARGET
    path, length = canonical_path(tiles[0])
    assert length > 300, "the spiral is too short to count beyond bfloat16"
    n_steps = policy.form.steps_per_edge * length + 2
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        state = rollout(policy, mazes(*tiles), n_steps)
    assert state.dtype == torch.float32
    np.testing.assert_array_equal(state[0, 0], path)


def test_unknown_options():
    refused("unknown ties 'some'; known: canonical, all", ShortestPathNCA, "some")
    with pytest.raises(ValueError, match=r"unknown form 'one-flood'; known: counting, bounded .*ties='canonical'"):
        ShortestPathNCA("canonical", "one-flood")


def test_the_bounded_form_is_exact_in_bfloat16():
    tiles = sample(np.random.default_rng(5), "spiral", 3, 31, 31)
    truth = [canonical_path(level) for level in tiles]
    assert max(length for _, length in truth) > 300
    n_steps = 2 * max(length for _, length in truth) + 2
    maze = mazes(*tiles).bfloat16()
    with torch.no_grad():
        state = rollout(ShortestPathNCA("canonical", "bounded"), maze, n_steps)
    assert state.dtype == torch.bfloat16
    np.testing.assert_array_equal(state[:, 0].float(), np.stack([path for path, _ in truth]))
    assert set(state.unique().tolist()) == {0, 1}
