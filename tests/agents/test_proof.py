"""Proofs that automata are correct: axioms compared with real mazes, correct rules, and wrong rules."""

import re
import subprocess
import sys
from ctypes.util import find_library
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from maze_nca_gym.agents import compile_automaton
from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.automata.proving.proof import mistakes, prove, second_opinion
from maze_nca_gym.agents.automata.proving.prover import Prover
from maze_nca_gym.agents.automata.shipped.both import BOTH
from maze_nca_gym.agents.automata.shipped.diameter import DIAMETER
from maze_nca_gym.agents.automata.shipped.diameter import S as D
from maze_nca_gym.agents.automata.shipped.gallery import (
    DEAD_ENDS,
    FIRST_PASSAGE,
    HEADS,
    LIFE,
    REACHABLE,
    WALL_FOLLOWER,
    Filling,
    Following,
    Living,
    Passing,
    Reached,
)
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.automata.shipped.healing import S as H
from maze_nca_gym.agents.automata.shipped.shortest_path import CANONICAL, SHORTEST_PATH, PathSignal
from maze_nca_gym.agents.automata.theorem import Claim, Theorem
from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.mazes.arrays import broken_axioms
from maze_nca_gym.mazes.facts import at_least
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import Tile, parse
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.mazes.rules import any_on, around
from maze_nca_gym.mazes.solvers import distances, shortest_path
from maze_nca_gym.mazes.tasks import find_task
from tests.agents.expected_theorems import expected
from tests.tables import for_each, refused, some_and_all

WITH_THEOREMS = [automaton for automaton in AUTOMATA.values() if automaton is not BOTH]


def real_mazes(task="shortest-path", size=7):
    """Yield mazes of several kinds. In some, the target cannot be reached."""
    rng = np.random.default_rng(7)
    for generator in ("random", "perfect", "loops"):
        for border in (True, False):
            yield from find_task(task).prepare(generate(rng, 2, size, generator, border=border))
    levels = (parse(drawing) for drawing in ("S#T", "ST", "T.S\n.#.", "S.#..\n#####\n..#.T"))
    yield from (find_task(task).prepare(tiles[None])[0] for tiles in levels)


@cache
def proof_of(automaton):
    return prove(automaton)


OWN_TESTS = "shortest-path-any-state"  # tested in test_any_state.py
LONGER = ("shortest-path-asynchronous", "wall-follower")
"""Automata whose proofs take seconds. Other automata use the same parts of the prover."""
ORDERED = [
    *(automaton for automaton in WITH_THEOREMS if automaton.name not in (OWN_TESTS, *LONGER)),
    SHORTEST_PATH.ordered("DLRU"),
]


@some_and_all("automata", ORDERED, [DIAMETER.ordered("LURD"), *(AUTOMATA[name] for name in LONGER)])
def test_the_automaton_is_proven_correct_on_every_maze(automata):
    for automaton in automata:
        proof = proof_of(automaton)
        assert proof.holds, [(lemma.claim, lemma.counterexample) for lemma in proof.refused]
        correct = ("shortest-path", "shortest-path-healing", "both")
        assert (proof.verdict == "correct") == (split_order(automaton.name)[0] in correct)
        # every rule has a lemma, except for the diameter, where only the invariant is proven
        claims = " ".join(lemma.claim for lemma in proof.lemmas)
        assert all(signal.name in claims for signal in automaton.signals) != automaton.name.startswith("diameter")
        theorem = proof.theorem
        n_steps = 1 if theorem.answers else 20  # ghosts that change have axioms for every iteration
        for tiles in real_mazes(automaton.task, size=4 if automaton.task.startswith("diameter") else 7):
            assert not broken_axioms(theorem, tiles[None], n_steps)
            assert not list(mistakes(replace(automaton, theorem=theorem), tiles))


