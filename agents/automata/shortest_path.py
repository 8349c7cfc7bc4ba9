"""The automaton of the canonical shortest path: nine booleans a tile.

It is the rule of `canonical_path` from the source to the target, and nothing else. PATH shows where the path is, once
the flood is there. A tile stores no signal for its neighbour to the right, which is nearer where no other is.

That the rule and its invariant are right on every maze is proven by a machine (`proof`), and tested on all mazes of up
to 3 x 5 or 5 x 3 tiles (3,774,892). Of the states that the invariant leaves, 75 in all, each occurs there.
"""

from __future__ import annotations

from enum import IntEnum

from maze_nca_gym.levels import Tile

from ..guarantees import StepBound
from .automaton import Automaton
from .canonical_path import CanonicalPath
from .path_theorem import PathSignals


class Signal(IntEnum):
    """Signals of a tile.

    `FLOOD` has reached it from the target. The neighbour `NEAR_*` had been reached before, so it is nearer. The path
    comes in by the move `ENTER_*`.
    """

    PATH = 0
    FLOOD = 1
    NEAR_U = 2
    NEAR_L = 3
    NEAR_D = 4
    ENTER_U = 5
    ENTER_L = 6
    ENTER_D = 7
    ENTER_R = 8


CANONICAL = CanonicalPath(
    Signal,
    start=lambda see, tap: see.tile(Tile.SOURCE, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap),
)
NEAR = (Signal.NEAR_U, Signal.NEAR_L, Signal.NEAR_D)
"""Signals of nearer neighbours; if none is on, the neighbour to the right is the nearer one."""
ENTER = (Signal.ENTER_U, Signal.ENTER_L, Signal.ENTER_D, Signal.ENTER_R)


SHORTEST_PATH = Automaton(
    name="shortest-path",
    task="shortest-path",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.FLOOD) & CANONICAL.on_path(see),
        **CANONICAL.rules,
    },
    bound=StepBound(constant=2, per_move=2),
    # PATH is of the iteration before, and a tile that is on the path stays on it
    invariant=lambda see: CANONICAL.invariant(see) & (~see(Signal.PATH) | CANONICAL.on_path(see)),
    theorem=PathSignals(CANONICAL).theorem,
)
"""The automaton of the shortest path; it never switches a signal off that it holds, so it comes to rest."""
