"""Inferred theorems: ghosts compared with other solvers, guesses, wrong rules, and a second solver."""

import re
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from operator import or_

import networkx as nx
import numpy as np
import pytest
from tables import refused

from maze_nca_gym.agents.automata import AUTOMATA, Automaton, Count, around
from maze_nca_gym.agents.automata.proving.proof import mistakes, prove, second_opinion
from maze_nca_gym.agents.automata.search.guessing import guess, mazes_with
from maze_nca_gym.agents.automata.shipped.both import BOTH
from maze_nca_gym.agents.automata.shipped.gallery import AROUND, DEAD_ENDS, FIRST_PASSAGE, LIFE, REACHABLE
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.automata.theorem import Theorem
from maze_nca_gym.mazes import Tile, distances, shortest_path
from maze_nca_gym.mazes.arrays import MazePicture, broken_axioms
from maze_nca_gym.mazes.facts import moved
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.relations import (
    COMPONENT,
    DISTANCE,
    ON_PATH,
    both_of,
    canonical_path,
    component,
    distance,
    evolution,
    peeling,
    places,
)
from maze_nca_gym.mazes.small import mazes_to_try, small_mazes
from maze_nca_gym.mazes.tasks import find_task
from tests.agents.adversary import mutated
from tests.agents.expected_theorems import expected
from tests.own_tasks import own_tasks
from tests.tables import for_each, some_and_all

TASK = find_task("shortest-path")
MAZES = small_mazes(TASK, seed=1)
HEAVY = {int(Tile.EMPTY): 3}
"""The weight of empty tiles; source and target have weight 1."""


@for_each(
    "ghosts",
    [
        distance(Tile.SOURCE),
        distance(Tile.TARGET, AROUND),
        distance(lambda picture, at: ~picture.inside(moved(at, "U")), weights=HEAVY, name="from the top"),
        canonical_path("DLRU"),
        canonical_path(start=Tile.TARGET, end=Tile.SOURCE, weights=HEAVY, name="back"),
        component(AROUND),
        peeling(),
        peeling(least=3),
        places(),
        both_of(distance(Tile.SOURCE, name="there"), canonical_path(), peeling()),
    ],
)
def test_the_axioms_of_the_library_are_true_of_real_mazes(ghosts):
    for tiles in mazes_to_try(TASK):
        assert broken_axioms(ghosts, tiles) == {}
    assert {value.shape[-3] for value in ghosts.ghosts(tiles[:0]).values()} == {0}, "no mazes"


def test_the_first_and_later_rules_of_a_changing_ghost():
    def wave(see):
        return ~see("there") & reduce(or_, (see("there", tap) for tap in AROUND))

    first_rule, later_rule = ((lambda see: see.tile(Tile.SOURCE), rule) for rule in (wave, lambda see: see("there")))
    for tiles in MAZES[:5]:
        assert broken_axioms(evolution(there=first_rule), tiles[None], 6) == {}
        wrong = replace(evolution(there=first_rule), axioms=evolution(there=later_rule).axioms)
        assert broken_axioms(wrong, tiles[None], 6) == {"there next": 0}
    refused("evolution needs a first and a next rule of each ghost, got none", evolution)
    refused("evolution needs a first and a next rule of each ghost, got {'there'", evolution, there=wave)
    refused(
        "the rule of there at first must join the values that it sees .*: see takes a relation, got 'there'",
        evolution,
        there=later_rule[::-1],
    )
    refused("the rule of there must join the values that it sees", evolution, there=(later_rule[0], lambda see: 1))