@for_each("automaton", [automaton for automaton in AUTOMATA.values() if automaton.invariant is not None])
def test_the_invariant_is_true_of_real_mazes(automaton):
    for tiles in real_mazes(automaton.task, size=4):
        for signals in automaton.trace(tiles[None]):
            assert automaton.invariant.read_by(automaton.reader(tiles[None])(signals)).all()


def test_ghosts_of_the_diameter_describe_a_flood_from_a_farthest_tile():
    for tiles in real_mazes("diameter"):
        ghosts = {name: value[0] for name, value in DIAMETER.theorem.ghosts(tiles[None]).items()}
        for start, far in zip(np.argwhere(ghosts["ends"]), np.argwhere(ghosts["fars"]), strict=True):
            assert distances(tiles, start).max() == distances(tiles, start)[tuple(far)]
            np.testing.assert_array_equal(ghosts["distance"], distances(tiles, far))


def test_in_a_tree_only_the_path_remains():
    for tiles in generate(np.random.default_rng(3), 8, 7, "perfect"):
        ghosts = DEAD_ENDS.theorem.ghosts(tiles[None])
        np.testing.assert_array_equal(ghosts["kept"][0], shortest_path(tiles))


def test_no_dead_end_is_on_the_path():
    for tiles in real_mazes():
        assert not (shortest_path(tiles[None]) & ~DEAD_ENDS.theorem.ghosts(tiles[None])["kept"]).any()


def through_walls(see):
    return CANONICAL.end(see, "C") | see(PathSignal.FLOOD) | around(see, PathSignal.FLOOD)


def any_arrival(see):
    return (see(PathSignal.NEAR_U) | see(PathSignal.FLOOD, "U")) & ~see.tile(Tile.WALL)


def from_every_side(see):
    return CANONICAL.on_path(see, "D") & see(PathSignal.NEAR_L, "D")


def fills_corridors(see):
    closed = [see.tile(Tile.WALL, towards) | see(Filling.FILLED, towards) for towards in "ULDR"]
    return see.tile(Tile.EMPTY) & (see(Filling.FILLED) | at_least(2, closed))


def born_of_two(see):
    return at_least(2, [see(Living.LIVE, tap) for tap in LIFE.taps if tap != "C"]) | see.tile(Tile.WALL)


def never_stops(see):
    # the walker also leaves the target if its way is open
    return WALL_FOLLOWER.rules[HEADS["L"]](see) | (see.tile(Tile.TARGET, "R") & see(HEADS["L"], "R"))


def never(see):
    return see(H.ALARM) & ~see(H.ALARM)


def refused_lemmas(automaton):
    """Return the lemmas about a written theorem that do not hold, regardless of runs on mazes."""
    return [lemma for lemma in Prover(automaton, automaton.theorem).lemmas() if not lemma.holds]


def check_refused(automaton, signal, rule, refused):
    wrong = replace(expected(automaton), rules={**automaton.rules, signal: rule})
    proof = prove(wrong)
    if proof.verdict == "correct":  # the proof covers only mazes that do not change, where healing is unnecessary
        assert automaton is HEALING
        assert f"not proven: {refused}" in proof.words
    else:
        assert proof.verdict in (None, "refuted")
    (lemma,) = [lemma for lemma in refused_lemmas(wrong) if lemma.claim.startswith(refused)]
    assert lemma.holds is False
    assert any(glyph in lemma.counterexample for glyph in ".#ST")
    assert len(lemma.counterexample.splitlines()[0]) > 2 * max(
        abs(step) for at in lemma.kinds for step in offsets(at)[0]
    )


