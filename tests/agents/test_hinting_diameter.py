"""The automaton of the diameter, and a network that pools."""

import numpy as np
import pytest
import torch
from maze_samples import sample

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.search.trial import packed
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER, EVERYWHERE, WALKER, S
from maze_nca_gym.mazes.arrays import reader
from maze_nca_gym.mazes.families import test_levels as named_levels
from maze_nca_gym.mazes.levels import Tile, clear_endpoints, one_hot, parse
from maze_nca_gym.mazes.solvers import diameter, eccentricities

NAME = "nca-diameter-hinted"


def mazes(seed, family, n, height, width):
    return clear_endpoints(sample(np.random.default_rng(seed), family, n, height, width))


def noise(rng, n, height, width):
    """Return mazes of all densities: most of them are not connected, and some have no free tile."""
    return (rng.random((n, height, width)) < rng.random((n, 1, 1))).astype(np.uint8)


def settle(tiles):
    """Return the final paths of 64 N mazes as bits, after as many iterations as the walkers need."""
    kinds = {kind: packed(tiles == kind) for kind in DIAMETER.kinds}
    n, height, width = kinds[Tile.EMPTY].shape
    reading, state, quiet = reader(kinds), np.zeros((n, len(S), height, width), np.uint64), 0
    while quiet < 4 * height * width:
        state = DIAMETER.advance(reading(state))
        walking = state[:, list(WALKER)].any() or (state[:, [S.MOVES, S.BEFORE]]).any()
        quiet = 0 if walking else quiet + 1
    return state[:, S.PATH]


class TestAutomaton:
    @pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 6), (6, 1), (3, 3), (4, 5)])
    def test_mazes_of_any_shape_and_of_several_pieces(self, height, width):
        tiles = noise(np.random.default_rng(height * 10 + width), 256, height, width)
        np.testing.assert_array_equal(settle(tiles), packed(diameter(tiles)))

    def test_of_equal_diameters_the_first_is_drawn(self):
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
        """Launches come row by row, and one from each tile whose eccentricity is the largest so far; few are others."""
        tiles = mazes(1, "perfect", 1, 13, 13)
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

    def test_pooled_signals_are_equal_on_all_tiles(self):
        for signals in DIAMETER.trace(mazes(3, "loops", 2, 5, 5)):
            signals_everywhere = signals[:, list(EVERYWHERE)]
            assert (signals_everywhere == signals_everywhere[..., :1, :1]).all()


def test_there_is_no_certificate_if_the_maximum_over_all_channels_matters():
    spoilt = load(NAME)
    spoilt.weights[0].data[DIAMETER.channels.index("token_low"), -1, 2] = 0.5
    assert not certify(spoilt).holds


def test_the_network_solves_pieces_and_mazes_without_a_free_tile():
    tiles = noise(np.random.default_rng(10), 64, 4, 5)
    n_steps = len(list(DIAMETER.trace(tiles)))
    with torch.no_grad():
        (path,) = rollout(load(NAME), torch.from_numpy(one_hot(tiles, 2)), [n_steps], n_returned=1)
    np.testing.assert_array_equal(path[:, 0] > 0.5, diameter(tiles))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "n"),
    [("random", 16, 1024), ("perfect", 15, 256), ("perfect", 31, 64), ("loops", 15, 256), ("sparse", 16, 256)],
)
def test_the_automaton_on_many_levels(family, size, n):
    tiles = named_levels(family, size, "diameter", n).tiles
    np.testing.assert_array_equal(settle(tiles), packed(diameter(tiles)))
