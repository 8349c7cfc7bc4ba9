"""Machine-checked proofs that an automaton is correct on every maze of any size, with or without a border.

The task's `specification` defines the correct answers, in terms of ghosts (facts about the maze that no tile stores,
such as distances). `prove` guesses the value of each signal after t iterations in terms of the same ghosts. The solver
z3 then checks an induction over iterations in small steps, the *lemmas* (`prover`).

A proof relies on z3, on the induction that joins the lemmas, and on the axioms of the library (`mazes.relations`),
which follow from the definitions of the ghosts. If the automaton's author assumes further axioms, `prove` tests them on
small mazes, and the proof lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from functools import partial
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from maze_nca_gym.mazes.arrays import MazePicture, broken_axioms
from maze_nca_gym.mazes.facts import (
    CENTRE,
    Axiom,
    Axioms,
    Ghosts,
    Number,
    Picture,
    Place,
    Truth,
    World,
    answer_read_once,
    axiom_of,
    read_once,
)
from maze_nca_gym.mazes.levels import Tiles, to_text
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.mazes.relations import Fixpoint, has_known_axioms, known_axioms
from maze_nca_gym.mazes.small import MOST_OF_LIBRARY, all_mazes, kinds_once, mazes_to_try, small_mazes
from maze_nca_gym.mazes.tasks import TASKS, Task, check_specification
from maze_nca_gym.support.files import user_path, write_all

from ...policies.guarantees import StepBound, Verdict
from ..automaton import Automaton, NeverAtRest, scaled
from ..growing import with_stages
from ..registry import AUTOMATA, find_automaton
from ..search.guessing import atoms_of, ghosts_for, guess, mazes_with, run_of
from ..search.trial import Trial, tried
from ..theorem import Theorem
from .prover import Lemma, Prover, is_symbol

ROUNDS = 12
"""Largest number of times that the values of a theorem's signals are guessed."""
LEAST, MOST_OF_LEAST = 6, 600
"""The values of signals are guessed from runs on random mazes and on all mazes of at most `LEAST` tiles. If a shape has
more than `MOST_OF_LEAST` mazes, some are left out."""
PATIENCE = 120.0
"""Time limit of cvc5 for one query, in seconds."""
STATUS = re.compile(r"\(set-info :status (\w+)\)")
"""The part of a query that contains the answer of z3, such as `unsat`."""
N_STEPS = 20
"""Number of iterations for which axioms about ghosts that change are tested."""
ARGUED = ("diameter", "both", "shortest-path-asynchronous", "shortest-path-any-state")
"""Automata of this package with an invariant or bound that their module argues and tests confirm. The tests run
`diameter` and `both` on all mazes of up to 3 x 4 tiles, `shortest-path-asynchronous` on all mazes of 2 x 3 tiles under
every schedule, and `shortest-path-any-state`, whose sequence of bits the proof assumes, on all mazes of 3 x 3 tiles."""


NOTHING = Theorem(lambda picture, at, t: {}, lambda tiles: {}, signals=lambda picture, at, t: {})
"""The theorem that states nothing."""


def is_argued(automaton: Automaton) -> bool:
    """Return whether an automaton is an unchanged automaton of this package with published arguments and tests
    (`ARGUED`)."""
    shipped = AUTOMATA.ships(automaton.name) and AUTOMATA[automaton.name] is automaton
    return shipped and split_order(automaton.name)[0] in ARGUED