WRONG_RULES = [
    (HEALING, H.ORPHAN, never, "no flood is left if the target has moved"),
    (SHORTEST_PATH, PathSignal.FLOOD, through_walls, "FLOOD is what the theorem says"),
    (SHORTEST_PATH, PathSignal.NEAR_U, any_arrival, "NEAR_U is what the theorem says"),
    (SHORTEST_PATH, PathSignal.ENTER_U, from_every_side, "ENTER_U is what the theorem says"),
    (SHORTEST_PATH, PathSignal.PATH, CANONICAL.on_path, "PATH shows nothing but the answer"),
    (
        SHORTEST_PATH,
        PathSignal.PATH,
        lambda see: see(PathSignal.FLOOD) & any_on(see, CANONICAL.enter),
        "PATH shows all",
    ),
    (DIAMETER, D.LAUNCH, lambda see: see(D.WAIT) & ~see(D.SKIP) & see(D.OVER), "waves, the walker and the token"),
    (DIAMETER, D.SCOUT, lambda see: DIAMETER.rules[D.SCOUT](see) | see(D.BACK), "waves, the walker and the token"),
    (DIAMETER, D.TOKEN, lambda see: DIAMETER.rules[D.TOKEN](see) | see(D.TOKEN), "waves, the walker and the token"),
    (DIAMETER, D.MARK, lambda see: see(D.END) & see(D.BETTER), "BETTER begins another flood and path"),
    (DIAMETER, D.NEAR_U, lambda see: DIAMETER.rules[D.NEAR_L](see), "so do the flood and its path"),
    (REACHABLE, Reached.WET, lambda see: see.tile(Tile.SOURCE) | around(see, Reached.WET), "WET is what"),
    (REACHABLE, Reached.PATH, lambda see: see(Reached.WET) & ~see.tile(Tile.TARGET), "PATH is what"),
    (DEAD_ENDS, Filling.FILLED, fills_corridors, "FILLED is what"),
    (LIFE, Living.LIVE, born_of_two, "LIVE is what"),
    (FIRST_PASSAGE, Passing.FRONT, lambda see: around(see, Passing.FRONT) & ~see(Passing.SEEN), "FRONT is what"),
    (WALL_FOLLOWER, HEADS["L"], WALL_FOLLOWER.rules[HEADS["R"]], "HEADS_L is what"),
    (WALL_FOLLOWER, HEADS["L"], never_stops, "HEADS_L is what"),
    (WALL_FOLLOWER, Following.TRAIL, lambda see: any_on(see, HEADS.values()), "TRAIL is what"),
]


@some_and_all("rows", WRONG_RULES[4::4], WRONG_RULES)
def test_wrong_rules_are_refused_with_a_maze(rows):
    for row in rows:
        check_refused(*row)


@pytest.mark.slow
@for_each(
    ("signal", "rule", "refused"),
    [
        (H.OPENED, never, "where no check fails, no distance shrinks"),
        (H.MANY_V, never, "so the flood is that of the next maze"),
        (H.MANY_H, never, "so it begins with the next maze"),
        (H.ALARM, never, "a check that fails raises the alarm"),
        (H.NEAR_L, lambda see: HEALING.rules[H.NEAR_L](see) | see(H.NEAR_L), "a reset leaves nothing but walls"),
        (H.ENTER_U, lambda see: HEALING.rules[H.ENTER_U](see) | see(H.ENTER_U), "what is left of it runs out"),
    ],
)
def test_healing_needs_each_of_its_parts(signal, rule, refused):
    check_refused(HEALING, signal, rule, refused)


def test_another_order_is_another_automaton():
    ordered, other = (SHORTEST_PATH.ordered(order) for order in ("DLRU", "DLUR"))
    assert [signal.name for signal in ordered.signals][2:5] == ["NEAR_D", "NEAR_L", "NEAR_R"]
    assert ordered.channels != other.channels
    of_another = replace(other, theorem=proof_of(ordered).theorem)
    assert any(list(mistakes(of_another, tiles)) for tiles in real_mazes())


@pytest.mark.slow  # the solver takes from 5 to 40 seconds
def test_healing_is_proven_in_another_order_and_the_rules_of_a_third_are_refused():
    assert prove(HEALING.ordered("RUDL")).holds
    proof = prove(replace(HEALING.ordered("DLRU"), rules=HEALING.ordered("DLUR").rules))
    assert all(lemma.claim.startswith("ENTER_") for lemma in proof.refused[:2])
    assert proof.refused


