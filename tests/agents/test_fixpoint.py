"""The example's tasks whose exact solver is a fixpoint: compared with other searches, and proven without hints."""

import runpy
from collections import deque
from dataclasses import replace
from enum import IntEnum
from functools import cache
from itertools import product
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

import maze_nca_gym
from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.automata import Automaton, anywhere, evolution, fixpoint, grown, inflationary, prove, threshold
from maze_nca_gym.agents.automata.run import compile_automaton
from maze_nca_gym.mazes import KINDS, Task, Tile, one_hot, register_task
from maze_nca_gym.mazes.arrays import broken_axioms
from maze_nca_gym.mazes.relations import distance
from maze_nca_gym.mazes.small import mazes_to_try
from maze_nca_gym.mazes.tasks import TASKS, find_task
from tests.agents.adversary import is_correct, mutated
from tests.agents.random_fixpoints import random_task
from tests.tables import for_each, some_and_all

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples/22_worlds.py"))
WORLDS, register = EXAMPLE["WORLDS"], EXAMPLE["register"]
WALL, SOURCE, TARGET = Tile.WALL, Tile.SOURCE, Tile.TARGET
MOVES = {"U": (-1, 0), "L": (0, -1), "D": (1, 0), "R": (0, 1)}
ARROWS = dict(zip(MOVES, range(4, 8), strict=True))
DIAGONAL = [(a, b) for a in (-1, 1) for b in (-1, 1)]
DOOR, KEYS = 4, {5: 1, 6: 2}


def distances(maze, start, closed=(WALL,), world=""):
    """Return the distances of all states (row, col, more) that a search in a task reaches."""

    def is_open(at):
        return 0 <= at[0] < maze.shape[0] and 0 <= at[1] < maze.shape[1] and maze[at] not in closed

    def after(row, col, more):
        steps = [*MOVES.values(), *(DIAGONAL if world in ("king", "careful-king") else ())]
        for a, b in steps:
            at = (row + a, col + b)
            if world == "careful-king" and a and b and not (is_open((row + a, col)) and is_open((row, col + b))):
                continue
            if world == "one-way" and is_open(at):  # a one-way move in the opposite direction leads here
                (back,) = (to for to, way in MOVES.items() if way == (-a, -b))
                if maze[at] >= 4 and maze[at] != ARROWS[back]:
                    continue
            if world == "within" and distance[row, col, more] == 4:
                continue
            if world == "ice":
                at = (row, col)
                while is_open((at[0] + a, at[1] + b)):
                    at = (at[0] + a, at[1] + b)
            if not is_open(at) or (world == "two-keys" and maze[at] == DOOR and more != 3):
                continue
            more_there = more | KEYS.get(int(maze[at]), 0) if world == "two-keys" else 1 - more
            yield *at, more_there if world in ("parity", "two-keys") else 0
        if world in ("portals", "colours") and maze[row, col] >= 4:
            yield from ((*map(int, at), 0) for at in np.argwhere(maze == maze[row, col]))

    starts = [(*map(int, first), 0) for first in np.argwhere(maze == start)]
    distance, queue = dict.fromkeys(starts, 0), deque(starts)
    while queue:
        state = queue.popleft()
        for neighbour in after(*state):
            if neighbour not in distance:
                distance[neighbour] = distance[state] + 1
                queue.append(neighbour)
    return distance


def as_map(maze, distance):
    far = np.full(maze.shape, -1)
    for (row, col, _), number in distance.items():
        far[row, col] = number
    return far


