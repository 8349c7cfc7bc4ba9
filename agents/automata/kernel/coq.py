"""Prints automata and networks for Coq, whose kernel then checks the theorems that the folder `proofs` states about
them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import compress, product
from typing import TYPE_CHECKING, Any

import numpy as np

from maze_nca_gym.mazes.facts import at_least
from maze_nca_gym.mazes.terms import Tape, Term, TileKind
from maze_nca_gym.support.options import check

from ..automaton import Automaton, NotCovered
from ..networks.linear import parts_of
from ..networks.patches import KIND_BITS, mask_of
from ..networks.states import find_worlds, following

if TYPE_CHECKING:
    from ...policies.learned.nca import NCA

PRINTED = {
    "Printed": (
        ("From MazeNCA Require Import Statements Network Worlds",),
        {
            "its_rules": "automaton",
            "its_network": "network",
            "its_parts": "list part",
            "its_taps": "list tap",
            "its_given": "list expr",
            "its_worlds": "list (holding * list nat)",
            "its_joins": "list (list nat)",
            "pace": "nat",
        },
    ),
    "Lemmas": (
        ("From MazeNCA Require Import Statements Facts Characterised", "Local Open Scope Z_scope"),
        {
            "its_automaton": "automaton",
            "its_statement": "statement",
            "its_lemmas": "list (fact * proof)",
            "its_proofs": "list proof",
        },
    ),
}
"""The printed files: the first lines of each file, and the terms that it may define, with their types."""
_COMMENT = re.compile(r"\(\*\*?[^*\"]*\*\)")
_TERM = re.compile(r"[\w\s()\[\];,%-]*")
"""A term of numbers, names, pairs and lists. Nothing else can be in it, for example no function and no type."""
LINES = ";\n  "
"""The separator of the items of a list that are printed in a line each."""
MOST_JOINED = 12
"""Largest number of operands of an operator other than `&`, `|` and `~`, which is printed as a table of its values."""
MOST_PIECES = 300_000
"""Largest number of pieces, such as "(And", of the text of a rule or fact."""


def printed_list(items: Sequence[str], between: str = "; ") -> str:
    """Return items as the text of a Coq list, with a separator between them."""
    return f"[{between.join(items)}]"


def printed_int(value: int) -> str:
    """Return an integer as the text of a Coq term."""
    return f"({value})" if value < 0 else str(value)


def printed_name(name: str) -> str:
    """Return a name as text that is allowed in a Coq comment."""
    return re.sub(r"\W", "_", name)


def printed_comment(text: str) -> str:
    """Return a text without the characters that could end a comment or begin a string in it."""
    return text.replace("*", "_").replace('"', "_")


def printed_tap(tap: str) -> str:
    """Return a tap as the text of a Coq term: "U" becomes (N U), and the centre C."""
    return "C" if tap == "C" else f"(N {tap})"


def written_out(whole: Any, pieces: Callable[[Any], Sequence[Any]]) -> str:
    """Return the text of a rule or fact. A part is written wherever it is used, because terms of Coq share no parts.

    Args:
        whole: the rule or fact.
        pieces: a function of a rule or fact that returns its text in pieces: texts, and its parts between them.

    Raises:
        NotCovered: the text is too long, because parts share parts many times.
    """
    texts, left = list[str](), [whole]
    while left:  # without recursion, as a rule may join thousands of parts one after another
        piece = left.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            left += reversed(pieces(piece))
        if len(texts) > MOST_PIECES:
            raise NotCovered("a rule or fact is too long for Coq, where no part is shared")
    return "".join(texts)


def printed_rule(rule: Term) -> str:
    """Return a rule as the text of a Coq term of type `expr`.

    Raises:
        NotCovered: the rule has an operator other than `&`, `|` and `~` with more than `MOST_JOINED` operands, or its
            text is too long.
    """
    return written_out(rule, cache(_pieces))


def _pieces(rule: Term) -> list[str | Term]:
    """Return the text of a rule, with its parts in place of their texts."""
    if rule.seen is not None:
        constructor = "Is" if isinstance(rule.seen, TileKind) else "See"
        return [f"({constructor} {int(rule.seen)} {printed_tap(rule.tap)})"]
    if number := _counted(rule):
        return [f"(at_least {number} [", *[piece for leaf in rule.leaves for piece in ("; ", leaf)][1:], "])"]
    names = {operator.and_: "And", operator.or_: "Or", operator.invert: "Not"}
    if rule.join in names:
        return [f"({names[rule.join]}", *(piece for part in rule.parts for piece in (" ", part)), ")"]
    if len(rule.parts) > MOST_JOINED:
        raise NotCovered(f"a rule joins {len(rule.parts)} parts by weights; Coq checks at most {MOST_JOINED}")
    assert rule.join is not None
    cases = product(np.array((False, True)), repeat=len(rule.parts))
    return _decided(rule.parts, [bool(rule.join(*case)) for case in cases])


def _counted(rule: Term) -> int:
    """Return the number with which `at_least` made a rule from its leaves, from 2 to less than all, or 0."""

    def end(part: Term) -> Term:
        while part.parts:
            part = part.parts[-1]
        return part

    # most rules end otherwise, and are not compared
    both = rule.parts[-1]
    if (rule.join, both.join) != (operator.or_, operator.and_) or end(rule.parts[0]) is not end(both.parts[0]):
        return 0
    steps, leaves = Tape([rule]).steps, rule.leaves
    return next((n for n in range(2, len(leaves)) if steps == Tape([at_least(n, leaves)]).steps), 0)


def _decided(parts: Sequence[Term], values: Sequence[bool]) -> list[str | Term]:
    """Return an operator as nested case distinctions over its operands, from the table of its values."""
    if len(set(values)) == 1:
        return ["(Not Never)" if values[0] else "Never"]
    (part, *rest), half = parts, len(values) // 2
    off, on = values[:half], values[half:]
    if off == on:
        return _decided(rest, off)
    with_it: list[str | Term] = [part] if all(on) else ["(And ", part, " ", *_decided(rest, on), ")"]
    if not any(off):
        return with_it
    if all(one <= other for one, other in zip(off, on, strict=True)):
        return ["(Or ", *with_it, " ", *_decided(rest, off), ")"]
    without = ["(And (Not ", part, ") ", *_decided(rest, off), ")"]
    return ["(Or ", *with_it, " ", *without, ")"] if any(on) else without


def printed_automaton(automaton: Automaton) -> str:
    """Return an automaton as the text of a Coq term, one line for each rule, with the signal's number and name."""
    rules = [
        f"(* {int(signal)} {printed_name(signal.name)} *) {printed_rule(automaton.terms[signal])}"
        for signal in automaton.signals
    ]
    pooled = printed_list([str(int(signal)) for signal in automaton.pooled])
    return f"Automaton {printed_list(rules, LINES)} {pooled}%nat"