def test_ghosts_agree_with_other_solvers():
    for tiles in MAZES:
        (end,) = np.argwhere(tiles == Tile.TARGET)
        ghosts = canonical_path("LURD").ghosts(tiles[None])
        np.testing.assert_array_equal(ghosts[DISTANCE][0], distances(tiles, tuple(end)))
        np.testing.assert_array_equal(ghosts[ON_PATH], shortest_path(tiles[None], "LURD"))
        graph = nx.DiGraph()
        graph.add_nodes_from(map(tuple, np.argwhere(tiles != Tile.WALL)))
        for row, col in tuple(graph.nodes):
            for other in ((row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)):
                if graph.has_node(other):
                    graph.add_edge((row, col), other, weight=HEAVY.get(int(tiles[row, col]), 1))
        heavy = distance(Tile.TARGET, weights=HEAVY).ghosts(tiles[None])[DISTANCE][0]
        for at, length in nx.single_source_dijkstra_path_length(graph, tuple(end)).items():
            assert heavy[at] == length
        assert len(np.unique(component().ghosts(tiles[None])[COMPONENT])) - (tiles == Tile.WALL).any() == (
            nx.number_weakly_connected_components(graph)
        )


@for_each("walk", ["C", "U", "RR", "DDDL", "LLLL"])
def test_a_picture_of_real_mazes_has_near_places_and_far_ones(walk):
    (maze, *_), ((down, right),) = MAZES[-1:], offsets(walk)
    (height, width), framed = maze.shape, np.pad(maze.astype(int), 5, constant_values=-1)
    moved = framed[5 + down : 5 + down + height, 5 + right : 5 + right + width]
    picture = MazePicture(maze[None], {}).with_ghosts({"number": maze[None] + 1})
    np.testing.assert_array_equal(picture.inside(walk)[0], moved >= 0)
    np.testing.assert_array_equal(picture.tile(Tile.WALL, walk)[0], moved == Tile.WALL)
    np.testing.assert_array_equal(picture.number("number", walk)[0], moved + 1)


def test_false_axioms_are_refused_with_a_maze():
    wrong = replace(distance(Tile.SOURCE), axioms=distance(Tile.TARGET).axioms)
    with pytest.raises(ValueError, match=r"the axiom '.*' is not true of the maze [.#ST/]+, or beyond its edge$"):
        prove(replace(REACHABLE, theorem=wrong))
    refused("weights must be at least 1, got 0", distance, Tile.SOURCE, weights={0: 0})
    off_the_grid = Theorem(lambda picture, at, t: {"there": picture.tile(1, (0, 1))}, lambda tiles: {})
    refused(r"a place is the walk that leads to it, .*, got \(0, 1\)", prove, replace(REACHABLE, theorem=off_the_grid))
    refused(r"a place is the walk that leads to it, .*, got \(0, 1\)", moved, (0, 1), "U")


@some_and_all("automata", [FIRST_PASSAGE, SHORTEST_PATH], [REACHABLE, DEAD_ENDS])
def test_without_a_theorem_the_ghosts_are_found_too(automata):
    for automaton in automata:
        proof = prove(replace(automaton, theorem=None))
        assert proof.holds
        expected_claims = {lemma.claim for lemma in prove(expected(automaton)).lemmas}
        claims = {lemma.claim for lemma in proof.lemmas}
        assert claims == expected_claims - {
            claim for claim in expected_claims if "of the path" in claim or "in a tree" in claim
        }


def test_a_theorem_has_as_many_answers_as_its_automaton():
    with pytest.raises(ValueError, match="the theorem has 2 answers, shortest-path 1"):
        prove(replace(SHORTEST_PATH, theorem=both_of(canonical_path(), canonical_path("DLRU", name="other"))))


def test_unexplained_signals_name_two_tiles():
    for automaton, terms in [
        (replace(FIRST_PASSAGE, theorem=peeling()), "the ghosts taken, round, kept, n_tiles"),
        (replace(LIFE, theorem=None), "no ghosts"),
    ]:
        proof = prove(automaton)
        assert (proof.verdict, proof.lemmas, proof.invariant) == (None, (), False)
        assert proof.words.startswith(f"nearest with {terms}: 0 of 0 lemmas hold; ")
        assert re.search(r"PATH is on at \(\d, \d\) after \d+ iterations in [.#ST/]+ and off at", proof.words)


