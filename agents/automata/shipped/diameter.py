"""An automaton of the canonical longest shortest path, with 38 booleans per tile, one of them pooled over the map.

The free tiles launch waves one after another, row by row, like `nca-diameter-exact-weights`, but without counting. A
wave A races a replay B of the longest wave so far, and the wave that moves longer has gone further.

- **Race.** A starts at TOKEN; B starts at END, the origin of the longest wave so far. A wave is NEW at a tile, then
  MID, and then NEW at the neighbours. It leaves WET behind. So it moves one tile in two iterations: B moves at odd
  iterations and A at even ones, always B before A. MOVES, the pooled signal, is on if a wave moved in this iteration,
  and BEFORE stores its value of the previous iteration. When TICK is on, MOVES is about A and BEFORE is about B, at the
  same distance from their origins: BETTER if only A moves, GROW if only B moves, OVER if neither moves.
- **Ends.** Where A is NEW and B does not move, A outlasts B: FAR_NEXT, and FAR when BETTER is on. BETTER wipes the path
  of the best wave so far and the flood that it follows. A FLOOD then spreads from FAR, and END moves (MARK) to TOKEN.
- **Path.** NEAR and ENTER lead from END against the flood, as in `canonical_path`, and PATH outputs the result.
- **Skipping.** Let e be the eccentricity of A's origin and b the largest eccentricity so far. No tile within b - e of
  the origin has an eccentricity above b. TOKEN grows once for each distance at which only B moves, so it covers exactly
  these tiles. They become SKIP: most tiles never launch a wave.
- **Order.** A single walker goes from the first tile to the last. SCOUT passes walls and skipped tiles, to the right.
  After the last column the walker is in TURN, goes BACK, and DROPs to the next row. On any other tile it has to WAIT.
  When the race is OVER, it LAUNCHes a wave, and MOVES treats this like a move of B. One iteration later TOKEN is there,
  CALLED is on everywhere, and B starts, followed by A. The tile becomes a tile to skip, so the walker will LEAVE.

Only a wave that lasts longer than all earlier waves moves END. So if several tiles have the same eccentricity, END is
the first of them, as the canonical solution demands. A wave takes about 2 max(e, b) + 6 iterations. Before each wave,
RESET wipes WET and TOKEN.

The states that a tile can have follow from the rules and from the invariant about the single path and the single
walker. TICK is on at odd iterations. At even iterations MOVES is about B or a LAUNCH, and at most one of BETTER, GROW
and OVER is on. At odd iterations MOVES is about A, and RESET or CALLED can be on, after OVER. A machine proof shows the
invariant (`diameter_theorem`). That the path is correct is argued here, and tested on all 9,418 mazes of up to 3 x 4 or
4 x 3 tiles.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import cache, partial, reduce

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order
from maze_nca_gym.mazes.rules import around, several_on
from maze_nca_gym.mazes.terms import Bits, Rule, TileView

from ...policies.guarantees import StepBound
from ..automaton import Automaton
from .canonical import CanonicalPath
from .diameter_theorem import invariant_theorem


class RaceSignal(IntEnum):
    """The signals of a tile, explained in the module's docstring."""

    PATH, A_NEW, A_MID, A_WET, B_NEW, B_MID, B_WET, FAR_NEXT, FAR = range(9)
    FLOOD, NEAR_U, NEAR_L, NEAR_D, NEAR_R, ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(9, 18)
    END, MARK, TOKEN, SKIP, LAUNCH, SCOUT, DROP, WAIT, LEAVE, TURN, BACK = range(18, 29)
    TICK, BOOT, BEFORE, BETTER, GROW, OVER, RESET, CALLED, MOVES = range(29, 38)


S = RaceSignal
CANONICAL = CanonicalPath(
    RaceSignal,
    start=lambda see, tap: see(S.END, tap),
    end=lambda see, tap: see(S.FAR, tap),
    wiped_by=S.BETTER,
)
"""The rules of the path. FAR is switched on together with BETTER, which wipes the path and the flood of the previous
best wave."""
WAVE_A = (S.A_NEW, S.A_MID, S.A_WET, S.FAR_NEXT, S.FAR)
WAVE_B = (S.B_NEW, S.B_MID, S.B_WET)
RETURN = (S.FLOOD, *CANONICAL.near, *CANONICAL.enter, S.END, S.MARK)
VISITED = (S.TOKEN, S.SKIP)
WALKER = (S.SCOUT, S.DROP, S.WAIT, S.LEAVE, S.TURN, S.BACK, S.LAUNCH)
EVERYWHERE = (S.TICK, S.BOOT, S.BEFORE, S.BETTER, S.GROW, S.OVER, S.RESET, S.CALLED, S.MOVES)
"""Signals that are the same at every tile."""


def _inside(see: TileView, tap: str) -> Bits:
    """Return whether the tile at a tap is on the map."""
    return see.tile(Tile.EMPTY, tap) | see.tile(Tile.WALL, tap)


