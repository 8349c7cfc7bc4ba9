"""The rules of the canonical path: a flood, the neighbours from which it came, and a walk along them.

The automata of this package take their rules from here. Other forms of the rules are written by hand: with ages or
phases instead of NEAR (`handcoded.canonical` and the machine code), or with the same signals as sums and ReLUs
(`docs/exact-weights.md`). `tests/agents/test_canonical_path.py` compares all of them with these rules, iteration by
iteration.

- **FLOOD** starts at the end of the path and spreads over free tiles. With `passes`, a tile may pass it on some
  iterations later, and then counts as that many tiles.
- **NEAR**: a neighbour that the flood reaches before the tile is nearer to the end by one move. Distances of neighbours
  on a grid differ by exactly one, so every neighbour is either nearer or farther.
- **ENTER**: the path begins at its start. From each of its tiles it enters the first nearer neighbour in the order of
  directions, usually up, left, down, right. As long as the flood has not reached a tile, no neighbour is NEAR, and the
  path waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial, reduce
from operator import or_

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE
from maze_nca_gym.mazes.orders import USUAL_ORDER
from maze_nca_gym.mazes.rules import any_on, several_on
from maze_nca_gym.mazes.terms import Bits, Rule, TileView


@dataclass(frozen=True)
class CanonicalPath:
    """The rules that flood a maze and mark its canonical path, for the signals of an automaton.

    Rules read a *view* of a tile and its neighbours, and their results are `Bits` of the view's shape.

    Attributes:
        signals: the automaton's signals. They contain FLOOD, and NEAR_U, ENTER_U and so on for all directions. The NEAR
            of the last direction may be missing, because that neighbour is the nearer neighbour if no other is.
        start: (view, tap) -> whether the path begins at the tile at a tap.
        end: (view, tap) -> whether the path ends, and the flood starts, at the tile at a tap.
        wiped_by: a signal that switches all of these signals off, except at the start of the flood; or None.
        walls: the kinds of tile that the path cannot enter.
        passes: (view, tap) -> whether the flood spreads from the tile at a tap to its neighbours. With None, it spreads
            as soon as the tile is flooded.
        prefix: the prefix of the signals' names, so that an automaton can have several paths.
        order: the order of directions, see `maze_nca_gym.mazes.orders`.
        floods: the names of the flood's signals without the prefix. If there are several, one of them is on where the
            flood has come, and the automaton has its own rules for them.
    """

    signals: type[IntEnum]
    start: Callable[[TileView, str], Bits]
    end: Callable[[TileView, str], Bits]
    wiped_by: IntEnum | None = None
    walls: tuple[int, ...] = (Tile.WALL,)
    passes: Callable[[TileView, str], Bits] | None = None
    prefix: str = ""
    order: str = USUAL_ORDER
    floods: tuple[str, ...] = ("FLOOD",)

    @property
    def near(self) -> tuple[IntEnum, ...]:
        """The signals that mark the neighbours nearer to the end, in the order of directions."""
        names = (f"{self.prefix}NEAR_{towards}" for towards in self.order)
        return tuple(self.signals[name] for name in names if name in self.signals.__members__)

    @property
    def enter(self) -> tuple[IntEnum, ...]:
        """The signals ENTER_U and so on, in the order of directions. ENTER_U is on where the path comes to a tile by a
        move up, and so on."""
        return tuple(self.signals[f"{self.prefix}ENTER_{towards}"] for towards in self.order)

    @property
    def flood(self) -> IntEnum:
        """The signal of the flood, or the first of several such signals."""
        return self.signals[f"{self.prefix}{self.floods[0]}"]

    def flooded(self, see: TileView, tap: str = "C") -> Bits:
        """Return whether the flood has come to the tile at a tap."""
        return any_on(see, (self.signals[f"{self.prefix}{name}"] for name in self.floods), tap)

    @property
    def rules(self) -> dict[IntEnum, Rule]:
        """The rules of the signals that flood the maze, enter tiles and draw the path."""
        flood, order, passes = self.flood, self.order, self.passes or self.flooded

        def kept(see: TileView, bits: Bits) -> Bits:
            return self._kept(see, bits & ~reduce(or_, map(see.tile, self.walls)))

        def is_near(near: IntEnum, towards: str, see: TileView) -> Bits:
            return kept(see, see(near) | (passes(see, towards) & ~self.flooded(see)))

        def enters(place: int, see: TileView) -> Bits:
            # the tile before must be on the path, and point here
            before = OPPOSITE[order[place]]
            points = reduce(
                lambda left, rival: left & ~see(rival, before), self.near[:place], self._nearer(place, see, before)
            )
            return self._kept(see, self.on_path(see, before) & points)

        def floods(see: TileView) -> Bits:
            return self.end(see, "C") | kept(see, reduce(or_, (passes(see, tap) for tap in DIRECTIONS), see(flood)))

        return {
            **({flood: floods} if len(self.floods) == 1 else {}),
            **{near: partial(is_near, near, towards) for near, towards in zip(self.near, order, strict=False)},
            **{enter: partial(enters, place) for place, enter in enumerate(self.enter)},
        }

    def invariant(self, see: TileView) -> Bits:
        """Return whether the path's invariant is true of a tile: there is one path, and distances fall along it.

        - The path enters a tile from at most one side, after the flood, and never from a nearer tile.
        - The path never returns to its start.
        - No NEAR is on at the end, except in the remains of another flood just before they are wiped.
        """
        entered = any_on(see, self.enter)
        backwards = (
            see(enter) & self._nearer(self.order.index(OPPOSITE[towards]), see, "C")
            for towards, enter in zip(self.order, self.enter, strict=True)
        )
        return (
            ~several_on(see, self.enter)
            & ~(entered & (self.start(see, "C") | ~self.flooded(see)))
            & ~reduce(or_, backwards)
            & ~self._kept(see, self.end(see, "C") & any_on(see, self.near))
        )

    def on_path(self, see: TileView, tap: str = "C") -> Bits:
        """Return whether the tile at a tap is on the path."""
        return any_on(see, self.enter, tap) | self.start(see, tap)

    def _nearer(self, place: int, see: TileView, tap: str) -> Bits:
        if place < len(self.near):
            return see(self.near[place], tap)
        # the flood came from somewhere, unless it starts here
        return self.flooded(see, tap) & ~self.end(see, tap) & ~any_on(see, self.near, tap)

    def _kept(self, see: TileView, bits: Bits) -> Bits:
        return bits if self.wiped_by is None else bits & ~see(self.wiped_by)
