"""The automaton that begins again when the maze changes, the cuts that its weights came from, and the policy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES as SAMPLES
from maze_samples import sample

from maze_nca_gym.agents import iterate, load, rollout
from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.automata.healing import FOUND, HEALING, S
from maze_nca_gym.agents.evaluation.disturbances import EDITS, corrupt, edit_levels
from maze_nca_gym.agents.hinting.bounds import TOLERANCE, Network
from maze_nca_gym.agents.hinting.certificate import Demand, automaton_of, certify, demands
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.agents.hinting.cuts import Cuts
from maze_nca_gym.agents.hinting.learning import learn, prune
from maze_nca_gym.agents.hinting.patches import KIND_BITS, levels_to_watch, mask_of, patches_seen
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.families import FAMILIES
from maze_nca_gym.families import test_levels as named_levels
from maze_nca_gym.levels import Tile, one_hot, parse
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
    @pytest.mark.parametrize("family", SAMPLES)
    def test_nothing_is_found_where_nothing_changes(self, family):
        for signals in HEALING.trace(mazes(1, family)):
            assert not signals[:, ALARMS].any()

    @pytest.mark.parametrize(("name", "iterations"), list(product(EDITS, [1, 5, 12, 400])))
    def test_after_an_edit_it_is_right_again_and_as_soon_as_a_fresh_start(self, name, iterations):
        tiles = np.concatenate([mazes(2, family, n=8) for family in ("random 0.3", "loops", "perfect")])
        rows, changed = edited(name, tiles)
        assert len(rows) > 5
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

    def test_a_gap_that_shortens_the_way(self):
        before = parse(
            """
            S.#.T
            #.#.#
            #...#
            """
        )[None]
        after = before.copy()
        after[0, 0, 2] = Tile.EMPTY
        np.testing.assert_array_equal(settled(after, settled(before))[:, S.PATH], shortest_path(after))
        assert shortest_path(after).sum() == 5

    def test_a_target_that_is_walled_in_is_given_up(self):
        before, after = parse("S..T")[None], parse("S.#T")[None]
        assert settled(before)[:, S.PATH].sum() == 4
        last = settled(after, settled(before))
        assert not last[:, [S.PATH, *ALARMS]].any()

    def test_from_any_state(self):
        """Not proven, and not so for states in which all arrows of a loop are turned, which noise hardly makes."""
        rng = np.random.default_rng(4)
        for family in ("random 0.3", "perfect", "loops", "open"):
            tiles = mazes(5, family, n=16)
            signals = rng.random((16, len(S), 8, 9)) < rng.random((16, 1, 1, 1))
            np.testing.assert_array_equal(settled(tiles, signals)[:, S.PATH], shortest_path(tiles))

    def test_all_tiles_that_occur_are_known(self):
        config = HintConfig.of("shortest-path-healing", sizes=(4, 5), n_levels=8)
        seen = patches_seen(HEALING, levels_to_watch(np.random.default_rng(6), HEALING, config))
        codes = np.unique(seen)
        components = HEALING.worlds[0][Tile.EMPTY]
        for code in codes[codes > 0].tolist():
            for component in components[:-1]:
                state = code & mask_of(component.signals)
                assert state in {mask_of(known) for known in component.states}, component.signals
        kinds = {(code & ((1 << KIND_BITS) - 1)) - 1 for code in codes[codes & mask_of([S.ENTER_L]) > 0].tolist()}
        assert kinds == {Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.TARGET}  # a path that leads into a wall just closed
        assert {int(code & mask_of([S.RESET])) for code in codes} == {0, mask_of([S.RESET])}


class TestCuts:
    def test_the_worst_inputs_reach_the_bounds(self, policy):
        """The bounds are those of an extreme that can be read, up to rounding errors, which they allow for."""
        network = Network(HEALING, policy, 10.0, TOLERANCE)
        rows = torch.cat([policy.weights[0].flatten(1), policy.biases[0][:, None]], dim=1).double().detach().numpy()
        for signal in (S.FLOOD, S.ENTER_R, S.MANY_V, S.ALARM):
            low, high = rows[2 * signal - 1 : 2 * signal + 1]
            kinds = network.kinds(signal)
            for place in range(0, len(kinds.on), 37):
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


class TestCertificate:
    def test_the_shipped_weights_have_one(self, policy):
        certificate = certify(policy)
        assert certificate.holds
        assert certificate.largest == 10
        assert automaton_of(policy) is HEALING

    @pytest.mark.parametrize("channel", ["flood_low", "reset", "channel_max", "path", "orphan_high"])
    def test_no_channel_can_do_without_its_bias(self, channel):
        spoilt = load(NAME)
        spoilt.biases[0].data[HEALING.channels.index(channel)] += 4 if channel == "channel_max" else -4
        assert not certify(spoilt).holds

    def test_it_bounds_what_happens_when_mazes_change(self, policy):
        certificate, first = certify(policy), mazes(7, "loops", n=4)
        signals, state = np.zeros((4, len(S), *first.shape[1:]), np.bool_), None
        for tiles in (first, first[::-1].copy(), first):
            watched = list(HEALING.trace(tiles, signals))
            with torch.no_grad():
                states = iterate(policy, torch.from_numpy(one_hot(tiles)), len(watched) - 1, state)
                for signals, state in zip(watched, states, strict=True):
                    low, high = state[:, 1:-2:2], state[:, 2:-2:2]
                    on, reset = torch.from_numpy(signals[:, 1:-1]), torch.from_numpy(signals[:, S.RESET])
                    assert not low[~on].any()
                    assert not high[~on].any()
                    assert (abs((low - high)[on] - 1) <= certificate.error).all()
                    assert (abs(state[:, -2][reset] - 1) <= certificate.pooled_error).all()
                    assert not state[:, -2][~reset].any()
                    np.testing.assert_array_equal(state[:, 0] > 0.5, signals[:, S.PATH])


class TestPolicy:
    def test_it_is_an_ordinary_network_and_most_weights_are_0(self, policy):
        assert type(policy) is NCA
        assert (policy.n_channels, policy.n_weights, policy.max_pool, policy.n_iterations) == (41, 9_225, True, None)
        assert policy.weights[0].count_nonzero() < 600

    @pytest.mark.parametrize("family", FAMILIES)
    def test_it_solves_every_family_for_good_and_heals(self, policy, family):
        tiles = named_levels(family, 12, "shortest-path", 16).tiles
        others = tiles[::-1].copy()
        longest = int(max(shortest_path(some).sum(axis=(1, 2)).max() for some in (tiles, others)))
        state = None
        with torch.no_grad():
            for some, n_steps in ((tiles, 2 * longest + 1), (tiles, 50), (others, 2 * longest + 1 + LATEST)):
                state = rollout(policy, torch.from_numpy(one_hot(some)), n_steps, state)
                np.testing.assert_array_equal(state[:, 0] > 0.5, shortest_path(some))

    @pytest.mark.parametrize("fraction", [0.001, 0.01, 0.1])
    def test_it_heals_from_corrupted_states(self, policy, fraction):
        tiles = named_levels("loops", 12, "shortest-path", 32).tiles
        maze, longest = torch.from_numpy(one_hot(tiles)), int(shortest_path(tiles).sum(axis=(1, 2)).max())
        with torch.no_grad():
            state = corrupt(rollout(policy, maze, 2 * longest + 1), fraction, 0)
            state = rollout(policy, maze, 2 * longest + 20, state)
        np.testing.assert_array_equal(state[:, 0] > 0.5, shortest_path(tiles))


class TestConfig:
    def test_it_has_its_own_usual_values(self):
        config = HintConfig.of("shortest-path-healing")
        assert config.sparsity > 0
        assert changes(config) == {"automaton": "shortest-path-healing"}
        assert changes(HintConfig.of("shortest-path-healing", seed=3))["seed"] == 3
        assert AUTOMATA["shortest-path-healing"] is HEALING


def test_a_short_run_is_not_proven():
    config = HintConfig.of(
        "shortest-path-healing", sizes=(4,), n_levels=2, n_recombined=500, n_updates=20, sparsity=0.0
    )
    model = learn(config, lambda line: None)
    assert model.channel_names == HEALING.channels
    assert not certify(model).holds


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_seed_gets_a_certificate(seed):
    assert certify(learn(HintConfig.of("shortest-path-healing", seed=seed), lambda line: None)).holds
