"""Auxiliary signals for rules that no weighted sum decides: `helped` computes the parts of such a rule one iteration
earlier.

All other signals are delayed by the same number of iterations. The new automaton is therefore equivalent to the
original but slower: after `pace` times t iterations its signals are those of the original after t iterations, which
`prover` proves. Its bound is multiplied by `pace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from functools import cache, reduce
from operator import and_, invert, or_, xor

from maze_nca_gym.mazes.terms import Term, TileKind, Weighed
from maze_nca_gym.mazes.text import words

from ..automaton import Automaton, scaled
from .linear import misfits

PART = "_PART_"
"""Text in the name of an auxiliary signal, between the name of the signal that needs it and its number."""
MOST_PACE = 5
"""Largest number of iterations that may replace one iteration."""


@cache
def helped(automaton: Automaton) -> Automaton:
    """Return an equivalent automaton, perhaps slower, in which weighted sums decide all rules.

    If sums decide all rules already, it is the automaton itself. Otherwise the parts of a rule that `&`, `|` or `^`
    joins become signals, and if needed the parts of these parts too. An answer becomes a copy of a signal.

    Raises:
        ValueError: a rule without such parts, an automaton that heals or has signals that are the same everywhere, or
            signals with the names of auxiliary signals; the message names the signal.
    """
    known = dict[Term, tuple[Term, Term]]()
    plain = {signal: _plain(rule, known) for signal, rule in automaton.terms.items()}
    slower, source, copied, cut = automaton, dict(plain), False, set[Term]()
    while errors := misfits(slower):
        (error, *_) = errors.values()
        if automaton.heals or automaton.everywhere or automaton.slows is not None:
            raise error
        if taken := [signal.name for signal in automaton.signals if PART in signal.name]:
            raise ValueError(
                f"{taken[0]} of {automaton.name} has the name of an auxiliary signal that the network needs"
            )
        for signal, why in errors.items():
            if signal in slower.answers and not copied:
                continue
            if source[signal] in cut or not _is_joined(source[signal]):
                raise why
            cut.add(source[signal])
        copied |= any(signal in slower.answers for signal in errors)
        slower, source = _slowed(automaton, plain, cut, copied)
        if slower.pace > MOST_PACE:
            raise error
    return slower


def _slowed(
    automaton: Automaton, plain: Mapping[IntEnum, Term], cut: set[Term], copied: bool
) -> tuple[Automaton, dict[IntEnum, Term]]:
    """Return an automaton with a signal for each operand of the expressions in `cut`, and the rules of these signals in
    words.

    Args:
        automaton: the original automaton.
        plain: its rules, in which only inputs are negated.
        cut: the parts of the rules whose operands become signals.
        copied: whether the answers copy a signal.
    """

    @cache
    def delay(rule: Term) -> int:
        return 1 + max(map(delay, _operands(rule))) if rule in cut else 0

    latest = max(delay(rule) + (copied and signal in automaton.answers) for signal, rule in plain.items())
    own = [signal.name for signal in automaton.signals]
    # helpers by what they are of the automaton, and how many iterations later
    helpers, source = dict[tuple[Term, int], str](), dict[str, Term]()
    rules = dict[str, Callable[[type[IntEnum]], Term]]()

    def delay_by(number: int, name: str, rule: Term, stem: str) -> None:
        """Make a signal equal to a rule, delayed by a number of iterations; `stem` begins the names of its helpers."""
        source[name], read, is_cut = rule, list[str](), rule in cut and number == delay(rule)
        for part in _operands(rule) if is_cut else (rule,) if number else ():
            if (part, number) not in helpers:
                helpers[part, number] = f"{stem}{PART}{1 + len(helpers)}"
                delay_by(number - 1, helpers[part, number], part, stem)
            read.append(helpers[part, number])

        def says(enumeration: type[IntEnum]) -> Term:
            if not read:
                return _renamed(rule, enumeration)
            seen = [Term(enumeration[helper], "C") for helper in read]
            return rule.join(*seen) if is_cut and isinstance(rule.join, Weighed) else reduce(rule.join or or_, seen)

        rules[name] = says

    # every rule has the same delay, so all signals of an iteration are those of one earlier iteration
    for signal, rule in plain.items():
        delay_by(latest, signal.name, rule, signal.name)
    # the automaton with these signals, which takes `pace` iterations for one
    names = [*own, *(name for name in rules if name not in own)]
    enumeration: type[IntEnum] = IntEnum(f"{automaton.signals.__name__}Helped", names, start=0)  # type: ignore[misc]
    pace = 1 + latest
    kinds = [kind.name for kind in automaton.problem.kinds]
    slow = replace(
        automaton,
        signals=enumeration,
        rules={enumeration[name]: rules[name](enumeration) for name in names},
        bound=None if automaton.bound is None else scaled(automaton.bound, Fraction(pace)),
        also={name: scaled(bound, Fraction(pace)) for name, bound in automaton.also.items()},
        parts=(
            *(tuple(enumeration[s.name] for s in part) for part in automaton.parts),
            *((enumeration[n],) for n in names[len(own) :]),
        ),
        invariant=None if automaton.fact is None else _renamed(automaton.fact, enumeration),
        theorem=None,
        in_order=None,
        slows=automaton,
        pace=pace,
        helpers={name: words(source[name], kinds) for name in names[len(own) :]},
    )
    return slow, {enumeration[name]: rule for name, rule in source.items()}


def _renamed(rule: Term, enumeration: type[IntEnum]) -> Term:
    """Return a rule that reads the signals of the same names in another enumeration."""
    return rule.read_by(lambda seen, tap: Term(seen if isinstance(seen, TileKind) else enumeration[seen.name], tap))


@cache
def _operands(rule: Term) -> tuple[Term, ...]:
    """Return the operands of a term: first all inputs together as one operand, then the others; every part of a
    comparison."""
    if isinstance(rule.join, Weighed):
        return rule.parts
    rest = [part for part in rule.operands if _is_joined(part)]
    read = [part for part in rule.operands if not _is_joined(part)]
    return (*([reduce(rule.join, read)] if read and rule.join else []), *rest)


def _is_joined(rule: Term) -> bool:
    """Return whether a term has parts that may become signals."""
    return rule.join in (and_, or_) or (isinstance(rule.join, Weighed) and any(part.parts for part in rule.parts))


def _plain(rule: Term, known: dict[Term, tuple[Term, Term]]) -> Term:
    """Return an equivalent term in which only inputs are negated; `known` stores the result of each part and of its
    negation."""
    for part in rule.walk(known):
        plain = [known[operand] for operand in part.parts]
        if part.join is invert:
            known[part] = plain[0][::-1]
        elif part.join is xor:
            (one, no), (other, neither) = plain
            known[part] = (one & neither) | (no & other), (one & other) | (no & neither)
        elif part.join in (and_, or_):
            dual = {and_: or_, or_: and_}[part.join]
            on, off = zip(*plain, strict=True)
            known[part] = Term(join=part.join, parts=on), Term(join=dual, parts=off)
        elif isinstance(part.join, Weighed):
            on = tuple(on for on, _ in plain)
            known[part] = Term(join=part.join, parts=on), part.join.contrary(on)
        else:
            known[part] = part, ~part
    return known[rule][0]