@for_each(
    ("automaton", "change", "refused"),
    [
        (SHORTEST_PATH, {"bound": StepBound(constant=1, per_move=2)}, "PATH shows all of it within the bound"),
        (
            SHORTEST_PATH,
            {"invariant": lambda see: ~see(PathSignal.FLOOD) | ~see(PathSignal.NEAR_U)},
            "the invariant holds",
        ),
        (DIAMETER, {"invariant": lambda see: ~see(D.TICK) | ~see(D.SCOUT)}, "the invariant holds where all is so"),
        (WALL_FOLLOWER, {"invariant": lambda see: ~see(HEADS["U"]) | see(Following.TRAIL)}, "the invariant holds"),
    ],
)
def test_a_bound_too_small_and_a_wrong_invariant_are_refused(automaton, change, refused):
    assert [lemma.claim for lemma in refused_lemmas(replace(expected(automaton), **change))] == [refused]


def test_it_heals_within_the_bound_that_is_stated():
    rng, mazes = np.random.default_rng(3), generate(np.random.default_rng(3), 60, 5, "random", border=False)
    for maze in mazes[40:]:
        signals = np.zeros((1, len(H), *maze.shape), np.bool_)
        for other in mazes[rng.integers(0, 40, 4)]:
            for _ in range(rng.choice([1, 1, 2, 40])):
                signals = HEALING.step(other[None], signals)
        path, farthest = shortest_path(maze[None]), distances(maze, np.argwhere(maze == Tile.TARGET)[0]).max()
        for _ in range(max(2 * (path.sum() - 1) + 9, farthest + 4)):
            signals = HEALING.step(maze[None], signals)
        for _ in range(3):
            np.testing.assert_array_equal(signals[:, H.PATH], path)
            signals = HEALING.step(maze[None], signals)


def test_contradictory_assumptions_prove_nothing():
    theorem = expected(SHORTEST_PATH).theorem

    def further(steps):
        yield Claim("nothing", [steps.t < 0], [steps.t < 0])

    (lemma,) = prove(replace(SHORTEST_PATH, theorem=replace(theorem, further=further))).refused
    assert lemma.counterexample == "what it supposes never occurs"


@for_each("unknown", ["sat", "unsat"])  # of the check of assumptions, and of the check of a claim
def test_unknown_answers_prove_nothing(unknown):
    import z3

    class GivesUp(z3.Solver):
        """A solver that does not find one of two answers."""

        def check(self):
            return z3.unknown if (answer := super().check()) == getattr(z3, unknown) else answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(z3, "Solver", GivesUp)
        gave_up = prove(expected(SHORTEST_PATH))
    assert {lemma.holds for lemma in gave_up.lemmas} == {None}
    assert gave_up.verdict is None


def test_axioms_that_contradict_each_other_prove_nothing():
    theorem = expected(SHORTEST_PATH).theorem
    assert isinstance(theorem, Theorem)

    def contradictory(picture, at, t):
        return {**theorem.axioms(picture, at, t), "no": ~theorem.answers[0].shown(picture, at)}

    wrong = replace(SHORTEST_PATH, theorem=replace(theorem, axioms=contradictory))
    assert "the axioms allow a path" in [lemma.claim for lemma in refused_lemmas(wrong)]
    refused("the axiom 'no' is not true of the maze", prove, wrong)
    assert broken_axioms(replace(theorem, axioms=contradictory), parse("S.T")[None]) == {"no": 0}


