"""Learning from hints: common properties of all automata of the package, their networks and their certificates."""

import json
from dataclasses import replace
from functools import partial
from importlib.util import find_spec, module_from_spec
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from maze_samples import sample
from tables import for_each, refused

from experiments.scaling.largest import run
from maze_nca_gym.agents import iterate, load, rollout
from maze_nca_gym.agents.automata.networks.bounds import Network
from maze_nca_gym.agents.automata.networks.certificate import certify, counterexamples, followed, worst_patch
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.automata.networks.learning import learn
from maze_nca_gym.agents.automata.networks.patches import (
    KIND_BITS,
    distinct,
    kinds_of,
    labels,
    patches_of,
    patches_seen,
    recombine,
    signals_of,
    tile_codes,
)
from maze_nca_gym.agents.automata.networks.states import find_worlds
from maze_nca_gym.agents.automata.registry import find_automaton
from maze_nca_gym.agents.automata.run import compile_automaton, learn_automaton
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.mazes.families import FAMILIES, register_family
from maze_nca_gym.mazes.families import test_levels as named_levels
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, one_hot, parse
from maze_nca_gym.mazes.solvers import diameter, shortest_path

AUTOMATA = [SHORTEST_PATH, HEALING, DIAMETER]
NAMES = {automaton: f"nca-{automaton.name}-hinted" for automaton in AUTOMATA}
SOLVERS = {"shortest-path": shortest_path, "diameter": diameter}
SIZES = {SHORTEST_PATH: 16, HEALING: 12, DIAMETER: 6}
SHAPES = {SHORTEST_PATH: (17, 1_785), HEALING: (41, 9_225), DIAMETER: (75, 28_875)}
"""Channels and weights of the networks."""
N_USED = {SHORTEST_PATH: 175, HEALING: 407, DIAMETER: 678}
"""Number of weights other than zero."""
TINY = HintConfig(families=("random",), sizes=(6,), n_recombined=0, batch_size=256, n_rounds=0)


@pytest.fixture(scope="module", params=AUTOMATA, ids=lambda automaton: automaton.name)
def automaton(request):
    return request.param


