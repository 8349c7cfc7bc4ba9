"""Prints the theorem of an automaton for Coq, with the steps that lead Coq's checker through each of its lemmas.

z3 serves as a guide that nobody has to trust: for each lemma it finds the facts that the lemma needs, and the linear
facts that contradict its atoms. Coq computes the lemma itself from the rules and from the theorem's statement about
each signal, and searches by case distinctions (`proofs/Facts.v`). Axioms become lemmas too, which follow from the
definitions of their ghosts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from enum import IntEnum
from functools import cache, partial, reduce
from itertools import product
from operator import or_
from typing import Any, NamedTuple, cast

from maze_nca_gym.mazes.facts import (
    CENTRE,
    Derived,
    Game,
    Later,
    Picture,
    Place,
    Relation,
    StageAt,
    axiom_of,
    moved,
)
from maze_nca_gym.mazes.neighbours import Offset, offsets
from maze_nca_gym.mazes.relations import N_TILES, SPREAD
from maze_nca_gym.mazes.small import kinds_once
from maze_nca_gym.mazes.terms import Term, TileKind

from ..automaton import NEIGHBOURHOODS
from ..proving.contexts import Z3
from ..proving.proof import Proof
from ..proving.prover import SAID, _SymbolicPicture, reading
from .clauses import Linear, NotProven, Variable, refutation
from .coq import NotCovered, printed_automaton, printed_comment, printed_file, printed_list, printed_name, printed_rule

TAP_AT = {offsets(tap)[0]: tap for tap in NEIGHBOURHOODS[9]}
OF_MAP = {"t": -1, N_TILES: -2, SPREAD: -3}
"""The numbers by which `proofs/Characterised.v` refers to numbers of the whole map."""


class Hypothesis(NamedTuple):
    """A fact that a lemma may use: its name in Coq, the place where it holds, and the fact as a z3 expression."""

    name: str
    at: Place
    fact: Any


def _int(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _at(at: tuple[int, int]) -> str:
    return f"({_int(at[0])}, {_int(at[1])})"


def _printed_line(line: Linear) -> str:
    terms = (f"({_int(c)}, ({_int(n)}, {_at(at)}))" for c, (n, at) in line.terms)
    return f"(Lin {_int(line.constant)} {printed_list(list(terms))})"


def _offset(at: Place) -> Offset:
    return at.count("D") - at.count("U"), at.count("R") - at.count("L")


class _Rule:
    """A picture whose values are terms, so that a rule of a game becomes an expression."""

    def __init__(self, names: type[IntEnum], n_kinds: int) -> None:
        self._names, self._n_kinds = names, n_kinds

    def tile(self, kind: int, at: Place = CENTRE) -> Term:
        return Term(TileKind(kind), TAP_AT[_offset(at)])

    def inside(self, at: Place = CENTRE) -> Term:
        return reduce(or_, (self.tile(kind, at) for kind in range(self._n_kinds)))

    def true(self, ghost: str, at: Place = CENTRE, when: None = None) -> Term:
        return Term(self._names[ghost], TAP_AT[_offset(at)])


class _Defined(_SymbolicPicture):
    """A picture of symbols in which a derived boolean (`facts`) is replaced by its definition. If `bound` is set, a
    relation (`stages`) is on only where it comes on before that round."""

    facts: Mapping[str, Callable[[Picture, Place], Any]] = {}
    stages: Mapping[str, str] = {}
    bare, bound = False, None

    def true(self, ghost: str, at: Place = CENTRE, when: Any = None) -> Any:
        if ghost in self.facts:
            return self.facts[ghost](self, at)
        on = super().true(ghost, at, when)
        if ghost in self.stages and self.bound is not None:
            return on.arg(0) & (self.number(self.stages[ghost], at) < self.bound)
        return on.arg(0) if self.bare else on  # relations are off beyond the edge

    def seen(self, **attributes: Any) -> _Defined:
        """Return a picture of the same symbols with other attributes."""
        picture = copy(self)
        vars(picture).update(attributes)
        return picture


class Guide:
    """Translates the facts of a theorem, and the reasons why they hold, from z3 to Coq.

    Raises:
        ValueError: the theorem uses ghosts without a known definition, or anything else that the Coq theory does not
            cover.
    """

    def __init__(self, proof: Proof) -> None:
        z3 = Z3()
        self.automaton, self.theorem, self.z3 = proof.automaton, proof.theorem, z3
        automaton = self.automaton
        if not self.theorem.relations or self.theorem.signals is None:
            raise NotCovered(
                "Coq proves automata in terms of relations that are a fixpoint, such as distances, or of games; "
                f"{automaton.name} needs more"
            )
        self.lemmas, self.known = list[str](), list[Hypothesis]()
        # axioms that do not follow, or not yet
        self.missing, self.later = list[NotProven | NotCovered](), dict[str, Sequence[Any]]()
        self.used = {name for each in proof.lemmas if each.about in ("signal", "answer") for name in each.axioms}
        self.picture = _Defined(z3, is_grid=True)
        self.t = self.picture.of_map("t")
        found = self.theorem.relations
        games = {name: each for name, each in found.items() if isinstance(each, Game)}
        self.played = IntEnum("Played", [*games], start=0)  # type: ignore[misc]
        reads = cast(Any, _Rule(self.played, len(automaton.kinds)))
        self.games = [(game.first(reads, CENTRE), game.then(reads, CENTRE)) for game in games.values()]
        derived = {name: each.fact for name, each in found.items() if isinstance(each, Derived)}
        # a fact that reads numbers of the map is no relation, but stands for what it says
        bare, of_map = self.picture.seen(bare=True), set[str]()
        for name, fact in derived.items():
            seen = bare.seen(made={})
            fact(seen, CENTRE)
            of_map |= {name for _, at in seen.made if at is None}
        self.picture.facts, self.facts = {name: derived[name] for name in of_map}, {*derived} - of_map
        rules = {
            name: each.fact if isinstance(each, Derived) else each.rule
            for name, each in found.items()
            if isinstance(each, (Relation, Later, Derived)) and name not in of_map
        }
        self.rules = rules
        relations = {name: each for name, each in found.items() if isinstance(each, Relation)}
        self.stages = {name: relations[name].stage if name in relations else f"{name} stage" for name in self.rules}
        self.pooled = [name for name, each in relations.items() if each.everywhere]
        # numbers of the map: the stage of a relation that is the same everywhere, or at the only tile of a kind
        at_tiles = {name: each for name, each in found.items() if isinstance(each, StageAt)}
        self.of_map: dict[str, tuple[str, int | None]] = {
            **{self.stages[name]: (name, None) for name in self.pooled},
            **{name: (at.of, at.kind) for name, at in at_tiles.items()},
        }
        # relations that only follow another one, a round later
        only = {name: rule(bare, CENTRE) for name, rule in rules.items() if name not in (*self.facts, *self.pooled)}
        self.waits = {name: other for name, other in product(only, only) if only[name].eq(bare.true(other))}
        self.once = {kind for _, kind in self.of_map.values() if kind is not None}
        self.places = sorted((moved(CENTRE, tap) for tap in automaton.taps), key=lambda at: at != CENTRE)
        self.numbers = {
            **OF_MAP,
            "kind": 0,
            **{stage: 1 + i for i, stage in enumerate(self.stages.values())},
            **{name: i for i, name in enumerate(self.stages)},
            **{f"held {signal.name}": -1 - 100 * int(signal) for signal in automaton.signals},
            **{name.name: -1 - 100 * int(name) for name in self.played},
        }
        self.layers = self._layers()

    def _layers(self) -> dict[str, int]:
        """Return the layer of each relation, after those of what it reads: at once if it reads that they are on, or in
        a later one if it reads their stages, or that they are off and does not stay on, or is no more than a fact.

        Raises:
            ValueError: a rule reads the stages of its own layer, or that what it decides is off.
        """
        layers, names = dict.fromkeys(self.rules, 0), [*self.rules]
        bare = self.picture.seen(bare=True)
        facts = [self.fact(self.z3.And(rule(bare, CENTRE))) for rule in self.rules.values()]
        for _ in range(len(names) + 1):
            before = dict(layers)
            for i, (name, fact) in enumerate(zip(names, facts, strict=True)):
                stays = not isinstance(fact, bool) and fact[:2] == ("Either", (i, (0, 0)))
                for other, how in self._read(fact):
                    later = name in self.facts or how == "stage" or (how == "off" and not stays)
                    layers[name] = max(layers[name], before[names[other]] + later)
            if layers == before:
                return layers
        raise NotCovered(
            f"{self.automaton.name}: a rule of {', '.join(names)} reads stages that it decides, or negates"
        )

    def _read(self, f: Any, on: bool = True) -> Iterator[tuple[int, str]]:
        """Yield the relations that a fact reads, by number, and how it reads them: "stage", "on" or "off"."""
        if isinstance(f, Linear):
            yield from ((n - 1, "stage") for _, (n, _) in f.terms if n > 0)
        elif not isinstance(f, bool) and isinstance(f[0], int):
            yield f[0], "on" if on else "off"
        elif not isinstance(f, bool):
            for part in f[1:]:
                yield from self._read(part, on != (f[0] == "No"))

    # z3 to Coq

    def _variable(self, symbol: Any) -> Variable:
        name, *at = re.fullmatch(r"(.*?)(?: (-?\d+) (-?\d+))?", symbol.decl().name()).groups(default=0)  # type: ignore[union-attr]
        if not at[0] and name in self.of_map:
            return -4 - [*self.of_map].index(name), (0, 0)
        if name not in self.numbers:
            raise NotCovered(f"Coq knows no definition of the ghost {name} of {self.automaton.name}")
        ago = 0
        if name in self.played.__members__:
            when = self._sum(symbol.arg(0))
            ago = 2 - when.pop(None, 0)
            if when != {(OF_MAP["t"], (0, 0)): 1} or not 0 < ago < 100:
                raise NotCovered(f"Coq knows the ghost {name} at t and up to 97 iterations ago, not at {symbol.arg(0)}")
        return self.numbers[name] - ago, (int(at[0]), int(at[1]))

    def _sum(self, e: Any, factor: int = 1) -> dict[Any, int]:
        """Return the coefficients of an expression of z3, and its constant under None."""
        z3, found = self.z3, dict[Any, int]()
        if z3.is_int_value(e):
            return {None: factor * e.as_long()}
        kind, children = e.decl().kind(), e.children()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return {self._variable(e): factor}
        factors = {z3.Z3_OP_ADD: (1,) * len(children), z3.Z3_OP_SUB: (1, *(-1,) * (len(children) - 1))}
        factors[z3.Z3_OP_UMINUS] = (-1,)
        if kind == z3.Z3_OP_MUL and z3.is_int_value(children[0]):
            return self._sum(children[1], factor * children[0].as_long())
        if kind not in factors:
            raise NotCovered(f"Coq knows no meaning of {e} in the theorem of {self.automaton.name}")
        for child, sign in zip(children, factors[kind], strict=True):
            for var, c in self._sum(child, factor * sign).items():
                found[var] = found.get(var, 0) + c
        return found

    def _below(self, less: Any, more: Any, strict: bool = False) -> Linear:
        total = self._sum(less)
        for var, c in self._sum(more, -1).items():
            total[var] = total.get(var, 0) + c
        constant = total.pop(None, 0) + strict
        return Linear(constant, tuple((c, var) for var, c in sorted(total.items()) if c))

    def linear(self, number: Any) -> Linear:
        """Return a z3 integer expression as a `Linear`."""
        return self._below(number, self.z3.IntVal(0))

    def fact(self, e: Any) -> Any:
        """Return a z3 boolean in the form that `refutation` takes, a tree of tuples such as ("No", fact)."""
        z3, kind, c = self.z3, e.decl().kind(), e.children()
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return kind == z3.Z3_OP_TRUE
        if kind == z3.Z3_OP_UNINTERPRETED:
            return self._variable(e)
        if kind == z3.Z3_OP_NOT:
            return "No", self.fact(c[0])
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
            word = "Both" if kind == z3.Z3_OP_AND else "Either"
            return reduce(lambda f, g: (word, f, g), map(self.fact, c)) if c else kind == z3.Z3_OP_AND
        if kind == z3.Z3_OP_IMPLIES:
            return "Either", ("No", self.fact(c[0])), self.fact(c[1])
        if kind in (z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT, z3.Z3_OP_XOR):
            if z3.is_bool(c[0]):
                f, g = map(self.fact, c)
                alike: Any = ("Either", ("Both", f, g), ("Both", ("No", f), ("No", g)))
            else:
                alike = ("Both", self._below(*c), self._below(c[1], c[0]))
            return alike if kind == z3.Z3_OP_EQ else ("No", alike)
        orders = {
            z3.Z3_OP_LE: (0, 1, False),
            z3.Z3_OP_LT: (0, 1, True),
            z3.Z3_OP_GE: (1, 0, False),
            z3.Z3_OP_GT: (1, 0, True),
        }
        if kind not in orders:
            raise NotCovered(f"Coq knows no meaning of {e} in the theorem of {self.automaton.name}")
        less, more, strict = orders[kind]
        return self._below(c[less], c[more], strict)

    # what may be supposed

    def layer(self, name: str) -> list[str]:
        """Return the relations that are in the same layer as a relation."""
        return [each for each in self.layers if self.layers[each] == self.layers[name]]

    def _most(self, name: str) -> Any:
        """Return the largest stage that a relation may have."""
        layer, tiles = self.layer(name), self.picture.of_map(N_TILES)
        return self.picture.of_map(SPREAD) if layer == [*self.rules][:1] else len(layer) * tiles - 1

    def _bounds(self, name: str) -> Iterator[Any]:
        """Yield the rounds for which the proof assumes by which tiles a relation is on."""
        yield from (self.z3.IntVal(0), self.t, self._most(name) + 1)
        for each in self.layer(name):
            here = self.picture.number(self.stages[each])
            yield from (here + 1,) if each in self.waits else (here - 1, here, here + 1)

    def definitions(self, places: Iterable[Place], steps: Mapping[str, Sequence[Any]]) -> Iterator[Hypothesis]:
        """Yield the consequences of the relations' definitions at some places, as `given_fact` of
        `proofs/Characterised.v` states them; for some relations, also the rounds by which they are on."""
        z3, picture = self.z3, self.picture
        tiles, spread = picture.of_map(N_TILES), picture.of_map(SPREAD)
        yield Hypothesis("Sizes", CENTRE, z3.And(spread >= 0, spread < tiles))

        for at in places:
            inside = picture.inside(at)
            for number, (of_map, (of, kind)) in enumerate(self.of_map.items()):
                other = False if kind is None else z3.Not(picture.tile(kind, at))
                alike = z3.Or(other, picture.number(self.stages[of], at) == picture.of_map(of_map))
                yield Hypothesis(f"Alike {number}", at, z3.Or(z3.Not(inside), alike))
            for name, rule in self.stages.items():
                number, on, stage = self.numbers[name], self._on(name, at), picture.number(rule, at)
                known = z3.Or(z3.And(on, inside, stage >= 0), z3.And(z3.Not(on), stage == -1))
                yield Hypothesis(f"Range {number}", at, known)
                yield Hypothesis(f"Few {number}", at, z3.Or(z3.Not(on), stage <= self._most(name)))
                for bound in (z3.IntVal(0), stage) if name in self.facts else steps.get(name, ()):
                    line = self.linear(bound)
                    moved_back = tuple(
                        (c, (n, (r - _offset(at)[0], q - _offset(at)[1]) if n >= 0 else (r, q)))
                        for c, (n, (r, q)) in line.terms
                    )
                    comes, is_on = self.rule_before(name, bound, at), z3.And(on, stage <= bound)
                    then = z3.Or(z3.Not(comes), is_on) if name in self.pooled else comes == is_on
                    fact = z3.Or(bound < 0, z3.Or(z3.Not(inside), then))
                    yield Hypothesis(f"Step {number} {_printed_line(Linear(line.constant, moved_back))}", at, fact)

    def turns(self, places: Iterable[Place]) -> Iterator[Hypothesis]:
        """Yield the consequences of a game's definition at some places in the last iterations."""
        for at, name, ago in product(places, self.played, (1, 2, 3)):
            when, (first, then) = self.t + (2 - ago), self.games[name]

            def before(there: Place, when: Any = when) -> Mapping[IntEnum, Any]:
                return {each: self.picture.true(each.name, there, when - 1) for each in self.played}

            see, begins = reading(self.picture, before, at), when <= 0
            comes = (begins & first.read_by(see)) | (~begins & then.read_by(see))
            on = self.picture.true(name.name, at, when).arg(0)
            yield Hypothesis(f"Turn {int(name)} {ago}", at, on == (self.picture.inside(at) & comes))

    def waited(self, name: str, before: str, at: Place) -> Any:
        """Return, as a z3 boolean, that a relation comes on at a tile one round after another relation."""
        on, later = self._on(name, at), self._on(before, at)
        stage, earlier = (self.picture.number(self.stages[each], at) for each in (name, before))
        return self.z3.And(on == later, self.z3.Implies(on, stage == earlier + 1))

    def rule_before(self, name: str, bound: Any, at: Place = CENTRE) -> Any:
        """Return, as a z3 boolean, whether a relation's rule is true if the relations of its layer are on as before a
        round."""
        layer = {each: self.stages[each] for each in self.layer(name)}
        return self.rules[name](self.picture.seen(bare=True, bound=bound, stages=layer), at)

    def earlier(self, along: str, facts: Iterable[Any]) -> Iterator[Hypothesis]:
        """Yield that a fact, which is given for each of the places, is true where a relation comes on earlier."""
        for at, fact in zip(self.places, facts, strict=True):
            here, there = (self.picture.number(self.stages[along], place) for place in (CENTRE, at))
            if at != CENTRE:
                known = self.z3.Or(there < 0, self.z3.Or(here <= there, fact))
                yield Hypothesis(f"Earlier {self.numbers[along]}", at, known)

    def _on(self, relation: str, at: Place) -> Any:
        """Return whether a relation is on; beyond the edge it is off."""
        return self.picture.true(relation, at).arg(0)

    def kinds(self) -> Iterator[Hypothesis]:
        """Yield that each tile has one of the task's kinds, or -1 beyond the edge, and that t is at least 0."""
        yield Hypothesis("Times", CENTRE, self.t >= 0)
        for (name, at), kind in list(self.picture.made.items()):
            if name == "kind" and at is not None:
                yield Hypothesis("Kinds", at, self.z3.And(kind >= -1, kind < len(self.automaton.kinds)))

    # the way to a lemma

    def proof(self, name: str, goal: Any, hypotheses: list[Hypothesis]) -> str:
        """Return the text of a Coq term that proves a goal from hypotheses.

        Raises:
            NotProven: z3 does not prove the goal, or its proof has no refutation that Coq can follow.
        NotCovered: the goal or a hypothesis is about something that the Coq theory does not cover.
        """
        z3, solver = self.z3, self.z3.Solver()
        solver.set("timeout", 60_000)
        solver.set("core.minimize", True)
        solver.add(z3.Not(goal))
        for number, each in enumerate(hypotheses):
            solver.assert_and_track(each.fact, f"h{number}")
        if solver.check() != z3.unsat:
            raise NotProven(f"{self.automaton.name}: the lemma {name!r} does not follow from its ghosts' definitions")
        used = [hypotheses[int(str(each)[1:])] for each in solver.unsat_core()]
        for each in list(used):
            fewer, rest = z3.Solver(), [other for other in used if other is not each]
            fewer.set("timeout", 3_000)
            fewer.add(z3.Not(goal), *(other.fact for other in rest))
            if fewer.check() == z3.unsat:
                used = rest
        try:
            found = refutation(z3, [self.fact(z3.Not(goal)), *(self.fact(each.fact) for each in used)])
        except NotProven as error:
            raise NotProven(f"{self.automaton.name}: nothing leads Coq to the lemma {name!r}: {error}") from error
        listed = [f"({each.name}, {_at(_offset(each.at))})" for each in used]
        why = [
            [self.printed(atom) for atom in found.atoms],
            [_at(node) for node in found.nodes],
            [_int(root) for root in found.roots],
            [printed_list([_at(term) for term in claim]) for claim in found.claims],
            [
                f"({printed_list([*map(_int, clause)])}, {printed_list([*map(str, uses)])}%positive)"
                for clause, uses in found.cuts
            ],
        ]
        return f"Proof {printed_list(listed)} (Refutation {' '.join(map(printed_list, why))})"

    def printed(self, f: Any) -> str:
        """Return a fact, in the form that `fact` returns, as the text of a Coq term."""
        if isinstance(f, bool):
            return f"(Always {str(f).lower()})"
        if isinstance(f, Linear) and f[:1] == (0,) and [(c, n) for c, (n, _) in f.terms] == [(-1, 0)]:
            return f"(on_map {_at(f.terms[0][1][1])})"
        if isinstance(f, Linear):
            return f"(Below {_printed_line(f)})"
        if len(f) == 3 and isinstance(f[1], Linear) and isinstance(f[2], Linear) and [c for c, _ in f[1].terms] == [1]:
            (_, (n, at)), *_ = f[1].terms
            if f == ("Both", f[1], Linear(-f[1].constant, ((-1, (n, at)),))):
                return f"(number_is {_int(-f[1].constant)} ({_int(n)}, {_at(at)}))"
        if isinstance(f[0], int):
            return f"(Truth {_int(f[0])} {_at(f[1])})"
        return f"({f[0]} {' '.join(map(self.printed, f[1:]))})"

    def rule(self, relation: str) -> str:
        """Return the rule of a relation as the text of a Coq term."""
        return self.printed(self.fact(self.rules[relation](self.picture.seen(bare=True), CENTRE)))

    def learn(self, name: str, facts: Sequence[Any], given: Iterable[Hypothesis]) -> None:
        """Prove a lemma, given as a fact for each of the places; later proofs may use it.

        Raises:
            NotProven, NotCovered: as for `proof`.
        """
        leads = self.proof(name, facts[0], [*given, *self.known, *self.kinds()])
        self.known += [
            Hypothesis(f"Before {len(self.lemmas)}", at, f) for at, f in zip(self.places, facts, strict=True)
        ]
        self.lemmas.append(f"(* {printed_comment(name)} *) ({self.printed(self.fact(facts[0]))},\n    {leads})")

    def learn_axiom(self, name: str, facts: Sequence[Any], given: Sequence[Hypothesis]) -> None:
        """Prove an axiom of the library from definitions, or by induction along the stages of a relation. If neither
        works, the failure is stored in `missing` and not raised, because z3 may have used an axiom that the lemmas can
        do without."""
        try:
            return self.learn(name, facts, given)
        except (NotProven, NotCovered) as error:
            missing = error
        for along in self.stages:
            with suppress(NotProven):
                return self.learn(name, facts, [*given, *self.earlier(along, facts)])
        self.missing.append(missing)
        return None

    def spreads(self, definitions: Sequence[Hypothesis]) -> Iterator[Hypothesis]:
        """Prove of relations that they spread from neighbour to neighbour, beginning at a tile that occurs once. Yield
        that they do not come on at two neighbours at once."""
        for relation, kind in product(self.stages, kinds_once(self.automaton.problem)):
            stage = partial(self.picture.number, self.stages[relation])
            with suppress(NotProven):
                name = f"{relation} spreads from the tile of kind {kind}"
                self.learn(name, [self._spread(stage, kind, at) for at in self.places], definitions)
                self.once.add(kind)
                for at in self.places:
                    fact = self.z3.And(*(self._apart(stage(at), stage(moved(at, towards))) for towards in "DR"))
                    yield Hypothesis(f"Apart {self.numbers[relation]} {kind} {len(self.lemmas) - 1}", at, fact)

    def _spread(self, stage: Callable[[Place], Any], kind: int, at: Place) -> Any:
        z3, here = self.z3, stage(at)
        up, left, down, right = (
            z3.And(z3.Not(there < 0), there + 1 == here) for there in (stage(moved(at, towards)) for towards in "ULDR")
        )
        begins = z3.And(self.picture.tile(kind, at), here == 0)
        return z3.Or(here < 0, z3.Or(begins, z3.Or(z3.Or(up, left), z3.Or(down, right))))

    def _apart(self, one: Any, other: Any) -> Any:
        return self.z3.Or(one < 0, self.z3.Or(other < 0, self.z3.Not(one == other)))

    def follows(self, name: str, goal: Any) -> str:
        """Return the text of a Coq term that proves a goal from known facts.

        Raises:
            ValueError: as for `proof`; or z3 has used an axiom that does not follow.
        """
        try:
            return self.proof(name, goal, [*self.known, *self.definitions((), {}), *self.kinds()])
        except (NotProven, NotCovered) as error:
            if not self.later:
                raise next(iter(self.missing), error) from None
        definitions, later, self.later = self.defined(), self.later, {}
        given = [*definitions, *self.spreads(definitions)]
        for axiom, facts in later.items():
            self.learn_axiom(axiom, facts, given)
        return self.follows(name, goal)

    def defined(self) -> list[Hypothesis]:
        """Return the consequences of the definitions of all relations at all places."""
        steps = {name: [*self._bounds(name)] for name in self.rules if name not in self.waits}
        return list(self.definitions(self.places, steps))

    def text(self) -> str:
        """Return the text of the file Lemmas.v."""
        z3, picture, t, automaton, theorem = self.z3, self.picture, self.t, self.automaton, self.theorem
        signals, inside = automaton.signals, picture.inside()
        assert theorem.signals is not None
        says = theorem.signals

        def state(at: Place) -> Mapping[IntEnum, Any]:
            """What is said of a tile's signals, and of others that they hold anything."""
            return {**{s: self._on(f"held {s.name}", at) for s in signals}, **says(picture, at, t)}

        see, said, after = reading(picture, cache(state)), says(picture, CENTRE, t), says(picture, CENTRE, t + 1)
        # each axiom from the definitions
        for name, before in self.waits.items():
            here, earlier = (picture.number(self.stages[each]) for each in (name, before))
            waited = [self.waited(name, before, at) for at in self.places]
            self.learn(f"{name} is a round later", waited, self.definitions([CENTRE], {name: [here, earlier + 1]}))
        definitions = [*self.defined(), *self.turns(self.places)]
        at_places = [theorem.axioms(picture, at, t) for at in self.places]  # their names may have the place in them
        for names, facts in zip(
            zip(*at_places, strict=True), zip(*(at.values() for at in at_places), strict=True), strict=True
        ):
            axioms, stated = [*map(axiom_of, names)], [z3.And(fact) for fact in facts]
            if axioms[0].holds_on == "bipartite graphs" and not self.used.isdisjoint(axioms):
                self.later[str(axioms[0])] = stated
            elif not self.used.isdisjoint(axioms):
                self.learn_axiom(str(axioms[0]), stated, definitions)
        # each signal, and each answer, from the axioms
        proofs, witnesses = list[str](), list[str]()
        for signal, value in said.items():
            shown, name = automaton.terms[signal].read_by(see), signal.name
            proofs += [
                self.follows(f"{name} is off at first", z3.Or(z3.Not(t <= 0), z3.Not(value))),
                self.follows(f"{name} is off beyond the edge", z3.Or(inside, z3.Not(value))),
            ]
            if signal not in automaton.pooled:
                comes = z3.Or(z3.Not(inside), shown == after[signal])
                proofs.append(self.follows(f"{name} {SAID}", comes))
                continue
            comes = z3.Or(z3.Not(inside), z3.Or(z3.Not(shown), after[signal]))
            proofs.append(self.follows(f"{name} {SAID}", comes))
            for relation in (None, *self.pooled):
                why = shown  # each tile shows it
                if relation is not None:
                    stage = picture.of_map(self.stages[relation])
                    why = z3.And(stage >= 0, z3.Or(z3.Not(self.rule_before(relation, stage)), shown))
                there = z3.Or(z3.Not(inside), z3.Or(z3.Not(after[signal]), why))
                given = [*self.known, *definitions, *self.kinds()]
                with suppress(NotProven):
                    proofs.append(self.proof(f"{name} is switched on", there, given))
                    if relation is not None:
                        witnesses.append(f"({int(signal)}, {[*self.of_map].index(self.stages[relation])})%nat")
                    break
            else:
                raise NotProven(f"{automaton.name}: no tile that shows why a relation comes on switches {name} on")
        answers = []
        for signal, answer in zip(automaton.answers, theorem.answers, strict=False):
            wanted, bound = z3.And(answer.shown(picture, CENTRE)), automaton.bound
            assert bound is not None
            least = (
                int(bound.constant)
                + int(bound.per_move) * answer.n_moves(picture)
                + int(bound.per_tile) * picture.of_map(N_TILES)
            )
            shown, due = automaton.terms[signal].read_by(see), least - t - 1 <= 0
            nothing_else = z3.Or(z3.Not(inside), z3.Or(z3.Not(shown), wanted))
            whole = z3.Or(z3.Not(inside), z3.Or(z3.Not(due), shown == wanted))
            proofs += [
                self.follows(f"{signal.name} shows nothing else", nothing_else),
                self.follows(f"{signal.name} shows all", whole),
            ]
            answers.append(
                f"({int(signal)}%nat, ({self.printed(self.fact(wanted))}, {_printed_line(self.linear(least))}))"
            )
        values = [f"Some {self.printed(self.fact(z3.And(said[s])))}" if s in said else "None" for s in signals]
        relations = [
            f"(* {i} {printed_name(name)} *) Relation {layer} {str(name in self.pooled).lower()} {self.rule(name)}"
            for i, (name, layer) in enumerate(self.layers.items())
        ]
        of_map = [
            f"(* {printed_name(name)} *) ({self.numbers[of]}, {'None' if kind is None else f'Some {int(kind)}'})%nat"
            for name, (of, kind) in self.of_map.items()
        ]
        begins, follows = (
            [f"(* {int(name)} {printed_name(name.name)} *) {printed_rule(self.games[name][i])}" for name in self.played]
            for i in (0, 1)
        )
        lines, once = ";\n  ", printed_list([str(int(kind)) for kind in sorted(self.once)])
        statement = (
            f"Statement its_automaton\n"
            f"  {printed_list(relations, lines)}\n  {printed_list(of_map)} {once}%nat\n"
            f"  {printed_list(begins, lines)} {printed_list(follows, lines)} {len(automaton.kinds)}\n"
            f"  {printed_list(values, lines)}\n  {printed_list(answers, lines)}\n  {printed_list(witnesses)} [] []"
        )
        terms = {
            "its_automaton": printed_automaton(automaton),
            "its_statement": statement,
            "its_lemmas": printed_list(self.lemmas, lines),
            "its_proofs": printed_list(proofs, lines),
        }
        return printed_file("Lemmas", f"the theorem of {automaton.name}, from a fresh start", terms)


def printed_theorem(proof: Proof) -> str:
    """Return the text of the Coq file with an automaton, its theorem and the proofs of its lemmas.

    Raises:
        ValueError: the proof does not hold, or Coq does not cover its theorem.
    """
    if proof.verdict not in ("correct", "characterised"):
        name = proof.automaton.name
        raise NotCovered(f"Coq proves what z3 proves first; of the signals and answers of {name} nothing is proven")
    return Guide(proof).text()
