"""Lemmas about an automaton: small claims about one tile, which stands for all tiles, decided by the solver z3.

The proof is an induction over iterations. Suppose that after t iterations every signal of every tile has the value that
a `Theorem` states. A lemma then shows that the rules, applied to symbols, give the stated value for t + 1. The axioms
about ghosts are assumed only for the tile and its neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from itertools import combinations, product
from typing import Any, Literal, TypeAlias

import numpy as np

from maze_nca_gym.mazes.facts import (
    CENTRE,
    WORLDS,
    Axiom,
    Number,
    Picture,
    Place,
    Truth,
    World,
    axiom_of,
    implies,
    moved,
    read_at,
)
from maze_nca_gym.mazes.levels import Kind
from maze_nca_gym.mazes.neighbours import DIRECTIONS, offsets
from maze_nca_gym.mazes.relations import N_TILES, has_known_axioms, known_axioms
from maze_nca_gym.mazes.small import kinds_once
from maze_nca_gym.mazes.terms import Rule, term_of
from maze_nca_gym.support.names import unknown_name
from maze_nca_gym.support.options import check

from ..automaton import NEIGHBOURHOODS, Automaton
from ..theorem import State, Theorem
from .symbols import Z3, SymbolicPicture

MOST_STEPS = 600_000_000
"""Largest number of steps of the solver for one lemma, 5,000,000 of which take about a second. With a limit of time, a
verdict would depend on the machine."""
ANY_PLACE: Place = "U" * 9
"""A place of a graph that is so far away that no axiom relates it to the tile in the middle."""
FAR = 5
"""Largest number of moves from the tile in the middle to a tile that a counterexample shows."""
STATES = ("any", "held")
"""Names of the arbitrary states of proofs; the states of a theorem's further claims are numbered."""
SAID = "is what the theorem says"
"""The end of the claim about a signal."""
About: TypeAlias = Literal["axioms", "signal", "everywhere", "answer", "invariant", "claim"]
"""The subject of a lemma: the consistency of the axioms, the value of a signal, that a signal is the same at all tiles,
an answer, the invariant, or a further claim of the theorem's author."""


@dataclass(frozen=True)
class Lemma:
    """One step of a proof: a claim that the solver z3 has tried to prove.

    Attributes:
        claim: the claim in words.
        about: the subject of the claim: the axioms, a signal, an answer, the invariant, or a further claim.
        holds: whether the claim was proven, or None if the solver gave up.
        seconds: the time of the solver in seconds.
        axioms: the axioms that the proof uses; empty if the claim was not proven.
        counterexample: a picture for which the claim is false, as text; empty if none was found.
        kinds: the kinds of tile in this picture, by their offset; -1 beyond the edge.
        asked: the functions that write the `queries`, by name.
        signal: the signal that has the theorem's value according to the claim, or None for any other claim.
    """

    claim: str
    about: About
    holds: bool | None
    seconds: float
    axioms: tuple[Axiom, ...] = ()
    counterexample: str = ""
    kinds: Mapping[Place, int] = field(default_factory=dict, repr=False)
    asked: Mapping[str, Callable[[], str]] = field(default_factory=dict, repr=False)
    signal: IntEnum | None = None

    @property
    def queries(self) -> dict[str, str]:
        """The queries to the solver in SMT-LIB: "occurs", whether the premises can be true, and "fails", whether the
        claim can be false although they are true. `:status` is the solver's answer, and `:named` an axiom's name."""
        return {what: written() for what, written in self.asked.items()}


def is_symbol(name: str, automaton: Automaton) -> bool:
    """Return whether a name belongs to a symbol of proofs about an automaton, so that a ghost of this name would equal
    the symbol: the kind of a tile, the number of iterations, or an unknown value of a signal."""
    unknown = [f"{state} {s.name}" for s in automaton.signals for state in STATES] + ["before kind"]
    pooled = [f"{signal.name} elsewhere" for signal in automaton.pooled]
    counted, _, signal = name.partition(" ")
    numbered = counted.isdecimal() and signal in automaton.signals.__members__
    return numbered or name in ("kind", "t", *unknown, *pooled)