diameter_slowly = pytest.mark.parametrize(
    "automaton", [SHORTEST_PATH, HEALING, pytest.param(DIAMETER, marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture(scope="module")
def policy(automaton):
    return load(NAMES[automaton])


@pytest.fixture(scope="module")
def certificate(policy):
    return certify(policy)


def ignore(line):
    pass


def mazes(automaton, seed, family, n, height, width):
    tiles = sample(np.random.default_rng(seed), family, n, height, width)
    return tiles if len(automaton.kinds) == len(Tile) else clear_endpoints(tiles)


def maze_of(automaton, tiles):
    return torch.from_numpy(one_hot(tiles, len(automaton.kinds)))


def low_of(automaton):
    """Return the first channels of all pairs of a network that learned an automaton; channel 0 is the path."""
    return slice(1, 1 + 2 * len(automaton.paired), 2)


def high_of(automaton):
    return slice(2, 2 + 2 * len(automaton.paired), 2)


def with_weights(automaton, change):
    """Return the included network with changed weights and biases."""
    model = load(NAMES[automaton])
    with torch.no_grad():
        change(model.weights[0], model.biases[0])
    return model


def check_other_order(model, n, size):
    """Check that a network of the order DLRU draws the path in this order on n mazes."""
    tiles = generate(np.random.default_rng(12), n, size, wall_probability=0.2)
    target = shortest_path(tiles, "DLRU")
    with torch.no_grad():
        state = rollout(model, torch.from_numpy(one_hot(tiles)), 2 * int(target.sum(axis=(1, 2)).max()) + 3)
    np.testing.assert_array_equal(state[:, 0] > 0.5, target)


def scaled(automaton, factor):
    """The shipped network with sums of pairs that are multiplied by a factor; the second is less by 1, as before."""

    def change(weight, bias):
        for rows in (low_of(automaton), high_of(automaton)):
            weight[rows] *= factor
        bias[low_of(automaton)] *= factor
        bias[high_of(automaton)] = bias[low_of(automaton)] - 1

    return with_weights(automaton, change)


def sums_on(automaton, model, patches, largest=0.0):
    """Sums of a network on patches before the ReLU, (P, C), with pairs (h + 1, h) for random h up to a largest."""
    rng, on = np.random.default_rng(9), signals_of(automaton, patches).swapaxes(1, 2).astype(np.float64)
    pairs = on[:, 1 : 1 + len(automaton.paired)]
    high = pairs * np.floor(2 * largest * rng.random(pairs.shape)) / 2  # with whole weights, multiples of a half
    read = [kinds_of(automaton, patches).swapaxes(1, 2), on[:, :1]]
    read.append(np.stack([high + pairs, high], axis=2).reshape(len(patches), -1, patches.shape[1]))
    if automaton.pooled:
        read += [on[:, -1:], (largest + 1) * rng.random((len(patches), 1, patches.shape[1]))]
    weight, bias = (parameter[0].detach().double().numpy() for parameter in (model.weights, model.biases))
    return np.einsum("pit,oit->po", np.concatenate(read, axis=1), weight) + bias


class TestAutomaton:
    def test_labels_are_the_next_signals(self, automaton):
        tiles = mazes(automaton, 2, "random 0.3", 3, 5, 6)
        n_signals = len(automaton.signals)
        for before, after in pairwise(automaton.trace(tiles)):
            patches = patches_of(automaton, tile_codes(automaton, tiles, before))
            computed = labels(automaton, patches.reshape(-1, 5)).reshape(*patches.shape[:3], n_signals)
            computed = computed.transpose(0, 3, 1, 2)
            if automaton.pooled:
                computed[:, -1] = computed[:, -1].any(axis=(1, 2), keepdims=True)
            np.testing.assert_array_equal(computed, after)

    def test_an_unreachable_target_leaves_the_path_empty(self):
        *_, last = SHORTEST_PATH.trace(parse("S.#T..")[None])
        signals = SHORTEST_PATH.signals
        np.testing.assert_array_equal(last[0, signals["FLOOD"]], [[0, 0, 0, 1, 1, 1]])
        assert not last[0, [signals.PATH, *(signals[f"ENTER_{towards}"] for towards in "ULDR")]].any()


class TestPatches:
    def test_a_patch_holds_its_five_tiles(self):
        tiles = parse(
            """
            .S.
            #T.
            .#.
            """
        )[None]
        (patches,) = patches_of(SHORTEST_PATH, tile_codes(SHORTEST_PATH, tiles, np.zeros((1, 9, 3, 3), bool)))
        assert kinds_of(SHORTEST_PATH, patches[1, 1]).argmax(axis=1).tolist() == [2, 1, 3, 0, 1]
        assert kinds_of(SHORTEST_PATH, patches[0, 0]).sum(axis=1).tolist() == [0, 0, 1, 1, 1]

    def test_patches_are_unique_and_sorted(self):
        tiles = sample(np.random.default_rng(3), "loops", 4, 9, 9)
        patches = patches_seen(SHORTEST_PATH, [tiles, tiles])
        every = [
            patches_of(SHORTEST_PATH, tile_codes(SHORTEST_PATH, tiles, signals))
            for signals in SHORTEST_PATH.trace(tiles)
        ]
        expected = sorted(np.unique(np.reshape(every, (-1, 5)), axis=0).tolist(), key=lambda patch: patch[::-1])
        assert patches.tolist() == expected
        assert distinct(SHORTEST_PATH, [patches[::-1][:50], patches]).tolist() == expected

    @for_each("n_kinds", [2, 4, 8, 64])
    def test_every_change_makes_a_different_patch(self, n_kinds):
        automaton = SimpleNamespace(kinds=range(n_kinds), signals=range(2), taps=("C",))
        patches = np.array([[kind + 1 | signals << KIND_BITS] for kind in range(n_kinds) for signals in range(4)])
        assert sorted(distinct(automaton, [patches, patches]).tolist()) == sorted(patches.tolist())

    def test_recombined_patches_consist_of_known_tiles_of_one_world(self, automaton):
        patches = patches_seen(automaton, [mazes(automaton, 4, "loops", 3, 5, 5)])
        recombined = recombine(np.random.default_rng(5), automaton, patches, 3000)
        assert len(set(map(tuple, recombined.tolist())) - set(map(tuple, patches.tolist()))) > 2000
        assert kinds_of(automaton, recombined[:, SHORTEST_PATH.taps.index("C")]).any(axis=1).all()
        everywhere = sum(1 << KIND_BITS + signal for signal in automaton.everywhere)
        signs = np.where(recombined > 0, recombined & everywhere, -1)
        assert ((signs == signs[:, [SHORTEST_PATH.taps.index("C")]]) | (signs < 0)).all()
        # with groups of signals, tiles combine observed states of the groups
        assert (set(recombined.ravel()) <= set(patches.ravel())) is (len(automaton.parts) == 1)


class TestLearning:
    def test_a_small_run_learns_the_rule_for_small_mazes(self):
        tiles = generate(np.random.default_rng(7), 100, 7, "random")
        paths, maze = shortest_path(tiles), torch.from_numpy(one_hot(tiles))
        solved = {}
        for n_updates in (20, 1500):
            model, _ = learn(replace(TINY, n_updates=n_updates), ignore, SHORTEST_PATH)
            with torch.no_grad():
                state = rollout(model, maze, 2 * int(paths.sum(axis=(1, 2)).max()))
            solved[n_updates] = ((state[:, 0].numpy() > 0.5) == paths).all(axis=(1, 2)).mean()
        assert solved[20] < 0.3
        assert solved[1500] > 0.95

    def test_the_seed_decides_everything(self):
        config = replace(TINY, n_updates=3, n_levels=8, n_recombined=100)
        one, two, other = (learn(replace(config, seed=seed), ignore, SHORTEST_PATH)[0].weights[0] for seed in (0, 0, 1))
        assert torch.equal(one, two)
        assert not torch.equal(one, other)

    @diameter_slowly
    def test_a_short_run_is_not_proven_and_names_patches_on_which_it_is_wrong(self, automaton):
        short = {"sizes": (4,), "n_levels": 2, "n_recombined": 200, "n_updates": 10, "n_rounds": 0}
        model, _ = learn(HintConfig.of(automaton.name, **short, families=("random",)), ignore, automaton)
        assert model.channel_names == automaton.channels
        assert not certify(model, automaton=automaton).holds
        wrong = counterexamples(automaton, model, 1)
        assert len(wrong) > len(automaton.signals)
        sums, on = sums_on(automaton, model, wrong), labels(automaton, wrong)
        low, high, paired = (
            sums[:, low_of(automaton)],
            sums[:, high_of(automaton)],
            on[:, 1 : 1 + len(automaton.paired)],
        )
        fails = np.where(paired, (high < 0) | (low - high != 1), (low > 0) | (high > 0)).any(axis=1)
        for channel, signal in ((0, 0), (-2, -1)) if automaton.pooled else ((0, 0),):
            fails |= np.where(on[:, signal], abs(sums[:, channel] - 1) > 0.01, sums[:, channel] > 0)
        assert fails.mean() > 0.9, "all but those where it is the room for errors of rounding that is wrong"

    def test_later_rounds_learn_from_what_the_certificate_rejects(self):
        lines = []
        few = HintConfig(families=("random",), sizes=(4,), n_levels=2, n_recombined=200, n_updates=300, batch_size=256)
        assert learn(replace(few, n_updates_again=300), lines.append, SHORTEST_PATH)[1].holds
        rounds = [line for line in lines if "round" in line]
        assert [line["round"] for line in rounds] == list(range(1, len(rounds) + 1))
        assert rounds[0]["silent"] > 0 > rounds[-1]["silent"]
        assert [line["update"] for line in lines] == sorted(line["update"] for line in lines)


class TestCertificate:
    def test_the_included_weights_have_a_certificate(self, automaton, certificate, policy):
        assert certificate.holds
        assert certificate.n_patches == {SHORTEST_PATH: 313, HEALING: 4_678, DIAMETER: 6_217}[automaton]
        assert certificate.assumed is (automaton is not HEALING)
        assert (certificate.error, certificate.tolerance) == (0, 0)
        assert followed(policy) is automaton

    @for_each(("factor", "holds"), [(1.1, True), (0.6, False)])
    def test_fractional_weights_may_have_rounding_errors(self, factor, holds):
        certificate = certify(scaled(SHORTEST_PATH, factor))
        assert certificate.holds is holds
        assert 0 < certificate.error < 0.02
        assert (certificate.error <= certificate.tolerance) is holds

    @for_each("value", [float("nan"), float("inf"), -float("inf")])
    def test_weights_that_are_not_finite_are_refused(self, value):
        # not the first: Python's max returns a NaN only if it is the first
        for change in (lambda weight, bias: weight[-1, 0, -1].fill_(value), lambda weight, bias: bias[-1].fill_(value)):
            model = with_weights(SHORTEST_PATH, change)
            for reads in (certify, partial(worst_patch, SHORTEST_PATH), lambda m: counterexamples(SHORTEST_PATH, m, 1)):
                refused("weights must be finite numbers, got 1 that are NaN or infinite", reads, model)

    def test_overflowing_sums_have_no_certificate(self):
        """The sum of a channel that is never on is far below 0, but parts of the sum are infinite and lead to NaN."""

        def change(weight, bias):
            weight[-1, :2] = torch.tensor([2e38 if tap in "UL" else 0 for tap in DIAMETER.taps])
            weight[-1, :2, DIAMETER.taps.index("C")] = bias[-1] = -3e38

        model = with_weights(DIAMETER, change)
        certificate = certify(model)
        assert certificate.silent == np.inf
        assert not certificate.holds

    @diameter_slowly
    def test_pairs_must_be_read_by_their_differences(self, automaton):
        first = len(automaton.kinds) + 1
        spoilt = with_weights(automaton, lambda weight, bias: weight[:, first].add_(0.1 * (weight[:, first] != 0)))
        assert not certify(spoilt).holds

    @pytest.mark.parametrize(
        ("of", "channel"),
        [
            *((SHORTEST_PATH, channel) for channel in SHORTEST_PATH.channels),
            *((HEALING, channel) for channel in ("flood_low", "reset", "channel_max", "path", "orphan_high")),
            (DIAMETER, "moves"),
            *(pytest.param(DIAMETER, name, marks=pytest.mark.slow) for name in ("channel_max", "a_new_low", "path")),
        ],
        ids=lambda value: value if isinstance(value, str) else value.name,
    )
    def test_every_bias_is_necessary(self, of, channel):
        change = torch.zeros(len(of.channels))
        change[of.channels.index(channel)] = 4 if channel == "channel_max" else -4
        assert not certify(with_weights(of, lambda weight, bias: bias.add_(change))).holds

    @pytest.mark.parametrize(("automaton", "factor"), [*product(AUTOMATA, [1]), (SHORTEST_PATH, 1.1)])
    def test_bounds_hold_and_the_path_is_the_automatons_at_every_iteration(self, automaton, factor):
        policy = scaled(automaton, factor)
        certificate = certify(policy)
        tiles = np.concatenate([mazes(automaton, 8, family, 2, 6, 7) for family in ("loops", "random 0.3")])
        signals = state = None
        for some in (tiles, tiles[::-1].copy(), tiles) if automaton.heals else (tiles,):
            watched = list(automaton.trace(some, signals))
            with torch.no_grad():
                states = iterate(policy, maze_of(automaton, some), len(watched) - 1, state)
                for signals, state in zip(watched, states, strict=True):
                    self.check_bounds(automaton, certificate, torch.from_numpy(signals), state)

    @staticmethod
    def check_bounds(automaton, certificate, signals, state):
        path, low, high = state[:, 0], state[:, low_of(automaton)], state[:, high_of(automaton)]
        on, on_path = signals[:, 1 : 1 + low.shape[1]], signals[:, 0]
        assert torch.equal(path > 0.5, on_path)
        assert not low[~on].any()
        assert not high[~on].any()
        assert (abs((low - high)[on] - 1) <= certificate.error).all()
        assert ((high[on] >= certificate.least) & (high[on] <= certificate.most)).all()
        assert (abs(path[on_path] - 1) <= certificate.path_error).all()
        assert not path[~on_path].any()
        if automaton.pooled:
            pooled = signals[:, -1]
            assert (abs(state[:, -2][pooled] - 1) <= certificate.pooled_error).all()
            assert not state[:, -2][~pooled].any()

    def test_bounds_hold_on_every_patch(self):
        """Sums on random patches with random pairs are within the bounds of the certificate."""
        policy, ((world,), _) = load(NAMES[SHORTEST_PATH]), find_worlds(SHORTEST_PATH)
        states = np.concatenate([kind + 1 | part.states for kind, (part,) in world.items()])
        rng, outside = np.random.default_rng(9), np.append(states, 0)
        tiles = np.stack([rng.choice(states if tap == "C" else outside, 20_000) for tap in SHORTEST_PATH.taps], axis=1)
        certificate = certify(policy)
        sums = sums_on(SHORTEST_PATH, policy, tiles, certificate.largest)
        low, high, on = (
            sums[:, low_of(SHORTEST_PATH)],
            sums[:, high_of(SHORTEST_PATH)],
            labels(SHORTEST_PATH, tiles)[:, 1:],
        )
        assert max(low[~on].max(), high[~on].max()) <= certificate.silent
        assert high[on].min() >= certificate.least
        assert high[on].max() <= certificate.most <= certificate.largest
        np.testing.assert_array_equal((low - high)[on], 1)

    def test_the_worst_patches_reach_the_bounds(self):
        policy = load(NAMES[HEALING])
        network = Network(HEALING, policy, tolerance=0.0)
        for name in ("FLOOD", "ENTER_R", "MANY_V", "ALARM"):
            signal = HEALING.signals[name]
            kinds = network.kinds(signal)
            places = range(0, len(kinds.on), 97)
            for row, (sign, bound) in product(range(2), ((1, kinds.high), (-1, kinds.low))):
                worst = np.array([network.worst(signal, kinds, place, row, sign) for place in places])
                sums = sums_on(HEALING, policy, worst)[:, 2 * signal - 1 + row]
                np.testing.assert_array_equal(sums, bound[places, row])

    def test_certificates_refuse_other_networks(self):
        shape = {"cut_corners": True, "channel_names": SHORTEST_PATH.channels}
        with pytest.raises(ValueError, match=r"the 17 channels of the automaton shortest-path, got path, wet"):
            certify(load("nca-shortest-path-exact-weights"), automaton=SHORTEST_PATH)
        refused("was not made for an automaton, .* give `certify` the", certify, load("nca-diameter-exact-weights"))
        for message, network, automaton in (
            ("the 75 channels", load("nca-diameter-exact-weights"), DIAMETER),
            ("iterations that all end with a ReLU", NCA(4, 17, n_iterations=9, **shape), SHORTEST_PATH),
            ("no state limit, got 3", NCA(4, 17, n_iterations=None, state_limit=3, **shape), SHORTEST_PATH),
        ):
            refused(message, certify, network, automaton=automaton)


class TestPolicy:
    def test_the_policy_is_an_ordinary_network(self, automaton, policy):
        assert type(policy) is NCA
        assert (policy.n_channels, policy.n_weights, policy.n_iterations) == (*SHAPES[automaton], None)
        assert torch.equal(policy.weights[0], policy.weights[0].round())
        assert policy.weights[0].count_nonzero() == N_USED[automaton]

    @for_each("family", FAMILIES)
    def test_the_policy_solves_every_family_and_stays_solved(self, automaton, policy, family):
        tiles = named_levels(family, SIZES[automaton], automaton.task, 8).tiles
        n_steps = len(list(automaton.trace(tiles)))
        with torch.no_grad():
            paths = rollout(policy, maze_of(automaton, tiles), [n_steps, n_steps + 51], n_returned=1)
        for path in paths:
            np.testing.assert_array_equal(path[:, 0] > 0.5, SOLVERS[automaton.task](tiles))


class TestConfig:
    @for_each(
        ("change", "message"),
        [
            ({"families": ("mazes",)}, "unknown family of levels 'mazes'. Did you .* Known: random, perfect"),
            ({"families": ()}, "families must name at least one of random, perfect"),
            ({"sizes": (8, 3)}, "sizes must be at least 4, got 3"),
            ({"sizes": ()}, "sizes must hold at least one number"),
            ({"seed": True}, "seed must be of type int, got True"),
            ({"margin": float("nan")}, "margin must be at least 0, got nan"),
        ],
    )
    def test_wrong_options_are_named(self, change, message):
        refused(message, HintConfig, **change)

    def test_registered_families_are_not_used_by_default(self):
        register_family("mine", FAMILIES["random"])
        spec = find_spec(HintConfig.__module__)
        spec.loader.exec_module(later := module_from_spec(spec))  # as in a process that has not imported it
        FAMILIES.remove("mine")
        assert later.HintConfig().families == HintConfig().families

    def test_an_unknown_automaton_is_named(self):
        refused("unknown automaton 'longest'; known: shortest-path, shortest-path-healing", HintConfig.of, "longest")

    def test_an_order_becomes_part_of_the_automaton(self):
        ordered, usual = HintConfig.of("diameter", order="DLRU"), HintConfig.of("diameter")
        assert (ordered.automaton, ordered.order, ordered.sizes) == ("diameter-DLRU", None, usual.sizes)
        assert ordered == HintConfig.of("diameter-DLRU") == HintConfig.of(DIAMETER, order="DLRU")
        assert ordered == HintConfig(**ordered.to_json())
        assert HintConfig.of("diameter-DLRU", order="ULDR") == usual
        name = f"{SHORTEST_PATH.signals.__module__}:SHORTEST_PATH"
        assert find_automaton(f"{name}-DLRU").name == find_automaton(name, "DLRU").name == "shortest-path-DLRU"
        assert HintConfig.of(name, order="DLRU").automaton == f"{name}-DLRU"
        assert SHORTEST_PATH.ordered("ULDR") is SHORTEST_PATH

    @pytest.mark.parametrize("automaton", [SHORTEST_PATH, pytest.param(HEALING, marks=pytest.mark.slow)])
    def test_another_order_is_compiled_and_proven(self, automaton, tmp_path):
        model, certificate = compile_automaton(automaton.name, order="DLRU", out=tmp_path / automaton.name)
        assert certificate.holds
        assert model.guarantees.exact
        described = json.loads((tmp_path / automaton.name / "config.json").read_text())
        assert described["command"] == f"maze-nca-gym compile-automaton {automaton.name} --order DLRU"
        check_other_order(model, 32, 9)

    @for_each(
        ("automaton", "order", "message"),
        [
            ("diameter", "dlru", "each of the letters U, L, D and R .* got 'dlru'"),
            (DIAMETER, 3, "each of the letters U, L, D and R .* got 3"),
            (replace(SHORTEST_PATH, name="own", in_order=None), "DLRU", "own has one order of directions only"),
        ],
    )
    def test_an_automaton_without_orders_refuses_one(self, automaton, order, message):
        refused(message, HintConfig.of, automaton, order=order)

    def test_a_network_of_an_order_is_certified_against_the_automaton_of_its_order(self, tmp_path):
        short = {"families": ("random",), "sizes": (6,), "n_updates": 8, "n_recombined": 0, "n_rounds": 0}
        model, certificate = learn_automaton("shortest-path", order="DLRU", out=tmp_path, **short)
        assert not certificate.holds
        assert model.task == load(str(tmp_path / "model.safetensors")).task == "shortest-path-DLRU"
        assert followed(model).name == "shortest-path-DLRU"
        assert followed(model).channels == model.channel_names != SHORTEST_PATH.channels
        assert certify(model) == certificate


@torch.no_grad()
@for_each("name", ["nca-shortest-path-hinted", "nca-shortest-path-exact-weights"])
@for_each("family", ["loops", "random"])
def test_tiles_that_are_not_active_can_be_left_alone(name, family):
    (tiles,) = generate(np.random.default_rng(11), 1, (9, 8), family)
    policy = load(name)
    states = rollout(policy, torch.from_numpy(one_hot(tiles[None])), range(1, 80))
    for n_steps, state in enumerate(states, 1):
        own_state, path_changed, still, _ = run(policy, tiles, n_steps)
        np.testing.assert_array_equal(own_state.transpose(2, 0, 1) / 2, state[0])
        assert path_changed <= still <= n_steps
    np.testing.assert_array_equal(own_state[..., 0] > 0, shortest_path(tiles))
    assert still < n_steps


@pytest.mark.slow
@for_each("automaton", [SHORTEST_PATH, HEALING])
def test_another_order_is_learned_and_proven(automaton, tmp_path):
    model, certificate = learn_automaton(automaton.name, order="DLRU", out=tmp_path, overwrite=True)
    assert certificate.holds
    check_other_order(model, 64, 14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_seed_gets_a_certificate(automaton, seed):
    assert learn(HintConfig.of(automaton.name, seed=seed), ignore, automaton)[1].holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "n"),
    [
        *[("random", 16, 2048), ("random", 128, 32), ("sparse", 32, 256), ("loops", 101, 16)],
        *[("perfect", 31, 256), ("perfect", 501, 1), ("rooms", 32, 128), ("caves", 32, 128)],
    ],
)
def test_many_levels_after_ten_times_the_iterations(family, size, n):
    policy = load(NAMES[SHORTEST_PATH])
    tiles = named_levels(family, size, "shortest-path", n).tiles
    for level, path in zip(tiles, shortest_path(tiles), strict=True):
        state, *_ = run(policy, level, 20 * int(path.sum()))
        np.testing.assert_array_equal(state[..., 0] > 0, path)
