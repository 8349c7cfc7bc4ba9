"""The automaton of the canonical shortest path: nine booleans a tile.

It is the rule of `canonical_path` from the source to the target, and nothing else. PATH shows where the path is, once
the flood is there. A tile stores no signal for its neighbour to the right, which is nearer where no other is.

That the rule is right is argued there, and here that a tile holds nothing but `_states`. Both are tested on all mazes
of up to 3 x 5 or 5 x 3 tiles (3,774,892). All 75 states of a tile do occur there.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from maze_nca_gym.levels import Tile

from ..guarantees import StepBound
from .automaton import Automaton, Component, subsets
from .canonical_path import CanonicalPath


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


def _states(kind: Tile) -> Iterator[frozenset[Signal]]:
    """Yield the possible states of a free tile of this kind.

    No signal is on where the flood has not been. The path enters from one side at most, which is not nearer, and is
    shown only at the source and where it has entered. It never enters the source, and no neighbour of the target is
    nearer than the target.
    """
    yield frozenset()
    for near in subsets(NEAR):
        for entered in [None] if kind == Tile.SOURCE else [None, *ENTER]:
            if kind == Tile.TARGET and near:
                continue
            if entered is not None and kind != Tile.TARGET and not _can_enter(near, entered):
                continue
            on = near | {Signal.FLOOD} | (set() if entered is None else {entered})
            yield on
            if kind == Tile.SOURCE or entered is not None:
                yield on | {Signal.PATH}


def _can_enter(near: frozenset[Signal], entered: Signal) -> bool:
    """Return whether the neighbour from which the path came can be not nearer: for the move up, the tile below."""
    if entered == Signal.ENTER_L:  # from the right, which is the nearer one if no other is
        return bool(near)
    came_from = {Signal.ENTER_U: Signal.NEAR_D, Signal.ENTER_D: Signal.NEAR_U, Signal.ENTER_R: Signal.NEAR_L}
    return came_from[entered] not in near


SHORTEST_PATH = Automaton(
    name="shortest-path",
    task="shortest-path",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.FLOOD) & CANONICAL.on_path(see),
        **CANONICAL.rules,
    },
    bound=StepBound(constant=2, per_move=2),
    worlds=(
        {
            Tile.WALL: (Component(tuple(Signal), (frozenset(),)),),
            **{
                kind: (Component(tuple(Signal), tuple(_states(kind))),)
                for kind in (Tile.EMPTY, Tile.SOURCE, Tile.TARGET)
            },
        },
    ),
)
"""The automaton of the shortest path; it never switches a signal off that it holds, so it comes to rest."""
