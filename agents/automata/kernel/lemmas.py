"""Prints the theorem of an automaton for Coq, with the steps that lead Coq's checker through each of its lemmas.

z3 serves as a guide that nobody has to trust: for each lemma it finds the facts that the lemma needs, and the linear
facts that contradict its atoms. Coq computes the lemma itself from the rules and from the theorem's statement about
each signal, and searches by case distinctions (`proofs/Facts.v`). Axioms become lemmas too, which follow from the
definitions of their ghosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cache, partial
from itertools import product
from typing import NamedTuple

from maze_nca_gym.mazes.facts import CENTRE, Axiom, Place, Truth, axiom_of, read_at
from maze_nca_gym.mazes.relations import N_TILES
from maze_nca_gym.mazes.small import kinds_once

from ..automaton import NotCovered
from ..proving.proof import Proof
from ..proving.prover import SAID
from ..proving.symbols import Z3
from .clauses import NotProven, refutation
from .coq import LINES, printed_automaton, printed_file, printed_list, printed_name, printed_rule
from .definitions import Definitions
from .facts import Below, Fact, Hypothesis, Lemma, printed_fact, printed_lemma, printed_proof, printed_sum

MOST_STEPS, FEW_STEPS = 300_000_000, 15_000_000
"""Largest numbers of steps of the solver, 5,000,000 of which take about a second: for a lemma, and for each try to
prove it from fewer facts. With limits of time, the printed file would depend on the machine."""


class Switch(NamedTuple):
    """The tile at which a pooled signal is switched on: by default any tile.

    Attributes:
        why: (whether the signal's rule is true) -> a fact about a tile: if it is true of all tiles, the rule is true at
            one of them.
        number: the number of the map that is the stage of a relation, for the tile that shows why the relation comes
            on; or the number of rounds of a layer, for a tile at which something comes on in a round.
        round: this round.
    """

    why: Callable[[Truth], Truth]
    number: int | None = None
    round: Below | None = None


class Signal(NamedTuple):
    """The lemmas about a signal, and the tile at which a pooled signal is switched on."""

    lemmas: list[Lemma]
    switch: Switch | None = None


class Shown(NamedTuple):
    """The proof that a signal outputs an answer.

    Attributes:
        signal: the number of the signal.
        wanted: the fact that a tile belongs to the answer.
        least: the fact that the answer is due.
        lemmas: two lemmas: the signal outputs nothing else, and the whole answer once it is due.
    """

    signal: int
    wanted: Fact
    least: Below
    lemmas: list[Lemma]


class Guide:
    """Finds the lemmas of a theorem, and for each one the facts and clauses that lead Coq through its proof.

    Raises:
        NotCovered: the theorem uses ghosts without a known definition, or anything else that the Coq theory does not
            cover.
    """

    def __init__(self, proof: Proof) -> None:
        self.automaton, self.theorem, self.z3 = proof.automaton, proof.theorem, Z3()
        self.defined = Definitions(self.z3, self.automaton, self.theorem)
        self.lemmas, self.known = list[Lemma](), list[Hypothesis]()
        # the failed proofs of axioms, and the axioms that are proven only when a lemma needs them
        self.missing, self.later = list[NotProven | NotCovered](), dict[Axiom, Sequence[Truth]]()
        self.used = {axiom for lemma in proof.lemmas if lemma.about in ("signal", "answer") for axiom in lemma.axioms}

    # the way to a lemma

    def lemma(self, name: str, goal: Truth, hypotheses: Sequence[Hypothesis]) -> Lemma:
        """Return the lemma of a name in words: a goal with its proof from hypotheses.

        Raises:
            NotProven: z3 does not prove the goal, or its proof has no refutation that Coq can follow.
            NotCovered: the goal or a hypothesis is about something that the Coq theory does not cover.
        """
        # The answers of z3 depend on every expression in its context, even if only Python's garbage collector has to
        # free it. In a new context they depend on the lemma alone.
        z3 = Z3()
        used, fact = self._needed(z3, name, goal, hypotheses), self.defined.fact
        try:
            why = refutation(z3, [fact(self.z3.Not(goal)), *(fact(hypothesis.fact) for hypothesis in used)])
        except NotProven as error:
            raise NotProven(f"{self.automaton.name}: nothing leads Coq to the lemma {name!r}: {error}") from error
        return Lemma(name, fact(goal), used, why)

    def _needed(self, z3: Z3, name: str, goal: Truth, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return a small subset of some hypotheses from which a goal follows. The search uses the context of `z3`."""
        expressions, solver, numbers = self.z3.AstVector(ctx=self.z3.context), z3.Solver(), dict[int, int]()
        for expression in (goal, *(hypothesis.fact for hypothesis in hypotheses)):
            expressions.push(expression)
        goal, *facts = expressions.translate(z3.context)
        solver.set("rlimit", MOST_STEPS)
        solver.set("core.minimize", True)
        solver.add(z3.Not(goal))
        for number, fact in enumerate(facts):
            label = z3.Bool(f"h{number}")
            numbers[label.get_id()] = number
            solver.assert_and_track(fact, label)
        if solver.check() != z3.unsat:
            raise NotProven(f"{self.automaton.name}: the lemma {name!r} does not follow from its ghosts' definitions")
        used = sorted(numbers[label.get_id()] for label in solver.unsat_core())
        for left_out in list(used):
            fewer, rest = z3.Solver(), [number for number in used if number != left_out]
            fewer.set("rlimit", FEW_STEPS)
            fewer.add(z3.Not(goal), *(facts[number] for number in rest))
            if fewer.check() == z3.unsat:
                used = rest
        return [hypotheses[number] for number in used]

    def learn(self, name: str, facts: Sequence[Truth], hypotheses: Iterable[Hypothesis]) -> None:
        """Prove a lemma, which later proofs may use.

        Args:
            name: the lemma in words.
            facts: the lemma as a z3 boolean for each of the places; the first, at the centre, is proven.
            hypotheses: the hypotheses of this proof, besides earlier lemmas.

        Raises:
            NotProven: it was not proven.
            NotCovered: the Coq theory does not cover it.
        """
        lemma, number = self.lemma(name, facts[0], [*hypotheses, *self.known, *self.defined.kinds()]), len(self.lemmas)
        places = self.defined.places
        self.known += [Hypothesis("Before", (number,), at, fact) for at, fact in zip(places, facts, strict=True)]
        self.lemmas.append(lemma)

    def learn_axiom(self, axiom: Axiom, facts: Sequence[Truth], definitions: Sequence[Hypothesis]) -> None:
        """Prove an axiom of the library, stated as a fact for each of the places, from `definitions`, or by
        induction along the stages of a relation. If neither works, the failure is stored in `missing` and not raised,
        because z3 may have used an axiom that the lemmas can do without."""
        try:
            return self.learn(str(axiom), facts, definitions)
        except (NotProven, NotCovered) as error:
            missing = error
        for along in self.defined.stages:
            with suppress(NotProven):
                return self.learn(str(axiom), facts, [*definitions, *self.defined.earlier(along, facts)])
        self.missing.append(missing)
        return None

    def spreads(self, definitions: Sequence[Hypothesis]) -> Iterable[Hypothesis]:
        """Prove which relations spread from neighbour to neighbour, beginning at a tile of a kind that occurs once.
        Yield the facts that such a relation does not come on at two neighbours in the same round."""
        defined = self.defined
        for relation, kind in product(defined.stages, kinds_once(self.automaton.problem)):
            with suppress(NotProven):
                name, number = f"{relation} spreads from the tile of kind {kind}", len(self.lemmas)
                self.learn(name, [defined.spreads(relation, kind, at) for at in defined.places], definitions)
                defined.once.add(kind)
                for at in defined.places:
                    numbers = (defined.number_of[relation], kind, number)
                    yield Hypothesis("Apart", numbers, at, defined.apart(relation, at))

    def follows(self, name: str, goal: Truth) -> Lemma:
        """Return the proof of a goal from known facts.

        Raises:
            NotProven: the goal was not proven, or z3 has used an axiom that does not follow.
            NotCovered: the Coq theory does not cover it, or such an axiom.
        """
        defined = self.defined
        try:
            return self.lemma(name, goal, [*self.known, *defined.given((), {}), *defined.kinds()])
        except (NotProven, NotCovered) as error:
            if not self.later:
                raise next(iter(self.missing), error) from None
        definitions, later, self.later = defined.at_all_places(), self.later, {}
        hypotheses = [*definitions, *self.spreads(definitions)]
        for axiom, facts in later.items():
            self.learn_axiom(axiom, facts, hypotheses)
        return self.follows(name, goal)

    # the theorem

    def learn_axioms(self) -> list[Hypothesis]:
        """Prove the axioms that z3 used from the definitions, which are returned."""
        defined, z3 = self.defined, self.z3
        for name, before in defined.waits.items():
            bounds = [defined.stage(name), defined.stage(before) + 1]
            waited = [defined.waited(name, before, at) for at in defined.places]
            self.learn(f"{name} is a round later", waited, defined.given([CENTRE], {name: bounds}))
        definitions = [*defined.at_all_places(), *defined.turns(defined.places)]
        # each axiom at all places; its name may contain the place
        at_places = [self.theorem.axioms(defined.picture, at, defined.t).items() for at in defined.places]
        for of_places in zip(*at_places, strict=True):
            axioms, facts = [axiom_of(named) for named, _ in of_places], [z3.And(fact) for _, fact in of_places]
            if self.used.isdisjoint(axioms):
                continue
            if axioms[0].holds_on == "bipartite graphs":
                self.later[axioms[0]] = facts
            else:
                self.learn_axiom(axioms[0], facts, definitions)
        return definitions

    def signal(
        self, signal: IntEnum, value: Truth, shown: Truth, after: Truth, definitions: Sequence[Hypothesis]
    ) -> Signal:
        """Prove the lemmas about a signal.

        Args:
            signal: the signal.
            value: the value that the theorem states.
            shown: the value that its rule gives.
            after: the value that the theorem states after the next iteration.
            definitions: the facts that follow from the definitions.

        Raises:
            NotProven: a lemma was not proven.
            NotCovered: the Coq theory does not cover a lemma.
        """
        z3, defined, name, inside = self.z3, self.defined, signal.name, self.defined.picture.inside()
        lemmas = [
            self.follows(f"{name} is off at first", z3.Or(z3.Not(defined.t <= 0), z3.Not(value))),
            self.follows(f"{name} is off beyond the edge", z3.Or(inside, z3.Not(value))),
        ]
        pooled = signal in self.automaton.pooled
        comes = z3.Or(z3.Not(shown), after) if pooled else shown == after
        lemmas.append(self.follows(f"{name} {SAID}", z3.Or(z3.Not(inside), comes)))
        if not pooled:
            return Signal(lemmas)
        for switch in self._switches():
            switched = z3.Or(z3.Not(inside), z3.Or(z3.Not(after), switch.why(shown)))
            hypotheses = [*self.known, *definitions, *defined.kinds()]
            with suppress(NotProven):
                return Signal([*lemmas, self.lemma(f"{name} is switched on", switched, hypotheses)], switch)
        raise NotProven(f"{self.automaton.name}: no tile that shows why a relation comes on switches {name} on")

    def _switches(self) -> Iterator[Switch]:
        """Yield the tiles at which a pooled signal may be switched on, the simplest first."""
        z3, defined, picture = self.z3, self.defined, self.defined.picture
        yield Switch(lambda shown: shown)
        for relation in defined.pooled:
            stage = picture.of_map(defined.stages[relation])
            comes = defined.rule_before(relation, stage)
            why = partial(lambda stage, comes, shown: z3.And(stage >= 0, z3.Or(z3.Not(comes), shown)), stage, comes)
            yield Switch(why, [*defined.of_map].index(defined.stages[relation]))
        numbers = self.theorem.rounds(picture, defined.t)
        for (i, rounds), number in product(enumerate(defined.resting, len(defined.of_map)), numbers):
            comes = z3.BoolVal(False)
            for name in reversed(defined.layer(defined.resting[rounds][0])):
                stage = defined.stage(name)
                comes = z3.Or(z3.And(stage <= number, number <= stage), comes)
            in_rounds = z3.And(number >= 0, number + 1 <= picture.of_map(rounds))
            why = partial(lambda when, comes, shown: z3.And(when, z3.Or(z3.Not(comes), shown)), in_rounds, comes)
            yield Switch(why, i, defined.below(number, z3.IntVal(0)))

    def answers(self, shown: Mapping[IntEnum, Truth]) -> list[Shown]:
        """Prove that the answers show nothing else, and all of it within the bound.

        Args:
            shown: the values that their rules give.

        Raises:
            NotProven: a lemma was not proven.
            NotCovered: the Coq theory does not cover a lemma.
        """
        z3, picture, proofs, bound = self.z3, self.defined.picture, list[Shown](), self.automaton.bound
        outside = z3.Not(picture.inside())
        for signal, answer in zip(self.automaton.answers, self.theorem.answers, strict=False):
            assert bound is not None
            wanted, moves = z3.And(answer.shown(picture, CENTRE)), int(bound.per_move) * answer.n_moves(picture)
            least = int(bound.constant) + moves + int(bound.per_tile) * picture.of_map(N_TILES)
            due = least - self.defined.t - 1 <= 0
            nothing_else = z3.Or(outside, z3.Or(z3.Not(shown[signal]), wanted))
            whole = z3.Or(outside, z3.Or(z3.Not(due), shown[signal] == wanted))
            lemmas = [
                self.follows(f"{signal.name} shows nothing else", nothing_else),
                self.follows(f"{signal.name} shows all", whole),
            ]
            line = self.defined.below(least, z3.IntVal(0))
            proofs.append(Shown(int(signal), self.defined.fact(wanted), line, lemmas))
        return proofs

    def text(self) -> str:
        """Return the text of the file Lemmas.v.

        Raises:
            NotProven: a lemma was not proven.
            NotCovered: the Coq theory does not cover the theorem.
        """
        defined, automaton, says = self.defined, self.automaton, self.theorem.signals
        assert says is not None
        picture, t = defined.picture, defined.t

        def state(at: Place) -> Mapping[IntEnum, Truth]:
            """Return the theorem's values of a tile's signals, and unknowns for signals without a stated value."""
            return {**{s: defined.held(s, at) for s in automaton.signals}, **says(picture, at, t)}

        see, now = read_at(picture, CENTRE, cache(state)), says(picture, CENTRE, t)
        after, definitions = says(picture, CENTRE, t + 1), self.learn_axioms()
        shown = {signal: automaton.terms[signal].read_by(see) for signal in (*now, *automaton.answers)}
        signals = {s: self.signal(s, value, shown[s], after[s], definitions) for s, value in now.items()}
        answers = self.answers(shown)
        values = {signal: defined.fact(self.z3.And(value)) for signal, value in now.items()}
        return self._printed(values, signals, answers)

    def _printed(
        self, values: Mapping[IntEnum, Fact], signals: Mapping[IntEnum, Signal], answers: Sequence[Shown]
    ) -> str:
        defined, automaton = self.defined, self.automaton
        relations = [
            f"(* {i} {printed_name(name)} *) Relation {layer} {str(name in defined.pooled).lower()} "
            f"{printed_fact(defined.rule_of(name))}"
            for i, (name, layer) in enumerate(defined.layers.items())
        ]
        of_map = [
            f"(* {printed_name(name)} *) ({defined.number_of[of]}, "
            f"{'None' if kind is None else f'Some {int(kind)}'})%nat"
            for name, (of, kind) in defined.of_map.items()
        ]
        begins, follows = (
            [
                f"(* {int(name)} {printed_name(name.name)} *) {printed_rule(defined.games[name][i])}"
                for name in defined.played
            ]
            for i in (0, 1)
        )
        stated = [f"Some {printed_fact(values[s])}" if s in values else "None" for s in automaton.signals]
        wanted = [f"({of}%nat, ({printed_fact(fact)}, {printed_sum(least)}))" for of, fact, least, _ in answers]
        witnesses, changes = list[str](), list[str]()
        for signal, (_, switch) in signals.items():
            if switch is not None and switch.round is not None:
                changes.append(f"({int(signal)}%nat, ({switch.number}%nat, {printed_sum(switch.round)}))")
            elif switch is not None and switch.number is not None:
                witnesses.append(f"({int(signal)}, {switch.number})%nat")
        resting = printed_list([str(defined.layers[of[0]]) for of in defined.resting.values()])
        once = printed_list([str(int(kind)) for kind in sorted(defined.once)])
        statement = (
            f"Statement its_automaton\n"
            f"  {printed_list(relations, LINES)}\n  {printed_list(of_map)} {once}%nat\n"
            f"  {printed_list(begins, LINES)} {printed_list(follows, LINES)} {len(automaton.kinds)}\n"
            f"  {printed_list(stated, LINES)}\n  {printed_list(wanted, LINES)}\n  {printed_list(witnesses)}\n"
            f"  {resting}%nat {printed_list(changes)}"
        )
        proofs = [lemma for of_signal in signals.values() for lemma in of_signal.lemmas]
        proofs += [lemma for of_answer in answers for lemma in of_answer.lemmas]
        terms = {
            "its_automaton": printed_automaton(automaton),
            "its_statement": statement,
            "its_lemmas": printed_list([*map(printed_lemma, self.lemmas)], LINES),
            "its_proofs": printed_list([*map(printed_proof, proofs)], LINES),
        }
        return printed_file("Lemmas", f"the theorem of {automaton.name}, from a fresh start", terms)


def printed_theorem(proof: Proof) -> str:
    """Return the text of the Coq file with an automaton, its theorem and the proofs of its lemmas.

    Raises:
        NotProven: a lemma was not proven.
        NotCovered: the proof does not hold, or Coq does not cover its theorem.
    """
    if proof.verdict not in ("correct", "characterised"):
        name = proof.automaton.name
        raise NotCovered(f"Coq proves what z3 proves first; nothing is proven about the signals and answers of {name}")
    return Guide(proof).text()
