"""The automaton that starts again when the maze changes, and its network."""

from itertools import product

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES as SAMPLES
from maze_samples import sample
from tables import for_each

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.automata.shipped.healing import FOUND, HEALING, S
from maze_nca_gym.agents.evaluation.disturbances import EDITS, corrupt, edit_levels
from maze_nca_gym.mazes.families import test_levels as named_levels
from maze_nca_gym.mazes.levels import one_hot, parse
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import find_task

NAME = "nca-shortest-path-healing-hinted"
ALARMS = [*FOUND, S.ALARM, S.RESET]
FRESH = [signal for signal in S if signal != S.WAS_WALL]
LATEST = 6
"""Number of iterations after a change until the last trace of earlier signals is gone."""


@pytest.fixture(scope="module")
def policy():
    return load(NAME)


def mazes(seed, family, n=6, height=8, width=9):
    return sample(np.random.default_rng(seed), family, n, height, width)


def settled(tiles, signals=None):
    *_, last = HEALING.trace(tiles, signals)
    return last


def edited(name, tiles):
    """Return the indices of the levels that could be edited, and the edited levels."""
    return edit_levels(name, find_task("shortest-path"), tiles, shortest_path(tiles), 0)


class TestAutomaton:
    @for_each("family", SAMPLES)
    def test_without_changes_no_alarm_is_raised(self, family):
        for signals in HEALING.trace(mazes(1, family)):
            assert not signals[:, ALARMS].any()

    @for_each(("name", "iterations"), product(EDITS, [1, 5, 12, 200]))
    def test_after_an_edit_it_is_correct_as_early_as_from_a_fresh_start(self, name, iterations):
        tiles = np.concatenate([mazes(2, family, n=4) for family in ("random 0.3", "loops", "perfect")])
        rows, changed = edited(name, tiles)
        assert len(rows) > 2
        signals = np.zeros((len(rows), len(S), *tiles.shape[1:]), np.bool_)
        for _ in range(iterations):
            signals = HEALING.step(tiles[rows], signals)
        n_steps = LATEST + len(list(HEALING.trace(changed)))
        for _ in range(n_steps):
            signals = HEALING.step(changed, signals)
        np.testing.assert_array_equal(signals, settled(changed))

    def test_the_reset_makes_it_a_fresh_start(self):
        tiles = mazes(3, "loops", n=12)
        others = tiles[::-1].copy()
        fresh, continued = list(HEALING.trace(others)), list(HEALING.trace(others, settled(tiles)))
        resets = [signals[:, S.RESET].any() for signals in continued]
        last = max(i for i, reset in enumerate(resets) if reset)
        assert last + 1 <= LATEST
        for after, expected in zip(continued[last + 1 :], fresh, strict=False):
            np.testing.assert_array_equal(after[:, FRESH], expected[:, FRESH])

    def test_a_source_moves_without_a_reset(self):
        before, after = parse("S..T")[None], parse(".S.T")[None]
        for signals in HEALING.trace(after, settled(before)):
            assert not signals[:, ALARMS].any()
        np.testing.assert_array_equal(signals[0, S.PATH], [[0, 1, 1, 1]])

    def test_from_any_state(self):
        """Not proven, and false for states in which all arrows of a loop are turned, which noise rarely makes."""
        rng = np.random.default_rng(4)
        for family in ("random 0.3", "perfect", "loops", "open"):
            tiles = mazes(5, family, n=16)
            signals = rng.random((16, len(S), 8, 9)) < rng.random((16, 1, 1, 1))
            np.testing.assert_array_equal(settled(tiles, signals)[:, S.PATH], shortest_path(tiles))


@for_each("family", ["random", "loops", "rooms"])
def test_the_network_heals_where_the_maze_changes(policy, family):
    tiles = named_levels(family, 12, "shortest-path", 8).tiles
    others = tiles[::-1].copy()
    longest = int(max(shortest_path(some).sum(axis=(1, 2)).max() for some in (tiles, others)))
    state = None
    with torch.no_grad():
        for some, n_steps in ((tiles, 2 * longest + 1), (others, 2 * longest + 1 + LATEST)):
            state = rollout(policy, torch.from_numpy(one_hot(some)), n_steps, state)
            np.testing.assert_array_equal(state[:, 0] > 0.5, shortest_path(some))


@for_each("fraction", [0.001, 0.01, 0.1])
def test_the_network_heals_from_corrupted_states(policy, fraction):
    tiles = named_levels("loops", 12, "shortest-path", 16).tiles
    maze, longest = torch.from_numpy(one_hot(tiles)), int(shortest_path(tiles).sum(axis=(1, 2)).max())
    with torch.no_grad():
        state = corrupt(rollout(policy, maze, 2 * longest + 1), fraction, 0)
        state = rollout(policy, maze, 2 * longest + 20, state)
    np.testing.assert_array_equal(state[:, 0] > 0.5, shortest_path(tiles))