def test_signals_that_switch_on_twice_or_have_no_explanation():
    proof = prove(BOTH)
    means = {signal.name: words for signal, words in proof.theorem.means.items()}
    assert means["FLOOD"] == "from t = 3 + distance; or from t = 1 + distance, until t = 3"
    assert means["ENTER_L"] == "enters_L, from t = 3 + 2 length - distance"
    assert means["MOVES"] == "from t = 1"
    assert proof.theorem.unsaid[BOTH.signals["SCOUT"]].startswith("SCOUT is on at ")
    # the path is correct for any walker; the proof that there is one walker fails
    assert [lemma.claim for lemma in proof.refused] == ["the invariant holds"]
    assert proof.lemmas[-1].claim == "without ends it does what the diameter's automaton does"


def test_signals_explained_by_times_parity_constants_and_comparisons():
    age = Count("AGE", 3)
    names = ["PATH", "WET", "DRY", "ABOVE", "TICK", "ODD", "FAR", "SOONER", *age.signals]

    def flood(start, name):
        return lambda see: see.tile(start) | (around(see, name) & ~see.tile(Tile.WALL))

    def once(name, when):
        """Switch a signal on for good if a condition holds when the flood comes."""
        return lambda see: see(name) | (flood(Tile.SOURCE, "WET")(see) & ~see("WET") & when(see))

    rules = {
        "PATH": lambda see: see("WET"),
        "WET": flood(Tile.SOURCE, "WET"),
        "DRY": flood(Tile.TARGET, "DRY"),
        "ABOVE": lambda see: see("WET", "U"),
        "TICK": lambda see: ~see("TICK"),
        "ODD": once("ODD", lambda see: see("TICK")),
        "FAR": once("FAR", lambda see: age.at_least(see, 3)),
        "SOONER": once("SOONER", lambda see: ~see("DRY")),
        **age.rules(lambda see, n: age.at_least(see, n - 1)),
    }
    ghosts = both_of(distance(Tile.SOURCE, name="there"), distance(Tile.TARGET, name="back"))
    signals = IntEnum("Signal", names, start=0)
    proof = prove(Automaton("atoms", "shortest-path", signals, rules, theorem=ghosts))
    assert proof.verdict == "characterised"
    means = {signal.name: words for signal, words in proof.theorem.means.items()}
    assert means["ABOVE"] == "from t = 2 + distance there at U"
    assert means["TICK"] == "t is odd"
    assert means["ODD"] == "distance there is odd, from t = 1 + distance there"
    assert means["FAR"] == "distance there >= 3, from t = 1 + distance there"
    assert "distance there <= distance back, from t = 1 + distance there" in means["SOONER"]


def test_the_least_mazes_are_all_among_the_runs(monkeypatch):
    mazes = []

    def watched(automaton, theorem, runs, atoms):
        mazes.extend(run.tiles.shape for run in runs)
        return guess(automaton, theorem, runs, atoms)

    monkeypatch.setattr("maze_nca_gym.agents.automata.proving.proof.guess", watched)
    assert prove(DEAD_ENDS).holds
    assert {(2, 1, 2), (48, 2, 2), (480, 2, 3), (480, 3, 2)} <= {*mazes}


WORLDS = [
    ("nearest-target", "NEAREST", "FLOOD", "from t = 1 + distance"),
    ("weighted-terrain", "TERRAIN", "ENTER_U", "enters_U, from t = 1 + length + step"),
    ("key-and-door", "BOTH_LEGS", "KEY_FLOOD", "from t = 1 + distance to key"),
]


