"""Rules: the next value of a signal from what a tile and its neighbours hold, written with `&`, `|`, `^` and `~` only.

So the same code runs on maps, on patches of five tiles, or on 64 maps at once, one in each bit of an integer. Called
with symbols instead of arrays, a rule returns an `Expression`, which shows what the rule reads and can be evaluated
part by part.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial, reduce
from operator import or_
from typing import Any, Protocol, TypeAlias, cast

from numpy.typing import NDArray

from maze_nca_gym.mazes.neighbours import DIRECTIONS

Bits: TypeAlias = NDArray[Any]
"""Booleans, or unsigned integers each bit of which is one boolean."""


class TileView(Protocol):
    """What a rule reads around the tiles to which it applies, in arrays of one shape; signals are off beyond the map's
    edge."""

    def __call__(self, signal: Any, tap: str = "C") -> Bits:
        """Return a signal, or the one of a name, of the tile itself, "C", or of its neighbour in one of the
        `DIRECTIONS`."""

    def tile(self, kind: int, tap: str = "C") -> Bits:
        """Return whether the tile at a tap is of a kind: its number among the kinds of the task, such as
        `Tile.WALL`."""


class TileKind(int):
    """The number of a kind of tile, as a type that differs from the number of a signal.

    Attributes:
        name: its name in the rule, such as "SOURCE"; empty if the rule has the number alone.
    """

    name: str = ""


Rule: TypeAlias = Callable[[TileView], Bits]
BITWISE = (True, False, operator.and_, operator.or_, operator.xor, operator.invert)


def any_on(see: TileView, signals: Iterable[IntEnum], tap: str = "C") -> Bits:
    """Return whether any of some signals is on at a tap, `Bits` of the view's shape."""
    return reduce(or_, (see(signal, tap) for signal in signals))


def around(see: TileView, signal: IntEnum) -> Bits:
    """Return whether a signal is on at any of the four neighbours, `Bits` of the view's shape."""
    return reduce(or_, (see(signal, towards) for towards in DIRECTIONS))


def several_on(see: TileView, signals: Sequence[IntEnum]) -> Bits:
    """Return whether at least two of some signals are on at the tile itself, `Bits` of the view's shape."""
    pairs = (see(one) & see(other) for place, one in enumerate(signals) for other in signals[:place])
    return reduce(or_, pairs)


def threshold(terms: Iterable[tuple[float, Bits]], least: float) -> Bits:
    """Return whether the sum of the weights of those bits that are on is at least a number, (...) bool.

    The bits must be booleans, not integers of several bits.
    """
    weights, bits = zip(*terms, strict=True)

    def join(*bits: Bits) -> Bits:
        return cast(Bits, sum(weight * bit for weight, bit in zip(weights, bits, strict=True)) >= least)

    return cast(Bits, Expression(join=join, parts=bits) if isinstance(bits[0], Expression) else join(*bits))


@dataclass(frozen=True)
class Count:
    """A number of each tile, from 0 to a largest one, held in several signals or relations of its name.

    In unary there is one for each number from 1, on where the number is at least that: AGE_1, AGE_2, and so on. In
    binary there is one for each digit, the lowest first: AGE_BIT_1, AGE_BIT_2, and so on.

    >>> age = Count("AGE", 9)
    >>> signals = IntEnum("Signal", ["PATH", "LIT", *age.signals], start=0)
    >>> rules = age.rules(lambda see, n: see("LIT") & age.at_least(see, n - 1))  # 1, 2, ... 9 while LIT is on, else 0

    Attributes:
        name: what the names of its signals begin with.
        most: the largest number.
        binary: whether signals hold binary digits, of which fewer are needed; least fixed points cannot use them.

    Raises:
        ValueError: a largest number below 1.
    """

    name: str
    most: int
    binary: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise ValueError(f"{self.name} must count to a number from 1, got {self.most!r}")

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of its signals."""
        n, part = (self.most.bit_length(), "BIT_") if self.binary else (self.most, "")
        return tuple(f"{self.name}_{part}{i}" for i in range(1, n + 1))

    def at_least(self, see: TileView, number: int, tap: str = "C") -> Bits:
        """Return whether the number at a tap is at least another, `Bits` of the view's shape."""
        if not 1 <= number <= self.most:
            any_tile = see.tile(0)
            return any_tile | ~any_tile if number < 1 else any_tile & ~any_tile
        if not self.binary:
            return see(self.signals[number - 1], tap)
        digits = [(number >> i & 1, see(name, tap)) for i, name in enumerate(self.signals)]
        while not digits[0][0]:  # lower digits that are 0 decide nothing
            del digits[0]
        # from the lowest on: a higher digit decides where it differs
        return reduce(lambda found, digit: digit[1] & found if digit[0] else digit[1] | found, digits[1:], digits[0][1])

    def rules(self, rule: Callable[[TileView, int], Bits]) -> dict[str, Rule]:
        """Return the rule of each of its signals, by name.

        Args:
            rule: (see, n) -> whether the next number is at least n, for n from 1 to the largest, as `Bits`.
        """
        return {name: partial(self._says, rule, i) for i, name in enumerate(self.signals)}

    def _says(self, rule: Callable[[TileView, int], Bits], place: int, see: TileView) -> Bits:
        """Return whether the signal of a place is on next."""
        if not self.binary:
            return rule(see, place + 1)
        size = 1 << place
        lows = range(size, self.most + 1, 2 * size)  # from each the digit is 1, for so many numbers
        return reduce(
            or_, (rule(see, n) & ~rule(see, n + size) if n + size <= self.most else rule(see, n) for n in lows)
        )


