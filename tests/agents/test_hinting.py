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
from tables import for_each

from maze_nca_gym.agents import iterate, load, rollout
from maze_nca_gym.agents.automata.shortest_path import ENTER, SHORTEST_PATH, Signal
from maze_nca_gym.agents.hinting.certificate import PATH_TOLERANCE, certify
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.agents.hinting.learning import Examples, inputs, learn, losses, patches_to_learn
from maze_nca_gym.agents.hinting.patches import (
    CENTRE,
    TAPS,
    distinct,
    kinds_of,
    labels,
    levels_to_watch,
    mask_of,
    patches_of,
    patches_seen,
    recombine,
    tile_codes,
)
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.families import FAMILIES
from maze_nca_gym.families import test_levels as named_levels
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import one_hot, parse
from maze_nca_gym.solvers import shortest_path

NAME = "nca-shortest-path-hinted"
CHANNELS = SHORTEST_PATH.channels
trace = SHORTEST_PATH.trace
TINY = HintConfig(families=("random",), sizes=(6,), n_recombined=0, batch_size=256)


def ignore(line):
    pass


def tile_states():
    """Codes of all tiles that can occur, and 0 for beyond the edge."""
    (world,) = SHORTEST_PATH.worlds
    codes = [kind + 1 | mask_of(state) for kind, (component,) in world.items() for state in component.states]
    return np.array(sorted([0, *codes]))


@pytest.fixture(scope="module")
def policy():
    return load(NAME)


class TestAutomaton:
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
            patches = patches_of(tile_codes(SHORTEST_PATH, tiles, before)).reshape(-1, len(TAPS))
            expected = after.transpose(0, 2, 3, 1).reshape(-1, len(Signal))
            np.testing.assert_array_equal(labels(SHORTEST_PATH, patches), expected)

    def test_a_patch_holds_its_five_tiles(self):
        tiles = parse(
            """
            .S.
            #T.
            .#.
            """
        )[None]
        (patches,) = patches_of(tile_codes(SHORTEST_PATH, tiles, np.zeros((1, 9, 3, 3), bool)))
        assert kinds_of(SHORTEST_PATH, patches[1, 1]).argmax(axis=1).tolist() == [2, 1, 3, 0, 1]
        assert kinds_of(SHORTEST_PATH, patches[0, 0]).sum(axis=1).tolist() == [0, 0, 1, 1, 1]

    def test_each_is_kept_once(self):
        tiles = sample(np.random.default_rng(3), "loops", 4, 9, 9)
        patches = patches_seen(SHORTEST_PATH, [tiles, tiles])
        every = [patches_of(tile_codes(SHORTEST_PATH, tiles, signals)) for signals in trace(tiles)]
        assert sorted(patches.tolist()) == np.unique(np.reshape(every, (-1, len(TAPS))), axis=0).tolist()

    def test_their_order_depends_on_them_alone(self):
        rng = np.random.default_rng(4)
        patches = rng.choice(tile_states(), (100, len(TAPS)))
        expected = sorted({tuple(patch) for patch in patches.tolist()}, key=lambda patch: patch[::-1])
        for order in (patches, patches[::-1]):
            assert distinct(SHORTEST_PATH, [order[:50], order[50:]]).tolist() == list(map(list, expected))

    def test_recombined_ones_are_made_of_tiles_that_were_seen(self):
        seen = patches_seen(SHORTEST_PATH, [sample(np.random.default_rng(4), "open", 4, 6, 6)])
        made = recombine(np.random.default_rng(5), SHORTEST_PATH, seen, 1000)
        assert set(made.ravel()) <= set(seen.ravel())
        assert len(set(map(tuple, made.tolist())) - set(map(tuple, seen.tolist()))) > 900
        assert kinds_of(SHORTEST_PATH, made[:, CENTRE]).any(axis=1).all()

    def test_all_tiles_that_occur_are_known(self):
        config = HintConfig(n_levels=16, sizes=(4, 5, 9))
        seen = patches_seen(SHORTEST_PATH, levels_to_watch(np.random.default_rng(6), SHORTEST_PATH, config))
        assert set(seen.ravel()) <= set(tile_states())
        assert len(np.unique(seen)) > 50
        assert len(tile_states()) == 76


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
        assert losses(SHORTEST_PATH, sums, wanted, 0.25, 10) == 0
        for channel, value in ((0, 0.9), (1, 1.5), (2, 0.3), (3, -0.2), (4, 0.1)):
            wrong = sums.clone()
            wrong[0, channel] = value
            assert losses(SHORTEST_PATH, wrong, wanted, 0.25, 10) > 0, channel

    def test_inputs_are_pairs_of_any_size(self):
        examples = Examples.of(SHORTEST_PATH, patches_to_learn(SHORTEST_PATH, TINY))
        read = inputs(SHORTEST_PATH, examples, 10, 0.0, torch.Generator().manual_seed(0))
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
        assert certificate.n_patches == 313

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
        assert not certify(NCA(4, 17, cut_corners=True, n_iterations=None, channel_names=CHANNELS)).holds

    def test_it_bounds_what_happens(self, policy):
        certificate = certify(policy)
        for family in ("random 0.3", "perfect", "open"):
            tiles = sample(np.random.default_rng(8), family, 6, 9, 10)
            watched = list(trace(tiles))
            with torch.no_grad():
                states = iterate(policy, torch.from_numpy(one_hot(tiles)), len(watched) - 1)
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

    def test_it_bounds_every_patch(self, policy):
        """Sums on patches of any tiles with any pairs are within what the certificate says of all."""
        rng, states = np.random.default_rng(9), tile_states()
        tiles = np.stack([rng.choice(states[states > 0] if tap == "C" else states, 20_000) for tap in TAPS], axis=1)
        examples = Examples.of(SHORTEST_PATH, tiles)
        read = inputs(SHORTEST_PATH, examples, 10, 0.02, torch.Generator().manual_seed(0))
        sums = read @ torch.cat([policy.weights[0].flatten(1), policy.biases[0][:, None]], dim=1).detach().T
        low, high, on = sums[:, 1::2], sums[:, 2::2], examples.labels[:, 1:] > 0
        certificate = certify(policy)
        assert max(low[~on].max(), high[~on].max()) <= certificate.silent
        assert high[on].min() >= certificate.least
        assert high[on].max() <= certificate.most
        assert abs((low - high)[on] - 1).max() <= certificate.error

    def test_it_is_for_what_is_learned_from_hints(self):
        with pytest.raises(ValueError, match=r"the 17 channels that are learned from hints, got a 3x3 .* path, wet"):
            certify(NCA.from_handcoded("shortest-path"))
        with pytest.raises(ValueError, match="iterations are all the same"):
            certify(NCA(4, 17, cut_corners=True, n_iterations=9, channel_names=CHANNELS))
        with pytest.raises(ValueError, match="without a state limit, got one of 3"):
            certify(NCA(4, 17, cut_corners=True, n_iterations=None, state_limit=3, channel_names=CHANNELS))


