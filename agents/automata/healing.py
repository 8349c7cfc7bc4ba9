"""An automaton of the canonical shortest path that restarts when the maze changes, with 21 booleans per tile.

It computes the path as `shortest_path` does. But a flood that has ended cannot use a new gap or another target. So each
tile checks whether what the flood left there is still consistent. A tile that finds a contradiction raises an alarm,
which wipes all signals everywhere at once, and the flood restarts. (Local checking and global reset: Awerbuch,
Patt-Shamir and Varghese, *Self-stabilization by local checking and correction*, 1991.)

- **Flood and path.** FLOOD, NEAR and ENTER are those of `canonical_path`, and the target is the ROOT of the flood. The
  path is ON at the source and where it ENTERs, and PATH shows it an iteration later, where the flood is.
- **Checks.** Mazes are bipartite, so no two neighbours are equally far. Of two flooded neighbours, exactly one is NEAR
  the other. MANY: both are, or one that the flood has not reached is. FEW: neither is. Both are checked for a tile and
  the one below it (V) or to the right (H). ORPHAN: a flooded tile that is no ROOT has nothing nearer. A closed wall or
  another target leads to such a contradiction, or makes no difference. A new gap does not, so a free tile that WAS_WALL
  has OPENED.
- **Reset.** Each of these raises the ALARM at a tile, and that a RESET at all tiles, which wipes all but WAS_WALL. At
  most six iterations after the maze changed, everything proceeds as from a fresh start. Only a moved source needs no
  reset: the path starts from there anyway.

What can occur follows from the rules alone, whenever mazes change. On any kind of tile it is anything, except NEAR or
ROOT without FLOOD, and two checks that exclude each other. On mazes that stay as they are no check ever fails. Not
every wrong state is found: a corruption might turn all arrows of a loop, for example.

That the path is right on every maze from a fresh start, and that no check fails there, is proven by a machine
(`proof`). That it heals is argued here and tested: on 2 x 3 tiles the path is right after any maze has become any other
at any iteration, and on 1 x 3 tiles after any sequence of mazes, however fast they follow each other.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import partial

from maze_nca_gym.levels import Tile
from maze_nca_gym.orders import USUAL_ORDER, with_order

from ..guarantees import StepBound
from ..neighbours import Offset
from .automaton import Automaton
from .canonical_path import CanonicalPath
from .path_theorem import PathSignals, entered, has_come
from .rules import Bits, Rule, View, any_on
from .theorem import Number, Picture, Truth


class Signal(IntEnum):
    """Signals of a tile; the module's text says what each means."""

    PATH = 0
    FLOOD = 1
    NEAR_U = 2
    NEAR_L = 3
    NEAR_D = 4
    NEAR_R = 5
    ROOT = 6
    ENTER_U = 7
    ENTER_L = 8
    ENTER_D = 9
    ENTER_R = 10
    ON = 11
    WAS_WALL = 12
    OPENED = 13
    MANY_V = 14
    FEW_V = 15
    MANY_H = 16
    FEW_H = 17
    ORPHAN = 18
    ALARM = 19
    RESET = 20


S = Signal
NEAR = (S.NEAR_U, S.NEAR_L, S.NEAR_D, S.NEAR_R)
ENTER = (S.ENTER_U, S.ENTER_L, S.ENTER_D, S.ENTER_R)
CANONICAL = CanonicalPath(
    Signal,
    start=lambda see, tap: see.tile(Tile.SOURCE, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap) & ~see(S.RESET, tap),
    wiped_by=S.RESET,
)
FOUND = (S.OPENED, S.MANY_V, S.FEW_V, S.MANY_H, S.FEW_H, S.ORPHAN)


def _many(near: Signal, tap: str, is_near: Signal, see: View) -> Bits:
    """Return whether a tile and the one at a tap are both NEAR, or one of them is while the flood is not at both."""
    both = see(near) & see(is_near, tap)
    return both | ((see(near) | see(is_near, tap)) & ~(see(S.FLOOD) & see(S.FLOOD, tap)))


def _few(near: Signal, tap: str, is_near: Signal, see: View) -> Bits:
    return see(S.FLOOD) & see(S.FLOOD, tap) & ~see(near) & ~see(is_near, tap)


def _orphan(see: View) -> Bits:
    return see(S.FLOOD) & ~see(S.ROOT) & ~any_on(see, NEAR)


def _until_reset(rule: Rule) -> Rule:
    return lambda see: rule(see) & ~see(S.RESET)


WIPED: dict[IntEnum, Rule] = {
    S.PATH: lambda see: see(S.FLOOD) & see(S.ON),
    S.ROOT: lambda see: see.tile(Tile.TARGET),
    S.ON: CANONICAL.on_path,
    S.OPENED: lambda see: see(S.WAS_WALL) & ~see.tile(Tile.WALL),
    S.MANY_V: partial(_many, S.NEAR_D, "D", S.NEAR_U),
    S.FEW_V: partial(_few, S.NEAR_D, "D", S.NEAR_U),
    S.MANY_H: partial(_many, S.NEAR_R, "R", S.NEAR_L),
    S.FEW_H: partial(_few, S.NEAR_R, "R", S.NEAR_L),
    S.ORPHAN: _orphan,
    S.ALARM: partial(any_on, signals=FOUND),
}


def _others(picture: Picture, at: Offset, t: Number) -> dict[IntEnum, Truth]:
    """Return the signals other than flood and path after t iterations on a maze that does not change."""
    # no check fails there, so the signals of checks stay off: t is never below 0
    begun, is_source = t >= 1, picture.tile(Tile.SOURCE, at)
    return {
        S.ROOT: begun & picture.tile(Tile.TARGET, at),
        S.ON: begun & (is_source | (entered(picture, at) & has_come(picture, at, t - 1))),
        S.WAS_WALL: begun & picture.tile(Tile.WALL, at),
        **dict.fromkeys((*FOUND, S.ALARM, S.RESET), t < 0),
    }


def _automaton(order: str) -> Automaton:
    canonical = replace(CANONICAL, order=order)
    return Automaton(
        name=with_order("shortest-path-healing", order),
        task=with_order("shortest-path", order),
        signals=Signal,
        rules={
            **canonical.rules,
            **{signal: _until_reset(rule) for signal, rule in WIPED.items()},
            S.WAS_WALL: lambda see: see.tile(Tile.WALL),
            S.RESET: lambda see: see(S.ALARM),
        },
        bound=StepBound(constant=3, per_move=2),
        pooled=S.RESET,
        everywhere=(S.RESET,),
        # the path may enter from several sides while a source moves, so any ENTER may be on together
        parts=(
            (S.FLOOD, *NEAR, S.ROOT),
            ENTER,
            (S.WAS_WALL, S.OPENED),
            (S.MANY_V, S.FEW_V),
            (S.MANY_H, S.FEW_H),
            *((signal,) for signal in (S.PATH, S.ON, S.ORPHAN, S.ALARM)),
        ),
        theorem=PathSignals(canonical, _others).theorem,
        heals=True,
        in_order=_automaton,
        learning={
            "sizes": (4, 6, 9),
            "n_levels": 16,
            "n_recombined": 200_000,
            "ridge": 1e-3,
            "balanced": True,
            "extremes": True,
            "sparsity": 3e-5,
            "n_dense": 0,
            "n_updates": 3_000,
        },
    )


HEALING = _automaton(USUAL_ORDER)
"""The automaton of the shortest path that heals; from any state it reaches a fixed point, unless arrows form a loop."""
