"""The automata on all small mazes: the tiles that occur are the inferred tiles, and the path is correct and in time.

The certificates of networks depend on `find_worlds`, which depends on the automata's invariants. These tests use no
random mazes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from test_hinting_worlds import allows

from maze_nca_gym.agents.automata.networks.patches import KIND_BITS, mask_of, tile_codes
from maze_nca_gym.agents.automata.networks.states import find_worlds
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.diameter import S as D
from maze_nca_gym.agents.automata.shipped.healing import FOUND, HEALING
from maze_nca_gym.agents.automata.shipped.healing import S as H
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH, PathSignal
from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.solvers import diameter, shortest_path

BATCH = 4096
LARGEST_TABLE = 1 << 24
ALARMS = (*FOUND, H.ALARM, H.RESET)


def shapes(*largest):
    """Return all (height, width) with at most these numbers of rows and columns, or of columns and rows."""
    sizes = {(h, w) for rows, cols in largest for h in range(1, rows + 1) for w in range(1, cols + 1)}
    return sorted(sizes | {(w, h) for h, w in sizes})


def walls(n: int) -> np.ndarray:
    """Return all maps of n tiles, each empty or a wall, (2**n, n)."""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.uint8)


def mazes_with_ends(height, width):
    """Yield every maze of a shape with one source and one target."""
    n = height * width
    for source, target in permutations(range(n), 2):
        tiles = np.insert(walls(n - 2), [min(source, target), max(source, target) - 1], 0, axis=1)
        tiles[:, source], tiles[:, target] = Tile.SOURCE, Tile.TARGET
        yield tiles.reshape(-1, height, width)


def all_with_ends(height, width):
    """Return every maze of a shape with one source and one target, (N, H, W)."""
    return np.concatenate(list(mazes_with_ends(height, width)))


def mazes_without_ends(height, width):
    """Return every maze of a shape without source and target."""
    yield walls(height * width).reshape(-1, height, width)


def batches(make, *largest) -> Iterator[np.ndarray]:
    """Yield all mazes of some shapes in (N, H, W) batches of one shape each."""
    for shape in shapes(*largest):
        tiles = np.concatenate([np.empty((0, *shape), np.uint8), *make(*shape)])
        yield from np.split(tiles, range(BATCH, len(tiles), BATCH))


class Seen:
    """The tiles that occur, as codes, and a check of the signals that are the same on all tiles."""

    def __init__(self, automaton):
        self.automaton, self.codes = automaton, set()
        self._everywhere = mask_of(automaton.everywhere)
        n_codes = 1 << KIND_BITS + len(automaton.signals)
        self._table = np.zeros(n_codes, np.bool_) if n_codes <= LARGEST_TABLE else None

    def add(self, tiles, signals):
        codes = tile_codes(self.automaton, tiles, signals)
        everywhere = codes & self._everywhere
        assert (everywhere == everywhere[:, :1, :1]).all()
        if self._table is None:
            self.codes.update(np.unique(codes).tolist())
        else:  # faster than sorting
            self._table[codes] = True

    def close(self):
        """Note the codes in the table."""
        if self._table is not None:
            self.codes.update(np.flatnonzero(self._table).tolist())

    @property
    def unexpected(self):
        """The codes that belong to no world. Signals that are the same everywhere determine the world of a map."""
        worlds = find_worlds(self.automaton).worlds
        return {code for code in self.codes if not any(allows(world, code) for world in worlds)}


def run(automaton, tiles, tiles_seen):
    """Return the final paths of an automaton, and the iterations after which they stay; note all tiles."""
    n_iterations, before = np.zeros(len(tiles), np.int64), np.zeros(tiles.shape, np.bool_)
    for iteration, signals in enumerate(automaton.trace(tiles)):
        tiles_seen.add(tiles, signals)
        n_iterations[(signals[:, 0] != before).any(axis=(1, 2))] = iteration
        before = signals[:, 0]
    return before, n_iterations


def run_all(automaton, solve, mazes):
    """Return the tiles on all mazes, and the number of mazes; each path must be a solver's, and in time."""
    tiles_seen, n_mazes = Seen(automaton), 0
    for tiles in mazes:
        paths, n_iterations = run(automaton, tiles, tiles_seen)
        np.testing.assert_array_equal(paths, solve(tiles))
        moves = np.maximum(paths.sum(axis=(1, 2)) - 1, 0)
        for n_moves in np.unique(moves).tolist():
            assert n_iterations[moves == n_moves].max() <= automaton.bound(tiles[0].size, n_moves)
        n_mazes += len(tiles)
    tiles_seen.close()
    assert not tiles_seen.unexpected
    return tiles_seen, n_mazes


