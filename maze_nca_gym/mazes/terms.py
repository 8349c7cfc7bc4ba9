"""Terms: rules and facts as small trees. An author's function is called once, with symbols, and its result is the term.

A term reads a signal, a relation or a kind of tile at a neighbour, or joins other terms. All other code that needs the
rule (for arrays, words of bits, patches, weighted sums, solvers, Coq, JavaScript and text) walks the term.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from numbers import Integral, Rational
from typing import Any, TypeAlias, cast

Bits: TypeAlias = Any
"""Values of rules: booleans in an array, unsigned integers each bit of which is one boolean, or `Term`s as symbols for
these."""
BITWISE = (operator.and_, operator.or_, operator.xor, operator.invert)
"""The operators that treat each bit of an integer on its own."""
MOST_WEIGHT = 1 << 53
"""Upper bound, not included, of the sum of the absolute weights of a threshold and its bound. Below it, floats add them
without an error."""


Read: TypeAlias = Callable[[Any, str], Any]
"""A function of (signal, relation or `TileKind`) and a tap that returns the value there: an array, a solver's boolean,
or a term."""


class TileKind(int):
    """The number of a kind of tile, as a type that differs from the number of a signal.

    Attributes:
        name: the name that the rule gives, such as "SOURCE", or empty if the rule gives only a number.
    """

    name: str = ""


@dataclass(frozen=True)
class Weighed:
    """An operator that compares a weighted sum: whether the weights of the parts that are on add up to a number from
    `least` to `most`.

    Attributes:
        weights: the integer weight of each part.
        least: the least sum.
        most: the largest sum, or None if the sum has no upper limit.
    """

    weights: tuple[int, ...]
    least: int
    most: int | None = None

    def __call__(self, *parts: Any) -> Any:
        """Return the comparison: a term if all parts are terms, and else a boolean array of the parts' shape."""
        if all(isinstance(part, Term) for part in parts):
            return Term(join=self, parts=parts)
        total = sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
        return total >= self.least if self.most is None else (total >= self.least) & (total <= self.most)

    def contrary(self, parts: tuple[Term, ...]) -> Term:
        """Return the term that is on where the comparison of some parts is false."""
        less = Term(join=Weighed(tuple(-weight for weight in self.weights), 1 - self.least), parts=parts)
        return less if self.most is None else less | Term(join=Weighed(self.weights, self.most + 1), parts=parts)

    def in_bits(self, parts: Sequence[Term]) -> Term:
        """Return the comparison as a term of `BITWISE` operators only: it adds binary numbers digit by digit."""
        always, constant = parts[0] | ~parts[0], 0
        columns = defaultdict[int, list[Term]](list)  # the bits to add, by the power of two for which they stand
        for weight, part in zip(self.weights, parts, strict=True):
            constant += min(weight, 0)  # a negative weight w counts as -w where the part is off, minus that constant
            for place in range(abs(weight).bit_length()):
                if abs(weight) >> place & 1:
                    columns[place].append(~part if weight < 0 else part)
        digits = list[Term]()
        while columns:
            place, column = len(digits), columns.pop(len(digits), [])
            while len(column) > 1:
                one, other, *column = column
                differ, carry = one ^ other, one & other
                if column:
                    third, *column = column
                    differ, carry = differ ^ third, carry | (differ & third)
                column.append(differ)
                columns[place + 1].append(carry)
            digits.append(column[0] if column else ~always)

        def sums_to(bound: int) -> Term:
            if bound <= 0:
                return always
            return digits_at_least(digits, bound) if bound < 1 << len(digits) else ~always

        reached = sums_to(self.least - constant)
        return reached if self.most is None else reached & ~sums_to(self.most + 1 - constant)

    @property
    def ways(self) -> list[tuple[bool, ...]]:
        """For each part, whether the comparison needs it as it is (True), negated (False), both, or, with weight 0, not
        at all."""
        return [((weight > 0,) if self.most is None else (True, False)) if weight else () for weight in self.weights]


def digits_at_least(digits: Sequence[Bits], number: int) -> Bits:
    """Return whether a binary number is at least `number`, `Bits` of the digits' shape.

    Args:
        digits: the binary digits, the lowest first.
        number: a positive number with at most as many binary digits.
    """
    lowest = (number & -number).bit_length() - 1  # lower digits decide nothing
    reached = digits[lowest]
    for place in range(lowest + 1, len(digits)):  # a higher digit decides where it differs
        reached = digits[place] & reached if number >> place & 1 else digits[place] | reached
    return reached


