"""A machine-checked proof that an automaton is right on every maze, of any size, with or without a border.

It is an induction over iterations. Suppose that after t iterations every signal of every tile has the value that a
`Theorem` states. The solver z3 then shows that the rules, applied to symbols, give the values that it states for t + 1.
This is shown for one tile that stands for all: nothing is assumed of it and the tiles around it but the axioms about
their ghosts.

The proof relies on z3 and on the axioms, which follow from the definitions of the ghosts and are tested on real mazes
(`theorem.broken_axioms`). `mistakes` compares the theorem with what the automaton does on real mazes.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from maze_nca_gym.mazes.levels import Kind, Tile, Tiles
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.files import write_all

from ...policies.neighbours import Offset
from .automaton import NEIGHBOURHOODS, Automaton
from .guessing import UNSAID, CannotTell, atoms_of, drawn, ghosts_for, guess, mazes_with, run_of, small_mazes
from .rules import Rule
from .theorem import CENTRE, MazePicture, Number, Picture, State, Theorem, Truth, moved

PATIENCE = 120.0
"""Time limit of the solver for one lemma, in seconds."""
FAR = 5
"""Largest offset of a tile that a counterexample shows."""
ROUNDS = 12
"""Largest number of guesses."""


@dataclass(frozen=True)
class Lemma:
    """A step of a proof.

    Attributes:
        claim: what it states.
        holds: whether it was proven; None if the solver gave up.
        seconds: the solver's time.
        counterexample: a picture on which it is false, as text; empty if none was found.
        kinds: the kinds of tile of this picture, by their offset; -1 beyond the edge.
        queries: what the solver was asked, in SMT-LIB with its answers as `:status`: whether what is supposed occurs
            (sat), and whether the contrary of the claim does (unsat).
    """

    claim: str
    holds: bool | None
    seconds: float
    counterexample: str = ""
    kinds: Mapping[Offset, int] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """What came of trying to prove a theorem, which may have been guessed.

    Attributes:
        lemmas: each with its result, in the order of trying.
        theorem: what is proven, if all hold.
    """

    lemmas: tuple[Lemma, ...]
    theorem: Theorem

    @property
    def holds(self) -> bool:
        """Whether all lemmas were proven."""
        return all(lemma.holds for lemma in self.lemmas)

    @property
    def refused(self) -> tuple[Lemma, ...]:
        """The lemmas that were not proven."""
        return tuple(lemma for lemma in self.lemmas if not lemma.holds)

    def export(self, folder: Path) -> None:
        """Write the queries of all lemmas to SMT-LIB files, which any solver of linear arithmetic reads.

        Raises:
            OSError: a file could not be written.
        """
        contents = {}
        for number, lemma in enumerate(self.lemmas, 1):
            name = re.sub(r"\W+", "-", lemma.claim).strip("-")
            for what, query in lemma.queries.items():
                text = f"; {lemma.claim}: {what}\n{query}"
                contents[folder / f"{number:02}-{name}-{what}.smt2"] = text.encode()
        folder.mkdir(parents=True, exist_ok=True)
        write_all(contents)


def prove(automaton: Automaton) -> Proof:
    """Prove that an automaton does on every maze what its theorem says: with answers, that what it shows is right
    within its bound.

    A theorem that does not say what signals are is guessed from runs on small mazes. A counterexample becomes another
    run if there is a maze like it, and the guess another one. Without a theorem, the ghosts of the library are tried
    one after another. Proven too is the automaton's invariant, which the certificate of a network that learned it
    assumes.

    Raises:
        ValueError: a theorem with answers and no bound in whole numbers of moves, or with more or fewer than the
            automaton; axioms that are not true of a small maze, which is drawn; or a signal that no ghost explains,
            with two tiles that it does not tell apart.
        ImportError: z3 is not installed.
    """
    theorem, bound = automaton.theorem, automaton.bound
    whole = bound is not None and not (
        bound.per_tile or bound.per_move_and_tile or bound.constant % 1 or bound.per_move % 1
    )
    if theorem is not None and theorem.answers and not whole:
        raise ValueError(f"only bounds in whole numbers of moves can be proven, got {bound}")
    if theorem is not None and theorem.answers and len(theorem.answers) != len(automaton.answers):
        raise ValueError(f"the theorem has {len(theorem.answers)} answers, {automaton.name} {len(automaton.answers)}")
    if theorem is not None:
        return _proof_of(automaton, theorem)
    reasons = []
    for ghosts in ghosts_for(automaton, bool(whole)):
        try:
            proof = _proof_of(automaton, ghosts)
        except CannotTell as error:
            reasons.append(str(error))
            continue
        if proof.holds:
            return proof
        reasons.append("; ".join(_unproven(proof)))
    raise CannotTell(f"no ghosts of the library explain {automaton.name}: {reasons[0]}")


def _unproven(proof: Proof) -> list[str]:
    """Return the claims that are not proven, and why nothing is said of some signals."""
    unsaid = [words.partition(": ")[2] for words in proof.theorem.means.values() if words.startswith(UNSAID)]
    return [*(f"not proven: {lemma.claim}" for lemma in proof.refused), *unsaid]


def _proof_of(automaton: Automaton, theorem: Theorem) -> Proof:
    """Return the proof of a theorem, or of what its signals are guessed to be, with counterexamples as further runs.

    Raises:
        CannotTell: nothing can be said of an answer.
    """
    if theorem.signals is not None:
        return Proof(tuple(_Prover(automaton, theorem).lemmas()), theorem)
    task = find_task(automaton.task)
    mazes = small_mazes(task)
    atoms = atoms_of(automaton, theorem, mazes[::10])
    runs = [run_of(automaton, theorem, atoms, tiles) for tiles in mazes]
    for run in runs:
        states = enumerate(run.signals)
        for signal in (s for t, held in states for s in _wrong_answers(automaton, theorem, run.picture, t, held)):
            maze = drawn(automaton, run.tiles).replace("/", "\n")
            claim = f"{signal.name} shows the answer on small mazes"
            return Proof((Lemma(claim, False, 0, maze),), theorem)
    for _ in range(ROUNDS):
        found = guess(automaton, theorem, runs, atoms)
        for words in (found.means.get(signal, "") for signal in automaton.answers):
            if words.startswith(UNSAID):  # else what is proven would say nothing of this answer
                raise CannotTell(words.partition(": ")[2])
        guessed = replace(automaton, theorem=found)
        proof = _proof_of(guessed, found)
        pictures = (lemma.kinds for lemma in proof.refused if lemma.kinds)
        like = (tiles for kinds in pictures for tiles in mazes_with(kinds, task, mazes))
        wrong = next((tiles for tiles in like if any(mistakes(guessed, tiles))), None)
        if wrong is None:
            break
        runs.append(run_of(automaton, theorem, atoms, wrong))
    return proof


def proof_in_words(automaton: Automaton, export: Path | None = None) -> tuple[bool, str, dict[str, str]]:
    """Prove an automaton; return whether its theorem and its invariant are proven, a sentence that says what is, or why
    there is no proof, and what each signal means, if that was guessed. The proof's queries go to a folder if one is
    given."""
    try:
        proof = prove(automaton)
        if export is not None:
            proof.export(export)
    except (ImportError, ValueError) as error:
        return False, f"not {'tried' if isinstance(error, ImportError) else 'proven'}: {error}", {}
    theorem, path = proof.theorem, automaton.signals(0)
    means = {signal.name: words for signal, words in theorem.means.items()}
    if not proof.holds:
        return False, "; ".join(_unproven(proof)), means
    shown = theorem.shown or means.get(path.name, "")
    said = [f"after t iterations PATH shows {shown}, on every maze"] if shown else []
    if theorem.answers:
        said = [f"right on every maze within {automaton.bound} iterations", *filter(None, [theorem.shown])]
    known = [] if automaton.invariant is None else [("and " if said else "") + "its invariant holds"]
    unsaid = "" if said else "; that it is right is not proven"
    return True, f"{', '.join([*said, *known])}: proven in {len(proof.lemmas)} lemmas{unsaid}", means


def second_opinion(folder: str | Path) -> dict[str, str]:
    """Ask the solver cvc5 the queries of an exported proof; return those to which it has another answer than z3, with
    its own.

    Raises:
        ValueError: the folder has no queries.
        ImportError: cvc5 is not installed.
    """
    try:
        import cvc5
    except ImportError as error:
        raise ImportError('a second opinion needs cvc5: pip install "maze-nca-gym[proof]"') from error
    files, found = sorted(Path(folder).glob("*.smt2")), {}
    if not files:
        raise ValueError(f"{folder} has no queries of a proof, *.smt2")
    for file in files:
        text, solver = file.read_text(encoding="utf-8"), cvc5.Solver()
        expected = re.search(r"\(set-info :status (\w+)\)", text)
        unbiased = text if expected is None else text.replace(expected[0], "")
        solver.setOption("tlimit-per", str(int(1000 * PATIENCE)))
        parser = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, unbiased, file.name)
        answer = ""
        while not (command := parser.nextCommand()).isNull():
            answer += command.invoke(solver, parser.getSymbolManager()).strip()
        if expected is None or answer != expected[1]:
            found[file.name] = answer
    return found


def mistakes(automaton: Automaton, tiles: Tiles) -> Iterator[tuple[IntEnum, int]]:
    """Yield (signal, t) wherever an automaton's state on a real (H, W) maze is not what its theorem states, which must
    say what signals are."""
    theorem = automaton.theorem
    assert theorem is not None
    assert theorem.signals is not None
    picture = MazePicture(tiles, theorem.ghosts(tiles))
    for t, (signals,) in enumerate(automaton.trace(tiles[None])):
        for signal, said in theorem.signals(picture, CENTRE, np.int64(t)).items():
            if (signals[signal] != said).any():
                yield signal, t
        yield from ((signal, t) for signal in _wrong_answers(automaton, theorem, picture, t, signals))


def _wrong_answers(
    automaton: Automaton, theorem: Theorem, picture: MazePicture, t: int, signals: Any
) -> Iterator[IntEnum]:
    """Yield the answers of (S, H, W) signals that show something else, or not all although it is due."""
    for signal, answer in zip(automaton.answers, theorem.answers, strict=False):
        assert automaton.bound is not None
        shown, wanted = signals[signal], answer.shown(picture, CENTRE)
        due = automaton.bound(shown.size, int(answer.n_moves(picture)))
        if (shown & ~wanted).any() or (t >= due and (shown != wanted).any()):
            yield signal


class _SymbolicPicture:
    """A picture of symbols, each made at its first use."""

    def __init__(self, z3: Any, prefix: str = "") -> None:
        self._z3, self._prefix, self.made = z3, prefix, dict[tuple[str, Offset | None], Any]()

    def _symbol(self, sort: str, name: str, at: Offset | None = None) -> Any:
        if (name, at) not in self.made:
            self.made[name, at] = getattr(self._z3, sort)(self._prefix + _placed(name, at))
        return self.made[name, at]

    def kind(self, at: Offset) -> Number:
        return self._symbol("Int", "kind", at)  # -1 is beyond the edge

    def tile(self, kind: int, at: Offset = CENTRE) -> Truth:
        return self.kind(at) == int(kind)

    def inside(self, at: Offset = CENTRE) -> Truth:
        return self.kind(at) >= 0

    def true(self, ghost: str, at: Offset = CENTRE) -> Truth:
        return self._symbol("Bool", ghost, at) & self.inside(at)

    def number(self, ghost: str, at: Offset = CENTRE, when: Number | None = None) -> Number:
        return self._symbol("Int", ghost, at) if when is None else self._changing(_placed(ghost, at), when)

    def of_map(self, ghost: str, when: Number | None = None) -> Number:
        return self._symbol("Int", ghost) if when is None else self._changing(ghost, when)

    def _changing(self, name: str, when: Number) -> Number:
        return self._z3.Function(self._prefix + name, self._z3.IntSort(), self._z3.IntSort())(when)


def _placed(name: str, at: Offset | None) -> str:
    return name if at is None else f"{name} {at[0]} {at[1]}"


class _See:
    """A view of a picture for rules at a tile."""

    def __init__(self, picture: Picture, state: State, at: Offset = CENTRE) -> None:
        self._picture, self._state, self._at = picture, state, at

    def __call__(self, signal: IntEnum, tap: str = "C") -> Truth:
        return self._state(moved(self._at, tap))[signal]

    def tile(self, kind: int, tap: str = "C") -> Truth:
        return self._picture.tile(kind, moved(self._at, tap))


class _Prover:
    def __init__(self, automaton: Automaton, theorem: Theorem) -> None:
        maps = Path("/proc/self/maps")
        if "z3" not in sys.modules and maps.exists() and "/libz3." in maps.read_text(errors="replace"):
            # C++ shares some symbols of both whatever the loader is told, and z3 then ends the process
            raise ImportError(
                "another z3 is loaded in this process, as by LLVM when a window opens: import z3 before that"
            )
        try:
            import z3
        except ImportError as error:
            raise ImportError('a proof needs z3: pip install "maze-nca-gym[proof]"') from error
        self._z3 = z3
        self._automaton, self._theorem, self._n_unsaid = automaton, theorem, 0
        self._places = [moved(CENTRE, tap) for tap in automaton.taps]
        self.picture = _SymbolicPicture(self._z3)
        self.t = self.picture.of_map("t")
        self._axioms = [self.t >= 0, *self._axioms_of(self.picture)]

    def _axioms_of(self, picture: _SymbolicPicture) -> list[Truth]:
        facts = [fact for at in self._places for fact in self._theorem.axioms(picture, at, self.t).values()]
        for at in self._places:
            picture.kind(at)  # is made, even if no axiom reads it
        kinds = [symbol for (name, _), symbol in picture.made.items() if name == "kind"]
        return [*(fact for kind in kinds for fact in (kind >= -1, kind < len(self._automaton.kinds))), *facts]

    def maze(self, name: str) -> _SymbolicPicture:
        """Return another maze of the same size, see `Steps`."""
        picture = _SymbolicPicture(self._z3, f"{name} ")
        self._axioms += self._axioms_of(picture)
        places = [at for ghost, at in picture.made if ghost == "kind" and at is not None]
        self._axioms += [picture.inside(at) == self.picture.inside(at) for at in places]
        return picture

    def state(self, name: str) -> State:
        """Return any state, see `Steps`."""

        def holds(signal: IntEnum, at: Offset) -> Truth:
            where = None if signal in self._automaton.everywhere else at
            return self._z3.Bool(_placed(f"{name} {signal.name}", where)) & self.picture.inside(at)

        return cache(lambda at: {signal: holds(signal, at) for signal in self._automaton.signals})

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration, see `Steps`."""
        used = (self._automaton.rules if rules is None else rules).items()
        return cache(lambda at: {signal: picture.inside(at) & rule(_See(picture, state, at)) for signal, rule in used})

    def said(self, picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        """Return what the theorem says, see `Steps`; of other signals, anything, and each time something else."""
        said = self._said(picture, at, t)
        self._n_unsaid += 1
        return said if len(said) == len(self._automaton.signals) else {**self.state(f"{self._n_unsaid}")(at), **said}

    def _said(self, picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        assert self._theorem.signals is not None
        return self._theorem.signals(picture, at, t)

    def invariant(self, picture: Picture, state: State) -> Truth:
        """Return whether the invariant is true of the centre, see `Steps`."""
        assert self._automaton.invariant is not None
        return self._automaton.invariant(_See(picture, state))

    def lemmas(self) -> Iterator[Lemma]:
        """Yield the steps of the proof."""
        z3, picture, theorem, rules = self._z3, self.picture, self._theorem, self._automaton.rules
        inside, t, path, bound = picture.inside(), self.t, self._automaton.signals(0), self._automaton.bound
        answers: dict[IntEnum, tuple[Truth, Truth]] = {}
        for signal, answer in zip(self._automaton.answers, theorem.answers, strict=False):
            assert bound is not None
            # after the next iteration
            due = t + 1 >= int(bound.constant) + int(bound.per_move) * answer.n_moves(picture)
            answers[signal] = answer.shown(picture, CENTRE), due
        first, now, after = (self._said(picture, CENTRE, when) for when in (z3.IntVal(0), t, t + 1))
        # contradictory axioms would prove anything
        happens = z3.And(*(wanted & due for wanted, due in answers.values())) if answers else now.get(path, inside)
        yield self._lemma("the axioms allow a path", z3.BoolVal(True), inside, happens)
        if now:
            yield self._lemma("no signal is on at first", z3.Not(z3.Or(*first.values())), inside)
            yield self._lemma("no signal is on beyond the edge", z3.Not(z3.Or(*now.values())), ~inside)
        anything = self.state("any")  # for signals of which nothing is said
        see = _See(picture, cache(lambda at: {**anything(at), **self._said(picture, at, t)}))
        for signal, said in after.items():
            claim = f"{signal.name} is what the theorem says"
            if signal is not self._automaton.pooled:
                yield self._lemma(claim, rules[signal](see) == said, inside)
                continue
            # any tile shows that none switches it on; that one does needs a tile that every maze has
            yield self._lemma(claim, z3.Implies(rules[signal](see), said), inside)
            there = [self._said(picture, at, t)[signal] == now[signal] for at in self._places]
            alike = [z3.Implies(picture.inside(at), same) for at, same in zip(self._places, there, strict=True)]
            yield self._lemma(f"{signal.name} is the same everywhere", z3.And(*alike), inside)
            some = picture.tile(Tile.SOURCE) if find_task(self._automaton.task).has_endpoints else inside
            switched = z3.Implies(said, rules[signal](see))
            yield self._lemma(f"{signal.name} is switched on at some tile", switched, some, inside)
        for signal, (wanted, due) in answers.items():
            shown = rules[signal](see)
            yield self._lemma(f"{signal.name} shows nothing but the answer", z3.Implies(shown, wanted), inside)
            yield self._lemma(f"{signal.name} shows all of it within the bound", shown == wanted, inside, due)
        if self._automaton.invariant is not None and now:
            held = {**{signal: rule(see) for signal, rule in rules.items()}, **after, path: rules[path](see)}
            yield self._lemma("the invariant holds", self.invariant(picture, lambda at: held), inside)
        for words, given, then in theorem.further(self):
            yield self._lemma(words, z3.And(*then), inside, *given)

    def _lemma(self, claim: str, statement: Truth, *given: Truth) -> Lemma:
        z3, began, queries = self._z3, time.perf_counter(), {}

        def asked(what: str, *facts: Truth) -> tuple[Any, Any]:
            solver = self._solver(*facts)
            found = solver.check()
            text = solver.to_smt2().replace("(set-info :status unknown)", f"(set-info :status {found})")
            queries[what] = text.replace("; benchmark generated from python API\n", "(set-logic ALL)\n")
            return solver, found

        _, supposed = asked("occurs", *given)
        if supposed != z3.sat:  # if nobody knows whether it occurs, nothing is proven of it
            never = supposed == z3.unsat
            words = "what it supposes never occurs" if never else ""
            return Lemma(claim, False if never else None, time.perf_counter() - began, words, queries=queries)
        solver, found = asked("fails", *given, z3.Not(statement))
        of_task = find_task(self._automaton.task).kinds
        kinds, drawn = _draw(self.picture, solver.model(), of_task) if found == z3.sat else ({}, "")
        holds = None if found == z3.unknown else found == z3.unsat
        near = {at: kinds[at] for at in self._places if at in kinds}  # of others no axiom says what they may be
        return Lemma(claim, holds, time.perf_counter() - began, drawn, near, queries)

    def _solver(self, *facts: Truth) -> Any:
        solver = self._z3.Solver()
        solver.set("timeout", int(1000 * PATIENCE))
        solver.add(*self._axioms, *facts)
        return solver


def _draw(picture: _SymbolicPicture, model: Any, of_task: Sequence[Kind]) -> tuple[dict[Offset, int], str]:
    """Return the kinds of tile of a counterexample, and all of it as text.

    First come the tiles, `?` for any kind and a space beyond the edge, then the numbers of the map, then the ghosts of
    the tile in the middle and its neighbours.
    """

    def value(symbol: Any) -> str:
        return str(model.eval(symbol, model_completion=True))

    drawn = {at: symbol for (name, at), symbol in picture.made.items() if name == "kind" and at is not None}
    kinds = {at: int(value(symbol)) for at, symbol in drawn.items() if max(map(abs, at)) <= FAR}  # some may be anywhere
    reach = max(abs(step) for at in kinds for step in at)
    span = range(-reach, reach + 1)
    glyphs = {-1: " ", **{number: kind.letter for number, kind in enumerate(of_task)}}
    rows = ["".join(glyphs.get(kinds[row, col], "?") if (row, col) in kinds else "?" for col in span) for row in span]
    numbers = ", ".join(f"{name} {value(symbol)}" for (name, at), symbol in picture.made.items() if at is None)
    lines = []
    for tap in NEIGHBOURHOODS[5]:
        place = moved(CENTRE, tap)
        ghosts = {name: value(s) for (name, at), s in picture.made.items() if at == place and name != "kind"}
        told = [name if truth == "True" else f"{name} {truth}" for name, truth in ghosts.items() if truth != "False"]
        lines.append(f"{tap}: {', '.join(told)}")
    return kinds, "\n".join([*rows, numbers, *lines])