class Prover:
    """Proves the lemmas of an automaton's theorem with z3. It is also the `theorem.Steps` of further claims.

    On graphs, the node above the left neighbour need not be the node to the left of the upper neighbour. Places are
    therefore walks. Two walks may lead to the same node, through a loop or two edges, and no axiom excludes this.

    Args:
        automaton: the automaton.
        theorem: the theorem, which states the values of signals.
        on: the graphs on which the lemmas must hold, one of `facts.WORLDS`.

    Raises:
        ValueError: a kind of world that is not in `facts.WORLDS`; or on graphs, an automaton that reads tiles at
            corners, or that has signals which are the same everywhere because neighbours agree, since a graph need not
            be connected.
        ImportError: z3 is not installed, or another version is loaded in this process.
    """

    def __init__(self, automaton: Automaton, theorem: Theorem, on: World = "grids") -> None:
        check(on in WORLDS, unknown_name("kind of worlds", on, WORLDS))
        self._world, self._is_grid = on, on == "grids"
        agreed = [signal.name for signal in automaton.everywhere if signal not in automaton.pooled]
        for wrong, what in (
            (automaton.neighbourhood != 5, "it reads tiles at corners, which graphs do not have"),
            (agreed, f"{', '.join(agreed)} are the same everywhere on connected graphs alone"),
        ):
            check(self._is_grid or not wrong, f"nothing about {automaton.name} can be proven on {on}: {what}")
        self._z3 = Z3()
        self._automaton, self._theorem, self._n_unsaid = automaton, theorem, 0
        self._places = [moved(CENTRE, tap) for tap in automaton.taps]
        self.picture = SymbolicPicture(self._z3, self._is_grid)
        self.t = self.picture.of_map("t")
        self._facts = [self.t >= 0]  # ranges of numbers, which no axiom needs to state
        self._axioms: list[tuple[Axiom, Truth]] = []
        self._occurs: dict[tuple[int, ...], tuple[Any, tuple[Truth, ...]]] = {}  # the facts are kept, as ids are reused
        self._suppose(self.picture)

    def _suppose(self, picture: SymbolicPicture) -> None:
        """Add the axioms about a maze. An author's axiom is left out if it equals an axiom of the library."""
        said = set[int]()
        for at in self._places:
            picture.kind(at)  # is made, even if no axiom reads it
            for named, fact in self._theorem.axioms(picture, at, self.t).items():
                axiom, fact = axiom_of(named), self._z3.And(fact)  # of a plain bool too
                if axiom.is_supposed_on(self._world) and not (axiom.stated and fact.get_id() in said):
                    self._axioms.append((axiom, fact))
                    said.add(fact.get_id())
        for at in self._places if self._is_grid else ():
            if len(at) > 1:  # a corner, by way of either of two neighbours
                both = picture.inside(at[0]) & picture.inside(at[1])
                rectangle = implies(picture.inside(), picture.inside(at) == both)
                self._axioms.append((Axiom(f"the map is a rectangle, {at}", "grids"), rectangle))
        kinds = [symbol for (name, _), symbol in picture.made.items() if name == "kind"]
        self._facts += [fact for kind in kinds for fact in (kind >= -1, kind < len(self._automaton.kinds))]

    def maze(self, name: str) -> SymbolicPicture:
        """Return another maze of the same size, see `Steps`."""
        picture = SymbolicPicture(self._z3, self._is_grid, f"{name} ")
        self._suppose(picture)
        places = [at for ghost, at in picture.made if ghost == "kind" and at is not None]
        self._facts += [picture.inside(at) == self.picture.inside(at) for at in places]
        return picture

    def state(self, name: str) -> State:
        """Return an arbitrary state: the value of each signal at each tile is an unknown, whose name begins with
        `name`. See `Steps`."""

        def holds(signal: IntEnum, at: Place) -> Truth:
            where = None if signal in self._automaton.everywhere else at
            return self._z3.Bool(self.picture.placed(f"{name} {signal.name}", where)) & self.picture.inside(at)

        return cache(lambda at: {signal: holds(signal, at) for signal in self._automaton.signals})

    def after(self, picture: Picture, state: State, rules: Mapping[IntEnum, Rule] | None = None) -> State:
        """Return the state after an iteration, see `Steps`."""
        given = self._automaton.terms if rules is None else rules
        used = {signal: term_of(rule, self._automaton.signals) for signal, rule in given.items()}

        def after(at: Place) -> Mapping[IntEnum, Truth]:
            see = read_at(picture, at, state)
            return {signal: picture.inside(at) & rule.read_by(see) for signal, rule in used.items()}

        return cache(after)

    def said(self, picture: Picture, at: Place, t: Number) -> Mapping[IntEnum, Truth]:
        """Return the values that the theorem states, see `Steps`. Signals without a stated value get new unknown values
        in each call."""
        said = self._said(picture, at, t)
        self._n_unsaid += 1
        return said if len(said) == len(self._automaton.signals) else {**self.state(f"{self._n_unsaid}")(at), **said}

    def _said(self, picture: Picture, at: Place, t: Number) -> Mapping[IntEnum, Truth]:
        assert self._theorem.signals is not None
        return self._theorem.signals(picture, at, t)

    def _pooled(
        self, switched: Mapping[IntEnum, Truth], known: Mapping[IntEnum, Truth] | None = None
    ) -> Mapping[IntEnum, Truth]:
        """Return the signals of a tile after an iteration. A pooled signal is on if the tile's own rule or any other
        tile switches it on.

        Args:
            switched: the value that the tile's own rule gives to each signal.
            known: values of some signals that replace these values.
        """
        elsewhere = {s: self.picture.of_map(f"{s.name} elsewhere") > 0 for s in self._automaton.pooled}
        return {**{s: on | elsewhere[s] if s in elsewhere else on for s, on in switched.items()}, **(known or {})}

    def invariant(self, picture: Picture, state: State, at: Place = CENTRE) -> Truth:
        """Return whether the invariant holds for a tile, see `Steps`."""
        assert self._automaton.fact is not None
        return self._automaton.fact.read_by(read_at(picture, at, state))

    def lemmas(self) -> Iterator[Lemma]:
        """Yield the lemmas of the proof, each with its result."""
        z3, picture, theorem, rules = self._z3, self.picture, self._theorem, self._automaton.terms
        inside, t, path = picture.inside(), self.t, self._automaton.signals(0)
        answers = dict(zip(self._automaton.answers, self._answers(), strict=False))
        first, now, after = (self._said(picture, CENTRE, when) for when in (z3.IntVal(0), t, t + 1))

        # contradictory axioms would prove anything
        occurs = {signal: wanted & due for signal, (wanted, due) in answers.items()} or {path: now.get(path, inside)}
        for signal, happens in occurs.items():
            claim = f"the axioms allow a path{f', {signal.name}' if len(occurs) > 1 else ''}"
            lemma = self._lemma("axioms", claim, z3.BoolVal(True), inside, happens)
            if lemma.holds is False and has_known_axioms(theorem) and signal in answers:  # a rule that no tile fulfils
                claim = f"the axioms allow a maze, on which {signal.name} shows nothing"
                lemma = self._lemma("axioms", claim, z3.BoolVal(True), inside, answers[signal][1])
            yield lemma

        # the theorem's value of each signal is true at first, beyond the edge, and after one more iteration
        if now:
            yield self._lemma("signal", "no signal is on at first", z3.Not(z3.Or(*first.values())), inside)
            yield self._lemma("signal", "no signal is on beyond the edge", z3.Not(z3.Or(*now.values())), ~inside)
        anything = self.state("any")  # for signals of which nothing is said
        see = read_at(picture, CENTRE, cache(lambda at: {**anything(at), **self._said(picture, at, t)}))
        for signal, said in after.items():
            claim, here = f"{signal.name} {SAID}", rules[signal].read_by(see)
            if signal not in self._automaton.pooled:
                lemma = self._lemma("signal", claim, here == said, inside)
                yield replace(lemma, signal=signal)
                continue
            # the symbolic tile may be any tile, so it shows that no tile switches the signal on wrongly. That some tile
            # switches the signal on where it should be on needs a tile that every maze has
            lemma = self._lemma("signal", claim, z3.Implies(here, said), inside)
            yield replace(lemma, signal=signal)
            # what neighbours agree on is the same at all tiles of a grid; a graph need not be connected
            others = self._places if self._is_grid else [ANY_PLACE]
            alike = [z3.Implies(picture.inside(q), self._said(picture, q, t)[signal] == now[signal]) for q in others]
            yield self._lemma("everywhere", f"{signal.name} is the same everywhere", z3.And(*alike), inside)
            certain = [picture.tile(int(kind)) for kind in np.flatnonzero(self._automaton.problem.count_limits[0])]
            switched = z3.Implies(said, here)
            for some in certain or [inside]:
                lemma = self._lemma("signal", f"{signal.name} is switched on at some tile", switched, some, inside)
                if lemma.holds:
                    break
            for (comes, shows), number in product(known_axioms(theorem).witnesses, [t, *theorem.rounds(picture, t)]):
                if lemma.holds:
                    break
                # if the signal should be on, its rule is true at this tile, or else there is a witness, and the rule is
                # true at every witness
                witness = comes(picture, number) & z3.Implies(shows(picture, CENTRE, number), here)
                switched = z3.Implies(said, here | witness)
                found = self._lemma("signal", lemma.claim, switched, inside)
                lemma = found if found.holds else lemma
            yield lemma

        # if all neighbours agree on a signal, it is the same everywhere; a pooled signal is the same in any case
        next_state = self.after(picture, anything)
        for signal in self._automaton.everywhere:
            if signal not in self._automaton.pooled:
                there = [moved(CENTRE, towards) for towards in DIRECTIONS]
                alike = [
                    z3.Implies(picture.inside(at), next_state(at)[signal] == next_state(CENTRE)[signal]) for at in there
                ]
                yield self._lemma("everywhere", f"{signal.name} is the same everywhere", z3.And(*alike), inside)

        for signal, (wanted, due) in answers.items():
            shown = rules[signal].read_by(see)
            yield self._lemma(
                "answer", f"{signal.name} shows nothing but the answer", z3.Implies(shown, wanted), inside
            )
            claim = f"{signal.name} shows all of it within the bound"
            yield self._lemma("answer", claim, shown == wanted, inside, due)

        if self._automaton.invariant is not None:
            held = self._pooled(
                {s: rule.read_by(see) for s, rule in rules.items()}, {**after, path: rules[path].read_by(see)}
            )
            yield from self._invariant_lemmas(held if now else None)
        for words, given, then in theorem.further(self):
            yield self._lemma("claim", words, z3.And(*then), inside, *given)

    def slowed(self, original: Automaton, pace: int) -> Iterator[Lemma]:
        """Yield the lemmas that this automaton is equivalent to a faster one: its signals after t iterations are those
        of the faster automaton after t / pace iterations, rounded down.

        The lemmas state two facts. No signal of the faster automaton is on in the first iterations. From any state, the
        signals after `pace` iterations are given by the faster automaton's rules.
        """
        z3, picture, inside, signals = self._z3, self.picture, self.picture.inside(), self._automaton.signals
        before, off = self.state("held"), dict.fromkeys(signals, z3.BoolVal(False))
        see = read_at(picture, CENTRE, cache(lambda at: {s: before(at)[signals[s.name]] for s in original.signals}))
        begun: State = lambda at: off  # noqa: E731
        after, shown = before, list[Truth]()
        for number in range(pace):
            begun, after = self.after(picture, begun), self.after(picture, after)
            shown += [begun(CENTRE)[signals[s.name]] for s in original.signals] if number + 1 < pace else []
        claim = f"no signal of {original.name} is on in the first {pace} iterations"
        yield self._lemma("signal", claim, z3.Not(z3.Or(*shown)), inside)
        for signal, rule in original.terms.items():
            claim = f"{signal.name} is what its rule says of {pace} iterations before"
            yield self._lemma("signal", claim, after(CENTRE)[signals[signal.name]] == rule.read_by(see), inside)
        if self._automaton.fact is not None and original.fact is not None:
            claim = f"the invariant is that of {original.name}"
            same = self.invariant(picture, before) == original.fact.read_by(see)
            yield self._lemma("invariant", claim, same, inside)

    def _answers(self) -> Iterator[tuple[Truth, Truth]]:
        """Yield for each answer whether the tile is part of it, and whether the answer is due after the next
        iteration."""
        bound = self._automaton.bound
        for answer in self._theorem.answers:
            assert bound is not None
            per_tile = int(bound.per_tile) * self.picture.of_map(N_TILES) if bound.per_tile else 0
            least = int(bound.constant) + int(bound.per_move) * answer.n_moves(self.picture) + per_tile
            yield answer.shown(self.picture, CENTRE), self.t + 1 >= least

    def _invariant_lemmas(self, after: Mapping[IntEnum, Truth] | None) -> Iterator[Lemma]:
        """Yield the lemmas that the invariant holds at first and after each iteration. If the automaton heals, they are
        about any earlier state and any next maze.

        Args:
            after: the signals of the tile after an iteration on a maze that does not change, by the theorem, or None if
                the theorem states nothing about signals.
        """
        z3, picture, inside, any_state = self._z3, self.picture, self.picture.inside(), self.state("held")
        off = dict.fromkeys(self._automaton.signals, z3.BoolVal(False))
        if after is None and self._theorem.further is not Theorem.further:
            return  # it is the further claims that are about it
        yield self._lemma("invariant", "the invariant holds at first", self.invariant(picture, lambda at: off), inside)
        if after is not None and not self._automaton.heals:
            yield self._lemma("invariant", "the invariant holds", self.invariant(picture, lambda at: after), inside)
            return
        before = [z3.Implies(picture.inside(at), self.invariant(picture, any_state, at)) for at in self._places]
        then = self.invariant(picture, lambda at: self._pooled(self.after(picture, any_state)(at)))
        yield self._lemma("invariant", "the invariant is kept", then, inside, *before)
        if self._automaton.heals:
            other = SymbolicPicture(z3, self._is_grid, "before ")
            of_other = [other.kind(CENTRE) >= 0, other.kind(CENTRE) < len(self._automaton.kinds)]
            held = self.invariant(other, any_state)
            claim = "the invariant does not depend on the maze"
            yield self._lemma("invariant", claim, self.invariant(picture, any_state), inside, *of_other, held)

    def _lemma(self, about: About, claim: str, statement: Truth, *given: Truth) -> Lemma:
        z3, began, of_task = self._z3, time.perf_counter(), self._automaton.problem.kinds
        supposing = (len(self._axioms), len(self._facts), *(fact.get_id() for fact in given))
        if supposing not in self._occurs:  # most lemmas suppose the same
            self._occurs[supposing] = self._solver(*given).check(), given
        supposed, _ = self._occurs[supposing]
        asked = {"occurs": self._query(supposed, *given)}
        if supposed != z3.sat:  # nothing is proven if the premises may be impossible
            never = supposed == z3.unsat
            words = "what it supposes never occurs" if never else ""
            seconds = time.perf_counter() - began
            return Lemma(claim, about, False if never else None, seconds, counterexample=words, asked=asked)
        solver = self._solver(*given, z3.Not(statement))
        found = solver.check()
        asked["fails"] = self._query(found, *given, z3.Not(statement))
        if found == z3.sat:  # rather show a counterexample that may be part of a maze; no proof assumes this
            seen = [at for name, at in self.picture.made if name == "kind" and at is not None]
            pairs = product(kinds_once(self._automaton.problem), combinations(seen, 2))
            once = [~(self.picture.tile(kind, p) & self.picture.tile(kind, q)) for kind, (p, q) in pairs]
            likely = self._solver(*given, z3.Not(statement), *once)
            solver = likely if likely.check() == z3.sat else solver
        kinds, drawn = (
            _draw(self.picture, solver.model(), of_task, FAR if self._is_grid else 1) if found == z3.sat else ({}, "")
        )
        holds = None if found == z3.unknown else found == z3.unsat
        labels = {self._label(number).get_id(): axiom for number, (axiom, _) in enumerate(self._axioms)}
        used = {labels[label.get_id()] for label in solver.unsat_core()} if holds else ()
        near = {at: kinds[at] for at in self._places if at in kinds}  # no axiom restricts tiles farther away
        return Lemma(claim, about, holds, time.perf_counter() - began, tuple(sorted(used, key=str)), drawn, near, asked)

    def _label(self, number: int) -> Truth:
        """Return the boolean that stands for the axiom of a number in the solver."""
        return self._z3.Bool(f"a{number}")

    def _solver(self, *facts: Truth) -> Any:
        solver = self._z3.Solver()
        solver.set("rlimit", MOST_STEPS)
        solver.set("unsat_core", True)
        solver.add(*self._facts, *facts)
        for number, (_, axiom) in enumerate(self._axioms):
            solver.assert_and_track(axiom, self._label(number))
        return solver

    def _query(self, found: Any, *facts: Truth) -> Callable[[], str]:
        """Return a function that writes a query and the solver's answer in SMT-LIB, with the names of the axioms."""
        axioms, known = tuple(self._axioms), tuple(self._facts)

        def written() -> str:
            named = [f"(! {fact.sexpr()} :named |{number}: {axiom}|)" for number, (axiom, fact) in enumerate(axioms)]
            asserted = [*named, *(fact.sexpr() for fact in (*known, *facts))]
            declared = _declared([*(fact for _, fact in axioms), *known, *facts], self._z3.Z3_OP_UNINTERPRETED)
            lines = [f"(set-info :status {found})", "(set-logic ALL)", *declared]
            return "\n".join([*lines, *(f"(assert {fact})" for fact in asserted), "(check-sat)", ""])

        return written