def searched(world, maze):
    """Return the answer on an (H, W) maze by an independent search, (H, W) or (K, H, W) bool."""
    height, width = maze.shape
    if world == "core":
        walls, near = np.pad(maze == WALL, 2), range(-2, 3)
        around = [(a, b) for a in near for b in near if abs(a) + abs(b) <= 2]
        return ~np.any([walls[2 + a : 2 + a + height, 2 + b : 2 + b + width] for a, b in around], axis=0)
    if world == "lamps":
        lit = maze == 4
        for _ in range(maze.size):
            framed = np.pad(lit, 1).astype(int)
            count = framed[:-2, 1:-1] + framed[2:, 1:-1] + framed[1:-1, :-2] + framed[1:-1, 2:]
            lit = lit | ((count >= 2) & (maze != WALL))
        return lit
    if world == "rook":
        (row, col), answer = np.argwhere(maze == SOURCE)[0], np.zeros(maze.shape, bool)
        for a, b in MOVES.values():
            n = 1
            while 0 <= row + n * a < height and 0 <= col + n * b < width and maze[row + n * a, col + n * b] != WALL:
                answer[row + n * a, col + n * b] = True
                n += 1
        return answer
    if world == "tree":
        far = np.pad(as_map(maze, distances(maze, SOURCE)), 1, constant_values=-1)
        ways, is_assigned, distance = [], np.zeros(maze.shape, bool), far[1:-1, 1:-1]
        for a, b in MOVES.values():
            neighbour_distance = far[1 + a : 1 + a + height, 1 + b : 1 + b + width]
            ways.append((distance > 0) & (neighbour_distance == distance - 1) & ~is_assigned)
            is_assigned |= ways[-1]
        return np.stack(ways)
    if world == "nearest":
        far = np.pad(as_map(maze, distances(maze, TARGET)), 1, constant_values=-1)
        way, at = np.zeros(far.shape, bool), tuple(np.argwhere(maze == SOURCE)[0] + 1)
        way[at] = far[at] > 0
        while far[at] > 0:
            at = next(to for to in ((at[0] + a, at[1] + b) for a, b in MOVES.values()) if far[to] == far[at] - 1)
            way[at] = True
        return way[1:-1, 1:-1]
    if world == "nearer":
        mine, other = (as_map(maze, distances(maze, start)) for start in (SOURCE, TARGET))
        return (mine >= 0) & ((other < 0) | (mine < other))
    closed = (WALL, 4) if world == "fire" else (WALL,)
    distance_map, answer = (
        distances(maze, TARGET if world == "one-way" else SOURCE, closed, world),
        np.zeros(maze.shape, bool),
    )
    for row, col, more in distance_map:
        answer[row, col] |= world != "parity" or not more
    return answer


@pytest.fixture(scope="module")
def automaton():
    """Return a function that registers a task and returns its automaton, once for all tests of this file."""
    register_once = cache(register)
    yield register_once
    for world in {*WORLDS} & {*TASKS}:
        TASKS.remove(world)
        del maze_nca_gym.ENVIRONMENTS[id_of(world)], gym.registry[id_of(world)]


def id_of(world):
    return f"Maze{world.title().replace('-', '')}-v0"


@pytest.mark.parametrize("n", [30, pytest.param(10_000, marks=pytest.mark.slow)])
def test_solvers_agree_with_searches(n):
    for world in WORLDS:
        task = WORLDS[world]()
        for size, generator, share in ((9, "random", 0.6), ((4, 7), "loops", 0.4)):
            mazes = task.generate(np.random.default_rng(5), int(n * share), size, generator)
            answers = task.solve(mazes)
            wrong = [i for i, maze in enumerate(mazes) if (answers[i] != searched(world, maze)).any()]
            assert not wrong, task.to_text(mazes[wrong[0]], answers[wrong[0]])
        assert not broken_axioms(task.specification(), mazes[:20], 30)


PAGE = (Path(__file__).parents[2] / "docs/task-examples.md").read_text(encoding="utf-8")


@some_and_all("worlds", ["king", "core", "wave", "tree", "within"], WORLDS)
def test_worlds_are_correct_with_nothing_named(worlds, automaton):
    for world in worlds:
        proof = prove(automaton(world))
        assert (proof.verdict, proof.stated) == ("correct", ()), world
        row = f"| `{world}` | {WORLDS[world].__doc__} | {len(automaton(world).signals)} |"
        assert row in PAGE, "python -m tools.make_worlds"


@pytest.mark.slow  # test_graphs proves a fire
def test_worlds_that_read_no_corners_are_correct_on_graphs(automaton):
    for world in {*WORLDS} - {"king", "careful-king"}:
        assert prove(automaton(world), on="graphs").verdict == "correct", world