def printed_network(model: NCA, automaton: Automaton) -> tuple[str, str]:
    """Return two texts of Coq terms: a network, and the channels of each signal.

    Args:
        model: a network with integer weights, and biases that are multiples of 1/2.
        automaton: the automaton that the network follows.

    Raises:
        NotCovered: the network has other weights or biases.
    """
    weight = model.weights[0].detach().double().numpy()
    bias = model.biases[0].detach().double().numpy()
    if (weight % 1).any() or (bias % 0.5).any():
        raise NotCovered(
            "the theory covers integer weights, and biases that are multiples of 1/2, unlike this network's"
        )
    n_kinds, rows = len(automaton.kinds), automaton.rows(model.channel_names)
    # a pair is read by two weights, which must follow each other
    order = [*range(n_kinds), *(n_kinds + row for of_signal in rows.values() for row in of_signal)]
    order += [i for i in range(weight.shape[1]) if i not in order]
    weights = []
    for of_channel, name in zip(weight, model.channel_names, strict=True):
        read = [
            f"W {printed_int(int(of_channel[i, place]))} {i} {printed_tap(tap)}"
            for place, tap in enumerate(automaton.taps)
            for i in order
            if of_channel[i, place]
        ]
        weights.append(f"(* {printed_name(name)} *) {printed_list(read)}")
    biases = printed_list([printed_int(int(2 * value)) for value in bias])
    parts = [f"Single {row[0]}" if len(row) == 1 else f"Pair {row[0]} {row[1]}" for row in rows.values()]
    n_pooled = len(automaton.pooled)
    return f"Network {n_kinds} ({biases})%Z {printed_list(weights, LINES)} {n_pooled}", printed_list(parts)