def _declared(facts: Sequence[Truth], uninterpreted: int) -> list[str]:
    """Return the declarations of the symbols of facts in SMT-LIB. `uninterpreted` is the number by which z3 marks
    symbols."""
    left, seen, found = [*facts], set[int](), dict[str, None]()
    while left:
        part = left.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            left += part.children()
            if part.decl().kind() == uninterpreted:
                found[part.decl().sexpr()] = None
    return [*found]


def _draw(picture: SymbolicPicture, model: Any, of_task: Sequence[Kind], far: int) -> tuple[dict[Place, int], str]:
    """Return the kinds of tile of a counterexample, and the whole counterexample as text.

    The text contains the tiles, with `?` for any kind and a space beyond the edge, then the numbers of the map, then
    the ghosts of the tile in the middle and of its neighbours.
    """

    def value(symbol: Any) -> str:
        return str(model.eval(symbol, model_completion=True))

    drawn = {at: symbol for (name, at), symbol in picture.made.items() if name == "kind" and at is not None}
    kinds = {at: int(value(symbol)) for at, symbol in drawn.items() if len(at) <= far}  # some may be anywhere
    by_offset = {offset: kind for at, kind in kinds.items() for offset in offsets(at)}
    reach = max(abs(step) for offset in by_offset for step in offset)
    span = range(-reach, reach + 1)
    glyphs = {-1: " ", **{number: kind.letter for number, kind in enumerate(of_task)}}
    rows = ["".join(glyphs.get(by_offset.get((row, col), -2), "?") for col in span) for row in span]
    numbers = ", ".join(f"{name} {value(symbol)}" for (name, at), symbol in picture.made.items() if at is None)
    lines = []
    for tap in NEIGHBOURHOODS[5]:
        place = moved(CENTRE, tap)
        ghosts = {name: value(s) for (name, at), s in picture.made.items() if at == place and name != "kind"}
        told = [name if truth == "True" else f"{name} {truth}" for name, truth in ghosts.items() if truth != "False"]
        lines.append(f"{tap}: {', '.join(told)}")
    return kinds, "\n".join([*rows, numbers, *lines])
