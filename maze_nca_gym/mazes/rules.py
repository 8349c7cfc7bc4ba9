"""Rules: functions that return the next value of a signal from the signals and kinds of a tile and its neighbours, by
`&`, `|`, `^` and `~` only.

A rule is called once, with symbols, and returns a term (`mazes.terms`). All code that needs the rule walks this term:
it computes values on maps, on patches of five tiles or on 64 maps at once, proves a theorem, or writes text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial, reduce
from numbers import Rational
from operator import or_

from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.terms import Bits, Rule, TileView, Weighed, digits_at_least, weighed
from maze_nca_gym.support.options import check


def any_on(see: TileView, signals: Iterable[IntEnum], tap: str = "C") -> Bits:
    """Return whether any of some signals is on at a tap, `Bits` of the view's shape.

    >>> any_on(see, (Signal.WET, Signal.HOT), "U")  # see(Signal.WET, "U") | see(Signal.HOT, "U")
    """
    return reduce(or_, (see(signal, tap) for signal in signals))


def around(see: TileView, signal: IntEnum) -> Bits:
    """Return whether a signal is on at one or more of the four neighbours, `Bits` of the view's shape."""
    return reduce(or_, (see(signal, towards) for towards in DIRECTIONS))


def several_on(see: TileView, signals: Sequence[IntEnum]) -> Bits:
    """Return whether at least two of some signals are on at the tile itself, `Bits` of the view's shape."""
    pairs = (see(one) & see(other) for place, one in enumerate(signals) for other in signals[:place])
    return reduce(or_, pairs)


def threshold(terms: Iterable[tuple[float | Rational, Bits]], least: float | Rational) -> Bits:
    """Return whether the weights of the bits that are on add up to at least a number, (...) bool.

    The bits must be booleans, not integers of several bits. Weights are whole numbers or fractions, such as
    `Fraction(1, 10)`, so that every reader of the rule computes the same sum.

    >>> threshold([(1, see("WET")), (1, see("WET", "U")), (1, see("WET", "D"))], 2)  # at least two of the three are wet

    Args:
        terms: pairs of a weight and a bit.
        least: the least sum.

    Raises:
        ValueError: no weights; a number that is neither whole nor a fraction; or numbers that are too large.
    """
    pairs = list(terms)
    return weighed([weight for weight, _ in pairs], least)(*(bit for _, bit in pairs))


def exactly(number: int, bits: Sequence[Bits]) -> Bits:
    """Return whether exactly `number` of some booleans are on, (...) bool.

    Raises:
        ValueError: no booleans, or a `number` below 0 or above the number of booleans.
    """
    check(len(bits) > 0, "exactly needs at least one bit")
    check(0 <= number <= len(bits), f"exactly takes a number from 0 to the number of bits, {len(bits)}, got {number}")
    return Weighed((1,) * len(bits), number, number)(*bits)


@dataclass(frozen=True)
class Count:
    """A number for each tile, from 0 to a largest number, stored in several signals or relations.

    In unary, signal i is on where the number is at least i: AGE_1, AGE_2, and so on. In binary, each signal is a binary
    digit, the lowest digit first: AGE_BIT_1, AGE_BIT_2, and so on.

    >>> age = Count("AGE", 9)
    >>> signals = IntEnum("Signal", ["PATH", "LIT", *age.signals], start=0)
    >>> rules = age.rules(lambda see, n: see("LIT") & age.at_least(see, n - 1))  # 1, 2, ... 9 while LIT is on, else 0

    Attributes:
        name: the beginning of the names of its signals.
        most: the largest number.
        binary: whether the signals are binary digits. These are fewer signals, but least fixpoints cannot use them.

    Raises:
        ValueError: `most` is below 1.
    """

    name: str
    most: int
    binary: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise ValueError(f"{self.name} must count to a number from 1, got {self.most!r}")

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of its signals, such as AGE_1 and AGE_2."""
        n, part = (self.most.bit_length(), "BIT_") if self.binary else (self.most, "")
        return tuple(f"{self.name}_{part}{i}" for i in range(1, n + 1))

    def at_least(self, see: TileView, number: int, tap: str = "C") -> Bits:
        """Return whether the number stored at a tap is at least `number`, `Bits` of the view's shape."""
        if not 1 <= number <= self.most:
            any_tile = see.tile(0)
            return any_tile | ~any_tile if number < 1 else any_tile & ~any_tile
        if not self.binary:
            return see(self.signals[number - 1], tap)
        return digits_at_least([see(name, tap) for name in self.signals], number)

    def rules(self, rule: Callable[[TileView, int], Bits]) -> dict[str, Rule]:
        """Return the rule of each of its signals, by the signal's name.

        Args:
            rule: function of a view and a number n, from 1 to `most`, that returns whether the next number is at least
                n, as `Bits`.
        """
        return {name: partial(self._says, rule, i) for i, name in enumerate(self.signals)}

    def _says(self, rule: Callable[[TileView, int], Bits], place: int, see: TileView) -> Bits:
        """Return whether a signal is on next; `place` is its index in `signals`."""
        if not self.binary:
            return rule(see, place + 1)
        size = 1 << place
        lows = range(size, self.most + 1, 2 * size)  # from each the digit is 1, for so many numbers
        return reduce(
            or_, (rule(see, n) & ~rule(see, n + size) if n + size <= self.most else rule(see, n) for n in lows)
        )