def printed_worlds(automaton: Automaton) -> str:
    """Return the possible states of tiles as the text of a Coq term: all worlds, each with the worlds that can follow
    it.

    Raises:
        ValueError: see `states.find_worlds`.
    """
    worlds = find_worlds(automaton).worlds
    everywhere = [next(iter(world.values()))[-1].states[0] if automaton.everywhere else 0 for world in worlds]
    places = {int(code): place for place, code in enumerate(everywhere)}
    lines, all_pooled = [], mask_of(automaton.pooled)
    pools = [mask_of(compress(automaton.pooled, on)) for on in product((0, 1), repeat=len(automaton.pooled))]
    for world in worlds:
        after = [code for code, _ in following(automaton, world)]
        # what cannot go on is refuted whatever world is named
        nexts = [places[next((code for code in after if code & all_pooled == pool), after[0])] for pool in pools]
        of_kinds = []
        for kind, components in world.items():
            groups = []
            for signals, states in components:
                # a signal that may be on or off whatever the others are needs no mention
                bound = [s for s in signals if not np.isin(states ^ mask_of([s]), states).all()]
                rows = np.unique(states[:, None] >> (KIND_BITS + np.array(bound, np.int64)) & 1, axis=0).tolist()
                if bound:
                    listed = printed_list([printed_list(["true" if bit else "false" for bit in row]) for row in rows])
                    groups.append(f"Component {printed_list([str(int(s)) for s in bound])} {listed}")
            of_kinds.append(f"({kind}, {printed_list(groups)})")
        lines.append(f"({printed_list(of_kinds, f';{chr(10)}    ')}, {printed_list([*map(str, nexts)])})")
    return printed_list(lines, LINES)


def printed_file(file: str, about: str, terms: Mapping[str, str]) -> str:
    """Return the text of a printed file, one of `PRINTED`.

    Args:
        file: its name, without .v.
        about: the object from which the file is printed, in words.
        terms: the terms that the file defines, by name.
    """
    begins, types = PRINTED[file]
    lines = [f"(** Printed from {printed_comment(about)}; do not edit. *)", *(f"{line}." for line in begins)]
    return "\n".join([*lines, *(f"Definition {name} : {types[name]} :=\n  {terms[name]}." for name in terms)]) + "\n"


def read_definitions(file: str, text: str) -> dict[str, str]:
    """Return the terms that the text of a printed file, one of `PRINTED`, defines: without comments and with single
    spaces, by name.

    Raises:
        ValueError: the file contains anything that `printed_file` does not write, such as an axiom, a function or a
            setting of Coq.
    """
    begins, types = PRINTED[file]
    sentences = [" ".join(sentence.split()) for sentence in re.split(r"\.(?=\s|$)", _COMMENT.sub(" ", text))]
    terms = dict[str, str]()
    check(tuple(sentences[: len(begins)]) == begins, f"it must begin with {'. '.join(begins)}")
    check(sentences.pop() == "", "its last sentence does not end")
    for sentence in sentences[len(begins) :]:
        head, _, term = sentence.partition(" := ")
        name = head.removeprefix("Definition ").partition(" : ")[0]
        expected = head == f"Definition {name} : {types.get(name)}" and name not in terms
        if not (expected and _TERM.fullmatch(term)):
            raise ValueError(f"{sentence[:60]!r} defines no list or number of {', '.join(types)}")
        terms[name] = term
    return terms


def printed_definitions(model: NCA, automaton: Automaton) -> dict[str, str]:
    """Return the texts of Coq terms by name: a network, the automaton that it follows, and the possible states of
    tiles.

    Args:
        model: a network with integer weights, and biases that are multiples of 1/2.
        automaton: an automaton that `linear.separated` returned.

    Raises:
        NotCovered: a rule or a network that the theory does not cover.
    """
    network, parts = printed_network(model, automaton)
    fact = automaton.fact
    # an invariant that excludes nothing is not needed
    invariants = [printed_rule(fact)] if fact is not None and find_worlds(automaton).assumed else []
    return {
        "its_rules": printed_automaton(automaton),
        "its_network": network,
        "its_parts": parts,
        "its_taps": printed_list(list(map(printed_tap, automaton.taps))),
        "its_given": printed_list(invariants),
        "its_worlds": printed_worlds(automaton),
    }


def printed_joins(automaton: Automaton, split: Automaton) -> dict[str, str]:
    """Return the texts of Coq terms by name: how the signals that `linear.separated` split make up the automaton's own
    signals, and the number of iterations for one iteration of the automaton that it slows."""
    signals, names = (automaton if automaton.slows is None else automaton.slows).signals, parts_of(automaton)
    parts = [names[automaton.signals[signal.name]] for signal in signals]
    joins = printed_list([printed_list([str(int(split.signals[name])) for name in of_signal]) for of_signal in parts])
    return {"its_joins": joins, "pace": str(automaton.pace)}