def _arrives(start: tuple[RaceSignal, ...], mid: RaceSignal, wet: RaceSignal, see: TileView) -> Bits:
    """Return where a wave arrives: where all its start signals are on, or next to a tile where it is MID."""
    starts = reduce(lambda all_on, signal: all_on & see(signal), start[1:], see(start[0]))
    return (starts | around(see, mid)) & ~see(wet) & see.tile(Tile.EMPTY)


def _stays(signal: RaceSignal, set_by: RaceSignal, wiped_by: RaceSignal, see: TileView) -> Bits:
    return see(set_by) | (see(signal) & ~see(wiped_by))


def _passable(see: TileView, tap: str = "C") -> Bits:
    return see.tile(Tile.WALL, tap) | see(S.SKIP, tap)


def _passes(see: TileView, tap: str = "C") -> Bits:
    """Return whether the walker moves on from the tile at a tap."""
    return ((see(S.SCOUT, tap) | see(S.DROP, tap)) & _passable(see, tap)) | see(S.LEAVE, tap)


RULES: dict[IntEnum, Rule] = {
    S.PATH: lambda see: see(S.FLOOD) & CANONICAL.on_path(see),
    S.A_NEW: partial(_arrives, (S.TOKEN, S.CALLED), S.A_MID, S.A_WET),
    S.A_MID: lambda see: see(S.A_NEW),
    S.A_WET: partial(_stays, S.A_WET, S.A_NEW, S.RESET),
    S.B_NEW: partial(_arrives, (S.END, S.OVER, S.MOVES), S.B_MID, S.B_WET),
    S.B_MID: lambda see: see(S.B_NEW),
    S.B_WET: partial(_stays, S.B_WET, S.B_NEW, S.RESET),
    S.FAR_NEXT: lambda see: see(S.A_NEW) & ~see(S.MOVES),
    S.FAR: lambda see: see(S.FAR_NEXT),
    **CANONICAL.rules,
    S.END: partial(_stays, S.END, S.MARK, S.BETTER),
    S.MARK: lambda see: see(S.TOKEN) & see(S.BETTER),
    S.TOKEN: lambda see: (
        see(S.LAUNCH) | (see(S.TOKEN) & ~see(S.RESET)) | (see(S.GROW) & around(see, S.TOKEN) & see.tile(Tile.EMPTY))
    ),
    S.SKIP: lambda see: see(S.SKIP) | see(S.TOKEN),
    S.LAUNCH: lambda see: see(S.WAIT) & ~see(S.SKIP) & see(S.OVER) & ~see(S.MOVES),
    S.SCOUT: lambda see: _passes(see, "L"),
    # the walker enters the first column from the row above, or at the beginning in the first row
    S.DROP: lambda see: (
        (see(S.BACK, "U") | see(S.TURN, "U") | (~_inside(see, "U") & ~see(S.BOOT))) & ~_inside(see, "L")
    ),
    S.WAIT: lambda see: (see(S.SCOUT) | see(S.DROP) | see(S.WAIT)) & ~_passable(see),
    S.LEAVE: lambda see: see(S.WAIT) & see(S.SKIP),
    S.TURN: lambda see: _passes(see) & ~_inside(see, "R"),
    S.BACK: lambda see: see(S.TURN, "R") | see(S.BACK, "R"),
    S.TICK: lambda see: ~see(S.TICK),
    S.BOOT: lambda see: _inside(see, "C"),
    S.BEFORE: lambda see: see(S.MOVES),
    S.BETTER: lambda see: see(S.TICK) & see(S.MOVES) & ~see(S.BEFORE),
    S.GROW: lambda see: see(S.TICK) & ~see(S.MOVES) & see(S.BEFORE) & ~see(S.CALLED),
    S.OVER: lambda see: see(S.TICK) & ~see(S.MOVES) & ~see(S.BEFORE),
    S.RESET: lambda see: see(S.OVER) & ~see(S.MOVES),
    S.CALLED: lambda see: see(S.OVER) & see(S.MOVES),
    S.MOVES: lambda see: see(S.A_NEW) | see(S.B_NEW) | see(S.LAUNCH),
}


def one_walker(see: TileView) -> Bits:
    """Return whether the invariant holds at a tile, `Bits` of the view's shape: there is one walker, and it launches
    waves where it waits."""
    return ~several_on(see, [signal for signal in WALKER if signal != S.LAUNCH])


@cache
def _automaton(order: str) -> Automaton:
    return Automaton(
        name=with_order("diameter", order),
        task=with_order("diameter", order),
        signals=RaceSignal,
        rules={**RULES, **replace(CANONICAL, order=order).rules},
        bound=StepBound(constant=20, per_move=4, per_tile=12, per_move_and_tile=2),
        pooled=(S.MOVES,),
        everywhere=EVERYWHERE,
        parts=((S.PATH,), WAVE_A, WAVE_B, RETURN, (*VISITED, *WALKER)),
        invariant=lambda see: CANONICAL.invariant(see) & one_walker(see),
        theorem=invariant_theorem(replace(CANONICAL, order=order)),
        in_order=_automaton,
        learning={"sizes": (4, 5, 6), "n_levels": 4},
    )


DIAMETER = _automaton(USUAL_ORDER)
"""The automaton of the diameter. At the end only TICK, OVER and RESET still change, in a cycle of two iterations."""
