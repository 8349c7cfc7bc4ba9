"""The automaton of the diameter, the certificate of a network that pools, and the policy that was learned from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES as SAMPLES
from maze_samples import sample

from maze_nca_gym.agents import iterate, load
from maze_nca_gym.agents.automata.automaton import MapView
from maze_nca_gym.agents.automata.diameter import DIAMETER, EVERYWHERE, WALKER, S
from maze_nca_gym.agents.hinting.certificate import certify, counterexamples
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.agents.hinting.learning import Examples, Pool, inputs, learn, losses
from maze_nca_gym.agents.hinting.patches import (
    KIND_BITS,
    labels,
    levels_to_watch,
    mask_of,
    patches_of,
    patches_seen,
    recombine,
    tile_codes,
)
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.rollouts import rollout
from maze_nca_gym.families import FAMILIES
from maze_nca_gym.families import test_levels as named_levels
from maze_nca_gym.levels import Tile, clear_endpoints, one_hot, parse
from maze_nca_gym.solvers import diameter, eccentricities

NAME = "nca-diameter-hinted"
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def policy():
    return load(NAME)


def mazes(seed, family, n, height, width):
    return clear_endpoints(sample(np.random.default_rng(seed), family, n, height, width))


def noise(rng, n, height, width):
    """Mazes of all densities, most of them in pieces, some without a free tile."""
    return (rng.random((n, height, width)) < rng.random((n, 1, 1))).astype(np.uint8)


def as_bits(flags):
    """(64 N, ...) booleans as (N, ...) integers of 64 bits."""
    words = np.packbits(flags.reshape(-1, 64, *flags.shape[1:]), axis=1, bitorder="little")
    return np.ascontiguousarray(np.moveaxis(words, 1, -1)).view("<u8")[..., 0]


def settle(tiles):
    """The paths that 64 N mazes end with, as bits, after as many iterations as it takes for the walkers to be gone."""
    kinds = {kind: as_bits(tiles == kind) for kind in DIAMETER.kinds}
    n, height, width = kinds[Tile.EMPTY].shape
    view, quiet = MapView(kinds, np.zeros((n, len(S), height, width), np.uint64)), 0
    while quiet < 4 * height * width:
        view = view.after(DIAMETER.advance(view))
        walking = view.signals[:, list(WALKER)].any() or (view.signals[:, [S.MOVES, S.BEFORE]]).any()
        quiet = 0 if walking else quiet + 1
    return view.signals[:, S.PATH]


class TestAutomaton:
    @pytest.mark.parametrize("family", SAMPLES)
    def test_it_ends_at_the_canonical_path(self, family):
        tiles = mazes(0, family, 6, 6, 7)
        *_, last = DIAMETER.trace(tiles)
        np.testing.assert_array_equal(last[:, S.PATH], diameter(tiles))

    @pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 2), (1, 6), (6, 1), (2, 2), (3, 3), (4, 5), (5, 4)])
    def test_any_shape_and_pieces_too(self, height, width):
        tiles = noise(np.random.default_rng(height * 10 + width), 256, height, width)
        np.testing.assert_array_equal(settle(tiles), as_bits(diameter(tiles)))

    def test_of_equals_it_is_the_first(self):
        tiles = parse(
            """
            #.#..
            ..##.
            #####
            """
        )[None]
        *_, last = DIAMETER.trace(tiles)
        assert np.argwhere(last[0, S.PATH]).tolist() == [[0, 1], [1, 0], [1, 1]]

    def test_only_promising_tiles_launch(self):
        """Launches come row by row, and one from each tile that is first with a larger eccentricity; few others."""
        tiles = mazes(1, "perfect", 1, 15, 15)
        launched = []
        for signals in DIAMETER.trace(tiles):
            launched += [tuple(place) for place in np.argwhere(signals[0, S.LAUNCH])]
        assert launched == sorted(set(launched))
        (far,) = eccentricities(tiles)
        best = -1
        for row, col in np.argwhere(far >= 0):
            if far[row, col] > best:
                best = far[row, col]
                assert (row, col) in launched
        assert len(launched) < 0.4 * (far >= 0).sum()

    def test_all_tiles_that_occur_are_known(self):
        config = HintConfig.of("diameter", sizes=(4, 5), n_levels=2)
        seen = patches_seen(DIAMETER, levels_to_watch(np.random.default_rng(2), DIAMETER, config))
        codes, everywhere = np.unique(seen), mask_of(EVERYWHERE)
        worlds = {
            (kind, mask_of(components[-1].states[0])): components[:-1]
            for world in DIAMETER.worlds
            for kind, components in world.items()
        }
        for code in codes[codes > 0].tolist():
            kind = Tile((code & ((1 << KIND_BITS) - 1)) - 1)
            for component in worlds[kind, code & everywhere]:
                state = code & mask_of(component.signals)
                assert state in {mask_of(known) for known in component.states}, (kind, component.signals)
        assert len({code & everywhere for code in codes.tolist()}) == len(DIAMETER.worlds) == 16

    def test_what_is_everywhere_is_everywhere(self):
        for signals in DIAMETER.trace(mazes(3, "loops", 2, 6, 6)):
            told = signals[:, list(EVERYWHERE)]
            assert (told == told[..., :1, :1]).all()


class TestPatches:
    def test_labels_are_what_happens_next(self):
        tiles = mazes(4, "random 0.3", 4, 5, 6)
        before = None
        for after in DIAMETER.trace(tiles):
            if before is not None:
                patches = patches_of(tile_codes(DIAMETER, tiles, before))
                made = labels(DIAMETER, patches.reshape(-1, 5)).reshape(*patches.shape[:3], len(S))
                np.testing.assert_array_equal(made[..., :-1], after.transpose(0, 2, 3, 1)[..., :-1])
                np.testing.assert_array_equal(made[..., -1].any(axis=(1, 2)), after[:, S.MOVES, 0, 0])
            before = after

    def test_recombined_ones_are_of_one_world(self):
        seen = patches_seen(DIAMETER, [mazes(5, "loops", 2, 5, 5)])
        made = recombine(np.random.default_rng(6), DIAMETER, seen, 4000)
        told = np.where(made > 0, made & mask_of(EVERYWHERE), -1)
        assert ((told == told[:, 2:3]) | (told < 0)).all()
        assert len(made) > 3000
        assert len(set(made.ravel()) - set(seen.ravel())) > 100

    def test_an_even_pool_shows_each_signal(self):
        seen = patches_seen(DIAMETER, [mazes(7, "loops", 2, 5, 5)])
        examples = Examples.of(DIAMETER, seen)
        drawn = Pool(examples, evenly=True).draw(20_000, torch.Generator().manual_seed(0)).labels.mean(dim=0)
        assert examples.labels.mean(dim=0).min() < 1e-3
        assert drawn.min() > 0.01


class TestLearning:
    def test_what_is_pooled_is_one_channel_and_the_other_maximum_is_not_read(self):
        examples = Examples.of(DIAMETER, patches_seen(DIAMETER, [mazes(8, "open", 1, 4, 4)]))
        read = inputs(DIAMETER, examples, 20, 0.0, torch.Generator().manual_seed(0))
        patch = read[:, :-1].view(len(read), 2 + len(DIAMETER.channels), 5)
        torch.testing.assert_close(patch[:, -2], examples.signals[:, S.MOVES], atol=0, rtol=0)
        assert 15 < patch[:, -1].max() < 21
        sums = torch.full((1, len(DIAMETER.channels)), -0.3)
        off = torch.zeros(1, len(S))
        assert losses(DIAMETER, sums, off, 0.25, 20) == 0
        for channel in (-1, -2):
            wrong = sums.clone()
            wrong[0, channel] = 0.1
            assert losses(DIAMETER, wrong, off, 0.25, 20) > 0
        moves = off.clone()
        moves[0, S.MOVES], sums[0, -2] = 1, 1
        assert losses(DIAMETER, sums, moves, 0.25, 20) == 0

    def test_a_short_run_is_not_proven_and_says_where(self):
        config = HintConfig.of("diameter", sizes=(4,), n_levels=2, n_recombined=200, n_updates=10, sparsity=0.0)
        model = learn(config, lambda line: None)
        assert not certify(model).holds
        wrong = counterexamples(DIAMETER, model, 20.0, 1)
        assert len(wrong) > 50
        examples = Examples.of(DIAMETER, wrong)
        read = inputs(DIAMETER, examples, 20, 0.0, torch.Generator().manual_seed(0))
        sums = read @ torch.cat([model.weights[0].flatten(1), model.biases[0][:, None]], dim=1).detach().T
        assert (losses(DIAMETER, sums, examples.labels, 0.0, 20.0) > 0).float().mean() > 0.9

    def test_changes_are_what_differs_for_the_task(self):
        assert changes(HintConfig.of("diameter")) == {"automaton": "diameter"}
        assert changes(replace(HintConfig.of("diameter"), seed=1)) == {"automaton": "diameter", "seed": 1}
        with pytest.raises(
            ValueError, match="unknown automaton 'longest'; known: shortest-path, shortest-path-healing, diameter"
        ):
            HintConfig.of("longest")


class TestCertificate:
    def test_the_shipped_weights_have_one(self, policy):
        certificate = certify(policy)
        assert certificate.holds
        assert certificate.most <= 20
        assert certificate.pooled_error > 0

    def test_small_changes_are_forgiven_and_large_ones_are_not(self):
        for size, holds in ((1e-7, True), (0.1, False)):
            noisy = load(NAME)
            noise = torch.empty_like(noisy.weights[0]).uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
            noisy.weights[0].data += size * noise * (noisy.weights[0] != 0)
            assert certify(noisy).holds is holds

    @pytest.mark.parametrize(
        "channel",
        ["moves", "channel_max", *(pytest.param(name, marks=SLOW) for name in ("a_new_low", "path", "end_high"))],
    )
    def test_no_channel_can_do_without_its_bias(self, channel):
        spoilt = load(NAME)
        place = DIAMETER.channels.index(channel)
        spoilt.biases[0].data[place] += 4 if channel == "channel_max" else -4
        assert not certify(spoilt).holds

    def test_it_fails_if_the_maximum_over_all_channels_matters(self):
        spoilt = load(NAME)
        spoilt.weights[0].data[DIAMETER.channels.index("token_low"), -1, 2] = 0.5
        assert not certify(spoilt).holds

    def test_it_bounds_what_happens(self, policy):
        certificate, tiles = certify(policy), mazes(9, "loops", 3, 6, 6)
        watched = list(DIAMETER.trace(tiles))
        with torch.no_grad():
            states = iterate(policy, torch.from_numpy(one_hot(tiles, 2)), len(watched) - 1)
            for signals, state in zip(watched, states, strict=True):
                low, high = state[:, 1:-2:2], state[:, 2:-2:2]
                on = torch.from_numpy(signals[:, 1:-1])
                assert not low[~on].any()
                assert not high[~on].any()
                if on.any():
                    assert abs((low - high)[on] - 1).max() <= certificate.error
                    assert certificate.least <= high[on].min()
                    assert high[on].max() <= certificate.most
                moves = torch.from_numpy(signals[:, S.MOVES])
                assert (abs(state[:, -2][moves] - 1) <= certificate.pooled_error).all()
                assert not state[:, -2][~moves].any()
                np.testing.assert_array_equal(state[:, 0] > 0.5, signals[:, S.PATH])

    def test_it_is_for_what_is_learned_from_hints(self):
        with pytest.raises(ValueError, match=r"a pooling and the 75 channels .* channels path, wet"):
            certify(NCA.from_handcoded("diameter"))


class TestPolicy:
    def test_it_is_an_ordinary_network(self, policy):
        assert type(policy) is NCA
        assert (policy.n_channels, policy.n_weights, policy.max_pool, policy.n_iterations) == (75, 28_875, True, None)
        assert not torch.equal(policy.weights[0], policy.weights[0].round())

    @pytest.mark.parametrize("family", FAMILIES)
    def test_it_solves_every_family_for_good(self, policy, family):
        tiles = named_levels(family, 6, "diameter", 8).tiles
        maze, n_steps = torch.from_numpy(one_hot(tiles, 2)), len(list(DIAMETER.trace(tiles)))
        with torch.no_grad():
            for path in rollout(policy, maze, [n_steps, n_steps + 51], fast=True, n_returned=1):
                np.testing.assert_array_equal(path[:, 0] > 0.5, diameter(tiles))

    def test_pieces_and_mazes_without_a_free_tile(self, policy):
        tiles = noise(np.random.default_rng(10), 64, 4, 5)
        n_steps = len(list(DIAMETER.trace(tiles)))
        with torch.no_grad():
            (path,) = rollout(policy, torch.from_numpy(one_hot(tiles, 2)), [n_steps], fast=True, n_returned=1)
        np.testing.assert_array_equal(path[:, 0] > 0.5, diameter(tiles))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_seed_gets_a_certificate(seed):
    assert certify(learn(HintConfig.of("diameter", seed=seed), lambda line: None)).holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "n"),
    [("random", 16, 1024), ("perfect", 15, 256), ("perfect", 31, 64), ("loops", 15, 256), ("sparse", 16, 256)],
)
def test_the_automaton_on_many_levels(family, size, n):
    tiles = named_levels(family, size, "diameter", n).tiles
    np.testing.assert_array_equal(settle(tiles), as_bits(diameter(tiles)))
