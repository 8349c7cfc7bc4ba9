"""A gallery of automata that do something else than the tasks: each is a rule of a few lines, and becomes a network.

>>> from maze_nca_gym.agents import compile_automaton
>>> model, certificate = compile_automaton("life")

PATH shows the result of the iteration before. `examples/14_automata_gallery.py` draws all of them.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial

from maze_nca_gym.mazes.levels import Tile

from ...policies.neighbours import DIRECTIONS, OPPOSITE
from . import gallery_theorems
from .automaton import NEIGHBOURHOODS, Automaton
from .rules import Bits, Rule, TileView, any_on, around, at_least, several_on

SMALL = {
    "sizes": (4, 6),
    "n_levels": 8,
    "n_recombined": 20_000,
    "n_updates": 1_500,
    "batch_size": 512,
    "n_updates_again": 500,
}
"""Options with which networks learn automata of few signals in seconds."""
AROUND = tuple(tap for tap in NEIGHBOURHOODS[9] if tap != "C")
"""The eight neighbours, row by row."""


def free(see: TileView, tap: str = "C") -> Bits:
    """Return whether a tile is on the map and no wall, `Bits` of the view's shape."""
    return see.tile(Tile.EMPTY, tap) | see.tile(Tile.SOURCE, tap) | see.tile(Tile.TARGET, tap)


class Reached(IntEnum):
    """Signals of `REACHABLE`."""

    PATH, WET = range(2)


REACHABLE = Automaton(
    name="reachable",
    task="shortest-path",
    signals=Reached,
    rules={
        Reached.PATH: lambda see: see(Reached.WET),
        Reached.WET: lambda see: (
            see.tile(Tile.SOURCE) | ((see(Reached.WET) | around(see, Reached.WET)) & ~see.tile(Tile.WALL))
        ),
    },
    invariant=lambda see: ~(see(Reached.WET) & see.tile(Tile.WALL)) & (~see(Reached.PATH) | see(Reached.WET)),
    theorem=gallery_theorems.reachable(Reached),
    learning=SMALL,
)
"""Which tiles the source can reach: its connected component."""


class Filling(IntEnum):
    """Signals of `DEAD_ENDS`."""

    PATH, FILLED = range(2)


def _filled(see: TileView) -> Bits:
    closed = [~free(see, towards) | see(Filling.FILLED, towards) for towards in DIRECTIONS]
    return see.tile(Tile.EMPTY) & (see(Filling.FILLED) | at_least(3, closed))


DEAD_ENDS = Automaton(
    name="dead-ends",
    task="shortest-path",
    signals=Filling,
    rules={
        Filling.PATH: lambda see: free(see) & ~see(Filling.FILLED),
        Filling.FILLED: _filled,
    },
    invariant=lambda see: ~(see(Filling.FILLED) & ~see.tile(Tile.EMPTY)),
    theorem=gallery_theorems.dead_ends(Filling),
    learning=SMALL,
)
"""Fills dead ends: a free tile with at most one open neighbour. In a maze without loops, the path remains."""


class Living(IntEnum):
    """Signals of `LIFE`."""

    PATH, LIVE, BEGUN = range(3)


def _live(see: TileView) -> Bits:
    neighbours = [see(Living.LIVE, tap) for tap in AROUND]
    few, many = at_least(2, neighbours), at_least(4, neighbours)
    lives = ~many & (at_least(3, neighbours) | (few & see(Living.LIVE)))
    return (lives & see(Living.BEGUN)) | (see.tile(Tile.WALL) & ~see(Living.BEGUN))


LIFE = Automaton(
    name="life",
    task="diameter",
    signals=Living,
    rules={
        Living.PATH: lambda see: see(Living.LIVE),
        Living.LIVE: _live,
        Living.BEGUN: lambda see: see.tile(Tile.EMPTY) | see.tile(Tile.WALL),
    },
    neighbourhood=9,
    everywhere=(Living.BEGUN,),
    settles=False,
    theorem=gallery_theorems.life(Living),
    learning=SMALL,
)
"""Conway's Game of Life. It begins with the walls alive, and never reads the maze again."""


