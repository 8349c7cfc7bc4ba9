"""Stratified negation: worlds whose rules read what never comes on, searched otherwise, proven and compiled."""

import runpy
from dataclasses import replace
from functools import cache, reduce
from operator import or_
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import ndimage

from maze_nca_gym.agents import compile_automaton, rollout
from maze_nca_gym.agents.automata import anywhere, fixpoint, grown, inflationary, prove
from maze_nca_gym.mazes import Task, Tile, one_hot, parse, register_task
from maze_nca_gym.mazes.arrays import broken_axioms
from maze_nca_gym.mazes.graphs import Graph
from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.mazes.terms import Term
from tests.agents.adversary import is_correct, mutated
from tests.agents.random_fixpoints import random_layers
from tests.tables import for_each, refused, some_and_all

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples/24_worlds_that_say_not.py"))
WORLDS = EXAMPLE["WORLDS"]
EMPTY, WALL, SOURCE, TARGET, OWN = Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.TARGET, 4
MOVES = ((-1, 0), (0, -1), (0, 1), (1, 0))
PAGE = (Path(__file__).parents[2] / "docs/task-examples.md").read_text(encoding="utf-8")


def graph_of(passable, moves=MOVES, leads=lambda here, there: True):
    """Return the directed graph of moves between passable tiles, for which `leads` is true of both places."""
    graph = nx.DiGraph()
    places = [tuple(map(int, place)) for place in np.argwhere(passable)]
    graph.add_nodes_from(places)
    for row, col in places:
        near = [(row + down, col + right) for down, right in moves]
        graph.add_edges_from(((row, col), there) for there in near if there in graph and leads((row, col), there))
    return graph


def at(maze, kind):
    (place,) = np.argwhere(maze == kind)
    return tuple(map(int, place))


def drawn(maze, places):
    marks = np.zeros(maze.shape, bool)
    for place in places:
        marks[place] = True
    return marks


def unreachable(maze):
    parts, _ = ndimage.label(maze != WALL)
    return (maze != WALL) & (parts != parts[at(maze, SOURCE)])


def captured(maze):
    liberties, lost = ndimage.binary_dilation(np.isin(maze, (EMPTY, SOURCE, TARGET))), np.zeros(maze.shape, bool)
    for stone in (4, 5):
        groups, n = ndimage.label(maze == stone)
        lost |= np.isin(groups, [group for group in range(1, n + 1) if not liberties[groups == group].any()])
    return lost


def leader(maze):
    return drawn(maze, [tuple(map(int, place)) for place in np.argwhere(maze == OWN)][:1])


def largest(maze):
    lakes, n = ndimage.label(maze == OWN)
    sizes = [
        max(k for k in (1, 2, 3) if k == 1 or ndimage.binary_erosion(lakes == lake, np.ones((k, k))).any())
        for lake in range(1, n + 1)
    ]
    return np.isin(lakes, [lake for lake, size in enumerate(sizes, 1) if size == max(sizes)])


def on_every_path(maze):
    source, target, moves = at(maze, SOURCE), at(maze, TARGET), graph_of(maze != WALL, [(0, 1), (1, 0)])
    if not nx.has_path(moves, source, target):
        return np.zeros(maze.shape, bool)

    def cuts(place):
        others = moves.subgraph(tile for tile in moves if tile != place)
        return place in (source, target) or not nx.has_path(others, source, target)

    return drawn(maze, filter(cuts, moves))


def pits(maze):
    source = at(maze, SOURCE)
    moves = graph_of(maze != WALL, leads=lambda here, there: there[0] >= here[0] or maze[here] == OWN)
    return drawn(maze, nx.descendants(moves, source) - nx.ancestors(moves, source))


def unseen(maze):
    free, guarded = np.isin(maze, (EMPTY, SOURCE, TARGET)), np.zeros(maze.shape, bool)
    for row, col in np.argwhere(maze == OWN):
        for down, right in MOVES:
            n = 1
            while 0 <= row + n * down < maze.shape[0] and 0 <= col + n * right < maze.shape[1]:
                if not free[row + n * down, col + n * right]:
                    break
                guarded[row + n * down, col + n * right] = True
                n += 1
    safe = graph_of(free & ~guarded)
    source = at(maze, SOURCE)
    return drawn(maze, {source, *nx.descendants(safe, source)} if source in safe else ())


def stranded(maze):
    fires, source = maze == OWN, at(maze, SOURCE)
    parts, _ = ndimage.label(fires | (maze == EMPTY))
    burns = np.isin(parts, np.unique(parts[fires])) & (parts > 0)
    regions, _ = ndimage.label((maze != WALL) & ~burns)
    return (regions > 0) & (regions != regions[source])


def loops(maze):
    graph = graph_of(maze != WALL).to_undirected()
    while ends := [place for place in graph if maze[place] == EMPTY and graph.degree(place) < 2]:
        graph.remove_nodes_from(ends)
    return drawn(maze, graph)


