"""The automaton that begins again when the maze changes, the cuts that its weights came from, and its network."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES as SAMPLES
from maze_samples import sample
from tables import for_each

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.automata.healing import FOUND, HEALING, S
from maze_nca_gym.agents.evaluation.disturbances import EDITS, corrupt, edit_levels
from maze_nca_gym.agents.hinting.bounds import TOLERANCE, Network
from maze_nca_gym.agents.hinting.certificate import Demand, certify, demands
from maze_nca_gym.agents.hinting.cuts import Cuts
from maze_nca_gym.agents.hinting.learning import prune
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.families import test_levels as named_levels
from maze_nca_gym.levels import one_hot, parse
from maze_nca_gym.solvers import shortest_path
from maze_nca_gym.tasks import find_task

NAME = "nca-shortest-path-healing-hinted"
ALARMS = [*FOUND, S.ALARM, S.RESET]
FRESH = [signal for signal in S if signal != S.WAS_WALL]
LATEST = 6
"""Iterations after a change, when all that was before it is wiped for the last time."""


@pytest.fixture(scope="module")
def policy():
    return load(NAME)


def mazes(seed, family, n=6, height=8, width=9):
    return sample(np.random.default_rng(seed), family, n, height, width)


def settled(tiles, signals=None):
    *_, last = HEALING.trace(tiles, signals)
    return last


def edited(name, tiles):
    """Rows of the levels that could be edited, and what became of them."""
    return edit_levels(name, find_task("shortest-path"), tiles, shortest_path(tiles), 0)


class TestAutomaton:
    @for_each("family", SAMPLES)
    def test_nothing_is_found_where_nothing_changes(self, family):
        for signals in HEALING.trace(mazes(1, family)):
            assert not signals[:, ALARMS].any()

    @for_each(("name", "iterations"), product(EDITS, [1, 5, 12, 200]))
    def test_after_an_edit_it_is_right_again_and_as_soon_as_a_fresh_start(self, name, iterations):
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
        for after, begun in zip(continued[last + 1 :], fresh, strict=False):
            np.testing.assert_array_equal(after[:, FRESH], begun[:, FRESH])

    def test_a_source_moves_without_a_reset(self):
        before, after = parse("S..T")[None], parse(".S.T")[None]
        for signals in HEALING.trace(after, settled(before)):
            assert not signals[:, ALARMS].any()
        np.testing.assert_array_equal(signals[0, S.PATH], [[0, 1, 1, 1]])

    def test_from_any_state(self):
        """Not proven, and not so for states in which all arrows of a loop are turned, which noise hardly makes."""
        rng = np.random.default_rng(4)
        for family in ("random 0.3", "perfect", "loops", "open"):
            tiles = mazes(5, family, n=16)
            signals = rng.random((16, len(S), 8, 9)) < rng.random((16, 1, 1, 1))
            np.testing.assert_array_equal(settled(tiles, signals)[:, S.PATH], shortest_path(tiles))


class TestCuts:
    def test_the_worst_inputs_reach_the_bounds(self, policy):
        """The bounds are those of an extreme that can be read, up to rounding errors, which they allow for."""
        network = Network(HEALING, policy, 10.0, TOLERANCE)
        rows = torch.cat([policy.weights[0].flatten(1), policy.biases[0][:, None]], dim=1).double().detach().numpy()
        for signal in (S.FLOOD, S.ENTER_R, S.MANY_V, S.ALARM):
            low, high = rows[2 * signal - 1 : 2 * signal + 1]
            kinds = network.kinds(signal)
            for place in range(0, len(kinds.on), 97):
                for row, sign in product(range(3), (1, -1)):
                    codes = network.worst(signal, kinds, place, row, sign)
                    found = network.worst_inputs(signal, codes, row, sign) @ (low, high, low - high)[row]
                    bound = (kinds.bounds.high if sign > 0 else kinds.bounds.low)[place, row]
                    assert abs(found - bound) < 3e-3
                    assert sign * found <= sign * bound

    def test_weights_that_hold_are_asked_for_little_and_spoilt_ones_are_mended(self):
        model = load(NAME)
        kept = prune(HEALING, model, 1e-9)
        assert not list(demands(HEALING, model, 10.0, 10, 0.1))
        model.biases[0].data[2 * S.FLOOD - 1] -= 0.8
        model.weights[0].data[2 * S.NEAR_U, 7] += 0.3
        assert not certify(model).holds
        asked = {demand.signal for demand in demands(HEALING, model, 10.0, 10, 0.1)}
        assert {S.FLOOD, S.NEAR_U} <= asked
        cuts = Cuts(HEALING, kept)
        for _ in range(10):
            if certify(model).holds:
                break
            cuts.add(demands(HEALING, model, 10.0, 10, 0.1))
            cuts.meet(model)
        assert certify(model).holds

    def test_only_weights_that_are_kept_change(self):
        model = NCA(4, len(HEALING.channels), cut_corners=True, n_iterations=None, max_pool=True)
        before = model.weights[0].detach().flatten(1).clone()
        read = np.ones(before.shape[1] + 1)
        kept = torch.zeros(len(before), len(read))
        kept[1:3, :5] = 1
        cuts = Cuts(HEALING, kept)
        cuts.add([Demand(S.FLOOD, (1, 0), read, -1.0), Demand(S.FLOOD, (1, -1), -read, 2.0)])
        cuts.meet(model)
        low, high = model.weights[0].detach().flatten(1)[1:3]
        assert not low[5:].any()
        assert not high[5:].any()
        assert low.sum() < -0.999
        assert high.sum() - low.sum() < 2.001
        assert torch.equal(model.weights[0].detach().flatten(1)[3:], before[3:])


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
