"""Facts about a tile as trees, like the module Facts of `proofs/Statements.v`, and their text for Coq.

Lemmas are stated, proven and refuted in these types. They are printed as text once, when a file is written, and the
text is never parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from maze_nca_gym.mazes.facts import Place, Truth
from maze_nca_gym.mazes.neighbours import Offset

from .coq import printed_comment, printed_int, printed_list, written_out


class Atom(NamedTuple):
    """A boolean or a number of a tile or of the whole map.

    Attributes:
        kind: a boolean of a tile: whether a relation is on ("relation"), a signal without a stated value ("held"), or a
            ghost of a game ("game"); a number of a tile: its kind ("tile"), or the stage of a relation ("stage"); or a
            number of the map: the iterations ("t"), the tiles ("n_tiles"), the tiles that a flood reaches minus one
            ("spread"), or another number ("of_map").
        number: the number of the relation, signal, ghost of a game or other number of the map.
        ago: the time of a ghost of a game: 1 is after the next iteration, 2 after this iteration, and so on up to 99.
        at: (rows down, columns to the right) from the tile in the middle to this tile; (0, 0) for the map.
    """

    kind: Literal["relation", "held", "game", "tile", "stage", "t", "n_tiles", "spread", "of_map"]
    number: int = 0
    ago: int = 0
    at: Offset = (0, 0)

    @property
    def code(self) -> tuple[int, Offset]:
        """The number by which the theory identifies the boolean or number, and the offset of its tile."""
        first = {"held": -1, "game": -1, "stage": 1, "t": -1, "n_tiles": -2, "spread": -3, "of_map": -4}
        step = {"held": -100, "game": -100, "of_map": -1}
        return first.get(self.kind, 0) + step.get(self.kind, 1) * self.number - self.ago, self.at


@dataclass(frozen=True)
class Below:
    """The fact that a constant plus a weighted sum of numbers is at most 0."""

    constant: int
    terms: tuple[tuple[int, Atom], ...]

    @property
    def over(self) -> Below:
        """The negation: the sum is at least 1."""
        return Below(1 - self.constant, tuple((-factor, number) for factor, number in self.terms))


@dataclass(frozen=True)
class No:
    """The negation of a fact."""

    fact: Fact


@dataclass(frozen=True)
class Both:
    """The conjunction of two facts."""

    one: Fact
    other: Fact


@dataclass(frozen=True)
class Either:
    """The disjunction of two facts."""

    one: Fact
    other: Fact


Fact: TypeAlias = "bool | Atom | Below | No | Both | Either"


def parts_of(fact: Fact) -> tuple[Fact, ...]:
    """Return the facts that a fact joins."""
    if isinstance(fact, No):
        return (fact.fact,)
    return (fact.one, fact.other) if isinstance(fact, (Both, Either)) else ()


class Hypothesis(NamedTuple):
    """A fact that a lemma may use: a `given` of `proofs/Characterised.v`.

    Attributes:
        kind: the definition or lemma from which it follows.
        numbers: the numbers of its relations, games, kinds of tile, lemmas or bound.
        at: the place where it holds.
        fact: the fact as a z3 boolean.
    """

    kind: Literal[
        "Kinds",
        "Times",
        "Sizes",
        "Range",
        "Few",
        "Alike",
        "Step",
        "Rests",
        "Rounds",
        "Before",
        "Turn",
        "Earlier",
        "Apart",
    ]
    numbers: tuple[int | Below, ...]
    at: Place
    fact: Truth


Claim: TypeAlias = tuple[tuple[int, int], ...]
"""Factors of linear facts, each with its literal; the weighted sum of these facts is absurd."""


class Refutation(NamedTuple):
    """A refutation of facts, in the form of `proofs/Facts.v`. A literal is a number n or, if negated, -n.

    Attributes:
        atoms: the atoms that the literals from 2 on stand for.
        nodes: pairs of literals, whose conjunctions the next literals stand for.
        roots: the literals of the facts.
        claims: sums of linear facts that are absurd.
        cuts: clauses, of which the last is empty, each with the numbers of the clauses from which it follows. Clauses
            are numbered from 1: TRUE, three clauses for each node, then facts, claims and cuts.
    """

    atoms: list[Atom | Below]
    nodes: list[tuple[int, int]]
    roots: list[int]
    claims: list[Claim]
    cuts: list[tuple[list[int], list[int]]]


class Lemma(NamedTuple):
    """A fact about the tile in the middle, with the data from which Coq proves it.

    Attributes:
        name: the fact in words.
        fact: the fact.
        used: the hypotheses from which it follows.
        why: the refutation of the hypotheses together with the fact's negation.
    """

    name: str
    fact: Fact
    used: list[Hypothesis]
    why: Refutation


def printed_pair(pair: tuple[int, int]) -> str:
    """Return two integers as the text of a Coq pair."""
    return f"({printed_int(pair[0])}, {printed_int(pair[1])})"


def _printed_number(number: Atom) -> str:
    code, at = number.code
    return f"({printed_int(code)}, {printed_pair(at)})"


def printed_sum(line: Below) -> str:
    """Return the sum of a linear fact as the text of a Coq term."""
    terms = [f"({printed_int(factor)}, {_printed_number(number)})" for factor, number in line.terms]
    return f"(Lin {printed_int(line.constant)} {printed_list(terms)})"


def printed_fact(fact: Fact) -> str:
    """Return a fact as the text of a Coq term.

    Raises:
        NotCovered: the text is too long.
    """
    return written_out(fact, _pieces)


def _pieces(fact: Fact) -> list[str | Fact]:
    """Return the text of a fact, with its parts in place of their texts."""
    if isinstance(fact, bool):
        return [f"(Always {str(fact).lower()})"]
    if isinstance(fact, Atom):
        code, at = fact.code
        return [f"(Truth {printed_int(code)} {printed_pair(at)})"]
    if isinstance(fact, Below):
        is_on_map = not fact.constant and [(factor, number.kind) for factor, number in fact.terms] == [(-1, "tile")]
        return [f"(on_map {printed_pair(fact.terms[0][1].at)})" if is_on_map else f"(Below {printed_sum(fact)})"]
    if isinstance(fact, Both) and isinstance(fact.one, Below) and [factor for factor, _ in fact.one.terms] == [1]:
        ((_, number),), value = fact.one.terms, -fact.one.constant
        if fact.other == Below(value, ((-1, number),)):
            return [f"(number_is {printed_int(value)} {_printed_number(number)})"]
    return [f"({type(fact).__name__}", *(piece for part in parts_of(fact) for piece in (" ", part)), ")"]


def printed_proof(lemma: Lemma) -> str:
    """Return the proof of a lemma as the text of a Coq term of type `proof`."""
    used = []
    for kind, numbers, at, _ in lemma.used:
        arguments = [printed_sum(number) if isinstance(number, Below) else str(number) for number in numbers]
        used.append(f"({' '.join([kind, *arguments])}, {printed_pair(offset_of(at))})")
    cuts = [
        f"({printed_list([*map(printed_int, clause)])}, {printed_list([*map(str, uses)])}%positive)"
        for clause, uses in lemma.why.cuts
    ]
    why = [
        [*map(printed_fact, lemma.why.atoms)],
        [*map(printed_pair, lemma.why.nodes)],
        [*map(printed_int, lemma.why.roots)],
        [printed_list([*map(printed_pair, claim)]) for claim in lemma.why.claims],
        cuts,
    ]
    return f"Proof {printed_list(used)} (Refutation {' '.join(map(printed_list, why))})"


def printed_lemma(lemma: Lemma) -> str:
    """Return a lemma as the text of a Coq pair of a fact and its proof."""
    return f"(* {printed_comment(lemma.name)} *) ({printed_fact(lemma.fact)},\n    {printed_proof(lemma)})"


def offset_of(at: Place) -> Offset:
    """Return the offset of the end of a walk on a grid: (rows down, columns to the right)."""
    return at.count("D") - at.count("U"), at.count("R") - at.count("L")
