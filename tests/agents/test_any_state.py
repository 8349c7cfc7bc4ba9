"""The automaton that is correct from any state: random states, every quiet loop, its proof, and wrong mutants."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from maze_nca_gym.agents.automata.networks.exact import compile_weights
from maze_nca_gym.agents.automata.proving.prover import Prover
from maze_nca_gym.agents.automata.shipped.any_state import EARLIER, any_state_automaton, following
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.mazes import Tile, one_hot, parse, shortest_path
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.small import all_mazes
from tests.tables import for_each, refused, some_and_all

RING = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
APART, JOINED = parse("S..#.\n.#.#T\n...#."), parse("S...T\n.#.##\n...##")


def mazes(rng, n, height, width, density):
    tiles = (rng.random((n, height, width)) < density).astype(np.uint8) * Tile.WALL
    for maze in tiles:
        source, target = rng.choice(height * width, 2, replace=False)
        maze.flat[source], maze.flat[target] = Tile.SOURCE, Tile.TARGET
    return tiles


def any_signals(rng, automaton, tiles, ordered, heard):
    """Return random states, or flooded states with arrows by a random order of tiles and no check on."""
    s = automaton.signals
    signals = rng.random((len(tiles), len(s), *tiles.shape[1:])) < rng.random((len(tiles), len(s), 1, 1))
    if ordered:
        free, height = tiles != Tile.WALL, np.pad(rng.random(tiles.shape), ((0, 0), (1, 1), (1, 1)), constant_values=2)
        height[:, 1:-1, 1:-1][~free] = 2
        signals[:, s.FLOOD], signals[:, list(s)[-7:]] = free, False
        for tap in "ULDR":
            ((down, right),) = offsets(tap)
            neighbour_height = np.roll(height, (-down, -right), (1, 2))[:, 1:-1, 1:-1]
            signals[:, s[f"NEAR_{tap}"]] = free & (tiles != Tile.TARGET) & (neighbour_height < height[:, 1:-1, 1:-1])
            signals[:, s[f"HEARD_{tap}"]] &= signals[:, s[f"NEAR_{tap}"]] | (not heard)
    return signals


def late(automaton, n_bits, tiles, signals, beyond=40):
    """Return for each maze how many iterations after the bound the path became correct for good."""
    path = shortest_path(tiles)
    bound = (tiles != Tile.WALL).sum(axis=(1, 2)) + n_bits + 2 * np.maximum(path.sum(axis=(1, 2)) - 1, 0) + 9
    reading, right_from = automaton.reader(tiles), np.zeros(len(tiles), int)
    for t in range(1, int(bound.max()) + beyond):
        signals = automaton.advance(reading(signals))
        right_from[(signals[:, 0] != path).any(axis=(1, 2))] = t + 1
    return right_from - bound


@for_each("n_bits", list(EARLIER))
def test_the_sequence_contains_all_words(n_bits):
    words, visited = [False] * n_bits, set()
    while tuple(words) not in visited:
        visited.add(tuple(words))
        word = np.array(words)
        words = [bool(np.logical_or(*following([*word], EARLIER[n_bits]))), *words[:-1]]
    assert len(visited) == 2**n_bits
    assert not any(words)


@for_each("size", [(1, 4, 3), (2, 3, 3), (3, 3, 4), (3, 4, 4), (5, 5, 5), (4, 7, 5)])
def test_random_states_become_correct_within_the_bound(size):
    *shape, n_bits = size
    rng, automaton = np.random.default_rng(11), any_state_automaton(n_bits)
    for ordered, heard in ((False, False), (True, False), (True, True)):
        tiles = mazes(rng, 120, *shape, 0.2)
        assert late(automaton, n_bits, tiles, any_signals(rng, automaton, tiles, ordered, heard)).max() <= 0


@pytest.mark.parametrize("most", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_from_a_fresh_start_small_mazes_are_correct(most):
    automaton = any_state_automaton(4)
    for tiles in (tiles[:: -(-len(tiles) // most)] for tiles in all_mazes(automaton.problem)):
        assert late(automaton, 4, tiles, next(automaton.trace(tiles)), beyond=1).max() <= -10


def loops(automaton, maze):
    """Return states with arrows in a loop, one for each sequence of eight bits and each direction of the loop.

    The tiles of the loop repeat the sequence, so that adjacent tiles agree in all stored bits. All other signals are
    off.
    """
    s, states = automaton.signals, []
    bits = [signal for signal in s if signal.name.startswith("BIT_")]
    for ring, word in product((RING, RING[::-1]), product((False, True), repeat=len(RING))):
        signals = np.zeros((len(s), *maze.shape), bool)
        for i, at in enumerate(ring):
            before = ring[i - 1]
            (tap,) = [tap for tap in "ULDR" if offsets(tap)[0] == (before[0] - at[0], before[1] - at[1])]
            signals[(s.FLOOD, *at)] = signals[(s[f"NEAR_{tap}"], *at)] = True
            if bits:
                earlier = [word[(i + j) % len(ring)] for j in range(1 + len(bits) + 1)]
                signals[(s[f"HEARD_{tap}"], *at)] = earlier[0]
                signals[([*bits], *at)] = earlier[1 : 1 + len(bits)]
                follows = following([np.bool_(bit) for bit in earlier[1 : 2 + len(bits)]], EARLIER[1 + len(bits)])
                signals[(s.ONE_A, *at)], signals[(s.ONE_B, *at)] = follows
        states.append(signals)
    return np.array(states)


@pytest.mark.parametrize("maze", [APART, JOINED], ids=["apart", "joined"])
def test_no_loop_lasts_if_its_tiles_are_fewer_than_the_words(maze):
    automaton = any_state_automaton(4)
    states = loops(automaton, maze)
    tiles = np.repeat(maze[None], len(states), axis=0)
    assert late(automaton, 4, tiles, states).max() <= 0


def test_a_loop_with_as_many_tiles_as_words_may_last():
    automaton = any_state_automaton(3)
    states = loops(automaton, APART)
    wrong = late(automaton, 3, np.repeat(APART[None], len(states), axis=0), states) > 30
    assert wrong.sum() == 16, "a loop of eight tiles can repeat all eight words of three bits, in either direction"


def test_without_the_sequence_loops_last():
    unheard, overheard = (any_state_automaton(4).signals[name] for name in ("UNHEARD", "OVERHEARD"))
    rules = any_state_automaton(4).rules
    deaf = replace(
        any_state_automaton(4),
        rules={**rules, **{check: lambda see: see(unheard) & ~see(unheard) for check in (unheard, overheard)}},
    )
    states = loops(deaf, APART)
    assert (late(deaf, 4, np.repeat(APART[None], len(states), axis=0), states) > 30).all()
    # the healing automaton has no sequence: this loop rests, passes all checks and is drawn as the path
    signals = loops(HEALING, APART)[:1]
    signals[:, HEALING.signals.WAS_WALL] = APART == Tile.WALL
    *_, last = HEALING.trace(APART[None], signals)
    assert last[0, 0].any()
    assert not shortest_path(APART[None]).any()
    assert not last[:, list(HEALING.signals)[13:]].any()


def test_the_network_follows_the_automaton_from_any_state():
    automaton = any_state_automaton(4)
    model, certificate = compile_weights(automaton)
    assert certificate.holds
    assert certificate.exact
    assert not certificate.assumed
    rng = np.random.default_rng(3)
    tiles = mazes(rng, 16, 4, 5, 0.2)
    signals = any_signals(rng, automaton, tiles, False, False)
    signals[:, list(automaton.pooled)] = signals[:, list(automaton.pooled)].any(axis=(2, 3), keepdims=True)
    rows, maze = automaton.rows(model.channel_names), torch.from_numpy(one_hot(tiles))
    state = torch.zeros(len(tiles), model.n_channels, *tiles.shape[1:])
    for signal, (first, *_) in rows.items():
        state[:, first] = torch.from_numpy(signals[:, signal]).float()
    with torch.no_grad():
        for step in range(40):
            state, signals = model(maze, state, step), automaton.step(tiles, signals)
            for signal, of in rows.items():
                value = state[:, of[0]] - (state[:, of[1]] if len(of) > 1 else 0)
                np.testing.assert_array_equal(value.numpy(), signals[:, signal], signal.name)


S, RULES = any_state_automaton(4).signals, any_state_automaton(4).rules
TWINS = [
    (S.PATH, RULES[S.PATH], ""),
    (S.OVERHEARD, lambda see: see(S.ONE_A) & see(S.RESET), "a tile emits what is due"),
    (S.FLOOD, lambda see: RULES[S.FLOOD](see) | see(S.HEARD_U), "only free tiles are flooded"),
]
"""(signal, its rule, the claim that is refuted); no claim for the correct rule."""
MORE = [
    (S.FEW_V, lambda see: see(S.FEW_H), "of flooded neighbours one is nearer, or a check fails, D"),
    (S.BIT_2, lambda see: see(S.BIT_1), "a reset leaves nothing"),
    (S.ORPHAN, lambda see: see(S.FEW_H) & see(S.RESET), "and something is nearer"),
]


@some_and_all("twins", TWINS, MORE)
def test_lemmas_hold_for_the_automaton_but_not_for_mutants(twins):
    automaton = any_state_automaton(4)
    for signal, rule, claim in twins:
        lemmas = Prover(replace(automaton, rules={**RULES, signal: rule}), automaton.theorem).lemmas()
        refused = (lemma.claim for lemma in lemmas if not lemma.holds)
        assert any(refusal.startswith(claim) for refusal in refused) if claim else not [*refused], claim


def test_a_number_of_bits_without_a_sequence_is_refused():
    refused("n_bits must be one of 3, 4, 5, 6, 7, 9, 10, 11, got 8", any_state_automaton, 8)