@dataclass(frozen=True, repr=False)
class Proof:
    """The result of `prove`.

    Attributes:
        automaton: the automaton.
        theorem: the theorem, which is proven if all lemmas hold.
        lemmas: the lemmas with their results, in the order in which they were tried.
        trials: the results of running the automaton on small mazes, one for each task for which it has a bound.
        specified: whether the theorem's answers are the answers of the task's specification.
        on: the graphs for which the theorem is proven, one of `facts.WORLDS`.
        worth: a note in words, or empty: the ghosts that describe the signals say little, or nothing was proven because
            the automaton never comes to rest although its author states that it `settles`.
        suffices: a bound with which the automaton is proven correct, if its own bound is too small or missing.
        asked: the digest of the task's question at the time of the proof (`Task.digest`); empty while the proof is
            made.
    """

    automaton: Automaton
    theorem: Theorem
    lemmas: tuple[Lemma, ...]
    trials: tuple[Trial, ...] = ()
    specified: bool = False
    on: World = "grids"
    worth: str = ""
    suffices: StepBound | None = None
    asked: str = ""

    @property
    def lost(self) -> str:
        """The reason for which the proof is no longer valid, in words: the task was registered again with another
        question. Empty if the proof is valid."""
        task = TASKS.get(self.automaton.task)
        if not self.asked or (task is not None and task.digest == self.asked):
            return ""
        return f"the task {self.automaton.task} is not the one of the proof any more: its rules or kinds of tile differ"

    @property
    def holds(self) -> bool:
        """Whether there are lemmas, all of them are proven, no maze refutes the automaton, and the proof is not
        `lost`."""
        every = bool(self.lemmas) and all(lemma.holds for lemma in self.lemmas)
        return every and not self.counterexample and not self.lost

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the rules: "correct", "characterised" or "refuted". None if none of these is proven, or if
        another task was registered under the name of the proof's task."""
        if self.lost:
            return None
        if self.counterexample:
            return "refuted"
        of_rules = [lemma for lemma in self.lemmas if lemma.about in ("axioms", "signal", "everywhere", "answer")]
        about = {lemma.about for lemma in of_rules}
        if not all(lemma.holds for lemma in of_rules) or not about & {"signal", "answer"}:
            return None
        earned = self.specified and "answer" in about and not self.stated and self.theorem.domain is None
        return "correct" if earned else "characterised"

    @property
    def invariant(self) -> bool:
        """Whether the automaton's invariant is proven by lemmas that use no axiom of its author."""
        needed = [lemma for lemma in self.lemmas if lemma.about in ("axioms", "everywhere", "signal", "invariant")]
        proven = all(lemma.holds for lemma in needed) and not self.stated
        return proven and any(lemma.about == "invariant" for lemma in needed)

    @property
    def axioms(self) -> tuple[str, ...]:
        """The axioms that the lemmas use, in words."""
        return tuple(sorted({str(axiom) for lemma in self.lemmas for axiom in lemma.axioms}))

    @property
    def stated(self) -> tuple[str, ...]:
        """The names of the axioms that the automaton's author assumes and nothing proves."""
        return tuple(sorted({axiom.name for lemma in self.lemmas for axiom in lemma.axioms if axiom.stated}))

    @property
    def refused(self) -> tuple[Lemma, ...]:
        """The lemmas that were not proven."""
        return tuple(lemma for lemma in self.lemmas if not lemma.holds)

    @property
    def counterexample(self) -> str:
        """A maze on which the automaton outputs a wrong answer, as text. Empty if no such maze was found."""
        return next((trial.drawing for trial in self.trials if trial.wrong is not None), "")

    @property
    def _refuted_claim(self) -> str:
        """The claim that the counterexample refutes, in words: a bound, and its task if that is one of `also`."""
        automaton = self.automaton
        claims = [("", automaton.bound), *((f"of the task {task} ", bound) for task, bound in automaton.also.items())]
        tried_claims = zip((claim for claim in claims if claim[1] is not None), self.trials, strict=False)
        of_task, bound = next((claim for claim, trial in tried_claims if trial.wrong is not None), claims[0])
        return f"{of_task}within {bound} iterations"

    @property
    def words(self) -> str:
        """The result of the proof in words, beginning with the verdict."""
        if self.lost:
            return f"nothing: {self.lost}"
        n_said = sum(lemma.signal is not None for lemma in self.lemmas)
        n_held = sum(bool(lemma.holds) for lemma in self.lemmas)
        bound, n_signals = f"within {self.automaton.bound} iterations", len(self.automaton.signals)
        every = "on every maze" if self.on == "grids" else f"on all {self.on} of four doors"
        mazes = every if self.theorem.domain is None else f"on all {self.theorem.domain.words}"
        result = {
            "correct": f"correct: shows the answer of the task {self.automaton.task} {bound}, {every}",
            "characterised": f"characterised: the values of {n_said} of {n_signals} signals at any time t, {mazes}",
            "refuted": f"refuted: does not show an answer {self._refuted_claim} on a maze",
            None: "; ".join(self._unproven(n_held)) or self.worth or "no value of a signal is proven",
        }[self.verdict]
        parts = [result if self.verdict in (None, "refuted") else f"{result}; proven in {n_held} lemmas"]
        if self.verdict in ("correct", "characterised"):  # further claims, for example that the automaton heals
            parts += [f"not proven: {lemma.claim}" for lemma in self.refused]
        if self.verdict == "characterised" and self.theorem.means.get(self.automaton.signals(0)):
            parts.append(f"PATH is on {self.theorem.means[self.automaton.signals(0)]}")
        if self.verdict == "characterised" and self.worth:
            parts.append(f"in terms of {self.worth}")
        if self.verdict != "correct":
            parts += [trial.words for trial in self.trials]
        parts += [f"the answer {name} is empty on all small mazes" for trial in self.trials for name in trial.empty]
        if self.automaton.slows is not None:
            pace = f"it takes {self.automaton.pace} iterations for each of the rules as given"
            parts.append(f"{pace}, with {len(self.automaton.helpers)} helper signals")
        if self.automaton.bound is not None and self.verdict != "correct":
            parts.append(f"its bound is {self.basis}")
        if self.suffices is not None:
            parts.append(f"with the bound {self.suffices} it is proven correct: state {self.suffices!r}")
        if self.stated:
            parts.append(f"this relies on {len(self.stated)} axioms that its author assumes, tested on small mazes")
        if self.automaton.invariant is not None:
            known = "proven" if self.invariant else "argued and tested" if is_argued(self.automaton) else "not proven"
            parts.append(f"its invariant is {known}")
        claims = [lemma for lemma in self.lemmas if lemma.about == "claim"]
        if claims and all(lemma.holds for lemma in claims):
            parts.append(
                f"its author concludes from {len(claims)} further lemmas: {self.theorem.shown or 'see its module'}"
            )
        return "; ".join(parts)

    @property
    def basis(self) -> str:
        """How the automaton's bound is known: "proven", "argued and tested", or "stated" with the number of mazes on
        which it was tried."""
        if self.verdict == "correct":
            return "proven"
        if is_argued(self.automaton):
            return "argued and tested"
        n_mazes = sum(trial.n_mazes for trial in self.trials)
        return f"stated, tried on {n_mazes:,} mazes" if n_mazes else "stated"

    @property
    def ghosts(self) -> tuple[str, ...]:
        """The names of the theorem's ghosts."""
        return tuple(self.theorem.ghosts(mazes_to_try(self.automaton.problem)[0][:1]))

    def _unproven(self, n_held: int) -> list[str]:
        """Return in words the ghosts and the number of proven lemmas, the other lemmas, and the reasons for which
        signals have no stated value. Empty if all lemmas are proven and all signals have a value."""
        if not self.refused and not self.theorem.unsaid:
            return []
        terms = f"the ghosts {', '.join(self.ghosts)}" if self.ghosts else "no ghosts"
        near = f"nearest with {terms}: {n_held} of {len(self.lemmas)} lemmas hold"
        return [near, *(f"not proven: {lemma.claim}" for lemma in self.refused), *self.theorem.unsaid.values()]

    def __repr__(self) -> str:
        return f"<Proof of {self.automaton.name}: {self.words}>"

    def _repr_html_(self) -> str:
        drawings = [self.counterexample, *(lemma.counterexample for lemma in self.refused)]
        mazes = "".join(f"<pre>{escape(drawing)}</pre>" for drawing in drawings if drawing)
        meanings = {**self.theorem.means, **self.theorem.unsaid}
        rows = "".join(f"<tr><td>{escape(s.name)}</td><td>{escape(m)}</td></tr>" for s, m in meanings.items())
        return f"<p>{escape(self.automaton.name)}: {escape(self.words)}</p>{mazes}<table>{rows}</table>"

    def export(self, folder: str | Path) -> None:
        """Write the queries of all lemmas to SMT-LIB files in a folder, which is made if it does not exist. Solvers of
        linear arithmetic read these files.

        Raises:
            OSError: a file could not be written.
        """
        contents, folder = {}, user_path(folder)
        for number, lemma in enumerate(self.lemmas, 1):
            name = re.sub(r"\W+", "-", lemma.claim).strip("-")
            for question, query in lemma.queries.items():
                text = f"; {lemma.claim}: {question}\n{query}"
                contents[folder / f"{number:02}-{name}-{question}.smt2"] = text.encode()
        folder.mkdir(parents=True, exist_ok=True)
        write_all(contents)