@dataclass(frozen=True, eq=False)
class Expression:
    """A rule as a tree: a signal or kind of tile read at a tap, or other expressions joined by an operator.

    It is a rule too: called with a view, it returns its value there.

    Attributes:
        seen: the signal or kind of tile that is read; None where expressions are joined.
        tap: the tap at which it is read.
        join: the operator.
        parts: the expressions that the operator joins.
    """

    seen: IntEnum | TileKind | None = None
    tap: str = ""
    join: Callable[..., Any] | None = None
    parts: tuple[Expression, ...] = ()

    # without this, numpy would combine an array and an expression element by element
    __array_ufunc__ = None

    def __and__(self, other: Expression) -> Expression:
        return self._joined(operator.and_, other)

    def __or__(self, other: Expression) -> Expression:
        return self._joined(operator.or_, other)

    def __xor__(self, other: Expression) -> Expression:
        return self._joined(operator.xor, other)

    def __invert__(self) -> Expression:
        return self._joined(operator.invert)

    def __bool__(self) -> bool:
        raise TypeError("a rule has neither `if` nor `and`, `or`, `not`")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a rule compares nothing: see(A) is true where A is on, ~see(A) where it is off")

    __hash__ = object.__hash__

    @cached_property
    def operands(self) -> tuple[Expression, ...]:
        """The parts that its operator joins, with nested uses of the same operator flattened."""
        found = (part.operands if part.join is self.join else (part,) for part in self.parts)
        return tuple(each for some in found for each in some)

    def words(self, kinds: Sequence[str]) -> str:
        """Return the expression as text, such as "WET at U & ~wall", with the names of kinds of tile in `kinds`."""
        if self.seen is not None:
            name = kinds[self.seen] if isinstance(self.seen, TileKind) else self.seen.name
            return name if self.tap == "C" else f"{name} at {self.tap}"
        parts = self.parts if self.join is operator.invert else self.operands
        said = [part.words(kinds) if len(part.parts) < 2 else f"({part.words(kinds)})" for part in parts]
        marks: dict[Any, str] = {operator.and_: " & ", operator.or_: " | ", operator.xor: " ^ "}
        return f"~{said[0]}" if self.join is operator.invert else marks.get(self.join, ", ").join(said)

    def _joined(self, join: Callable[..., Any], *others: object) -> Expression:
        if not all(isinstance(other, Expression) for other in others):
            return NotImplemented
        return Expression(join=join, parts=(self, *cast(tuple[Expression, ...], others)))

    @cached_property
    def leaves(self) -> tuple[Expression, ...]:
        """The signals and kinds of tile that it reads, as expressions."""
        if self.seen is not None:
            return (self,)
        # parts are shared, so a walk along all ways to the leaves would take exponential time
        return tuple(dict.fromkeys(leaf for part in self.parts for leaf in part.leaves))

    @cached_property
    def polarity(self) -> frozenset[tuple[Expression, bool]]:
        """The signals and kinds of tile that it reads, each with True if read plainly and False if negated; both for
        parts of operators other than `&`, `|` and `~`."""
        if self.seen is not None:
            return frozenset({(self, True)})
        read = {each for part in self.parts for each in part.polarity}
        if self.join is operator.invert:
            return frozenset((leaf, not positive) for leaf, positive in read)
        if self.join in (operator.and_, operator.or_):
            return frozenset(read)
        return frozenset((leaf, positive) for leaf, _ in read for positive in (True, False))

    @cached_property
    def taps(self) -> frozenset[str]:
        """The taps at which it reads."""
        return frozenset(leaf.tap for leaf in self.leaves)

    @cached_property
    def local_parts(self) -> tuple[Expression, ...]:
        """The largest parts that each read one tile only: their values determine the value of the whole."""
        if len(self.taps) == 1:
            return (self,)
        return tuple(dict.fromkeys(local for part in self.parts for local in part.local_parts))

    def signals(self, tap: str) -> set[IntEnum]:
        """Return the signals that the expression reads at a tap."""
        return {leaf.seen for leaf in self.leaves if leaf.tap == tap and isinstance(leaf.seen, IntEnum)}

    def kinds(self, tap: str) -> set[TileKind]:
        """Return the kinds of tile that it tells apart at a tap."""
        return {leaf.seen for leaf in self.leaves if leaf.tap == tap and isinstance(leaf.seen, TileKind)}

    def __call__(self, see: TileView) -> Bits:
        """Return its value in a view, `Bits` of the view's shape."""
        known = {
            leaf: see.tile(leaf.seen, leaf.tap) if isinstance(leaf.seen, TileKind) else see(leaf.seen, leaf.tap)
            for leaf in self.leaves
            if leaf.seen is not None
        }
        return self.value(known)

    def value(self, known: MutableMapping[Expression, Bits]) -> Bits:
        """Return its value, `Bits` of the shape of the known values.

        Args:
            known: the values of all signals and kinds that it reads, or of some of its parts; the values of other parts
                are added.
        """
        if self not in known:
            assert self.join is not None  # the values of leaves must be known
            known[self] = self.join(*(part.value(known) for part in self.parts))
        return known[self]


