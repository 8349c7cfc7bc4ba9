"""Terms: rules and facts as small trees, which are read off an author's function once and never call it again.

A term reads a signal, a relation or a kind of tile at a neighbour, or joins other terms. Everything else (arrays, words
of bits, patches, weighted sums, solvers, Coq, JavaScript and text) walks the term.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from numbers import Integral, Rational
from typing import Any, TypeAlias, cast

Bits: TypeAlias = Any
"""Booleans in an array, unsigned integers each bit of which is one boolean, or terms in their place."""
BITWISE = (operator.and_, operator.or_, operator.xor, operator.invert)
"""The operators that apply to each bit of an integer alone."""
MOST_WEIGHT = 1 << 53
"""All weights of a sum and its bound are together below this number, so every reader adds them without an error."""


Read: TypeAlias = Callable[[Any, str], Any]
"""(signal, relation or `TileKind`, tap) -> its value at that tap: an array, a solver's boolean, or a term."""


class TileKind(int):
    """The number of a kind of tile, as a type that differs from the number of a signal.

    Attributes:
        name: its name in the rule, such as "SOURCE"; empty if the rule has the number alone.
    """

    name: str = ""


@dataclass(frozen=True)
class Weighed:
    """The operator of a linear comparison: whether the weights of the parts that are on add up to at least a number,
    and at most another.

    Attributes:
        weights: the integer weight of each part.
        least: the least sum.
        most: the largest sum, or None if there is none.
    """

    weights: tuple[int, ...]
    least: int
    most: int | None = None

    def __call__(self, *parts: Any) -> Any:
        """Return the comparison of terms as a term, and that of booleans in their shape."""
        if all(isinstance(part, Term) for part in parts):
            return Term(join=self, parts=parts)
        total = sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
        return total >= self.least if self.most is None else (total >= self.least) & (total <= self.most)

    def contrary(self, parts: tuple[Term, ...]) -> Term:
        """Return the term that is on where the comparison is false."""
        less = Term(join=Weighed(tuple(-weight for weight in self.weights), 1 - self.least), parts=parts)
        return less if self.most is None else less | Term(join=Weighed(self.weights, self.most + 1), parts=parts)

    @property
    def ways(self) -> list[tuple[bool, ...]]:
        """How each part is read: as it is, negated, both, or not at all."""
        return [((weight > 0,) if self.most is None else (True, False)) if weight else () for weight in self.weights]


def weighed(weights: Sequence[float | Rational], least: float | Rational) -> Weighed:
    """Return the comparison of a sum of weighted booleans with a number, in whole numbers.

    Raises:
        ValueError: no weights; a number that is neither whole nor a `Fraction`; or numbers that are too large.
    """
    if not weights:
        raise ValueError("a threshold needs at least one weight")
    for number in (*weights, least):
        if not isinstance(number, Rational) and not (isinstance(number, float) and number.is_integer()):
            raise ValueError(
                f"a threshold takes whole numbers and fractions, such as Fraction(1, 10), got {number!r}: sums of "
                "other floats depend on how they are rounded"
            )
    exact = [Fraction(number) for number in weights]
    factor = lcm(*(number.denominator for number in exact))
    whole, bound = tuple(int(number * factor) for number in exact), ceil(Fraction(least) * factor)
    if sum(map(abs, whole)) + abs(bound) >= MOST_WEIGHT:
        raise ValueError(
            f"the weights of a threshold and its bound, as whole numbers, must add up to below 2**53, got {whole}"
        )
    return Weighed(whole, bound)