def prove(automaton: Automaton | str, *, on: World = "grids") -> Proof:
    """Prove that an automaton is correct, or else characterise its signals.

    - **Refutation.** If the automaton has a bound, it is first run on small mazes. One wrong answer refutes it.
    - **Correctness.** If the bound is not refuted, z3 tries to prove that the automaton outputs the answer of the
      task's specification within the bound.
    - **Characterisation.** If this fails, or if there is no specification or no bound, `prove` describes the value of
      each signal after t iterations in terms of ghosts. It uses the ghosts that the automaton's `theorem` names. If
      there are none, it tries the specification's ghosts; then distances from the kinds of tile that the rules read, in
      the directions in which they read, through tiles that they do not negate; and last the automaton's own rules,
      which say least.

    If the theorem does not state the values of signals, they are guessed from runs on small mazes. If some maze looks
    like a counterexample of the solver, a run on this maze is added, and the values are guessed again. The automaton's
    invariant, which the certificate of a network may assume, is proven too.

    Args:
        automaton: an automaton, or the name of an automaton.
        on: the graphs on which the proof holds. "grids": mazes. "graphs": graphs with four doors at each node, in which
            every door leads back (`mazes.graphs`), loops and double doors included. "bipartite graphs": graphs in which
            each move leads from one half to the other. The values of signals are guessed from mazes in any case.

    Returns:
        The proof. Its `verdict` states the result. If the verdict is None, it is the attempt with the largest fraction
            of proven lemmas.

    Raises:
        ValueError: an unknown automaton; an unknown value of `on`; an automaton with inputs that graphs do not have; a
            theorem with more or fewer answers than the automaton; or axioms that are false on a small maze.
        ImportError: z3 is not installed.
    """
    automaton = find_automaton(automaton)
    if automaton.slows is not None:
        return _slowed(automaton, automaton.slows, on)
    named, solve = None if automaton.theorem is None else _read(automaton.theorem), automaton.problem.solve
    proof = _proof_of(automaton, named, on)
    if proof.verdict == "characterised" and isinstance(solve, Fixpoint):
        # a round of a fixpoint switches something on, or is the last
        enough = StepBound(constant=len(automaton.signals) + 1, per_tile=len(solve.rules))
        if _proof_of(replace(automaton, bound=enough), named, on).verdict == "correct":
            proof = replace(proof, suffices=enough)
    return replace(proof, asked=automaton.problem.digest)


