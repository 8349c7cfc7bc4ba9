"""Automata that update only some tiles: the surviving signals, and a shortest path that a clock keeps in step."""

from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest

from experiments.asynchronous import SCHEDULES, InStep, in_step_lemmas, reachable_states, run, survivors
from maze_nca_gym.agents.automata import AUTOMATA, prove
from maze_nca_gym.agents.automata.shipped import asynchronous
from maze_nca_gym.agents.automata.shipped.asynchronous import ASYNCHRONOUS, CANONICAL, FLOOD, RULES, S
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.mazes import Tile, generate, parse, shortest_path
from maze_nca_gym.mazes.rules import around
from tests.tables import for_each, some_and_all


def mazes(family: str = "loops", n: int = 8, size: int = 7, border: bool = True) -> np.ndarray:
    return generate(np.random.default_rng(4), n, size, family, border=border)


@for_each("border", (True, False))
def test_both_automata_agree_if_all_tiles_update_at_once(border):
    tiles = mazes(border=border)
    both = zip(ASYNCHRONOUS.trace(tiles), SHORTEST_PATH.trace(tiles), strict=False)
    assert all((one[:, 0] == other[:, 0]).all() for one, other in both)


@some_and_all("names", ("probability 1/2", "in sweeps, backwards", "the path starved"), SCHEDULES)
def test_the_clocked_automaton_is_correct_under_any_schedule(names):
    for name, border in product(names, (True, False)):
        tiles = mazes(n=4, size=5, border=border)
        result = run(ASYNCHRONOUS, tiles, SCHEDULES[name][0])
        assert (result.rounds <= 2 * shortest_path(tiles).sum(axis=(1, 2))).all()
        assert (result.rounds >= 1).all()
        assert not result.strayed.any()


def test_the_synchronous_automaton_fails_under_schedules():
    tiles = mazes("rooms", n=64)
    result = run(SHORTEST_PATH, tiles, SCHEDULES["probability 1/2"][0], rest=True)
    assert 8 < (result.path == shortest_path(tiles)).all(axis=(1, 2)).sum() < 56
    result = run(SHORTEST_PATH, mazes("perfect"), SCHEDULES["probability 1/2"][0], rest=True)
    assert not result.strayed.any()


@for_each("drawing", ("S.\n..\n.T", "S..T", "T.\n.S", "ST\n#."))
def test_no_schedule_leads_to_a_wrong_state(drawing):
    n_states, correct = reachable_states(parse(drawing))
    assert correct
    assert n_states > 20
    _, correct = reachable_states(parse(drawing), SHORTEST_PATH)
    assert correct == (drawing in ("S..T", "ST\n#."))


def never_waits(n, see):
    return see(FLOOD[n]) | (asynchronous._at(n - 1, see) & around(see, FLOOD[n - 1])) | see.tile(Tile.TARGET)


def counts_any_flood(see):
    floods = (
        asynchronous._at(1, see) & ~asynchronous._near_at(0, see) & (around(see, S.FLOOD_1) | around(see, S.FLOOD_2))
    )
    return see(S.FLOOD_2) | floods


def goes_on_beside_the_flood(see):
    flood = see(S.AT_1) | (see(S.AT_2) & around(see, S.AT_1))
    return flood & ~asynchronous._near_at(0, see) & ~see.tile(Tile.TARGET)


EARLY = replace(CANONICAL, start=lambda see, tap: see.tile(Tile.SOURCE, tap))


WRONG = [
    (S.FLOOD_1, lambda see: never_waits(1, see), "FLOOD_1 is so"),
    (S.ENTER_L, EARLY.rules[S.ENTER_L], "ENTER_L is so"),
    (S.FLOOD_2, counts_any_flood, "FLOOD_2 is so"),
    (S.AT_2, goes_on_beside_the_flood, "AT_2 is so"),
    (S.AT_2, lambda see: see(S.AT_1), "AT_2 is so"),
    (S.NEAR_U, lambda see: see(S.NEAR_U) | CANONICAL.flooded(see, "U"), "NEAR_U is so"),
]


@pytest.mark.parametrize("n", [1, pytest.param(len(WRONG), marks=pytest.mark.slow)])
def test_other_rules_are_refused(n):
    pytest.importorskip("z3")
    for signal, rule, refused in WRONG[:n]:
        wrong = prove(replace(ASYNCHRONOUS, rules={**RULES, signal: rule})).refused
        assert any(lemma.claim.startswith(refused) for lemma in wrong)
        assert all(lemma.counterexample for lemma in wrong)


def test_rising_signals_survive_any_schedule():
    pytest.importorskip("z3")
    named = {
        name: [{signal.name for signal in signals} for signals in survivors(AUTOMATA[name])]
        for name in ("shortest-path", "reachable", "dead-ends", "life", "first-passage")
    }
    assert named == {
        "shortest-path": [{"FLOOD"}, set()],
        "reachable": [{"PATH", "WET"}, set()],
        "dead-ends": [{"FILLED"}, {"PATH"}],
        "life": [{"BEGUN"}, set()],
        "first-passage": [set(), set()],
    }
    tiles = mazes(n=64)
    for name in ("reachable", "dead-ends"):
        *_, end = AUTOMATA[name].trace(tiles)
        result = run(AUTOMATA[name], tiles, SCHEDULES["probability 1/2"][0], rest=True)
        np.testing.assert_array_equal(result.path, end[:, 0])


def test_a_clock_modulo_3_synchronises_any_automaton():
    pytest.importorskip("z3")
    assert all(in_step_lemmas().values())
    refused = [
        [name for name, holds in in_step_lemmas(**changes).items() if not holds]
        for changes in ({"modulus": 2}, {"reads_before": False}, {"waits": False})
    ]
    assert refused == [
        ["the last tile advances"],
        ["the state fits the time"],
        ["the state fits the time", "times of neighbours differ by 1 at most"],
    ]


@for_each("name", ("life", "shortest-path", "first-passage", "wall-follower", "dead-ends"))
def test_synchronised_tiles_have_the_state_of_their_time(name):
    automaton, rng = AUTOMATA[name], np.random.default_rng(0)
    tiles = mazes(n=2) if automaton.task == "shortest-path" else (mazes(n=2) == Tile.WALL).astype(np.uint8)
    trace = [*islice(automaton.trace(tiles), 64)]
    states = np.stack([*trace, *[trace[-1]] * (64 - len(trace))])
    run = InStep(automaton, tiles)
    level, row, col = np.indices(tiles.shape)
    for _ in range(120):
        run.update(rng.random(tiles.shape) < 0.5)
        np.testing.assert_array_equal(run.state.transpose(0, 2, 3, 1), states[run.time, level, :, row, col])
    assert run.time.min() > 10
    assert np.ptp(run.time) > 1