SEARCHES = {
    search.__name__.replace("_", "-"): search
    for search in (unreachable, captured, leader, largest, on_every_path, pits, unseen, stranded, loops)
}


@pytest.fixture(scope="module")
def automaton():
    """Return a function that returns the automaton of a world, which is registered from then on to the end."""
    yield cache(lambda name: grown(register_task(WORLDS[name]())))
    for world in {*WORLDS} & {*TASKS}:
        TASKS.remove(world)


@pytest.mark.parametrize("n", [40, pytest.param(10_000, marks=pytest.mark.slow)])
def test_solvers_agree_with_searches(n):
    assert SEARCHES.keys() == WORLDS.keys()
    for world, search in SEARCHES.items():
        task, n_shown = WORLDS[world](), 0
        for size, generator, share in ((5, "random", 0.5), ((4, 7), "random", 0.3), (6, "loops", 0.2)):
            mazes = task.generate(np.random.default_rng(7), int(n * share), size, generator)
            answers = task.solve(mazes)
            wrong = [i for i, maze in enumerate(mazes) if (answers[i] != search(maze)).any()]
            assert not wrong, task.to_text(mazes[wrong[0]], answers[wrong[0]])
            n_shown += answers.any(axis=(1, 2)).sum()
        assert n_shown > n / 8, world  # most answers are not empty
        assert not broken_axioms(task.specification(), mazes[:20], 30), world
        assert EXAMPLE["lines"](world) <= 15


@some_and_all("worlds", ["unreachable", "stranded"], WORLDS)
def test_worlds_are_proven_and_become_networks(worlds, automaton):
    for world in worlds:
        proof = prove(automaton(world))
        assert (proof.verdict, proof.stated) == ("correct", ()), world
        model, certificate = compile_automaton(automaton(world))
        assert certificate.holds, world
        assert (model.guarantees.verdict, model.guarantees.basis) == ("correct", "proven")
        task = automaton(world).problem
        mazes = task.generate(np.random.default_rng(8), 100, 6, "random")
        bound = model.guarantees.bound(mazes[0].size, 0)
        with torch.no_grad():
            paths = rollout(model, torch.from_numpy(one_hot(mazes, task.n_tiles)), bound)[:, task.drawn].numpy() > 0.5
        np.testing.assert_array_equal(paths, task.solve(mazes))
        row = f"| `{world}` | {WORLDS[world].__doc__} | {len(automaton(world).signals)} |"
        assert row in PAGE, "python -m tools.make_worlds"


@some_and_all("seeds", range(2), range(2, 103))
def test_random_layers_are_correct(seeds, forgotten):
    for seed in seeds:
        task = register_task(random_layers(seed))
        assert len(task.solve.layers) > 1
        assert prove(grown(task)).verdict == "correct", seed
        TASKS.remove(task.name)


def changed(automaton, name, rule):
    """Return an automaton with another rule of the signal of a name."""
    signals = automaton.signals
    return replace(automaton, rules={**automaton.rules, signals[name]: lambda see: rule(see, signals)})


def without(automaton, name, read):
    """Return an automaton in which a signal's rule takes another signal for one that is off."""
    (term, left) = automaton.terms[automaton.signals[name]], automaton.signals[read]
    never = Term(left, "C") & ~Term(left, "C")
    return changed(
        automaton, name, lambda see, s: term.read_by(lambda atom, tap: never if atom is left else Term(atom, tap))
    )


def early(ago):
    """Return what lets the second layer begin so many iterations after the first, if nothing is known to change."""
    return lambda automaton: changed(
        automaton,
        "CUT",
        lambda see, s: see(s.CUT) | (see(s[f"BEGUN{ago}_1"]) & ~see(s.CHANGED_1) & ~see(s.WET) & ~see.tile(WALL)),
    )


WRONG = {
    "read at once": lambda made: changed(made, "CUT", lambda see, s: see(s.CUT) | (~see(s.WET) & ~see.tile(WALL))),
    "read after one iteration": early(1),
    "read after two iterations": early(2),
    "begins after two iterations": lambda made: changed(made, "BEGUN3_1", lambda see, s: see(s.BEGUN1_1)),
    "changes at the target are missed": lambda made: changed(
        made, "NEW_1", lambda see, s: see(s.WET) & ~see(s.LAST_WET) & ~see.tile(TARGET)
    ),
    "changes below walls are missed": lambda made: changed(
        made, "NEW_1", lambda see, s: see(s.WET) & ~see(s.LAST_WET) & ~see.tile(WALL, "U")
    ),
    "no change is seen": lambda made: without(made, "CHANGED_1", "NEW_1"),
    "every state is a change": lambda made: without(made, "NEW_1", "LAST_WET"),
    "a change is seen at its tile alone": lambda made: changed(
        made, "CUT", lambda see, s: see(s.CUT) | (see(s.BEGUN3_1) & ~see(s.NEW_1) & ~see(s.WET) & see.tile(EMPTY))
    ),
}
"""Wrong versions of the automaton of `unreachable`."""