def _proof_of(automaton: Automaton, named: Ghosts | None, on: World) -> Proof:
    """Return the proof of an automaton that does not slow another automaton, see `prove`.

    Args:
        automaton: the automaton.
        named: the automaton's `theorem` after `_read`, or None.
        on: the graphs on which the proof must hold, one of `facts.WORLDS`.
    """
    task, trials = automaton.problem, tuple(tried(automaton))
    if any(trial.wrong is not None for trial in trials):
        return Proof(automaton, NOTHING, (), trials, on=on)

    attempts, (maze, *_) = list[Proof](), mazes_to_try(task)
    for specified, theorem, worth in _theorems(automaton, task, named):
        if taken := [name for name in theorem.ghosts(maze[:1]) if is_symbol(name, automaton)]:
            raise ValueError(
                f"no ghost of {automaton.name} may be called {taken[0]!r}: proofs use a symbol of this name"
            )
        if named is not None:  # axioms of the library and of a specification have been tested already
            _check_axioms(automaton, theorem)
        known = None if theorem.signals is not None else with_stages(automaton, theorem)
        if known is not None:
            lemmas = tuple(Prover(automaton, known, on).lemmas())
            attempts.append(Proof(automaton, known, lemmas, trials, specified, on, worth))
            if attempts[-1].verdict is not None:
                return attempts[-1]
        tell = _written if theorem.signals is not None else _guessed
        try:
            lemmas, theorem = tell(automaton, theorem, on)
        except NeverAtRest as error:
            return Proof(automaton, NOTHING, (), trials, on=on, worth=str(error))
        attempts.append(Proof(automaton, theorem, lemmas, trials, specified, on, worth))
        if attempts[-1].verdict is not None or theorem.further is not Theorem.further:
            return attempts[-1]
    # the nearest attempt is the attempt with the largest fraction of proven lemmas
    return max(attempts, key=lambda proof: sum(bool(lemma.holds) for lemma in proof.lemmas) / (len(proof.lemmas) or 1))


