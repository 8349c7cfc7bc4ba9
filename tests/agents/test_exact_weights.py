"""Networks with hand-written weights: exact on every maze, as plain convolutions, ReLUs and a maximum over the map.

`test_canonical_path.py` compares their signals with the rules at every iteration. `test_policy_contract.py` tests that
files store the networks, and that the networks are exact with and without a border.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, Tiles, sample
from tables import for_each
from torch.nn import functional as F

from maze_nca_gym.agents import iterate, load, rollout
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts import engines
from maze_nca_gym.mazes import generation
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import one_hot, parse
from maze_nca_gym.mazes.solvers import diameter, eccentricities, shortest_path

TINY = [
    parse("."),
    parse("#"),
    parse("#.#..#..#"),
    parse(".#.#.#.").T.copy(),
    parse("""
        ..#.
        #.#.
        .###
        ....
    """),
]


@cache
def shipped(name: str) -> NCA:
    return load(f"nca-{name}-exact-weights")


def channel(name: str) -> int:
    """Return the channel's index in a state of the diameter's network."""
    return shipped("diameter").channel_names.index(name)


def n_edges(paths: np.ndarray) -> np.ndarray:
    """Return the number of edges of each path, (N,), 0 without a path."""
    return np.maximum(paths.sum(axis=(1, 2)) - 1, 0)


def check_path(tiles: Tiles, dtype: torch.dtype = torch.float32) -> None:
    """Check that paths are complete after exactly 2 L + 2 iterations, in {0, 1}, and stable."""
    paths = shortest_path(tiles)
    due, solvable = 2 * n_edges(paths) + 2, torch.from_numpy(paths.any(axis=(1, 2)))
    assert solvable.any(), "mazes without a path test little"
    maze = torch.from_numpy(one_hot(tiles)).to(dtype)
    with torch.no_grad():
        for step, state in enumerate(iterate(shipped("shortest-path"), maze, int(due.max()) + 8)):
            correct = (state[:, 0] == torch.from_numpy(paths)).flatten(1).all(dim=1)
            assert torch.equal(correct, torch.from_numpy(due <= step) | ~solvable)
            assert ((state[:, 0] == 0) | (state[:, 0] == 1)).all()


def scan_time(tiles: Tiles) -> np.ndarray:
    """Return the (N,) iterations after which every wave has ended, by the bound that the module states."""
    _, height, width = tiles.shape
    return np.where(tiles == 0, eccentricities(tiles) + 5, 0).sum(axis=(1, 2)) + 2 * height * (width + 1)


def check_diameter(tiles: Tiles, dtype: torch.dtype = torch.float32) -> None:
    """Check that states are in {0, 1}, and that paths are correct within the guaranteed time and then stay."""
    paths, maze = diameter(tiles), torch.from_numpy(one_hot(tiles, 2)).to(dtype)
    due = int((scan_time(tiles) + 2 * paths.sum(axis=(1, 2)) + 5).max())
    with torch.no_grad():
        for step, state in enumerate(iterate(shipped("diameter"), maze, due + 3)):
            assert ((state[:, 0] == 0) | (state[:, 0] == 1)).all()
            if step >= due:
                np.testing.assert_array_equal(state[:, 0].float(), paths)
                assert not state[:, channel("moving")].any()


def without_ends(rng: np.random.Generator, family: str, n_mazes: int, height: int, width: int) -> Tiles:
    return np.stack([FAMILIES[family](rng, height, width) for _ in range(n_mazes)])


KINDS: dict[str, tuple[Callable[..., Tiles], Callable[..., None]]] = {
    "shortest-path": (sample, check_path),
    "diameter": (without_ends, check_diameter),
}
"""Network -> function that draws its mazes, and function that checks it."""


@for_each(
    ("name", "n_mazes", "height", "width", "families", "dtype"),
    [
        *[("shortest-path", 4, *size, FAMILIES, torch.float32) for size in ((5, 5), (9, 12), (13, 4))],
        ("shortest-path", 4, 9, 9, ("random 0.3", "perfect", "loops"), torch.bfloat16),
        *[("diameter", 3, *size, FAMILIES, torch.float32) for size in ((4, 4), (6, 5), (3, 8))],
        ("diameter", 1, 4, 3, ("random 0.3", "loops", "open"), torch.bfloat16),
    ],
)
def test_every_maze_is_solved_in_the_guaranteed_number_of_iterations(name, n_mazes, height, width, families, dtype):
    rng, (draw, check) = np.random.default_rng([height, width]), KINDS[name]
    check(np.concatenate([draw(rng, family, n_mazes, height, width) for family in families]), dtype)


@for_each("tiles", TINY)
def test_tiny_mazes(tiles):
    check_diameter(tiles[None])


@for_each(
    ("name", "shape", "n_weights", "max_pool"),
    [("shortest-path", (4, 10, 3), 14 * 10 * 5, False), ("diameter", (2, 33, 3), 35 * 33 * 5, True)],
)
def test_it_is_an_ordinary_network(name, shape, n_weights, max_pool):
    """The iterations are those of the equation in `test_learned_equations.py`."""
    nca = shipped(name)
    assert type(nca) is NCA
    assert (nca.n_tiles, nca.n_channels, nca.kernel_size) == shape
    assert (nca.n_weights, nca.max_pool) == (n_weights, max_pool)
    assert nca.cut_corners
    assert nca.shared_weights
    assert nca.stationary_from == 0


def test_no_sum_is_too_large_for_bfloat16():
    """Multiples of 1/2 up to 128 in magnitude have at most 8 significant bits."""
    nca = shipped("shortest-path")
    signed = nca.kernel().detach(), nca.biases[0].detach()
    positive, negative = ([(sign * w).relu() for w in signed] for sign in (1, -1))
    rng = np.random.default_rng(6)
    maze = torch.from_numpy(one_hot(np.concatenate([sample(rng, family, 2, 9, 9) for family in FAMILIES])))
    with torch.no_grad():
        for state in iterate(nca, maze, 60):
            assert (2 * state == (2 * state).round()).all()
            assert state.min() >= 0
            assert state.max() <= 11.5
            for terms in (positive, negative):
                assert F.conv2d(torch.cat([maze, state], dim=1), *terms, padding=1).max() <= 128


@for_each(("generator", "size"), [("random", 12), ("loops", 11)])
def test_small_errors_of_a_convolution_do_no_harm(generator, size):
    tiles = generation.generate(np.random.default_rng(7), 20, size, generator)
    paths, maze = shortest_path(tiles), torch.from_numpy(one_hot(tiles))
    noise = torch.Generator().manual_seed(0)
    state = torch.zeros(20, 10, *tiles.shape[1:])
    with torch.no_grad():
        for _ in range(int(2 * n_edges(paths).max()) + 2):
            state = shipped("shortest-path")(maze, state)
            state = state + 1e-5 * (2 * torch.rand(state.shape, generator=noise) - 1)
    assert (state[:, 0] - torch.from_numpy(paths).float()).abs().max() < 0.1


@for_each("family", ["random 0.5", "random 0.3", "loops"])
def test_every_tile_launches_once_in_order_and_its_eccentricity_is_counted(family):
    tiles = FAMILIES[family](np.random.default_rng(2), 7, 6)[None]
    measured = []
    with torch.no_grad():
        for state in iterate(shipped("diameter"), torch.from_numpy(one_hot(tiles, 2)), int(scan_time(tiles)[0]) + 5):
            if state[0, channel("ended")].any():
                (place,) = state[0, channel("token")].nonzero().tolist()
                measured.append((tuple(place), int(state[0, channel("count"), 0, 0]) - 1))
    expected = eccentricities(tiles)[0]
    assert measured == [((int(r), int(c)), int(expected[r, c])) for r, c in np.argwhere(tiles[0] == 0)]


def test_the_guaranteed_times():
    """The path at a + 3 D + 4, the second wave at a + D + 5, a being when the first wave is at its origin."""
    steps: dict[str, int] = {}
    with torch.no_grad():
        for step, state in enumerate(
            iterate(shipped("diameter"), torch.from_numpy(one_hot(parse("......")[None], 2)), 60)
        ):
            wet = state[0, channel("wet")] - state[0, channel("excess")]
            if wet[0, 0] == 1:
                steps.setdefault("first wave", step)
            if wet[0, 1] == 1 and wet[0, 0] == 0:
                steps.setdefault("second wave", step)
            if (state[0, 0] == 1).all():
                steps.setdefault("path", step)
    begin = steps["first wave"]
    assert (steps["second wave"], steps["path"]) == (begin + 5 + 5, begin + 3 * 5 + 4)


@for_each(("name", "n_steps"), [("nca-shortest-path-exact-weights", 120), ("nca-diameter-exact-weights", 600)])
def test_machine_code_has_the_same_states_to_the_bit(name, n_steps):
    policy = load(name)
    maze = torch.from_numpy(one_hot(test_levels("random", 10, policy.task, 4).tiles, policy.n_tiles))
    with torch.no_grad():
        assert engines.engine_for(policy, maze) is engines.MACHINE_CODE
        states = rollout(policy, maze, n_steps)
        with engines.preferring(engines.STEPPING):
            assert torch.equal(rollout(policy, maze, n_steps), states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "family", "n_mazes", "height", "width"),
    [
        ("shortest-path", "random 0.5", 4000, 16, 16),
        ("shortest-path", "random 0.3", 500, 20, 33),
        ("shortest-path", "random 0.1", 1000, 12, 12),
        ("shortest-path", "random 0.6", 500, 9, 30),
        ("shortest-path", "loops", 500, 31, 17),
        ("shortest-path", "comb", 100, 15, 16),
        ("shortest-path", "spiral", 100, 15, 15),
        ("shortest-path", "random 0.3", 100, 64, 64),
        ("shortest-path", "open", 32, 64, 64),
        ("shortest-path", "perfect", 16, 63, 63),
        ("diameter", "random 0.5", 400, 10, 10),
        ("diameter", "random 0.3", 100, 9, 11),
        ("diameter", "random 0.6", 300, 12, 12),
        ("diameter", "comb", 20, 9, 9),
        ("diameter", "perfect", 50, 11, 11),
        ("diameter", "loops", 50, 11, 9),
        ("diameter", "open", 10, 9, 10),
        ("diameter", "random 0.5", 100, 16, 16),
    ],
)
def test_many_mazes(name, family, n_mazes, height, width):
    rng, (draw, check) = np.random.default_rng([n_mazes, height, width]), KINDS[name]
    for _ in range(0, n_mazes, 50):
        check(draw(rng, family, min(50, n_mazes), height, width))


@pytest.mark.slow
@pytest.mark.parametrize(("generator", "size"), [("random", 16), ("perfect", 21), ("rooms", 24), ("caves", 24)])
def test_bfloat16_is_exact_on_larger_mazes(generator, size):
    check_path(generation.generate(np.random.default_rng(8), 16, size, generator), torch.bfloat16)