@dataclass(frozen=True, eq=False)
class Term:
    """A rule as a tree: a signal, relation or kind of tile read at a tap, or other terms joined by an operator.

    It is a rule too: called with a view, it returns the same term of what that shows.

    Attributes:
        seen: the signal, the relation by its name, or the kind of tile that is read, or None where terms are joined.
        tap: the tap at which it is read.
        join: the operator: one of `BITWISE`, or a `Weighed`.
        parts: the terms that the operator joins; some may be shared.
    """

    seen: IntEnum | TileKind | str | None = None
    tap: str = ""
    join: Callable[..., Any] | None = None
    parts: tuple[Term, ...] = ()

    # without this, numpy would combine an array and a term element by element
    __array_ufunc__ = None

    def __and__(self, other: Term) -> Term:
        return self._joined(operator.and_, other)

    def __or__(self, other: Term) -> Term:
        return self._joined(operator.or_, other)

    def __xor__(self, other: Term) -> Term:
        return self._joined(operator.xor, other)

    def __invert__(self) -> Term:
        return self._joined(operator.invert)

    def __bool__(self) -> bool:
        raise TypeError("a rule has neither `if` nor `and`, `or`, `not`")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a rule compares nothing: see(A) is true where A is on, ~see(A) where it is off")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Term of {sum(1 for _ in self.walk()):,} parts>"

    def _joined(self, join: Callable[..., Any], *others: object) -> Term:
        if not all(isinstance(other, Term) for other in others):
            return NotImplemented
        return Term(join=join, parts=(self, *cast(tuple[Term, ...], others)))

    def walk(self, known: Container[Term] = ()) -> Iterator[Term]:
        """Yield each part once, after its own parts, and last the term itself. Parts in `known` are not entered, and
        more parts may be added to `known` meanwhile."""
        # without recursion, as a rule may join thousands of parts one after another; parts are shared, so a walk along
        # all ways to the leaves would take exponential time
        left, done = [(self, False)], set[Term]()
        while left:
            part, entered = left.pop()
            if part in done or part in known:
                continue
            if entered or not part.parts:
                done.add(part)
                yield part
            else:
                left += [(part, True), *((each, False) for each in reversed(part.parts))]

    @cached_property
    def operands(self) -> tuple[Term, ...]:
        """The parts that its operator joins, with nested uses of `&`, `|` and `^` flattened."""
        found, left = list[Term](), [*reversed(self.parts)]
        while left:
            part = left.pop()
            if part.join is self.join and self.join is not operator.invert:
                left += reversed(part.parts)
            else:
                found.append(part)
        return tuple(found)

    @cached_property
    def leaves(self) -> tuple[Term, ...]:
        """The signals, relations and kinds of tile that it reads, as terms."""
        return tuple(part for part in self.walk() if part.seen is not None)

    @cached_property
    def polarity(self) -> frozenset[tuple[Term, bool]]:
        """The signals, relations and kinds of tile that the term reads. Each comes with True if switching it on can
        only switch the term on, with False if it can only switch the term off, and with both if neither is known."""
        found = dict[Term, frozenset[tuple[Term, bool]]]()
        for part in self.walk():
            # whether each part is read as it is, negated, or both
            ways: Sequence[tuple[bool, ...]] = [(True,)] * len(part.parts)
            if part.join is operator.invert:
                ways = [(False,)]
            elif part.join is operator.xor:
                ways = [(True, False)] * 2
            elif isinstance(part.join, Weighed):
                ways = part.join.ways
            read = [
                (leaf, how == way)
                for each, some in zip(part.parts, ways, strict=True)
                for way in some
                for leaf, how in found[each]
            ]
            found[part] = frozenset({(part, True)} if part.seen is not None else read)
        return found[self]

    @cached_property
    def taps(self) -> frozenset[str]:
        """The taps at which it reads."""
        return frozenset(leaf.tap for leaf in self.leaves)

    @cached_property
    def local_parts(self) -> tuple[Term, ...]:
        """The largest parts of the term that each read one tile only. Their values determine the value of the term."""
        taps = dict[Term, frozenset[str]]()
        for part in self.walk():
            read = {tap for each in part.parts for tap in taps[each]}
            taps[part] = frozenset({part.tap} if part.seen is not None else read)
        found, left, entered = dict[Term, None](), [self], set[Term]()
        while left:
            part = left.pop()
            if len(taps[part]) == 1:
                found[part] = None
            elif part not in entered:
                entered.add(part)
                left += reversed(part.parts)
        return tuple(found)

    def signals(self, tap: str) -> set[IntEnum]:
        """Return the signals that the term reads at a tap."""
        return {leaf.seen for leaf in self.leaves if leaf.tap == tap and isinstance(leaf.seen, IntEnum)}

    def kinds(self, tap: str) -> set[TileKind]:
        """Return the kinds of tile that the term reads at a tap."""
        return {leaf.seen for leaf in self.leaves if leaf.tap == tap and isinstance(leaf.seen, TileKind)}

    def __call__(self, see: TileView) -> Bits:
        """Return the term with each leaf replaced by the value that a view returns for it."""
        return self.read_by(lambda seen, tap: (see.tile if isinstance(seen, TileKind) else see)(seen, tap))

    def read_by(self, read: Read) -> Any:
        """Return the value of the term, computed from the values of its leaves.

        Args:
            read: (signal, relation or `TileKind`, tap) -> the value there.
        """
        return self.value({leaf: read(leaf.seen, leaf.tap) for leaf in self.leaves})

    def value(self, known: MutableMapping[Term, Bits]) -> Bits:
        """Return its value, `Bits` of the shape of the known values.

        Args:
            known: the values of all signals, relations and kinds that it reads, or of some of its parts; the values of
                other parts are added.
        """
        for part in self.walk(known):
            assert part.join is not None  # the values of leaves must be known
            known[part] = part.join(*[known[each] for each in part.parts])
        return known[self]