def _slowed(automaton: Automaton, other: Automaton, on: World) -> Proof:
    """Return the proof of an automaton that slows a faster automaton: the faster automaton's lemmas, and lemmas that
    both automata are equivalent. The bound is the faster automaton's bound times the pace."""
    less, theorem = Fraction(1, automaton.pace), other.theorem if automaton.task == other.task else None
    bound = None if automaton.bound is None else scaled(automaton.bound, less)
    also = {name: scaled(of_task, less) for name, of_task in automaton.also.items()}
    proof = prove(replace(other, task=automaton.task, bound=bound, also=also, theorem=theorem), on=on)
    if proof.verdict in (None, "refuted"):
        return replace(proof, automaton=automaton)
    lemmas = tuple(Prover(automaton, NOTHING, on).slowed(other, automaton.pace))
    return replace(proof, automaton=automaton, lemmas=(*proof.lemmas, *lemmas), trials=tuple(tried(automaton)))


def _theorems(automaton: Automaton, task: Task, named: Ghosts | None) -> Iterator[tuple[bool, Theorem, str]]:
    """Yield the theorems to try, the strongest first.

    Each comes as three values: whether its answers are the answers of the task's specification; the theorem, with or
    without values of signals; and a note in words if the theorem says little, otherwise an empty text.

    Raises:
        ValueError: the automaton's theorem has more or fewer answers than the automaton; or on a small maze, the task's
            specification differs from `solve`, or one of its axioms is false.
    """
    bound, specified = automaton.bound, None if task.ghosts is None else _read(task.ghosts)
    if named is not None and not known_axioms(named).single <= {*kinds_once(task)}:
        # these axioms of the library are false on some levels of the task, so the automaton's author assumes them
        named = replace(named, axioms=partial(named.axioms))
    if named is not None and named.answers and len(named.answers) != len(automaton.answers):
        raise ValueError(f"the theorem has {len(named.answers)} answers, {automaton.name} {len(automaton.answers)}")
    whole = bound is not None and not any(
        (bound.per_move_and_tile, bound.constant % 1, bound.per_move % 1, bound.per_tile % 1)
    )
    if whole and specified is not None:
        check_specification(task)
        maze, *_ = mazes_to_try(task)
        adds = isinstance(named, Theorem) or (named is not None and {*named.ghosts(maze)} - {*specified.ghosts(maze)})
        yield True, _joined(specified, named) if named is not None and adds else _as_theorem(specified), ""
    if named is not None:
        yield False, _as_theorem(named if whole else replace(named, answers=())), ""
        return
    if specified is not None:
        yield False, replace(_as_theorem(specified), answers=()), ""
    yield from ((False, _as_theorem(ghosts), worth) for ghosts, worth in ghosts_for(automaton))


def _read(ghosts: Ghosts) -> Ghosts:
    """Call each function of an author's ghosts once, with symbols. Return ghosts that evaluate the resulting
    expressions.

    Therefore the proof and the tests on mazes use the same expressions, even if a function would return another result
    when it is called again.

    Raises:
        ValueError: a function fails, or uses anything but operators on the values that it reads.
    """
    if isinstance(ghosts, Theorem) and ghosts.signals is not None:
        ghosts = replace(ghosts, signals=read_once(ghosts.signals, "`signals` of a theorem"))
    axioms = ghosts.axioms if has_known_axioms(ghosts) else read_once(ghosts.axioms, "`axioms` of ghosts")
    return replace(ghosts, axioms=axioms, answers=tuple(map(answer_read_once, ghosts.answers)))


def _as_theorem(ghosts: Ghosts) -> Theorem:
    """Return ghosts as a theorem. If the axioms are an author's, and not the library's, all are marked as `stated`."""
    axioms = ghosts.axioms if has_known_axioms(ghosts) else _labelled(ghosts)
    if isinstance(ghosts, Theorem):
        return replace(ghosts, axioms=axioms, means={}, unsaid={})  # nothing checks an author's words
    return Theorem(axioms, ghosts.ghosts, ghosts.answers, ghosts.relations)


def _labelled(ghosts: Ghosts) -> Callable[[Picture, Place, Number], Mapping[Axiom, Truth]]:
    return lambda picture, at, t: {
        axiom_of(named)._replace(stated=True): fact for named, fact in ghosts.axioms(picture, at, t).items()
    }


