"""Learning from hints: the automaton that is watched, patches, the certificate, and the policy that came out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from active_tiles import run_active
from maze_samples import FAMILIES as SAMPLES
from maze_samples import sample
from path_oracles import canonical_path

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents import trace as trace_policy
from maze_nca_gym.agents.evaluation import FAMILIES
from maze_nca_gym.agents.evaluation.level_sets import test_levels as named_levels
from maze_nca_gym.agents.hinting.automaton import ENTER, Signal, trace
from maze_nca_gym.agents.hinting.certificate import PATH_TOLERANCE, certify, tile_states
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.agents.hinting.learning import CHANNELS, Examples, inputs, learn, losses, patches_to_learn
from maze_nca_gym.agents.hinting.patches import (
    CENTRE,
    TAPS,
    distinct_patches,
    join,
    kinds_of,
    labels,
    levels_to_watch,
    patch_codes,
    recombine,
    tile_codes,
    tiles_of,
)
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import one_hot, parse
from maze_nca_gym.solvers import shortest_path

NAME = "nca-shortest-path-hinted"
TINY = HintConfig(families=("random",), sizes=(6,), n_recombined=0, batch_size=256)


def ignore(line):
    pass


@pytest.fixture(scope="module")
def policy():
    return load(NAME)


class TestAutomaton:
    @pytest.mark.parametrize("family", SAMPLES)
    def test_its_path_is_the_handcoded_ones_after_every_iteration(self, family):
        tiles = sample(np.random.default_rng(0), family, 6, 8, 11)
        watched = list(trace(tiles))
        states = trace_policy(load("shortest-path-bfs"), torch.from_numpy(one_hot(tiles)), len(watched) - 1)
        for signals, state in zip(watched, states, strict=True):
            np.testing.assert_array_equal(signals[:, Signal.PATH], state[:, 0].detach())

    def test_it_ends_at_the_canonical_path(self):
        tiles = sample(np.random.default_rng(1), "loops", 10, 9, 14)
        *_, last = trace(tiles)
        np.testing.assert_array_equal(last[:, Signal.PATH], [canonical_path(level)[0] for level in tiles])

    def test_an_unreachable_target_leaves_the_path_empty(self):
        *_, last = trace(parse("S.#T..")[None])
        np.testing.assert_array_equal(last[0, Signal.FLOOD], [[0, 0, 0, 1, 1, 1]])
        assert not last[0, Signal.PATH].any()
        assert not last[0, ENTER].any()


class TestPatches:
    def test_labels_are_what_happens_next(self):
        tiles = sample(np.random.default_rng(2), "random 0.3", 8, 7, 6)
        watched = list(trace(tiles))
        for before, after in pairwise(watched):
            patches = patch_codes(tile_codes(tiles, before))
            np.testing.assert_array_equal(labels(patches.ravel()), after.transpose(0, 2, 3, 1).reshape(-1, len(Signal)))

    def test_a_patch_holds_its_five_tiles(self):
        tiles = parse(
            """
            .S.
            #T.
            .#.
            """
        )[None]
        codes = tile_codes(tiles, np.zeros((1, 9, 3, 3), bool))
        (middle, corner) = (tiles_of(patch_codes(codes)[0, row, col, None])[0] for row, col in ((1, 1), (0, 0)))
        assert kinds_of(middle).argmax(axis=1).tolist() == [2, 1, 3, 0, 1]
        assert kinds_of(corner).sum(axis=1).tolist() == [0, 0, 1, 1, 1]
        assert join(middle[None])[0] == patch_codes(codes)[0, 1, 1]

    def test_each_is_kept_once(self):
        tiles = sample(np.random.default_rng(3), "loops", 4, 9, 9)
        patches = distinct_patches([tiles, tiles])
        every = [patch_codes(tile_codes(tiles, signals)) for signals in trace(tiles)]
        np.testing.assert_array_equal(patches, np.unique(np.concatenate(every)))

    def test_recombined_ones_are_made_of_tiles_that_were_seen(self):
        seen = distinct_patches([sample(np.random.default_rng(4), "open", 4, 6, 6)])
        made = recombine(np.random.default_rng(5), seen, 1000)
        assert set(tiles_of(made).ravel()) <= set(tiles_of(seen).ravel())
        assert len(set(made.tolist()) - set(seen.tolist())) > 900
        assert kinds_of(tiles_of(made)[:, CENTRE]).any(axis=1).all()

    def test_all_tiles_that_occur_are_known(self):
        config = HintConfig(n_levels=16, sizes=(4, 5, 9))
        seen = distinct_patches(levels_to_watch(np.random.default_rng(6), config))
        assert set(tiles_of(seen).ravel()) <= set(tile_states())
        assert len(set(tiles_of(seen).ravel())) > 50


class TestLearning:
    def test_a_small_run_learns_the_rule_for_small_mazes(self):
        tiles = generate(np.random.default_rng(7), 100, 7, "random")
        paths, maze = shortest_path(tiles), torch.from_numpy(one_hot(tiles))
        solved = {}
        for n_updates in (20, 700):
            model = learn(replace(TINY, n_updates=n_updates), ignore)
            with torch.no_grad():
                state = rollout(model, maze, 2 * int(paths.sum(axis=(1, 2)).max()))
            solved[n_updates] = ((state[:, 0].numpy() > 0.5) == paths).all(axis=(1, 2)).mean()
        assert solved[20] < 0.3
        assert solved[700] > 0.95

    def test_the_seed_decides_everything(self):
        config = replace(TINY, n_updates=3, n_levels=8, n_recombined=100)
        one, two, other = (learn(replace(config, seed=seed), ignore).weights[0] for seed in (0, 0, 1))
        assert torch.equal(one, two)
        assert not torch.equal(one, other)

    def test_the_loss_is_zero_where_signals_are_right_and_margins_kept(self):
        wanted = torch.tensor([[1.0, 1, 0, 0, 0, 0, 0, 0, 0]])
        sums = torch.full((1, len(CHANNELS)), -0.3)
        sums[0, :3] = torch.tensor([1.0, 1.4, 0.4])
        assert losses(sums, wanted, 0.25, 10) == 0
        for channel, value in ((0, 0.9), (1, 1.5), (2, 0.3), (3, -0.2), (4, 0.1)):
            wrong = sums.clone()
            wrong[0, channel] = value
            assert losses(wrong, wanted, 0.25, 10) > 0, channel

    def test_inputs_are_pairs_of_any_size(self):
        examples = Examples.of(patches_to_learn(TINY))
        read = inputs(examples, 10, 0.0, torch.Generator().manual_seed(0))
        patch = read[:, :-1].view(len(read), 4 + len(CHANNELS), len(TAPS))
        low, high = patch[:, 5::2], patch[:, 6::2]
        torch.testing.assert_close(low - high, examples.signals[:, 1:], atol=1e-5, rtol=0)
        assert high.min() == 0
        assert 9.9 < high.max() < 10
        assert (read[:, -1] == 1).all()


class TestCertificate:
    def test_the_shipped_weights_have_one(self, policy):
        certificate = certify(policy)
        assert certificate.holds
        assert certificate.n_patches == 81 * 75

    def test_small_changes_are_forgiven_and_large_ones_are_not(self, policy):
        for size, holds in ((1e-6, True), (0.1, False)):
            noisy = load(NAME)
            noise = torch.empty_like(noisy.weights[0]).uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
            noisy.weights[0].data += size * noise
            assert certify(noisy).holds is holds

    @pytest.mark.parametrize("channel", range(len(CHANNELS)))
    def test_no_channel_can_do_without_its_bias(self, channel):
        spoilt = load(NAME)
        spoilt.biases[0].data[channel] -= 3
        assert not certify(spoilt).holds

    def test_a_random_network_has_none(self):
        assert not certify(NCA(4, 17, cut_corners=True, n_layers=None, channel_names=CHANNELS)).holds

    def test_it_bounds_what_happens(self, policy):
        certificate = certify(policy)
        for family in ("random 0.3", "perfect", "open"):
            tiles = sample(np.random.default_rng(8), family, 6, 9, 10)
            watched = list(trace(tiles))
            with torch.no_grad():
                states = trace_policy(policy, torch.from_numpy(one_hot(tiles)), len(watched) - 1)
                for signals, state in zip(watched, states, strict=True):
                    path, low, high = state[:, 0], state[:, 1::2], state[:, 2::2]
                    on, on_path = torch.from_numpy(signals[:, 1:]), torch.from_numpy(signals[:, 0])
                    assert not low[~on].any()
                    assert not high[~on].any()
                    assert (abs((low - high)[on] - 1) <= certificate.error).all()
                    assert ((high[on] >= certificate.least) & (high[on] <= certificate.most)).all()
                    assert (abs(path[on_path] - 1) <= certificate.path_error).all()
                    assert not path[~on_path].any()
        assert certificate.path_error <= PATH_TOLERANCE

    def test_neighbours_that_are_alike_are_interchangeable(self):
        """Only what the automaton reads of a neighbour decides, on patches of any tiles."""
        rng, states = np.random.default_rng(9), tile_states()
        tiles = np.stack([rng.choice(states[states > 0] if tap == "C" else states, 3000) for tap in TAPS], axis=1)
        before = labels(join(tiles))
        alone = np.zeros((len(states), len(TAPS)), np.int64)
        for tap in (0, 1, 3, 4):
            alone[:], alone[:, CENTRE], alone[:, tap] = 0, states[1], states
            alike = np.unique(labels(join(alone)), axis=0, return_inverse=True)[1].ravel()
            swapped = tiles.copy()
            for i, code in enumerate(tiles[:, tap]):
                swapped[i, tap] = rng.choice(states[alike == alike[np.searchsorted(states, code)]])
            np.testing.assert_array_equal(labels(join(swapped)), before)

    def test_it_is_for_what_is_learned_from_hints(self):
        with pytest.raises(ValueError, match=r"the 17 channels that are learned from hints, got a 3x3 .* path, wet"):
            certify(NCA.from_handcoded("shortest-path"))
        with pytest.raises(ValueError, match="iterations are all the same"):
            certify(NCA(4, 17, cut_corners=True, n_layers=9, channel_names=CHANNELS))


class TestPolicy:
    def test_it_is_an_ordinary_small_network(self, policy):
        assert type(policy) is NCA
        assert (policy.n_channels, policy.n_weights, policy.n_layers) == (17, 1785, None)
        assert not torch.equal(policy.weights[0], policy.weights[0].round())

    @pytest.mark.parametrize("family", FAMILIES)
    def test_it_solves_every_family_for_good(self, policy, family):
        tiles = named_levels(family, 16, "shortest-path", 16).tiles
        paths, state, maze = shortest_path(tiles), None, torch.from_numpy(one_hot(tiles))
        due = 2 * int(paths.sum(axis=(1, 2)).max())
        with torch.no_grad():
            for n_steps in (due, 9 * min(due, 40)):
                state = rollout(policy, maze, n_steps, state)
                np.testing.assert_array_equal(state[:, 0] > 0.5, paths)
                assert (state[:, 0] - torch.from_numpy(paths).float()).abs().max() < 1e-3

    def test_the_path_is_the_automatons_at_every_iteration(self, policy):
        for family in SAMPLES:
            tiles = sample(np.random.default_rng(10), family, 4, 7, 10)
            watched = list(trace(tiles))
            with torch.no_grad():
                states = trace_policy(policy, torch.from_numpy(one_hot(tiles)), len(watched) - 1)
                for signals, state in zip(watched, states, strict=True):
                    np.testing.assert_array_equal(state[:, 0] > 0.5, signals[:, Signal.PATH])


class TestConfig:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"families": ("mazes",)}, "unknown family of levels 'mazes'; known: random, perfect"),
            ({"families": ()}, "families must name at least one family; known: random"),
            ({"sizes": (8, 3)}, "sizes must be an integer from 4 on, got 3"),
            ({"sizes": ()}, "sizes must hold at least one integer from 4 on"),
            ({"n_levels": 1}, "n_levels must be an integer from 2 on, got 1"),
            ({"n_updates": 0}, "n_updates must be an integer from 1 on, got 0"),
            ({"batch_size": 1.5}, "batch_size must be an integer from 1 on, got 1.5"),
            ({"n_recombined": -1}, "n_recombined must be an integer from 0 on, got -1"),
            ({"seed": True}, "seed must be an integer from 0 on, got True"),
            ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
            ({"margin": float("nan")}, "margin must be a number of at least 0, got nan"),
            ({"jitter": 1.0}, "jitter must be a number of at least 0 and below 1, got 1.0"),
            ({"largest": 0.5}, "largest must be more than twice the margin 0.25, got 0.5"),
            ({"ridge": -1}, "ridge must be a number above 0, got -1"),
        ],
    )
    def test_what_is_wrong_is_named(self, change, message):
        with pytest.raises(ValueError, match=message):
            HintConfig(**change)

    def test_changes_are_what_differs(self):
        assert changes(HintConfig()) == {}
        assert changes(HintConfig(seed=2, sizes=(5,))) == {"seed": 2, "sizes": (5,)}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["loops", "random"])
def test_tiles_that_are_not_active_can_be_left_alone(policy, family):
    tiles = generate(np.random.default_rng(11), 3, (9, 8), family)
    with torch.no_grad():
        whole = rollout(policy, torch.from_numpy(one_hot(tiles)), 200)
    for level, path, expected in zip(tiles, shortest_path(tiles), whole, strict=True):
        state, n_steps = run_active(policy, level, 200)
        np.testing.assert_allclose(state.transpose(2, 0, 1), expected, atol=0.01)
        np.testing.assert_array_equal(state[..., 0] > 0.5, path)
        assert n_steps < 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_seed_gets_a_certificate(seed):
    assert certify(learn(HintConfig(seed=seed), ignore)).holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "n"),
    [
        ("random", 16, 2048),
        ("random", 64, 128),
        ("random", 128, 32),
        ("sparse", 32, 256),
        ("perfect", 31, 256),
        ("perfect", 101, 16),
        ("perfect", 201, 4),
        ("perfect", 501, 1),
        ("loops", 31, 128),
        ("loops", 101, 16),
        ("rooms", 32, 128),
        ("caves", 32, 128),
    ],
)
def test_many_levels_after_ten_times_the_iterations(policy, family, size, n):
    tiles = named_levels(family, size, "shortest-path", n).tiles
    for level, path in zip(tiles, shortest_path(tiles), strict=True):
        state, _ = run_active(policy, level, 20 * int(path.sum()))
        np.testing.assert_array_equal(state[..., 0] > 0.5, path)
