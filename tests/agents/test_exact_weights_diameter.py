"""The network with hand-written weights that finds diameters: one convolution, ReLUs and one maximum over the map."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from maze_samples import FAMILIES, Tiles
from tables import for_each
from torch.nn import functional as F

from maze_nca_gym.agents import iterate
from maze_nca_gym.agents.exact_weights.diameter_weights import Channel
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.levels import one_hot, parse
from maze_nca_gym.solvers import diameter, eccentricities

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


@pytest.fixture(scope="module")
def nca() -> NCA:
    return NCA.from_handcoded("diameter")


def mazes(tiles: Tiles) -> torch.Tensor:
    return torch.from_numpy(one_hot(tiles, 2))


def scan_time(tiles: Tiles) -> np.ndarray:
    """(N,) iterations within which every wave has ended, by the bound that the module states."""
    _, height, width = tiles.shape
    waves = np.where(tiles == 0, eccentricities(tiles) + 5, 0).sum(axis=(1, 2))
    return waves + 2 * height * (width + 1)


def check(nca: NCA, tiles: Tiles, dtype: torch.dtype = torch.float32) -> None:
    """In {0, 1} after every iteration; right within the guaranteed time, with nothing moving, and ever after."""
    paths = diameter(tiles)
    due = int((scan_time(tiles) + 2 * paths.sum(axis=(1, 2)) + 5).max())
    with torch.no_grad():
        for step, state in enumerate(iterate(nca, mazes(tiles).to(dtype), due + 3)):
            assert ((state[:, 0] == 0) | (state[:, 0] == 1)).all()
            if step >= due:
                np.testing.assert_array_equal(state[:, 0].float(), paths)
                assert not state[:, Channel.MOVING].any()


@for_each(("height", "width"), [(4, 4), (6, 5), (3, 8)])
def test_every_maze_is_solved(nca, height, width):
    rng = np.random.default_rng([height, width])
    check(nca, np.stack([FAMILIES[family](rng, height, width) for family in FAMILIES for _ in range(6)]))


@for_each("tiles", TINY)
def test_tiny_mazes(nca, tiles):
    check(nca, tiles[None])


def test_bfloat16_is_exact_on_small_mazes(nca):
    rng = np.random.default_rng(1)
    check(nca, np.stack([FAMILIES[family](rng, 4, 3) for family in ("random 0.3", "loops", "open")]), torch.bfloat16)


@for_each("family", ["random 0.5", "random 0.3", "loops"])
def test_every_tile_launches_once_in_order_and_its_eccentricity_is_counted(nca, family):
    tiles = FAMILIES[family](np.random.default_rng(2), 7, 6)
    measured = []
    with torch.no_grad():
        for state in iterate(nca, mazes(tiles[None]), int(scan_time(tiles[None])[0]) + 5):
            if state[0, Channel.ENDED].any():
                (place,) = state[0, Channel.TOKEN].nonzero().tolist()
                measured.append((tuple(place), int(state[0, Channel.COUNT, 0, 0]) - 1))
    expected = eccentricities(tiles)
    assert measured == [((int(r), int(c)), int(expected[r, c])) for r, c in np.argwhere(tiles == 0)]


def test_the_guaranteed_times(nca):
    """The path at a + 3 D + 4, the second wave at a + D + 5, a being when the first wave is at its origin."""
    tiles = parse("......")
    steps: dict[str, int] = {}
    with torch.no_grad():
        for step, state in enumerate(iterate(nca, mazes(tiles[None]), 60)):
            wet = state[0, Channel.WET] - state[0, Channel.EXCESS]
            if wet[0, 0] == 1:
                steps.setdefault("first wave", step)
            if wet[0, 1] == 1 and wet[0, 0] == 0:
                steps.setdefault("second wave", step)
            if (state[0, 0] == 1).all():
                steps.setdefault("path", step)
    begin = steps["first wave"]
    assert (steps["second wave"], steps["path"]) == (begin + 5 + 5, begin + 3 * 5 + 4)


def test_it_is_an_ordinary_network(nca):
    assert type(nca) is NCA
    assert (nca.n_tiles, nca.n_channels, nca.kernel_size, nca.n_weights) == (2, 33, 3, 35 * 33 * 5)
    assert nca.max_pool
    assert nca.cut_corners
    assert nca.stationary_from == 0
    assert nca.channel_names[-2:] == ("moving", "channel_max")
    maze = mazes(FAMILIES["loops"](np.random.default_rng(3), 6, 7)[None])
    state = torch.zeros(1, 33, 6, 7)
    with torch.no_grad():
        for expected in list(iterate(nca, maze, 300))[1:]:
            state = F.relu(F.conv2d(torch.cat([maze, state], dim=1), nca.kernel(), nca.biases[0], padding=1))
            over_channels = state.amax(dim=1)
            state[:, 31] = state[:, 31].max()
            state[:, 32] = over_channels
            assert torch.equal(state, expected)


def test_nothing_reads_the_maximum_over_channels(nca):
    assert not nca.kernel()[:, 2 + Channel.CHANNEL_MAX].any()
    assert not nca.kernel()[Channel.CHANNEL_MAX].any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n_mazes", "height", "width"),
    [
        *[("random 0.5", 400, 10, 10), ("random 0.3", 100, 9, 11), ("random 0.6", 300, 12, 12), ("comb", 20, 9, 9)],
        *[("perfect", 50, 11, 11), ("loops", 50, 11, 9), ("open", 10, 9, 10), ("random 0.5", 100, 16, 16)],
    ],
)
def test_many_mazes(nca, family, n_mazes, height, width):
    rng = np.random.default_rng([n_mazes, height, width])
    for _ in range(0, n_mazes, 50):
        check(nca, np.stack([FAMILIES[family](rng, height, width) for _ in range(min(50, n_mazes))]))