def _joined(specification: Ghosts, named: Ghosts) -> Theorem:
    """Return a theorem with the answers of a specification, and with the ghosts, values and claims that an author
    named.

    If both have a ghost of the same name, it is the same ghost. The author's axioms are marked as `stated`. The prover
    leaves out those that equal an axiom of the specification.
    """
    theorem, other = _as_theorem(specification), _labelled(named)

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        return {**theorem.axioms(picture, at, t), **other(picture, at, t)}

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        return {**named.ghosts(tiles), **specification.ghosts(tiles)}

    return replace(
        _as_theorem(named),
        axioms=axioms,
        ghosts=ghosts,
        answers=specification.answers,
        relations={**named.relations, **specification.relations},
    )


def _check_axioms(automaton: Automaton, theorem: Theorem) -> None:
    """Check that a theorem's axioms are true of small mazes, also beyond the edge, where a proof assumes them too.

    Raises:
        ValueError: an axiom is false; the message draws a maze.
    """
    task, mazes = automaton.problem, mazes_to_try(automaton.problem)
    ghosts = theorem.ghosts(mazes[0][:1])
    picture = MazePicture(mazes[0][:1], ghosts)
    changes = any(np.ndim(value) == 4 for value in ghosts.values())
    known = not any(axiom_of(named).stated for named in theorem.axioms(picture, CENTRE, np.int64(0)))
    about = [*_about(theorem, mazes)]
    if theorem.domain is not None and not about:
        raise ValueError(f"the theorem of {automaton.name} is about {theorem.domain.words}, and no small maze is one")
    for tiles in about:
        # the test suite tries axioms of the library on more mazes
        tiles = tiles[:: 1 + len(tiles) // MOST_OF_LIBRARY] if changes or known else tiles
        broken = broken_axioms(theorem, tiles, N_STEPS if changes else 1)
        if broken:
            name, number = min(broken.items())
            where = task.in_a_line(tiles[number])
            raise ValueError(f"the axiom {name!r} is not true of the maze {where}, or beyond its edge")


def _written(automaton: Automaton, theorem: Theorem, on: World) -> tuple[tuple[Lemma, ...], Theorem]:
    """Return the lemmas of a theorem that states the values of signals, and the theorem.

    If all lemmas hold, the theorem is compared with runs on small mazes. If it is false on one of them, some axiom of
    the author must be false, and a lemma that fails is added.
    """
    lemmas, task = tuple(Prover(automaton, theorem, on).lemmas()), automaton.problem
    written = replace(automaton, theorem=theorem)
    (maze, *_) = small_mazes(task)
    picture = MazePicture(maze[None], theorem.ghosts(maze[None]))
    says = theorem.answers or theorem.signals(picture, CENTRE, np.int64(0))  # type: ignore[misc]
    if not says or not all(lemma.holds for lemma in lemmas):
        return lemmas, theorem
    groups = _about(theorem, (*all_mazes(task), *(maze[None] for maze in small_mazes(task))))
    for maze in (maze for tiles in groups for maze in tiles[:: 1 + len(tiles) // 20]):
        for signal, t in mistakes(written, maze):
            claim = f"the theorem is true of small mazes: {signal.name} after {t} iterations"
            drawing = to_text(maze, letters=task.letters)
            return (*lemmas, Lemma(claim, "signal", False, 0.0, counterexample=drawing)), theorem
    return lemmas, theorem


def _about(theorem: Theorem, mazes: Iterable[Tiles]) -> Iterator[Tiles]:
    """Yield from each of some (N, H, W) arrays the (M, H, W) mazes that belong to a theorem's domain, if any."""
    for tiles in mazes:
        holds = np.ones(len(tiles), np.bool_) if theorem.domain is None else np.asarray(theorem.domain.holds(tiles))
        if holds.shape != (len(tiles),) or holds.dtype != np.bool_:
            must = f"a bool array of shape {(len(tiles),)} for {len(tiles)} mazes"
            raise ValueError(f"`holds` of a theorem's domain must return {must}, got {holds.dtype} of {holds.shape}")
        if holds.any():
            yield tiles[holds]


def _guessed(automaton: Automaton, theorem: Theorem, on: World) -> tuple[tuple[Lemma, ...], Theorem]:
    """Guess the values of a theorem's signals from runs on small mazes. Return the lemmas, and the theorem with the
    guessed values. There are no lemmas if no value can be guessed for an answer.

    If z3 finds a counterexample to a lemma, similar mazes are tried. The run on the first maze that contradicts the
    guess is added to the runs, and the values are guessed again, at most `ROUNDS` times in all.
    """
    task = automaton.problem
    mazes = small_mazes(task)
    atoms = atoms_of(automaton, theorem, [maze[None] for maze in mazes[::10]])
    lemmas, by_shape = list[Lemma](), [np.stack([*same]) for _, same in groupby(mazes, lambda maze: maze.shape)]
    least = [tiles[:: 1 + len(tiles) // MOST_OF_LEAST] for tiles in all_mazes(task) if tiles[0].size <= LEAST]
    runs = [run_of(automaton, theorem, atoms, tiles) for tiles in (*by_shape, *least)]
    for left in reversed(range(ROUNDS)):
        guessed, refuting, lemmas = guess(automaton, theorem, runs, atoms), None, []
        if guessed.unsaid.keys() & {*automaton.answers}:  # a proof would state nothing about this answer
            break
        with_guess = replace(automaton, theorem=guessed)
        for lemma in Prover(automaton, guessed, on).lemmas():
            lemmas.append(lemma)
            if left and not lemma.holds and lemma.kinds:
                like = mazes_with(lemma.kinds, task, mazes)
                refuting = next((tiles for tiles in like if any(mistakes(with_guess, tiles))), None)
            if refuting is not None:
                break
        if refuting is None:
            break
        runs.append(run_of(automaton, theorem, atoms, refuting[None]))
    return tuple(lemmas), guessed


def second_opinion(folder: str | Path) -> dict[str, str]:
    """Run the solver cvc5 on every query that `Proof.export` wrote to a folder. Return the answers that differ from
    z3's answers, by the name of the file; empty if both solvers agree.

    Raises:
        ValueError: the folder contains no queries.
        ImportError: cvc5 is not installed.
    """
    try:
        import cvc5
    except ImportError as error:
        raise ImportError('a second opinion needs cvc5: pip install "maze-nca-gym[proof]"') from error
    files, differing = sorted(user_path(folder).glob("*.smt2")), dict[str, str]()
    if not files:
        raise ValueError(f"{folder} has no queries of a proof, *.smt2")
    for file in files:
        text, solver = file.read_text(encoding="utf-8"), cvc5.Solver()
        expected, answer = STATUS.search(text), cvc5_answer(solver, text)
        if expected is None or answer != expected[1]:
            differing[file.name] = answer
    return differing


def cvc5_answer(solver: Any, query: str) -> str:
    """Return the answer of a `cvc5.Solver` to a query in SMT-LIB. The solver does not see the query's own `:status`."""
    import cvc5

    solver.setOption("tlimit-per", str(int(1000 * PATIENCE)))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, STATUS.sub("", query), "query")
    answer = ""
    while not (command := parser.nextCommand()).isNull():
        answer += command.invoke(solver, parser.getSymbolManager()).strip()
    return answer


def mistakes(automaton: Automaton, tiles: Tiles) -> Iterator[tuple[IntEnum, int]]:
    """Run an automaton on an (H, W) uint8 maze, and yield (signal, t) for each mistake of the automaton's theorem.

    A mistake is a signal that differs after t iterations from the stated value, or an answer signal that is on outside
    the answer, or off at a tile of the answer although the answer is due.

    Raises:
        ValueError: the automaton has no theorem, or a theorem that does not state the values of signals.
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"automaton must be an Automaton, got {type(automaton).__name__}")
    theorem = automaton.theorem
    if not isinstance(theorem, Theorem) or theorem.signals is None:
        raise ValueError(f"{automaton.name} has no theorem that states the values of its signals: `prove` infers one")
    picture = MazePicture(tiles[None], theorem.ghosts(tiles[None]))
    for t, (signals,) in enumerate(automaton.trace(tiles[None])):
        for signal, stated in theorem.signals(picture, CENTRE, np.int64(t)).items():
            if (signals[signal] != stated).any():
                yield signal, t
        # an answer must not mark a wrong tile, nor miss a tile once it is due
        for signal, answer in zip(automaton.answers, theorem.answers, strict=False):
            assert automaton.bound is not None
            shown, (wanted,) = signals[signal], answer.shown(picture, CENTRE)
            due = automaton.bound(shown.size, int(answer.n_moves(picture)[0, 0, 0]))
            if (shown & ~wanted).any() or (t >= due and (shown != wanted).any()):
                yield signal, t