class TestPolicy:
    def test_it_is_an_ordinary_small_network(self, policy):
        assert type(policy) is NCA
        assert (policy.n_channels, policy.n_weights, policy.n_iterations) == (17, 1785, None)
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
                states = iterate(policy, torch.from_numpy(one_hot(tiles)), len(watched) - 1)
                for signals, state in zip(watched, states, strict=True):
                    np.testing.assert_array_equal(state[:, 0] > 0.5, signals[:, Signal.PATH])


class TestConfig:
    @for_each(
        ("change", "message"),
        [
            ({"families": ("mazes",)}, "unknown family of levels 'mazes'; known: random, perfect"),
            ({"families": ()}, "families must name at least one of random, perfect"),
            ({"sizes": (8, 3)}, "sizes must be at least 4, got 3"),
            ({"sizes": ()}, "sizes must hold at least one number"),
            ({"n_levels": 1}, "n_levels must be at least 2, got 1"),
            ({"n_updates": 0}, "n_updates must be at least 1, got 0"),
            ({"batch_size": 1.5}, "batch_size must be of type int, got 1.5"),
            ({"n_recombined": -1}, "n_recombined must be at least 0, got -1"),
            ({"seed": True}, "seed must be of type int, got True"),
            ({"learning_rate": 0}, "learning_rate must be a finite number above 0, got 0"),
            ({"margin": float("nan")}, "margin must be at least 0, got nan"),
            ({"jitter": 1.5}, "jitter must be from 0 to 1, got 1.5"),
            ({"largest": 0.5}, "largest must be more than twice the margin 0.25, got 0.5"),
            ({"ridge": -1}, "ridge must be a finite number above 0, got -1"),
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