class Passing(IntEnum):
    """Signals of `FIRST_PASSAGE`."""

    PATH, SEEN, FRONT = range(3)


def _arrives(see: TileView) -> Bits:
    come = at_least(1, [see.tile(Tile.SOURCE), *(see(Passing.FRONT, tap) for tap in AROUND)])
    return come & ~see.tile(Tile.WALL) & ~see(Passing.SEEN) & ~see(Passing.FRONT)


FIRST_PASSAGE = Automaton(
    name="first-passage",
    task="shortest-path",
    signals=Passing,
    rules={
        Passing.PATH: lambda see: see(Passing.FRONT),
        Passing.SEEN: lambda see: see(Passing.SEEN) | see(Passing.FRONT),
        Passing.FRONT: _arrives,
    },
    neighbourhood=9,
    invariant=lambda see: ~((see(Passing.SEEN) | see(Passing.FRONT)) & see.tile(Tile.WALL)),
    theorem=gallery_theorems.first_passage(Passing),
    learning=SMALL,
)
"""A front that runs from the source to eight neighbours: it is at each tile once, when it first arrives there."""


class Following(IntEnum):
    """Signals of `WALL_FOLLOWER`: HEADS_* is the walker's direction, OPEN_* says on which sides there is a way."""

    PATH, TRAIL = range(2)
    OPEN_U, OPEN_L, OPEN_D, OPEN_R = range(2, 6)
    HEADS_U, HEADS_L, HEADS_D, HEADS_R = range(6, 10)
    START, BEGUN = range(10, 12)


OPEN = {towards: Following[f"OPEN_{towards}"] for towards in DIRECTIONS}
HEADS = {towards: Following[f"HEADS_{towards}"] for towards in DIRECTIONS}


def _is_open(towards: str, see: TileView) -> Bits:
    return free(see) & free(see, towards)


def _goes(see: TileView, towards: str, tap: str) -> Bits:
    """Return whether the walker at a tap leaves it in a direction: the first open way, beginning at its right hand."""
    found = []
    for heading in DIRECTIONS:
        at = DIRECTIONS.index(heading)
        # counterclockwise is the order of the directions, so to the right is one before
        tries = [DIRECTIONS[(at + turn) % 4] for turn in (-1, 0, 1, 2)]
        blocked = tries[: tries.index(towards)]
        goes = see(HEADS[heading], tap) & see(OPEN[towards], tap)
        for side in blocked:
            goes = goes & ~see(OPEN[side], tap)
        found.append(goes)
    return found[0] | found[1] | found[2] | found[3]


def _heads(towards: str) -> Rule:
    before = OPPOSITE[towards]

    def rule(see: TileView) -> Bits:
        comes = _goes(see, towards, before) & ~see.tile(Tile.TARGET, before)
        return comes | see(Following.START) if towards == "U" else comes

    return rule


WALL_FOLLOWER = Automaton(
    name="wall-follower",
    task="shortest-path",
    signals=Following,
    rules={
        Following.PATH: lambda see: see(Following.TRAIL),
        Following.TRAIL: lambda see: see(Following.TRAIL) | any_on(see, HEADS.values()),
        **{OPEN[towards]: partial(_is_open, towards) for towards in DIRECTIONS},
        **{HEADS[towards]: _heads(towards) for towards in DIRECTIONS},
        # an iteration before the first step, while OPEN is read off the maze
        Following.START: lambda see: see.tile(Tile.SOURCE) & ~see(Following.BEGUN),
        Following.BEGUN: lambda see: free(see) | see.tile(Tile.WALL),
    },
    everywhere=(Following.BEGUN,),
    invariant=lambda see: ~several_on(see, tuple(HEADS.values())),
    settles=False,
    theorem=gallery_theorems.wall_follower(Following),
    learning=SMALL,
)
"""A walker with its right hand on the wall, from the source until it is at the target. PATH is where it has been."""

GALLERY = (REACHABLE, DEAD_ENDS, LIFE, FIRST_PASSAGE, WALL_FOLLOWER)