@some_and_all("worlds", ["fire", "colours"], [world for world in WORLDS if world != "two-keys"])
def test_worlds_are_networks_that_are_played(worlds, automaton):
    for world in worlds:
        model, certificate = compile_automaton(automaton(world))
        assert certificate.holds
        guarantees = model.guarantees
        assert (guarantees.verdict, guarantees.exact, guarantees.basis) == ("correct", True, "proven")
        task = find_task(world)
        mazes = task.generate(np.random.default_rng(6), 200, 9, "random")
        with torch.no_grad():
            paths = rollout(model, torch.from_numpy(one_hot(mazes, task.n_tiles)), 400)[:, task.drawn].numpy() > 0.5
        np.testing.assert_array_equal(paths, task.solve(mazes))
        env = gym.make(id_of(world), n_channels=model.n_channels)
        observation, _ = env.reset(seed=0)
        ended = False
        while not ended:
            observation, _, optimal, truncated, _ = env.step(model.predict(observation)[0])
            ended = optimal or truncated
        assert optimal


SOME = ("fire", "king", "core", "tree", "wave")


@some_and_all("twins", product(SOME, [0]), product(WORLDS, range(20)))
def test_mutants_are_never_correct(twins, automaton):
    verdicts = []
    for world, number in twins:
        twin = mutated(np.random.default_rng([number, len(world)]), automaton(world))
        verdicts.append(prove(twin).verdict)
        if verdicts[-1] == "correct":  # some mutations keep the rules equivalent
            assert is_correct(twin), world
    assert verdicts.count("refuted") > len(verdicts) / 2


