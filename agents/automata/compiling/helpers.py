"""Helper signals for rules that no sum decides: `helped` computes the parts of such a rule an iteration earlier.

All other signals are delayed by as much, so the new automaton does the same at a fraction of the speed: after `pace`
times t iterations it holds what the original holds after t. `prover` checks that. Its bound is `pace` times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from functools import cache, partial, reduce
from operator import and_, invert, or_, xor

from ..automaton import Automaton, scaled
from ..rules import Bits, Expression, TileView, expression_of
from .linear import Joined, misfits

PART = "_PART_"
"""Text in a helper's name between the name of the signal that needed it and the helper's number."""
MOST_PACE = 5
"""Largest number of iterations that may take the place of one."""


@cache
def helped(automaton: Automaton) -> Automaton:
    """Return an automaton that does the same, perhaps more slowly, but whose rules are all decided by sums; the
    automaton itself if its rules are.

    A rule that joins parts by `&`, `|` or `^` gets a signal for each, and if need be for the parts of these; an answer
    becomes a copy of a signal.

    Raises:
        ValueError: a rule that has no such parts, or an automaton that restarts or has signals that are the same
            everywhere, or signals named like helpers; the message names the signal.
    """
    known = dict[tuple[Expression, bool], Expression]()
    plain = {signal: _plain(expression_of(rule), True, known) for signal, rule in automaton.rules.items()}
    made, source, copied, cut = automaton, dict(plain), False, set[Expression]()
    while wrong := misfits(made):
        (error, *_) = wrong.values()
        if automaton.heals or automaton.everywhere or automaton.slows is not None:
            raise error
        if taken := [signal.name for signal in automaton.signals if PART in signal.name]:
            raise ValueError(f"{taken[0]} of {automaton.name} is named like a helper signal, and helpers are needed")
        for signal, why in wrong.items():
            if signal in made.answers and not copied:
                continue
            if source[signal] in cut or source[signal].join not in (and_, or_):
                raise why
            cut.add(source[signal])
        copied |= any(signal in made.answers for signal in wrong)
        made, source = _slowed(automaton, plain, cut, copied)
        if made.pace > MOST_PACE:
            raise error
    return made


def _slowed(
    automaton: Automaton, plain: Mapping[IntEnum, Expression], cut: set[Expression], copied: bool
) -> tuple[Automaton, dict[IntEnum, Expression]]:
    """Return an automaton with signals for the operands of the expressions that are cut, and what each rule computes.

    Args:
        automaton: the automaton as it is.
        plain: its rules, in which only what is read is negated.
        cut: those of their parts whose operands get signals.
        copied: whether answers copy a signal.
    """

    @cache
    def delay(rule: Expression) -> int:
        return 1 + max(map(delay, _operands(rule))) if rule in cut else 0

    latest = max(delay(rule) + (copied and signal in automaton.answers) for signal, rule in plain.items())
    own = [signal.name for signal in automaton.signals]
    # helpers by what they are of the automaton, and how many iterations later
    helpers, source = dict[tuple[Expression, int], str](), dict[str, Expression]()
    rules = dict[str, Callable[[type[IntEnum], TileView], Bits]]()

    def delay_by(number: int, name: str, rule: Expression) -> None:
        """Make a signal follow a rule with a delay of so many iterations."""
        source[name], read = rule, list[str]()
        for part in _operands(rule) if rule in cut and number == delay(rule) else (rule,) if number else ():
            if (part, number) not in helpers:
                helpers[part, number] = f"{name.partition(PART)[0]}{PART}{1 + len(helpers)}"
                delay_by(number - 1, helpers[part, number], part)
            read.append(helpers[part, number])

        def says(made: type[IntEnum], see: TileView) -> Bits:
            if not read:
                return rule(Joined({signal: (made[signal.name],) for signal in automaton.signals}, see))
            return reduce(rule.join or or_, (see(made[each]) for each in read))

        rules[name] = says

    # every rule has the same delay, so all signals of an iteration are those of one earlier iteration
    for signal, rule in plain.items():
        delay_by(latest, signal.name, rule)
    # the automaton with these signals, which takes `pace` iterations for one
    names = [*own, *(name for name in rules if name not in own)]
    made: type[IntEnum] = IntEnum(f"{automaton.signals.__name__}Helped", names, start=0)  # type: ignore[misc]
    new, pace = {signal: (made[signal.name],) for signal in automaton.signals}, 1 + latest
    invariant, kinds = automaton.invariant, [kind.name for kind in automaton.problem.kinds]
    slow = replace(
        automaton,
        signals=made,
        rules={made[name]: partial(rules[name], made) for name in names},
        bound=None if automaton.bound is None else scaled(automaton.bound, Fraction(pace)),
        also={name: scaled(bound, Fraction(pace)) for name, bound in automaton.also.items()},
        parts=(
            *(tuple(made[s.name] for s in part) for part in automaton.parts),
            *((made[n],) for n in names[len(own) :]),
        ),
        invariant=None if invariant is None else lambda see: invariant(Joined(new, see)),
        theorem=None,
        in_order=None,
        slows=automaton,
        pace=pace,
        helpers={name: source[name].words(kinds) for name in names[len(own) :]},
    )
    return slow, {made[name]: rule for name, rule in source.items()}


@cache
def _operands(rule: Expression) -> tuple[Expression, ...]:
    """Return what an expression joins, however many parts: what joins nothing as one, then the others."""
    rest = [part for part in rule.operands if part.join in (and_, or_)]
    read = [part for part in rule.operands if part.join not in (and_, or_)]
    return (*([reduce(rule.join, read)] if read and rule.join else []), *rest)


def _plain(rule: Expression, positive: bool, known: dict[tuple[Expression, bool], Expression]) -> Expression:
    """Return an expression, or its contrary, in which nothing is negated that joins parts by `&`, `|` or `^`."""
    if (rule, positive) not in known:
        parts = rule.parts
        if rule.join is invert:
            found = _plain(parts[0], not positive, known)
        elif rule.join is xor:
            either = [(True, not positive), (False, positive)]
            found = reduce(or_, (_plain(parts[0], a, known) & _plain(parts[1], b, known) for a, b in either))
        elif rule.join in (and_, or_):
            join = rule.join if positive else {and_: or_, or_: and_}[rule.join]
            found = Expression(join=join, parts=tuple(_plain(part, positive, known) for part in parts))
        else:
            found = rule if positive else ~rule
        known[rule, positive] = found
    return known[rule, positive]
