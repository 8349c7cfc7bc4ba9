"""The automaton of the canonical shortest path, with nine booleans per tile.

It applies the rules of `canonical_path` from the source to the target. PATH outputs the path where the flood has been.
No signal is stored for the neighbour that is last in the order of directions, usually the right neighbour, because it
is the nearer neighbour if no other neighbour is.

A machine proof shows that the rules and the invariant are correct on every maze (`proof`). Tests run all mazes of up to
3 x 5 or 5 x 3 tiles (3,774,892). Each of the 75 states that the invariant allows occurs on some of these mazes.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import cache

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.orders import USUAL_ORDER, with_order

from ...policies.guarantees import StepBound
from ..automaton import Automaton
from .canonical import CanonicalPath


class PathSignal(IntEnum):
    """Signals of a tile.

    `FLOOD`: the flood from the target has reached the tile. `NEAR_*`: it had reached that neighbour before, which is
    therefore nearer to the target. `ENTER_*`: the path enters the tile by a move in that direction.
    """

    PATH, FLOOD = range(2)
    NEAR_U, NEAR_L, NEAR_D = range(2, 5)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(5, 9)


CANONICAL = CanonicalPath(
    PathSignal,
    start=lambda see, tap: see.tile(Tile.SOURCE, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap),
)
"""The rules in the usual order; if no NEAR is on at a flooded tile, the right neighbour is the nearer one."""


def _signals(order: str) -> type[IntEnum]:
    """Return the signals of an order of directions, with NEAR of all directions except the last."""
    if order == USUAL_ORDER:
        return PathSignal
    names = ["PATH", "FLOOD", *(f"NEAR_{towards}" for towards in order[:-1])]
    names += [f"ENTER_{towards}" for towards in order]
    enumeration: type[IntEnum] = IntEnum("PathSignal", names, start=0)  # type: ignore[misc]
    return enumeration


@cache
def _automaton(order: str) -> Automaton:
    canonical = replace(CANONICAL, signals=_signals(order), order=order)
    path, flood = canonical.signals["PATH"], canonical.signals["FLOOD"]
    return Automaton(
        name=with_order("shortest-path", order),
        task=with_order("shortest-path", order),
        signals=canonical.signals,
        rules={path: lambda see: see(flood) & canonical.on_path(see), **canonical.rules},
        bound=StepBound(constant=2, per_move=2),
        # PATH shows the path of the iteration before, and tiles never leave the path
        invariant=lambda see: canonical.invariant(see) & (~see(path) | canonical.on_path(see)),
        in_order=_automaton,
    )


SHORTEST_PATH = _automaton(USUAL_ORDER)
"""The automaton of the shortest path. It never switches a signal off, so it reaches a fixed point."""