def broken(automaton, signal, rule):
    """Return the automaton with another rule for a signal."""
    return replace(automaton, rules={**automaton.rules, signal: rule})


def knowing(automaton, rule):
    """Return the automaton with a stronger invariant."""
    return replace(automaton, invariant=lambda see: automaton.invariant(see) & rule(see))


SMALL = [pytest.param((2, 3), 1_036, id="2x3"), pytest.param((3, 4), 287_852, id="3x4", marks=pytest.mark.slow)]


class TestShortestPath:
    @pytest.mark.parametrize(("largest", "n_mazes"), SMALL)
    def test_path_and_tiles_are_correct_on_every_maze(self, largest, n_mazes):
        _, n_seen = run_all(SHORTEST_PATH, shortest_path, batches(mazes_with_ends, largest))
        assert n_seen == n_mazes

    @pytest.mark.slow
    def test_every_inferred_tile_occurs(self):
        """None of the 75 tiles could be left out; three rows of five tiles are the smallest maps with all of them."""
        tiles_seen, n_mazes = run_all(SHORTEST_PATH, shortest_path, batches(mazes_with_ends, (3, 5)))
        assert n_mazes == 3_774_892
        ((world,), _) = find_worlds(SHORTEST_PATH)
        assert tiles_seen.codes == {kind + 1 | int(state) for kind, (part,) in world.items() for state in part.states}
        assert len(tiles_seen.codes) == 75

    @pytest.mark.parametrize(
        "automaton",
        [
            broken(SHORTEST_PATH, PathSignal.NEAR_U, SHORTEST_PATH.rules[PathSignal.NEAR_D]),
            broken(SHORTEST_PATH, PathSignal.ENTER_L, lambda see: SHORTEST_PATH.rules[PathSignal.ENTER_R](see)),
            broken(
                SHORTEST_PATH,
                PathSignal.PATH,
                lambda see: SHORTEST_PATH.rules[PathSignal.PATH](see) | see(PathSignal.FLOOD),
            ),
            knowing(SHORTEST_PATH, lambda see: ~see(PathSignal.NEAR_L)),
            knowing(SHORTEST_PATH, lambda see: ~see(PathSignal.ENTER_U) | ~see.tile(Tile.TARGET)),
            replace(SHORTEST_PATH, bound=StepBound(constant=1, per_move=2)),
        ],
        ids=["up is down", "left is right", "all is path", "nothing is nearer", "a target is not entered", "too soon"],
    )
    def test_a_wrong_automaton_fails(self, automaton):
        with pytest.raises(AssertionError):
            run_all(automaton, shortest_path, batches(mazes_with_ends, (2, 3)))


class TestDiameter:
    @pytest.mark.parametrize(
        ("largest", "n_mazes"),
        [pytest.param((2, 3), 170, id="2x3"), pytest.param((3, 4), 9_418, id="3x4", marks=pytest.mark.slow)],
    )
    def test_path_and_tiles_are_correct_on_every_maze(self, largest, n_mazes):
        _, n_seen = run_all(DIAMETER, diameter, batches(mazes_without_ends, largest))
        assert n_seen == n_mazes

    @pytest.mark.parametrize(
        "automaton",
        [
            broken(DIAMETER, D.BETTER, lambda see: DIAMETER.rules[D.BETTER](see) | see(D.OVER)),
            broken(DIAMETER, D.SKIP, lambda see: DIAMETER.rules[D.SKIP](see) | see(D.A_WET)),
            knowing(DIAMETER, lambda see: ~see(D.PATH)),
        ],
        ids=["always better", "skips all that it met", "no path"],
    )
    def test_a_wrong_automaton_fails(self, automaton):
        with pytest.raises(AssertionError):
            run_all(automaton, diameter, batches(mazes_without_ends, (2, 3)))