def weighed(weights: Sequence[float | Rational], least: float | Rational) -> Weighed:
    """Return the operator that compares a weighted sum of booleans with a number, with all numbers scaled to integers.

    Args:
        weights: whole numbers or fractions.
        least: the least sum for which the result is true.

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
    integers, bound = tuple(int(number * factor) for number in exact), ceil(Fraction(least) * factor)
    if sum(map(abs, integers)) + abs(bound) >= MOST_WEIGHT:
        raise ValueError(
            f"the weights of a threshold and its bound, as whole numbers, must add up to below 2**53, got {integers}"
        )
    return Weighed(integers, bound)


@dataclass(frozen=True, eq=False)
class Term:
    """A rule as a tree. A term is either a signal, a relation or a kind of tile that is read at a tap, or an operator
    that joins other terms.

    A term is a rule too: called with a view, it returns the same term with each leaf replaced by the view's value for
    it.

    Attributes:
        seen: the signal, the name of the relation, or the kind of tile that is read, or None if the term joins others.
        tap: the tap at which it is read, or "" if the term joins others.
        join: the operator, one of `BITWISE` or a `Weighed`, or None if the term reads a tile.
        parts: the terms that the operator joins. Several terms may share a part.
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
        """Yield all parts of the term, each once and after its own parts. The term itself comes last.

        Args:
            known: parts that are neither yielded nor entered. The caller may add parts during the walk.
        """
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
                left += [(part, True), *((operand, False) for operand in reversed(part.parts))]

    @cached_property
    def operands(self) -> tuple[Term, ...]:
        """The parts that its operator joins, with nested uses of the same operator (`&`, `|` or `^`) flattened."""
        operands, left = list[Term](), [*reversed(self.parts)]
        while left:
            part = left.pop()
            if part.join is self.join and self.join is not operator.invert:
                left += reversed(part.parts)
            else:
                operands.append(part)
        return tuple(operands)

    @cached_property
    def leaves(self) -> tuple[Term, ...]:
        """The readings of signals, relations and kinds of tile in the term, as terms."""
        return tuple(part for part in self.walk() if part.seen is not None)

    @cached_property
    def polarity(self) -> frozenset[tuple[Term, bool]]:
        """The leaves of the term, each paired with the direction in which it acts.

        A leaf comes with True if switching it on can only switch the term on, with False if it can only switch the term
        off, and in two pairs if neither is known.
        """
        polarities = dict[Term, frozenset[tuple[Term, bool]]]()
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
                for operand, some in zip(part.parts, ways, strict=True)
                for way in some
                for leaf, how in polarities[operand]
            ]
            polarities[part] = frozenset({(part, True)} if part.seen is not None else read)
        return polarities[self]

    @cached_property
    def taps(self) -> frozenset[str]:
        """The taps at which the term reads signals, relations or kinds of tile."""
        return frozenset(leaf.tap for leaf in self.leaves)

    @cached_property
    def local_parts(self) -> tuple[Term, ...]:
        """The largest parts of the term that read a single tile each. Their values determine the value of the term."""
        taps = dict[Term, frozenset[str]]()
        for part in self.walk():
            read = {tap for operand in part.parts for tap in taps[operand]}
            taps[part] = frozenset({part.tap} if part.seen is not None else read)
        largest, left, entered = dict[Term, None](), [self], set[Term]()
        while left:
            part = left.pop()
            if len(taps[part]) == 1:
                largest[part] = None
            elif part not in entered:
                entered.add(part)
                left += reversed(part.parts)
        return tuple(largest)

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
            read: a `Read`, which is called for each leaf.
        """
        return self.value({leaf: read(leaf.seen, leaf.tap) for leaf in self.leaves})

    def value(self, known: MutableMapping[Term, Bits]) -> Bits:
        """Return the value of the term, `Bits` of the shape of the known values.

        Args:
            known: the values of the leaves, or of other parts that make leaves unnecessary. The values of all other
                parts are added to this mapping.
        """
        for part in self.walk(known):
            assert part.join is not None  # the values of leaves must be known
            known[part] = part.join(*[known[operand] for operand in part.parts])
        return known[self]


class Tape:
    """Several rules as one list of bitwise operations, in which parts that rules share are read and computed once.

    The operations are those of `BITWISE`, so each bit of an integer may belong to another map. Thresholds become
    additions of binary numbers.

    Args:
        rules: the rules as terms.

    Attributes:
        steps: the operations in order. Each is an operator with the numbers of the steps that it joins; or a reading,
            as a pair of a bool, whether it reads a kind of tile, and a pair of the signal or kind and the tap.
        results: for each rule, the number of the step that computes its value.
    """

    def __init__(self, rules: Iterable[Term]) -> None:
        placed, numbered = dict[Term, int](), dict[tuple[Any, tuple[Any, ...]], int]()
        in_bits, self.results = dict[Term, Term](), list[int]()
        for rule in rules:
            for part in rule.walk(in_bits):
                same = all(in_bits[operand] is operand for operand in part.parts)
                operands = [in_bits[operand] for operand in part.parts]
                if isinstance(part.join, Weighed):
                    in_bits[part] = part.join.in_bits(operands)
                else:
                    in_bits[part] = part if same else Term(join=part.join, parts=tuple(operands))
            bitwise = in_bits[rule]
            for part in bitwise.walk(placed):
                reads = (isinstance(part.seen, TileKind), (part.seen, part.tap))
                does = (part.join, tuple(placed[operand] for operand in part.parts)) if part.seen is None else reads
                placed[part] = numbered.setdefault(does, len(numbered))
            self.results.append(placed[bitwise])
        self.steps = list(numbered)

    def read_by(self, read: Read) -> list[Bits]:
        """Return the value of each rule, computed from the values of the leaves.

        Args:
            read: a `Read`, which is called for each leaf.
        """
        values = list[Bits]()
        for join, sources in self.steps:
            values.append(read(*sources) if isinstance(join, bool) else join(*[values[i] for i in sources]))
        return [values[i] for i in self.results]


class TileView:
    """The argument `see` of rules: it returns the signals, relations and kinds around a tile as terms.

    Signals and relations are off beyond the map's edge.

    >>> lambda see: see("WET", "U") & ~see.tile(Tile.WALL)  # a rule: the tile above is wet, and this tile is no wall

    Args:
        names: the signals, or the names of the relations, that the rule may read, or None for any signals.
    """

    def __init__(self, names: type[IntEnum] | Sequence[str] | None) -> None:
        self._signals = names if isinstance(names, type) else None
        self._names = [*names.__members__] if isinstance(names, type) else names

    def __call__(self, signal: Any, tap: str = "C") -> Bits:
        """Return a signal or relation at a tap, as a term.

        Args:
            signal: the signal, or the name of a signal or relation.
            tap: "C" for the tile itself, or one of `DIRECTIONS` for its neighbour there.

        Raises:
            TypeError: the rule may read no such signal or relation.
        """
        seen: object = signal
        if isinstance(signal, str) and self._signals is not None:
            seen = self._signals.__members__.get(signal)
        elif self._signals is None and self._names is not None:  # a relation is its name
            name = signal.name if isinstance(signal, IntEnum) else signal
            seen = name if name in self._names else None
        if not isinstance(seen, (IntEnum, str)) or (isinstance(seen, str) and self._names is None):
            kind = "signal" if self._names is None or self._signals else "relation"
            names = f" ({', '.join(self._names)})" if self._names else ""
            raise TypeError(f"see takes a {kind}{names}, got {signal!r}")
        return Term(seen, tap)

    def tile(self, kind: int, tap: str = "C") -> Bits:
        """Return whether the tile at a tap is of a kind, as a term.

        Args:
            kind: the number of the kind among the kinds of the task, such as `Tile.WALL`.
            tap: "C" for the tile itself, or one of `DIRECTIONS` for its neighbour there.

        Raises:
            TypeError: `kind` is no integer, or is a signal.
        """
        if not isinstance(kind, Integral) or (self._signals is not None and isinstance(kind, self._signals)):
            raise TypeError(f"see.tile takes the number of a kind of tile, such as Tile.WALL, got {kind!r}")
        seen = TileKind(kind)
        seen.name = getattr(kind, "name", "")
        return Term(seen, tap)


Rule: TypeAlias = Callable[[TileView], Bits]


def term_of(rule: Rule, names: type[IntEnum] | Sequence[str] | None = None, who: str = "a rule") -> Term:
    """Return a rule as a term, by calling it once with symbols. A term is returned unchanged.

    Args:
        rule: any rule.
        names: the signals, or the names of the relations, that the rule may read, or None for any signals.
        who: the rule in words, for messages.

    Raises:
        ValueError: the rule fails, uses operators other than `&`, `|`, `^`, `~` and `threshold`, reads anything that it
            may not read, or reads a signal as a kind of tile.
    """
    if isinstance(rule, Term) and (names is None or isinstance(names, type)):
        return rule
    try:
        term: object = rule(TileView(names))
        if not isinstance(term, Term):
            raise TypeError(f"it returns {term!r}")
    except Exception as error:  # a rule is anything that its author wrote
        if isinstance(error, TypeError) or (isinstance(error, AttributeError) and isinstance(error.obj, Term)):
            raise ValueError(f"{who} must join the values that it sees by &, |, ^ and ~: {error}") from error
        raise ValueError(f"{who} fails: {type(error).__name__}: {error}") from error
    return term