class Tape:
    """Several rules as one list of operations, in which common parts are read and computed once.

    Attributes:
        steps: the operations: an operator with the steps that it joins; or a reading, with whether it is of a kind of
            tile, the signal or kind, and the tap.
        results: the step that is the value of each rule.
        bitwise: whether each bit of an integer may belong to another map.
    """

    def __init__(self, rules: Iterable[Expression]) -> None:
        placed, numbered = dict[Expression, int](), dict[tuple[Any, tuple[Any, ...]], int]()

        def place(part: Expression) -> int:
            if part not in placed:
                reads = (isinstance(part.seen, TileKind), (part.seen, part.tap))
                does = (part.join, tuple(map(place, part.parts))) if part.seen is None else reads
                placed[part] = numbered.setdefault(does, len(numbered))
            return placed[part]

        self.results = [place(rule) for rule in rules]
        self.steps = list(numbered)
        self.bitwise = all(join in BITWISE for join, _ in self.steps)

    def __call__(self, see: TileView) -> list[Bits]:
        """Return the value of each rule in a view, `Bits` of the view's shape."""
        values = list[Bits]()
        for join, given in self.steps:
            if isinstance(join, bool):
                values.append((see.tile if join else see)(*given))
            else:
                values.append(join(*[values[i] for i in given]))
        return [values[i] for i in self.results]


class _SymbolicView:
    """A view that returns symbols in place of arrays, for rules with some signals, or any."""

    def __init__(self, signals: type[IntEnum] | None) -> None:
        self._signals = signals

    def __call__(self, signal: IntEnum | str, tap: str = "C") -> Expression:
        members = {} if self._signals is None else self._signals.__members__
        found = members.get(signal) if isinstance(signal, str) else signal
        if not isinstance(found, IntEnum):
            names = f" ({', '.join(members)})" if members else ""
            raise TypeError(f"see takes a signal{names}, got {signal!r}")
        return Expression(found, tap)

    def tile(self, kind: int, tap: str = "C") -> Expression:
        if not isinstance(kind, int) or (self._signals is not None and isinstance(kind, self._signals)):
            raise TypeError(f"see.tile takes the number of a kind of tile, such as Tile.WALL, got {kind!r}")
        seen = TileKind(kind)
        seen.name = kind.name if isinstance(kind, IntEnum) else ""
        return Expression(seen, tap)


def expression_of(rule: Rule, signals: type[IntEnum] | None = None) -> Expression:
    """Return a rule as an expression.

    Args:
        rule: any rule.
        signals: if given, reading one of them as a kind of tile is an error.

    Raises:
        TypeError: the rule uses other operators than `&`, `|`, `^` and `~`, or reads a signal as a kind of tile.
    """
    if isinstance(rule, Expression):
        return rule
    found: object = rule(cast(TileView, _SymbolicView(signals)))
    if not isinstance(found, Expression):
        raise TypeError(f"it returns {found!r}")
    return found