@for_each(
    ("make", "message"),
    [
        (lambda: fixpoint(), r"fixpoint needs rules, and names of rules as answers \(\), got"),
        (lambda: fixpoint("DRY", WET=lambda see: see.tile(0)), r"names of rules as answers \(WET\), got"),
        (
            lambda: fixpoint(WET=lambda see: ~see("WET")),
            "the rule of WET negates WET, which depends on it: WET reads W",
        ),
        (lambda: fixpoint(WET=lambda see: ~(see.tile(0) & ~see("WET")) & ~see("WET", "U")), "of WET negates WET, whic"),
        (lambda: fixpoint(WET=lambda see: see("WET") + 1), "must join the values that it sees by &, |, ^ and ~"),
        (lambda: fixpoint(WET=lambda see: True), "must join the values that it sees by &, |, ^ and ~: it returns True"),
        (
            lambda: fixpoint(WET=lambda see: see("WET", "N")),
            "the rule of WET reads at 'N', which is not made of C, U, L, D, R",
        ),
        (lambda: fixpoint(WET=lambda see: see("WET") | True), "the values that it sees by &, |, ^ and ~: unsu"),
        (
            lambda: fixpoint(WET=lambda see: see("WET") | see("WET").any()),
            "^ and ~: 'Term' object has no attribute 'any'",
        ),
        (lambda: fixpoint(WET=lambda see: see("WET").size > 9 or see.tile(0)), "'Term' object has no attribute 'size'"),
        (lambda: fixpoint(WET=lambda see: threshold([(-1, see("WET"))], 0)), "the rule of WET negates WET, which depe"),
        (lambda: fixpoint(WET=lambda see: see.tile(int("x"))), "the rule of WET fails: ValueError: invalid literal"),
        (
            lambda: evolution(WET=(lambda see: see.tile(0), lambda see: see("WET").any())),
            "the rule of WET must join",
        ),
        *(
            (
                lambda name=name: fixpoint(**{name: lambda see: see.tile(0)}),
                f"kind, t, n_tiles, spread, .* got '{name}'",
            )
            for name in ("kind", "t", "n_tiles", "spread", "WET stage")
        ),
        (lambda: fixpoint(WET=lambda see: see("DRY")), r"see takes a relation \(WET\), got 'DRY'"),
        (
            lambda: fixpoint(WET=lambda see: see.tile(0) ^ see("WET")),
            "the rule of WET negates WET, which depends on it",
        ),
        (
            lambda: Task(name="fire", solve=fixpoint(WET=lambda see: see.tile(4))),
            "of tile 4, but the task fire has 0 em",
        ),
        (
            lambda: Task(name="fire", solve=fixpoint(WET=lambda see: see.tile(SOURCE)), kinds=KINDS[:2]),
            "a rule of its fixpoint reads the kind of tile 2, source, but the task fire has 0 empty, 1 wall",
        ),
        (lambda: inflationary(WET=anywhere(lambda see: see.tile(0))), "WET is on at all tiles or at none"),
        (lambda: grown("shortest-path"), "the solve of the task shortest-path must be a fixpoint"),
    ],
)
def test_rules_that_make_no_world_are_refused(make, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|").replace("^", r"\^")):
        make()


def test_a_rule_is_read_once(forgotten):
    calls = []

    def floods(see):
        calls.append(see)  # a second call would return another rule
        return see.tile(SOURCE if len(calls) == 1 else WALL) | (see("WET", "L") & see.tile(0))

    wet = fixpoint(WET=floods)
    tiles = np.array([[[2, 0, 1, 0]]], np.uint8)
    assert [wet(tiles).tolist() for _ in range(3)] == [[[[True, True, False, False]]]] * 3
    assert prove(grown(register_task(Task(name="own", solve=wet)))).verdict == "correct"
    assert len(calls) == 1


def test_own_rules_describe_thresholds_too(forgotten):
    signals = IntEnum("Summed", ["PATH", "LIT"], start=0)
    register_task(Task(name="own", solve=lambda tiles: tiles == SOURCE))

    def lit(see):
        near = [(1, see(signals.LIT, tap)) for tap in "ULDR"]
        kinds = [(2, see.tile(SOURCE)), (2, see.tile(TARGET)), (-1, see.tile(WALL))]
        return threshold([*near, (4, see(signals.LIT)), *kinds], 2)

    proof = prove(Automaton("summed", "own", signals, {"PATH": lambda see: see(signals.LIT), "LIT": lit}))
    assert (proof.verdict, proof.worth[:13]) == ("characterised", "its own rules")


def test_relations_have_other_names_than_answers(forgotten):
    register_task(Task(name="own", solve=fixpoint(PATH=lambda see: see.tile(SOURCE))))
    with pytest.raises(ValueError, match="PATH is a relation and an answer of the task own"):
        grown("own")


def test_without_a_specification_several_candidates_are_tried(automaton, forgotten):
    for world, worth in (("fire", ""), ("rook", "in terms of its own rules alone")):
        automaton_of_world = automaton(world)
        mute = register_task(
            replace(automaton_of_world.problem, name=f"mute-{world}", specification=None, solve=lambda tiles: tiles > 9)
        )
        proof = prove(replace(automaton_of_world, task=mute.name, bound=None))
        assert proof.verdict == "characterised"
        assert worth in proof.words
        assert bool(proof.worth) == bool(worth)


def test_another_tap_and_several_starts_change_distances():
    for tiles in mazes_to_try(find_task("shortest-path"))[::4]:
        assert not broken_axioms(distance(SOURCE, several=False), tiles)
    both = np.array([[[SOURCE, SOURCE]]], np.uint8)
    assert broken_axioms(distance(SOURCE, several=False), both)
    assert not broken_axioms(distance(SOURCE), both)


def test_a_proof_does_not_depend_on_what_was_proven_before(automaton):
    assert {prove(automaton("core")).verdict for _ in range(2)} == {"correct"}


def two_steps(see):
    """Return whether a relation holds here and at all four neighbours, which are not walls."""
    return see("FREE") & see("FREE", "U") & see("FREE", "L") & see("FREE", "D") & see("FREE", "R")


def clearance():
    """Return the smallest task for which a guess fitted every run but was not an invariant."""
    rules = {"FREE": lambda see: see.tile(0) | see.tile(2) | see.tile(3), "CLEAR": two_steps}
    near = {"FAR": lambda see: see("CLEAR") & see("CLEAR", "U") & see("CLEAR", "L") & see("CLEAR", "D")}
    return Task(name="clearance", solve=fixpoint("FAR", **rules, **near), may_be_empty=True)


def never_on():
    """Return a task of which nothing is ever part of the answer, although each of its levels must have an answer."""
    return Task(name="never", solve=fixpoint(ON=lambda see: see("ON", "U")))


@for_each("task", [clearance(), never_on()])
def test_the_stages_of_relations_are_the_theorem_of_their_automaton(task, forgotten):
    register_task(task)
    proof = prove(grown(task))
    assert proof.verdict == "correct"
    assert {words.split(" ", 1)[1] for words in proof.theorem.means.values()} == {
        f"t = 1 + {name} stage" for name in task.solve.rules
    }
    assert "the answer path is empty on all small mazes" in proof.words


@some_and_all("seeds", range(4), range(4, 104))
def test_every_random_automaton_has_a_verdict(seeds, forgotten):
    for seed in seeds:
        task = register_task(random_task(seed))
        assert prove(grown(task)).verdict == "correct", seed
        TASKS.remove(task.name)