@some_and_all("rows", WORLDS[:1], WORLDS)
def test_the_worlds_of_the_examples_are_guessed_and_proven(rows, tmp_path):
    with own_tasks(tmp_path, *(task for task, *_ in rows)) as worlds:
        for task, name, signal, meaning in rows:
            automaton = getattr(worlds[task], name)
            proof = prove(automaton)
            assert proof.holds
            assert proof.theorem.means[automaton.signals[signal]] == meaning
            assert proof.verdict == "correct"
            for tiles in small_mazes(find_task(task), seed=3):
                assert not broken_axioms(proof.theorem, tiles[None])
                assert not list(mistakes(replace(automaton, theorem=proof.theorem), tiles))


def test_mazes_that_match_a_picture_are_found():
    picture = {"C": 3, "R": 1, "L": -1, "D": 0}
    levels = list(mazes_with(picture, find_task("shortest-path"), MAZES))
    assert levels
    for tiles in levels:
        ((row, col),) = np.argwhere(tiles == Tile.TARGET)
        assert (col, tiles[row, col + 1], tiles[row + 1, col], (tiles == Tile.SOURCE).sum()) == (0, 1, 0, 1)


def shown_by(automaton, tiles):
    """Return the answers, such as PATH, after each of 40 iterations."""
    signals, paths = np.zeros((1, len(automaton.signals), *tiles.shape), np.bool_), []
    for _ in range(40):
        signals = automaton.step(tiles[None], signals)
        paths.append(signals[0, list(automaton.answers)])
    return np.array(paths)


def is_refused(automaton):
    """Return whether there is no proof, but a counterexample: a maze, a picture, or two tiles."""
    proof = prove(automaton)
    has_counterexample = (
        proof.counterexample or proof.refused or re.search("which no ghost tells apart|still change", proof.words)
    )
    return bool(has_counterexample) and all(lemma.counterexample or lemma.holds is None for lemma in proof.refused)


OF_PACKAGE = ("shortest-path", "shortest-path-healing", "reachable", "dead-ends", "first-passage")


def check_mutants(n_wrong, original):
    """Check that n wrong rules, which show another answer on some maze, are never proven."""
    automaton = expected(original) if original.bound is None else original
    mazes = small_mazes(find_task(automaton.task), seed=1)[:24]
    correct, rng = [shown_by(automaton, tiles) for tiles in mazes], np.random.default_rng(5)
    # within a bound, an earlier or later signal is not a mistake
    when = slice(None) if automaton.bound is None else -1
    while n_wrong:
        mutant = mutated(rng, automaton)
        if any(
            (shown_by(mutant, tiles)[when] != paths[when]).any() for tiles, paths in zip(mazes, correct, strict=True)
        ):
            assert is_refused(mutant)
            n_wrong -= 1


@for_each("name", OF_PACKAGE[::2])
def test_wrong_rules_are_never_proven(name):
    check_mutants(1, AUTOMATA[name])


@pytest.mark.slow
def test_of_a_hundred_wrong_rules_none_is_proven(tmp_path):
    for name in OF_PACKAGE:
        check_mutants(10, AUTOMATA[name])
    with own_tasks(tmp_path) as worlds:
        for task, name, *_ in WORLDS:
            check_mutants(17, getattr(worlds[task], name))


@some_and_all("automata", [REACHABLE], [SHORTEST_PATH, REACHABLE, DEAD_ENDS, expected(LIFE)])
def test_another_solver_gives_the_same_answers(tmp_path, automata):
    for automaton in automata:
        folder = tmp_path / automaton.name
        prove(automaton).export(folder)
        assert second_opinion(folder) == {}
        (file, *_) = sorted(folder.glob("*-fails.smt2"))
        file.write_text(file.read_text().replace("status unsat", "status sat"))
        assert second_opinion(folder) == {file.name: "unsat"}


@pytest.mark.slow
def test_another_solver_gives_the_same_answers_about_healing(tmp_path):
    prove(HEALING).export(tmp_path)
    assert len(list(tmp_path.iterdir())) == 82
    assert second_opinion(tmp_path) == {}


def test_a_folder_without_queries_is_refused(tmp_path):
    refused("has no queries of a proof", second_opinion, tmp_path)