@for_each("name", WRONG)
def test_wrong_versions_are_refuted(name, automaton):
    assert prove(WRONG[name](automaton("unreachable"))).verdict == "refuted"


def test_a_layer_that_misses_a_change_of_one_relation_is_refuted(automaton):
    for read in ("BLACK", "WHITE"):
        assert prove(without(automaton("captured"), "NEW_1", read)).verdict == "refuted"
    assert prove(without(automaton("stranded"), "NEW_2", "SAVED")).verdict == "refuted"


@some_and_all("twins", [("unreachable", n) for n in range(2)], [(w, n) for w in WORLDS for n in range(20)])
def test_mutants_are_never_correct(twins, automaton):
    for world, number in twins:
        twin = mutated(np.random.default_rng([number, len(world)]), automaton(world))
        if prove(twin).verdict == "correct":  # some mutations keep the rules equivalent
            assert is_correct(twin), world


def wet(see):
    return see.tile(SOURCE) | (reduce(or_, (see("WET", tap) for tap in "ULDR")) & ~see.tile(WALL))


@for_each(
    ("rules", "message"),
    [
        (
            {"A": lambda see: ~see("B"), "B": lambda see: see("A", "U")},
            "the rule of A negates B, which depends on it: A reads B, B reads A. A rule of `fixpoint` may negate rela",
        ),
        (
            {"A": lambda see: see("C"), "B": lambda see: see("A") & ~see("C", "L"), "C": lambda see: see("B")},
            "the rule of B negates C, which depends on it: B reads C, C reads B",
        ),
        (
            {"A": lambda see: see("C"), "B": lambda see: see("A"), "C": lambda see: see.tile(0) ^ see("B")},
            "the rule of C negates B, which depends on it: C reads B, B reads A, A reads C",
        ),
        (
            {"A": anywhere(lambda see: ~see("B")), "B": lambda see: see("B") | see("A")},
            "the rule of A negates B, which depends on it: A reads B, B reads A",
        ),
    ],
)
def test_negation_in_a_circle_is_rejected(rules, message):
    refused(message, fixpoint, **rules)
    inflationary("B", **rules)  # this operator may read signals that are not on yet


def test_layers_are_as_early_as_possible():
    solve = fixpoint(
        "LAST",
        LAST=lambda see: see("CUT") & ~see("NEAR"),
        NEAR=lambda see: see("CUT", "U"),
        CUT=lambda see: ~see("WET") & see.tile(EMPTY),
        WET=wet,
        DRY=lambda see: see.tile(WALL),
    )
    assert solve.layers == (("WET", "DRY"), ("NEAR", "CUT"), ("LAST",))
    assert [solve.layer_of(name) for name in ("WET", "CUT", "LAST")] == [0, 1, 2]
    # beyond the edge no signal is ever on
    edge = fixpoint("EDGE", WET=wet, EDGE=lambda see: see("WET") & ~see("WET", "U"))
    assert edge(parse("#.\nS.")[None])[0].tolist() == [[False, True], [True, False]]


def test_stages_count_from_the_first_round_of_a_layer():
    solve = WORLDS["stranded"]().solve
    stages = solve.stages(parse("f.#.\nS.#.\n..T.", letters=".#STf")[None])
    assert stages["BURNS stage"].tolist() == [[[0, 1, -1, -1], [-1, 2, -1, -1], [4, 3, -1, -1]]]
    assert stages["rounds 1"].ravel().tolist() == [5]


@for_each(
    ("names", "message"),
    [
        (("LAST_WET", "CUT"), "LAST_WET is a relation and a signal of its layers of the task own"),
        (("BEGUN3_1", "CUT"), "BEGUN3_1 is a relation and a signal of its layers"),
        (("WET", "NEW_1"), "NEW_1 is a relation and a signal of its layers"),
    ],
)
def test_relations_have_other_names_than_the_signals_of_layers(names, message, forgotten):
    first, second = names
    rules = {"WET": wet, first: wet, second: lambda see: ~see("WET") & see.tile(EMPTY)}
    register_task(Task(name="own", solve=fixpoint(second, **rules), may_be_empty=True))
    refused(message, grown, "own")


@for_each("world", ["unreachable", "stranded"])
def test_layers_are_correct_on_graphs(world, automaton):
    assert prove(automaton(world), on="graphs").verdict == "correct"
    tiles, task = parse("S.#..\n###..\n.#T#.\n..#.."), automaton(world).problem
    torus = Graph.of(tiles, edges="torus")
    expected = torus.ask(task).solve(torus.tiles[None])
    *_, (signals,) = automaton(world).trace(torus.tiles[None], graph=torus)
    np.testing.assert_array_equal(signals[:1], expected)
    assert expected.any()