def distinct_states(states):
    """Return the distinct states among (N, S, H, W) states."""
    packed = np.packbits(states.reshape(len(states), -1), axis=1)
    return states[np.unique(packed, axis=0, return_index=True)[1]]


def pairs(tiles, states):
    """Yield every maze with every state, in batches of (N, H, W) and (N, S, H, W)."""
    for some in np.array_split(states, -(-len(states) * len(tiles) // (16 * BATCH))):
        yield np.repeat(tiles, len(some), axis=0), np.tile(some, (len(tiles), 1, 1, 1))


def recovers(tiles, states, automaton=HEALING):
    """Check that every state under every maze leads to the maze's path, with declared tiles; return their number."""
    tiles_seen, n_starts = Seen(automaton), 0
    for mazes, starts in pairs(tiles, states):
        for signals in automaton.trace(mazes, starts):
            tiles_seen.add(mazes, signals)
        np.testing.assert_array_equal(signals[:, H.PATH], shortest_path(mazes))
        n_starts += len(mazes)
    tiles_seen.close()
    assert not tiles_seen.unexpected
    return n_starts


def states_on_the_way(automaton, tiles):
    """Return the distinct states of mazes after a fresh start."""
    return distinct_states(np.concatenate(list(automaton.trace(tiles))))


def states_of_any_sequence(tiles):
    """Return the distinct states after any sequence of mazes, where each iteration may have another maze."""
    states = np.zeros((1, len(H), *tiles.shape[1:]), np.bool_)
    while True:
        after = [HEALING.step(*some) for some in pairs(tiles, states)]
        grown = distinct_states(np.concatenate([states, *after]))
        if len(grown) == len(states):
            return states
        states = grown


class TestHealing:
    @pytest.mark.parametrize(("largest", "n_mazes"), SMALL)
    def test_path_and_tiles_are_correct_on_every_maze_without_alarms(self, largest, n_mazes):
        tiles_seen, n_seen = run_all(HEALING, shortest_path, batches(mazes_with_ends, largest))
        assert n_seen == n_mazes
        assert not any(code & mask_of(ALARMS) for code in tiles_seen.codes)

    @pytest.mark.parametrize(
        ("shape", "n_starts"),
        [
            pytest.param((1, 4), 10_224, id="1x4"),
            pytest.param((2, 2), 11_952, id="2x2"),
            pytest.param((2, 3), 1_192_800, id="2x3", marks=pytest.mark.slow),
        ],
    )
    def test_any_maze_may_become_any_other_at_any_iteration(self, shape, n_starts):
        tiles = all_with_ends(*shape)
        assert recovers(tiles, states_on_the_way(HEALING, tiles)) == n_starts

    @pytest.mark.parametrize(
        ("shape", "n_starts"),
        [pytest.param((1, 2), 92, id="1x2"), pytest.param((1, 3), 174_048, id="1x3", marks=pytest.mark.slow)],
    )
    def test_after_any_sequence_of_mazes(self, shape, n_starts):
        tiles = all_with_ends(*shape)
        assert recovers(tiles, states_of_any_sequence(tiles)) == n_starts

    @pytest.mark.parametrize("check", [H.OPENED, H.ORPHAN, H.RESET], ids=lambda check: check.name)
    def test_without_a_check_healing_fails(self, check):
        tiles = all_with_ends(2, 2)
        blind = broken(HEALING, check, lambda see: see(check) & ~see(check))
        with pytest.raises(AssertionError):
            recovers(tiles, states_on_the_way(blind, tiles), blind)