class Tape:
    """Several rules as one list of operations, in which common parts are read and computed once.

    Attributes:
        steps: the operations: an operator with the steps that it joins; or a reading, with whether it is of a kind of
            tile, the signal or kind, and the tap.
        results: the step that is the value of each rule.
        bitwise: whether each bit of an integer may belong to another map.
    """

    def __init__(self, rules: Iterable[Term]) -> None:
        placed, numbered = dict[Term, int](), dict[tuple[Any, tuple[Any, ...]], int]()
        self.results = list[int]()
        for rule in rules:
            for part in rule.walk(placed):
                reads = (isinstance(part.seen, TileKind), (part.seen, part.tap))
                does = (part.join, tuple(placed[each] for each in part.parts)) if part.seen is None else reads
                placed[part] = numbered.setdefault(does, len(numbered))
            self.results.append(placed[rule])
        self.steps = list(numbered)
        self.bitwise = not any(isinstance(join, Weighed) for join, _ in self.steps)

    def read_by(self, read: Read) -> list[Bits]:
        """Return the value of each rule, computed from the values of the leaves.

        Args:
            read: (signal or `TileKind`, tap) -> the value there.
        """
        values = list[Bits]()
        for join, given in self.steps:
            values.append(read(*given) if isinstance(join, bool) else join(*[values[i] for i in given]))
        return [values[i] for i in self.results]


class TileView:
    """What a rule reads around a tile, as terms: signals and relations, which are off beyond the map's edge, and kinds
    of tile.

    Args:
        names: the signals, or the names of the relations, that the rule may read, or None for any signals.
    """

    def __init__(self, names: type[IntEnum] | Sequence[str] | None) -> None:
        self._signals = names if isinstance(names, type) else None
        self._names = [*names.__members__] if isinstance(names, type) else names

    def __call__(self, signal: Any, tap: str = "C") -> Bits:
        """Return a signal, or the one of a name, of the tile itself, "C", or of its neighbour in one of the
        `DIRECTIONS`."""
        found: object = signal
        if isinstance(signal, str) and self._signals is not None:
            found = self._signals.__members__.get(signal)
        elif self._signals is None and self._names is not None:  # a relation is its name
            name = signal.name if isinstance(signal, IntEnum) else signal
            found = name if name in self._names else None
        if not isinstance(found, (IntEnum, str)) or (isinstance(found, str) and self._names is None):
            kind = "signal" if self._names is None or self._signals else "relation"
            names = f" ({', '.join(self._names)})" if self._names else ""
            raise TypeError(f"see takes a {kind}{names}, got {signal!r}")
        return Term(found, tap)

    def tile(self, kind: int, tap: str = "C") -> Bits:
        """Return whether the tile at a tap is of a kind: its number among the kinds of the task, such as
        `Tile.WALL`."""
        if not isinstance(kind, Integral) or (self._signals is not None and isinstance(kind, self._signals)):
            raise TypeError(f"see.tile takes the number of a kind of tile, such as Tile.WALL, got {kind!r}")
        seen = TileKind(kind)
        seen.name = getattr(kind, "name", "")
        return Term(seen, tap)


Rule: TypeAlias = Callable[[TileView], Bits]


def term_of(rule: Rule, names: type[IntEnum] | Sequence[str] | None = None, who: str = "a rule") -> Term:
    """Return a rule as a term: its result when it is called once with symbols. A term is returned unchanged.

    Args:
        rule: any rule.
        names: the signals that the rule may read, or the names of the relations; if None, any signals.
        who: the rule in words, for messages.

    Raises:
        ValueError: the rule fails, uses operators other than `&`, `|`, `^`, `~` and `threshold`, reads something else,
            or reads a signal as a kind of tile.
    """
    if isinstance(rule, Term) and (names is None or isinstance(names, type)):
        return rule
    try:
        found: object = rule(TileView(names))
        if not isinstance(found, Term):
            raise TypeError(f"it returns {found!r}")
    except Exception as error:  # a rule is anything that its author wrote
        if isinstance(error, TypeError) or (isinstance(error, AttributeError) and isinstance(error.obj, Term)):
            raise ValueError(f"{who} must be made of what it sees with &, |, ^ and ~: {error}") from error
        raise ValueError(f"{who} fails: {type(error).__name__}: {error}") from error
    return found
