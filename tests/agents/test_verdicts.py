"""A verdict never claims more than is true: statements of an author are proven, tried, or reported as stated."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import IntEnum
from functools import partial, reduce
from operator import or_

import numpy as np
import pytest
import torch
from tables import refused

from maze_nca_gym.agents import load
from maze_nca_gym.agents.automata import Automaton
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.proving.proof import prove
from maze_nca_gym.agents.automata.run import compile_automaton
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE, Reached
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH, PathSignal
from maze_nca_gym.agents.automata.theorem import Domain, Theorem
from maze_nca_gym.agents.policies.guarantees import Guarantees, StepBound
from maze_nca_gym.agents.policies.learned.nca import NCA
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.facts import Answer, Ghosts
from maze_nca_gym.mazes.levels import KINDS, Kind, Tile, parse
from maze_nca_gym.mazes.relations import REACHED, both_of, canonical_path, distance, fixpoint, flooded, is_free, reached
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.small import all_mazes, mazes_to_try, small_mazes
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import SHORTEST_PATH as TASK
from maze_nca_gym.mazes.tasks import Task, check_specification, find_task, of_each, register_task
from tests.own_tasks import own_tasks, registered
from tests.tables import for_each, some_and_all


class Lit(IntEnum):
    PATH, WET, LIT = range(3)


RULES = {
    Lit.PATH: lambda see: see(Lit.WET),
    Lit.WET: lambda see: see(Lit.LIT),
    Lit.LIT: lambda see: see.tile(Tile.SOURCE),
}


def lit(**changes) -> Automaton:
    """Return an automaton whose LIT is on only at the source."""
    return Automaton("lit", "shortest-path", Lit, RULES, **changes)


def lit_never(see):
    return see(Lit.LIT) & ~see(Lit.LIT)


RECTANGLE = "on a grid, the map is a rectangle, UL"


class Somewhere(IntEnum):
    PATH, HERE, ANY = range(3)


said_of_path = Theorem(
    lambda picture, at, t: {},
    lambda tiles: {},
    signals=lambda picture, at, t: {Somewhere.PATH: picture.inside(at) & (t < 0)},
)


def somewhere() -> Automaton:
    """Return an automaton with a pooled signal, and an invariant that is false on all tiles except the source."""
    source = {signal: lambda see: see.tile(Tile.SOURCE) for signal in (Somewhere.HERE, Somewhere.ANY)}
    rules = {Somewhere.PATH: lambda see: see(Somewhere.HERE) & ~see(Somewhere.HERE), **source}
    pooled = {"pooled": (Somewhere.ANY,), "everywhere": (Somewhere.ANY,)}
    wrong = lambda see: ~see(Somewhere.ANY) | see(Somewhere.HERE)  # noqa: E731
    return Automaton("somewhere", "shortest-path", Somewhere, rules, invariant=wrong, **pooled)


def test_signals_declared_equal_everywhere_must_be_equal():
    assert prove(lit()).verdict == "characterised"
    proof = prove(lit(everywhere=(Lit.LIT,)))
    assert proof.verdict is None
    assert "LIT is the same everywhere" in [lemma.claim for lemma in proof.refused]
    assert prove("life").verdict == "characterised", "BEGUN is the same everywhere"


def test_an_invariant_is_proven_for_its_use():
    dry = {"invariant": lambda see: ~(see(Reached.WET) & see.tile(Tile.WALL))}
    assert prove(replace(REACHABLE, **dry)).invariant
    assert not prove(replace(REACHABLE, **dry, heals=True)).invariant, "a wall may be drawn where it is wet"
    for theorem in (None, said_of_path):
        assert not prove(replace(somewhere(), theorem=theorem)).invariant, "ANY is on where another tile switches it on"
        assert not prove(replace(somewhere(), theorem=theorem, heals=True)).invariant
    at_first = prove(replace(REACHABLE, invariant=lambda see: see(Reached.WET) | see.tile(Tile.WALL)))
    assert "the invariant holds at first" in [lemma.claim for lemma in at_first.refused]
    # without a theorem about signals the invariant must be inductive, and this one is not
    silent = Theorem(lambda picture, at, t: {}, lambda tiles: {}, signals=lambda picture, at, t: {})
    alone = prove(replace(REACHABLE, theorem=silent, invariant=lambda see: ~see(Reached.PATH)))
    assert (alone.invariant, alone.holds) == (False, False)
    assert "its invariant is not proven" in alone.words


SPRING, MUD = 2, 4
SPRINGS = (*KINDS[:2], Kind("spring", "s", "#56b4e9"))


class Spread(IntEnum):
    PATH, DRY, ANY = range(3)


def seldom(change):
    """Return a mark that puts a spring on each level, and then changes one level in 400."""

    def mark(rng, tiles):
        for level in tiles:
            level[tuple(rng.permutation(np.argwhere(level == Tile.EMPTY))[0])] = SPRING
            if rng.random() < 1 / 400:
                change(level)
        return tiles

    return mark


def without_spring(level):
    level[level == SPRING] = Tile.EMPTY


def springs(counts):
    """Return a task whose answer is all tiles without a wall, and a function that makes its automaton."""
    free = fixpoint(FREE=lambda see: see.tile(Tile.EMPTY) | see.tile(SPRING))
    task = Task(name="springs", kinds=SPRINGS, mark=seldom(without_spring), counts=counts, solve=free)
    rules = {
        Spread.PATH: lambda see: see(Spread.ANY) & ~see.tile(Tile.WALL),
        Spread.DRY: lambda see: see.tile(Tile.EMPTY),
        Spread.ANY: lambda see: see.tile(SPRING),
    }
    pooled = {"pooled": (Spread.ANY,), "everywhere": (Spread.ANY,), "bound": StepBound(constant=2)}
    return task, lambda: Automaton("springs", "springs", Spread, rules, **pooled)


@for_each(
    ("counts", "verdict"),
    [
        ({"spring": "at least one"}, "correct"),
        ({"spring": "one"}, "correct"),
        ({}, "refuted"),
        ({"spring": "any"}, "refuted"),
    ],
)
def test_numbers_of_tiles_of_a_kind_are_declared_and_checked(counts, verdict):
    task, automaton = springs(counts)
    with registered(task, "MazeSprings-v0"):
        assert prove(automaton()).verdict == verdict
        draw = partial(task.generate, np.random.default_rng(1), 2_000, 5)
        if verdict == "correct":
            refused(r"levels of the task 'springs' have .*one spring; level \d+ has 0", draw)
        else:
            assert (draw() != SPRING).all(axis=(1, 2)).any()


def test_a_specification_of_one_start_describes_levels_with_one_start():
    def two_sources(level):
        level[tuple(np.argwhere(level == Tile.EMPTY)[0])] = Tile.SOURCE

    def mark(rng, tiles):
        for level in tiles:
            if rng.random() < 1 / 400:
                two_sources(level)
        return tiles

    for specification, allowed in ((canonical_path, (1, 1)), (partial(canonical_path, several=True), (1, np.inf))):
        ends = Task(name="ends", solve=shortest_path, mark=mark, specification=specification)
        assert [most for most in allowed if most < np.inf] == [n for n in ends.count_limits[1][2:] if n == 1]
        refused(r"at most one source.*; level \d+ has 2", ends.generate, np.random.default_rng(1), 2_000, 5)
    several = Task(name="wet", mark=mark, solve=fixpoint(WET=lambda see: see.tile(Tile.SOURCE)))
    assert (several.generate(np.random.default_rng(1), 2_000, 5) == Tile.SOURCE).sum() > 2_000
    with registered(several, "MazeWet-v0"):  # this axiom holds only on levels with a single source
        automaton = replace(REACHABLE, task="wet", bound=None, theorem=distance(Tile.SOURCE, several=False))
        refused("the axiom '.*distances of neighbours differ.*' is not true of the maze", prove, automaton)
    refused("several=False needs the kind of the only start", distance, is_free, several=False)


def test_kinds_without_a_mark_are_compared_too():
    kinds = (*KINDS, Kind("mud", "m", "#8c564b"))

    def dry(tiles):
        return (tiles != Tile.WALL) & (tiles != MUD)

    free = fixpoint(FREE=lambda see: ~see.tile(Tile.WALL) & (see.tile(0) | see.tile(2) | see.tile(3) | see.tile(MUD)))
    task = Task(name="muddy", kinds=kinds, solve=dry, specification=free.specification)
    assert {MUD} <= {int(kind) for maze in small_mazes(task) for kind in np.unique(maze)}
    assert all((maze == Tile.SOURCE).sum() == 1 for maze in small_mazes(task))
    refused(r"disagrees with its solve on the maze \S*m\S*; .*`counts`", register_task, task)


@some_and_all(
    "rows",
    [
        ({"bound": StepBound(constant=1)}, "refuted"),
        ({"bound": StepBound(per_tile=1)}, "refuted"),
        ({"bound": StepBound(per_tile=2)}, "correct"),
        ({"bound": StepBound(constant=2, per_move=2, per_move_and_tile=1)}, "characterised"),
        ({"bound": None}, "characterised"),
        ({"theorem": distance(Tile.SOURCE)}, "correct"),  # custom ghosts do not replace the specification
    ],
    # it shows a shortest path that is not canonical, and the solver is slow to give up
    [({"task": "shortest-path-DLRU"}, None)],
)
def test_a_bound_is_proven_or_stated(rows):
    for change, verdict in rows:
        proof = prove(replace(SHORTEST_PATH, **change))
        assert proof.verdict == verdict or (verdict is None and proof.verdict in (None, "characterised"))
        assert (proof.basis == "proven") == (verdict == "correct")
        assert bool(proof.counterexample) == (verdict == "refuted")


class Slow(IntEnum):
    PATH, WET, NEXT, SHOWN = range(4)


def slow_flood() -> Automaton:
    """Return `REACHABLE` at half the speed."""
    rules = {
        Slow.PATH: lambda see: see(Slow.SHOWN),
        Slow.WET: lambda see: see(Slow.NEXT),
        Slow.NEXT: flood,
        Slow.SHOWN: lambda see: see(Slow.WET),
    }
    return Automaton("slow", "shortest-path", Slow, rules, slows=REACHABLE, pace=2)


def flood(see):
    return see.tile(Tile.SOURCE) | ((see(Slow.WET) | around(see, Slow.WET)) & ~see.tile(Tile.WALL))


def early(see):
    return see(Slow.NEXT) | see.tile(Tile.SOURCE)


def test_a_declared_slow_copy_is_checked():
    assert prove(slow_flood()).verdict == "characterised"
    assert "it takes 2 iterations for each of the rules as given" in prove(slow_flood()).words
    rules = slow_flood().rules
    for wrong in (
        {"pace": 3},
        {"rules": {**rules, Slow.WET: early}},
        {"rules": {**rules, Slow.SHOWN: lambda see: see(Slow.NEXT)}},
        {"rules": {**rules, Slow.NEXT: lambda see: flood(see) & ~see.tile(Tile.TARGET)}},
    ):
        proof = prove(replace(slow_flood(), **wrong))
        assert (proof.verdict, proof.holds) == (None, False)
        assert any("iterations" in lemma.claim for lemma in proof.refused)


def test_a_slow_copy_states_only_proven_facts():
    wet = {"invariant": lambda see: see(Slow.WET)}
    plain = replace(slow_flood(), slows=replace(REACHABLE, invariant=None))
    assert prove(replace(plain, **wet)).verdict == "characterised"
    assert not prove(replace(plain, **wet)).invariant
    assert not prove(replace(slow_flood(), **wet)).invariant, "the other's invariant is another one"
    dry = lambda see: ~(see(Slow.WET) & see.tile(Tile.WALL)) & (~see(Slow.PATH) | see(Slow.WET))  # noqa: E731
    assert prove(replace(slow_flood(), invariant=dry)).invariant
    healing = replace(REACHABLE, heals=True)
    for change in ({"heals": True}, {"pace": 0}, {"slows": healing}, {"everywhere": (Slow.WET,)}):
        refused("slow slows reachable, so", replace, slow_flood(), parts=(), **change)


def test_a_declared_slow_copy_follows_no_other_rules():
    """Its network would name the rules of the other automaton."""
    rules = {**slow_flood().rules, Slow.WET: lambda see: see.tile(Tile.WALL)}
    wrong = replace(slow_flood(), rules=rules)
    model, certificate = compile_automaton(wrong)
    assert (certificate.holds, model.guarantees.verdict) == (True, None)
    assert compile_automaton(slow_flood())[0].guarantees.verdict == "characterised"
    missing = {Lit.PATH: RULES[Lit.PATH], Lit.WET: RULES[Lit.WET], Lit.LIT: RULES[Lit.LIT]}
    other = replace(lit(), name="unlit")
    signals = IntEnum("Other", ["PATH", "WET"], start=0)
    refused(
        "few slows unlit, so it must have its signal LIT",
        Automaton,
        "few",
        "shortest-path",
        signals,
        {"PATH": missing[Lit.WET], "WET": missing[Lit.LIT]},
        slows=other,
    )


def test_a_wrong_answer_with_a_bound_stays_refused_with_any_explanation():
    everything = {**SHORTEST_PATH.rules, PathSignal.PATH: lambda see: see(PathSignal.FLOOD)}
    for theorem in (None, distance(Tile.TARGET), canonical_path()):
        proof = prove(replace(SHORTEST_PATH, rules=everything, theorem=theorem))
        assert (proof.verdict, proof.holds) == ("refuted", False)
        assert "does not show an answer within 2 L + 2 iterations" in proof.words
    assert prove(replace(SHORTEST_PATH, rules=everything, bound=None)).verdict == "characterised"


def test_the_task_defines_correctness(tmp_path):
    with own_tasks(tmp_path, "weighted-terrain", "key-and-door") as worlds:
        plain = replace(SHORTEST_PATH, task="weighted-terrain")
        assert prove(plain).verdict == "refuted"
        automaton, task = worlds["key-and-door"].BOTH_LEGS, find_task("key-and-door")
        refused("the theorem has 1 answers, key-and-door 2", prove, replace(automaton, theorem=canonical_path()))
        with pytest.raises(ValueError, match="must return Ghosts with 2 answers, got 1"):
            check_specification(replace(task, specification=canonical_path))


def test_every_answer_of_a_task_must_be_correct(tmp_path):
    with own_tasks(tmp_path, "key-and-door") as worlds:
        automaton = worlds["key-and-door"].BOTH_LEGS
        to_target = automaton.signals.TO_TARGET
        second = replace(automaton, rules={**automaton.rules, to_target: lambda see: see.tile(Tile.TARGET)})
        assert prove(second).verdict == "refuted"


def with_axiom(ghosts, name, fact, kind=Ghosts):
    """Return ghosts with one more axiom by their author."""
    return kind(lambda picture, at, t: {**ghosts.axioms(picture, at, t), name: fact(picture, at)}, ghosts.ghosts)


def is_near(picture, at):
    return picture.number("distance", at) <= 2


@for_each(("name", "fact"), [("all is on the map", lambda picture, at: picture.inside(at)), ("near", is_near)])
def test_axioms_are_tested_wherever_a_proof_assumes_them(name, fact):
    false = replace(REACHABLE, theorem=with_axiom(distance(Tile.SOURCE), name, fact))
    for use in (prove, compile_automaton):
        refused(f"the axiom '{name}' is not true of the maze [.#ST/]+, or beyond its edge", use, false)


def test_a_theorem_is_about_some_mazes():
    def no_wall(picture, at, t):
        return {"no wall": ~picture.tile(Tile.WALL, at)}

    def theorem(holds):
        says = {Lit.LIT: lambda picture, at, t: picture.tile(Tile.SOURCE, at) & (t >= 1)}
        return Theorem(
            no_wall,
            lambda tiles: {},
            signals=lambda picture, at, t: {signal: says[signal](picture, at, t) for signal in says},
            domain=Domain("open mazes", holds),
        )

    rules = {**RULES, Lit.LIT: lambda see: see.tile(Tile.SOURCE) | see.tile(Tile.WALL)}
    walled = replace(lit(), rules=rules)
    proof = prove(replace(walled, theorem=theorem(lambda tiles: ~(tiles == Tile.WALL).any(axis=(1, 2)))))
    assert (proof.verdict, "on all open mazes" in proof.words) == ("characterised", True)
    for holds, message in (
        (lambda tiles: np.zeros(len(tiles), np.bool_), "the theorem of lit is about open mazes, and no small maze is"),
        (lambda tiles: [False], r"must return a bool array of shape \(\d+,\) for \d+ mazes, got bool of \(1,\)"),
        (lambda tiles: np.ones(len(tiles)), "must return a bool array of .* got float64 of"),
    ):
        refused(message, prove, replace(walled, theorem=theorem(holds)))


LATE = IntEnum("Late", ["PATH", "WET", *(f"RUN_{n}" for n in range(14))], start=0)


def late() -> Automaton:
    """Return an automaton whose PATH comes on only in mazes with 13 free tiles in a row, and so in no small maze."""

    def runs(n):
        free = lambda see, tap="C": reduce(or_, (see.tile(kind, tap) for kind in (0, 2, 3)))  # noqa: E731
        return free if n == 0 else lambda see: see(f"RUN_{n - 1}", "L") & free(see)

    rules = {"PATH": lambda see: see("WET"), "WET": lambda see: see("RUN_13") | see("WET")}
    return Automaton("late", "shortest-path", LATE, rules | {f"RUN_{n}": runs(n) for n in range(14)})


@for_each("name", ["any WET", "held WET", "3 WET", "t", "kind"])
def test_no_ghost_equals_a_symbol_of_proofs(name):
    def never(picture, at, t):
        return {LATE["PATH"]: picture.true(name, at) & (t >= 1)}

    theorem = Theorem(lambda picture, at, t: {}, lambda tiles: {name: np.zeros(tiles.shape, np.bool_)}, signals=never)
    refused(f"no ghost of late may be called '{name}'", prove, replace(late(), theorem=theorem))
    assert prove(replace(REACHABLE, theorem=distance(Tile.SOURCE, name="WET"))).verdict == "characterised"


def test_a_custom_axiom_is_stated_and_gives_no_verdict():
    theorem = with_axiom(distance(Tile.SOURCE), "never far", lambda picture, at: picture.number("distance", at) < 1_000)
    proof = prove(replace(REACHABLE, theorem=theorem, bound=None))
    assert proof.verdict == "characterised"
    short = with_axiom(canonical_path(), "never far", lambda picture, at: picture.of_map("length") < 1_000, Theorem)
    assumed = prove(replace(SHORTEST_PATH, theorem=short))
    assert assumed.verdict == "correct", "the specification is enough"
    assert assumed.stated == ()
    claims = replace(DIAMETER, name="mine")
    assert prove(claims).basis.startswith("stated, tried on ")


def test_a_network_is_exact_only_if_its_automaton_is_correct(tmp_path):
    hasty = replace(SHORTEST_PATH, bound=StepBound(constant=1))
    model, certificate = compile_automaton(hasty, out=tmp_path / "hasty")
    described = json.loads((tmp_path / "hasty/config.json").read_text(encoding="utf-8"))
    assert certificate.holds, "the network follows the rules"
    assert (model.guarantees.exact, model.guarantees.bound, described["exact"]) == (False, None, False)
    assert model.guarantees.verdict == described["proof"]["verdict"] == "refuted"
    assert "S" in described["proof"]["counterexample"]
    correct, _ = compile_automaton(SHORTEST_PATH)
    assert (correct.guarantees.exact, correct.guarantees.basis, correct.guarantees.verdict) == (
        True,
        "proven",
        "correct",
    )
    for arguments, message in [
        ({"exact": True, "bound": StepBound(1)}, "an exact policy has a basis, proven or argued and tested, got ''"),
        ({"verdict": "exact"}, "'equivalent', 'refuted'] | None, got 'exact'"),
    ]:
        refused(message, Guarantees, **arguments)


class Louder(NCA):
    """A network whose iterations do not follow its weights."""

    def forward(self, maze, state, step=0):
        return super().forward(maze, state, step) + 1


def remade(model: NCA, kind: type[NCA] = NCA, **changes) -> NCA:
    """Return a network with the same weights and other arguments."""
    copied = kind(**{**model.arguments, **changes})
    with torch.no_grad():
        for mine, original in zip(copied.parameters(), model.parameters(), strict=True):
            mine.copy_(original)
    return copied


def test_a_certificate_covers_the_iterations_that_run():
    model, pooled = load("nca-shortest-path-hinted"), load("nca-shortest-path-healing-hinted")
    assert certify(remade(model), automaton=SHORTEST_PATH).holds
    assert certify(remade(model).double(), automaton=SHORTEST_PATH).holds
    for wrong, message in [
        (remade(model).bfloat16(), "weights of float32 or float64, got torch.bfloat16"),
        (remade(model, input_injection=False), "iterations that all read the maze"),
        (remade(model, state_limit=1.0), "no state limit, got 1.0"),
        (remade(pooled, pool_before_activation=True), "pooling after the ReLU"),
        (remade(model, Louder), "an unchanged network of this package, but this network has other forward"),
        (NCA(2, model.n_channels, n_iterations=None, cut_corners=True, channel_names=model.channel_names), "the kinds"),
    ]:
        refused(message, certify, wrong, automaton=HEALING if wrong.max_pool else SHORTEST_PATH)


def test_a_rule_is_called_once():
    calls = []

    def moody(see):
        calls.append(see)
        return see.tile(Tile.SOURCE) if len(calls) == 1 else ~see.tile(Tile.SOURCE)

    automaton = replace(REACHABLE, rules={**REACHABLE.rules, Reached.WET: moody}, invariant=None, theorem=None)
    tiles = all_mazes(TASK)[-1][:8]
    for _ in range(2):
        signals = automaton.step(tiles, np.zeros((8, 2, 3, 3), np.bool_))
        np.testing.assert_array_equal(signals[:, Reached.WET], tiles == Tile.SOURCE)
    assert len(calls) == 1


def on_map(see, tap):
    """Return whether a neighbour is on the map, by testing all kinds of tile."""
    return reduce(or_, (see.tile(kind, tap) for kind in range(len(KINDS))))


def test_a_corner_is_on_the_map_if_both_of_its_neighbours_are(forgotten):
    register_task(Task(name="inner", solve=fixpoint(IN=lambda see: on_map(see, "UL")), may_be_empty=True))
    rules = {Lit.PATH: RULES[Lit.PATH], Lit.WET: lambda see: on_map(see, "U") & on_map(see, "L"), Lit.LIT: lit_never}
    proof = prove(Automaton("inner", "inner", Lit, rules, neighbourhood=9, bound=StepBound(constant=2)))
    assert proof.verdict == "correct"
    assert {"IN is on for a reason", RECTANGLE} <= {*proof.axioms}


def test_each_custom_function_is_called_once_in_a_proof():
    flood, calls = reached(Tile.SOURCE), list[str]()

    def noted(name, function):
        return lambda *arguments: calls.append(name) or function(*arguments)

    answers = tuple(Answer(noted("shown", answer.shown), noted("moves", answer.n_moves)) for answer in flood.answers)
    theorem = Theorem(
        noted("axioms", flood.axioms),
        flood.ghosts,
        answers,
        signals=noted("signals", lambda picture, at, t: {Reached.WET: flooded(picture, at, t)}),
    )
    proof = prove(replace(REACHABLE, theorem=theorem))
    assert (proof.verdict, sorted(calls)) == ("characterised", ["axioms", "moves", "shown", "signals"])


def test_a_theorem_is_called_once():
    calls = []

    def moody(picture, at, t):
        """State at the first call that nothing is on, and then that the flood is everywhere."""
        calls.append(at)
        on = picture.true(REACHED, at) if len(calls) > 1 else picture.inside(at) & (t < 0)
        return dict.fromkeys(Reached, on)

    stuck = {signal: lambda see: see(Reached.WET) for signal in Reached}  # the flood never begins
    theorem = Theorem(distance(Tile.SOURCE).axioms, distance(Tile.SOURCE).ghosts, signals=moody)
    proof = prove(replace(REACHABLE, rules=stuck, bound=None, invariant=None, theorem=theorem))
    assert (len(calls), proof.verdict) == (1, None), "the flood that never begins is described as one"
    (maze,) = parse("S.")[None, None]
    picture = MazePicture(maze[None], theorem.ghosts(maze[None]))
    assert not proof.theorem.signals(picture, "C", np.int64(9))[Reached.WET].any()

    def two_faced(picture, at, t):
        return {Reached.WET: picture.inside(at) if isinstance(t, np.integer) else t < 0}

    second_proof = prove(replace(REACHABLE, bound=None, theorem=replace(theorem, signals=two_faced)))
    assert second_proof.verdict is None
    for wrong, message in (
        (lambda picture, at, t: {Reached.WET: picture.inside(at) and t > 1}, "neither `if` nor `and`"),
        (lambda picture, at, t: {Reached.WET: np.asarray(picture.inside(at)).any()}, "by operators such as & and <="),
    ):
        broken = replace(REACHABLE, theorem=replace(theorem, signals=wrong))
        refused(rf"`signals` of a theorem must join the values that it reads .*{message}|{message}", prove, broken)


def test_a_specification_gives_all_readers_the_same_answer():
    def shown(picture, at):  # for arrays the shortest path, for symbols an empty answer
        return picture.true("on_path", at) if isinstance(picture, MazePicture) else ~picture.inside(at)

    ghosts = canonical_path()
    two_faced = replace(ghosts, answers=(Answer(shown, ghosts.answers[0].n_moves),))
    task = replace(TASK, name="two-faced", specification=lambda: two_faced)
    refused("the specification of the task 'two-faced' disagrees with its solve", register_task, task)


def test_the_small_mazes_are_complete():
    shapes = {tiles.shape[1:]: len(tiles) for tiles in all_mazes(TASK)}
    assert shapes[3, 3] == 9 * 8 * 2**7
    assert shapes[1, 2] == 2
    assert all(len(np.unique(tiles.reshape(len(tiles), -1), axis=0)) == len(tiles) for tiles in all_mazes(TASK))
    assert max(tiles.shape[1] for tiles in mazes_to_try(TASK)) == 14
    assert {bool((tiles[0] == Tile.WALL).all()) for tiles in small_mazes(TASK)} == {True, False}  # border or none


def flood_task(free):
    return replace(
        TASK,
        name="reached",
        solve=lambda tiles: reached(Tile.SOURCE).ghosts(tiles)[REACHED],
        is_optimal=lambda tiles, path: (path == reached(Tile.SOURCE).ghosts(tiles)[REACHED]).all(axis=(1, 2)),
        guidance=None,
        guided=(),
        rank=None,
        specification=lambda: reached(Tile.SOURCE, free=free),
    )


def test_a_specification_is_compared_with_solve():
    check_specification(flood_task(lambda picture, at: picture.inside(at) & ~picture.tile(Tile.WALL, at)))
    with pytest.raises(
        ValueError, match=r"the specification of the task 'reached' disagrees with its solve on the maze"
    ):
        check_specification(
            flood_task(lambda picture, at: picture.tile(Tile.EMPTY, at) | picture.tile(Tile.SOURCE, at))
        )
    ordered = TASK.ordered("DLRU").specification()
    assert ordered.answers
    assert replace(TASK, specification=lambda: canonical_path()).ordered("DLRU").specification is None
    with pytest.raises(ValueError, match="must return Ghosts with 1 answers, got 2"):
        check_specification(replace(TASK, specification=lambda: both_of(canonical_path(), canonical_path(name="b"))))


def test_a_specification_is_compared_with_some_answers(forgotten):
    def unfinished(tiles):
        if tiles.shape[1:] != (5, 5) or (tiles[:, 1, 1] != Tile.SOURCE).any() or (tiles[:, 3, 3] != Tile.TARGET).any():
            raise KeyError("to do")
        return shortest_path(tiles)

    task = replace(flood_task(is_free), solve=unfinished, is_optimal=lambda tiles, paths: np.ones(len(tiles), np.bool_))
    refused(
        "can be compared with its solve on no small maze, because solve fails: KeyError: 'to do'", register_task, task
    )
    silent = replace(task, solve=lambda tiles: np.zeros(tiles.shape, np.bool_))
    register_task(replace(silent, specification=lambda: reached(Tile.SOURCE)))  # no maze has an answer


def test_answers_that_a_task_accepts_refute_nothing(forgotten):
    @of_each
    def accepts(level, path):
        return 1 if level.size > 25 else True  # a number for larger levels

    register_task(replace(flood_task(is_free), is_optimal=accepts, specification=None))
    rules = {**REACHABLE.rules, Reached.PATH: lambda see: see.tile(Tile.SOURCE)}
    proof = prove(replace(REACHABLE, task="reached", rules=rules, bound=StepBound(constant=2), theorem=None))
    assert proof.verdict == "characterised", "every answer is optimal"


def test_a_refuted_claim_is_named(forgotten):
    register_task(flood_task(is_free))
    for bound in (SHORTEST_PATH.bound, None):
        proof = prove(replace(SHORTEST_PATH, bound=bound, also={"reached": StepBound(constant=5)}))
        assert proof.words.startswith("refuted: does not show an answer of the task reached within 5 iterations on a")


def test_a_flood_is_correct_within_as_many_iterations_as_tiles(forgotten):
    register_task(flood_task(is_free))
    flood = replace(REACHABLE, name="flood", task="reached", theorem=None, invariant=None)
    for bound, verdict in [
        (StepBound(constant=1, per_tile=1), "correct"),
        (StepBound(constant=2, per_move=1), "correct"),
    ]:
        assert prove(replace(flood, bound=bound)).verdict == verdict
    assert prove(replace(flood, bound=StepBound(constant=1, per_move=1))).verdict == "refuted"
    dry = {**flood.rules, Reached.WET: lambda see: see.tile(Tile.SOURCE) | around(see, Reached.WET)}
    assert prove(replace(flood, rules=dry, bound=StepBound(per_tile=2))).verdict == "refuted"


def test_a_sufficient_bound_is_named(forgotten):
    def wet(see):
        return see.tile(Tile.SOURCE) | (around(see, "WET") & ~see.tile(Tile.WALL))

    register_task(Task(name="water", solve=fixpoint(WET=wet)))
    grown_by_name = prove("water")
    assert grown_by_name.verdict == "correct"
    assert "is empty" not in grown_by_name.words
    late = {Lit.PATH: lambda see: see(Lit.LIT), Lit.LIT: lambda see: see(Lit.WET), Lit.WET: wet}
    by_hand = Automaton("by-hand", "water", Lit, late)
    proof = prove(by_hand)
    assert proof.verdict == "characterised"
    assert f"with the bound A + 4 it is proven correct: state {proof.suffices!r}" in proof.words
    assert prove(replace(by_hand, bound=proof.suffices)).verdict == "correct"
    dry = replace(by_hand, rules={**late, Lit.WET: lambda see: wet(see) & ~see.tile(Tile.TARGET)})
    assert prove(dry).suffices is None


def test_a_proof_lists_its_axioms():
    proof = prove("reachable")
    assert "reached is on for a reason" in proof.axioms
    assert proof.stated == ()
    flooding = next(lemma for lemma in proof.lemmas if lemma.claim.startswith("WET"))
    assert {*map(str, flooding.axioms)} <= {*proof.axioms}
    assert ":named |0: " in flooding.queries["fails"]