def test_proofs_are_summarised_in_a_sentence():
    for automaton, verdict, words in [
        (
            SHORTEST_PATH,
            "correct",
            "correct: shows the answer of the task shortest-path within 2 L + 2 iterations, on every",
        ),
        (DIAMETER, None, "no value of a signal is proven; the answer of the task diameter on "),
        (
            LIFE,
            "characterised",
            "characterised: the values of 3 of 3 signals at any time t, on every maze; proven in 7 lemmas",
        ),
    ]:
        assert proof_of(automaton).verdict == verdict
        assert proof_of(automaton).words.startswith(words)
        assert repr(proof_of(automaton)) == f"<Proof of {automaton.name}: {proof_of(automaton).words}>"
    means = {signal.name: words for signal, words in proof_of(SHORTEST_PATH).theorem.means.items()}
    assert means["FLOOD"] == "from t = 1 + distance"
    assert "PATH is on lives(t - 2)" in proof_of(LIFE).words
    assert "its bound is argued and tested" in proof_of(DIAMETER).words
    assert proof_of(DIAMETER).basis == "argued and tested"
    assert not proof_of(DIAMETER).invariant


def test_unprovable_automata_give_a_reason(monkeypatch):
    wrong = prove(replace(SHORTEST_PATH, bound=StepBound(constant=1, per_move=2)))
    assert (wrong.verdict, wrong.holds, wrong.lemmas) == ("refuted", False, ())
    assert "does not show an answer within 2 L + 1 iterations" in wrong.words
    assert {"S", "T"} <= {*wrong.counterexample}
    refused("an automaton must be a name or an Automaton, got 5", prove, 5)
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(ImportError, match=r"maze-nca-gym\[proof\]"):
        prove(SHORTEST_PATH)
    assert compile_automaton(REACHABLE)[0].guarantees.verdict == "equivalent", "the network needs no proof"
    monkeypatch.setitem(sys.modules, "cvc5", None)
    with pytest.raises(ImportError, match=r"maze-nca-gym\[proof\]"):
        second_opinion(".")


@pytest.mark.usefixtures("forgotten")
def test_the_code_of_pages_prints_the_text_of_their_comments(capsys):
    """The code of the pages is one program, in this order."""
    namespace, comments = dict[str, object](), list[str]()
    for name in ("write-a-rule", "prove-a-rule", "automata", "ghosts", "any-order", "verdicts", "worlds"):
        page = (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
        comments += re.findall(r"^(?:print\(.*\)  )?# (.*)", code, re.MULTILINE)
        exec(code, namespace)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(comments)
    assert [line for line, comment in zip(printed, comments, strict=True) if not comment.startswith(line)] == []


def test_a_second_z3_in_the_process_is_reported_before_a_crash():
    code = """
import ctypes
ctypes.CDLL("libz3.so.4", mode=ctypes.RTLD_GLOBAL)
from maze_nca_gym.agents.automata import AUTOMATA, prove
try:
    prove(AUTOMATA["shortest-path"])
except ImportError as error:
    print(error)
"""
    if find_library("z3") != "libz3.so.4":
        pytest.skip("install the z3 of LLVM: Debian's libz3-4")
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "import z3 first" in child.stdout


AT_ONCE = """
import gc
import threading
import z3
from maze_nca_gym.agents import compile_automaton
from maze_nca_gym.agents.automata import AUTOMATA, prove
from maze_nca_gym.agents.automata.kernel.lemmas import printed_theorem

gc.set_threshold(50)  # expressions of one thread are often freed by another
printed = [prove("first-passage")]
calls = {
    "first-passage": lambda: prove("first-passage").verdict,
    "reachable": lambda: prove("reachable").verdict,
    "network": lambda: compile_automaton("reachable")[0].guarantees.verdict,
    "theorem": lambda: "Definition its_lemmas" in printed_theorem(printed[0]),
}
found = {}
threads = [threading.Thread(target=lambda n=n: found.update({n: calls[n]()})) for n in calls]
x, solver = z3.Int("x"), z3.Solver()
solver.add(x > 2)
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):  # a user's own solver, in the context that z3 has anyway
    solver.push()
    solver.add(z3.Or(x < 3, x * x == 16))
    assert solver.check() == z3.sat and solver.model()[x].as_long() == 4
    solver.pop()
print(*(found[name] for name in calls))
"""


def test_threads_prove_at_once_beside_a_solver_of_the_user():
    child = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (0, "characterised characterised characterised True\n"), child.stderr
