"""A gallery of automata for other tasks: each is a rule of a few lines and can be compiled to a network.

>>> from maze_nca_gym.agents import compile_automaton
>>> model, certificate = compile_automaton("life")

PATH outputs the result of the previous iteration. `examples/14_automata_gallery.py` draws all of them. Each automaton
names ghosts (facts about the maze that no tile stores), in terms of which `prove` infers the value of each signal after
t iterations, and thus the value of PATH. None of them has a bound, because these values are stated for every number of
iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np

from maze_nca_gym.mazes.facts import CENTRE, Ghosts, Number, Picture, Place, Truth, at_least, implies, moved
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE, offsets
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    KEPT,
    N_ITERATIONS,
    ON_PATH,
    PLACE,
    REACHED,
    ROUND,
    STRIDE,
    both_of,
    canonical_path,
    distance,
    evolution,
    has_less,
    is_free,
    peeling,
    place_axioms,
    place_ghosts,
)
from maze_nca_gym.mazes.rules import any_on, around, several_on
from maze_nca_gym.mazes.terms import Bits, TileView

from ..automaton import NEIGHBOURHOODS, Automaton
from ..theorem import Claim, Steps, Theorem

SMALL = {
    "sizes": (4, 6),
    "n_levels": 8,
    "n_recombined": 20_000,
    "n_updates": 1_500,
    "batch_size": 512,
    "n_updates_again": 500,
}
"""Options with which networks learn automata with few signals in seconds."""
AROUND = tuple(tap for tap in NEIGHBOURHOODS[9] if tap != "C")
"""The taps of the eight neighbours, row by row."""


def free(see: TileView, tap: str = "C") -> Bits:
    """Return whether a tile is on the map and not a wall, `Bits` of the view's shape."""
    return see.tile(Tile.EMPTY, tap) | see.tile(Tile.SOURCE, tap) | see.tile(Tile.TARGET, tap)


class Reached(IntEnum):
    """The signals of `REACHABLE`: WET is on where the flood from the source has been."""

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
    theorem=distance(Tile.SOURCE),
    learning=SMALL,
)
"""Marks the tiles that the source can reach, its connected component: a flood moves one tile in every iteration."""


class Filling(IntEnum):
    """The signals of `DEAD_ENDS`: FILLED is on at tiles of dead ends that are filled."""

    PATH, FILLED = range(2)


def _filled(see: TileView) -> Bits:
    closed = [~free(see, towards) | see(Filling.FILLED, towards) for towards in DIRECTIONS]
    return see.tile(Tile.EMPTY) & (see(Filling.FILLED) | at_least(3, closed))


def _in_a_tree(steps: Steps) -> Iterator[Claim]:
    """Yield the claims that the path is never filled, and that nothing else is left if the free tiles form a tree.

    Both are proven by contradiction. If a tile of the path were filled, a neighbour on the path would have been filled
    in an earlier round, and so on without end. But there is a first round.

    In a tree, all free tiles are reached, at most one neighbour of each tile is nearer to the target, and the target is
    on the path. If a tile off the path were never filled, a neighbour off the path that is farther from the target
    would never be filled either, and so on without end. But mazes are finite.
    """
    maze, near = steps.picture, [moved(CENTRE, tap) for tap in ("C", *DIRECTIONS)]
    nearer = [[has_less(maze, DISTANCE, q, towards) for towards in DIRECTIONS] for q in near]
    tree = [~at_least(2, of_tile) for of_tile in nearer]
    tree += [implies(is_free(maze, q), maze.true(REACHED, q)) for q in near]
    tree += [implies(maze.tile(Tile.TARGET, q), maze.true(ON_PATH, q)) for q in near]
    off = [maze.true(KEPT, q) & ~maze.true(ON_PATH, q) for q in near]
    farther = [other & ~less for other, less in zip(off[1:], nearer[0], strict=True)]
    filled = [maze.true(ON_PATH, q) & ~maze.true(KEPT, q) for q in near]
    before = [at_q & (maze.number(ROUND, q) < maze.number(ROUND, CENTRE)) for q, at_q in zip(near, filled, strict=True)]
    yield Claim("if a tile of the path is filled, then one beside it is before", [filled[0]], [reduce(or_, before)])
    yield Claim("in a tree, what is kept off the path has such a tile farther", [*tree, off[0]], [reduce(or_, farther)])


BRANCHES = both_of(peeling(), canonical_path())
DEAD_ENDS = Automaton(
    name="dead-ends",
    task="shortest-path",
    signals=Filling,
    rules={Filling.PATH: lambda see: free(see) & ~see(Filling.FILLED), Filling.FILLED: _filled},
    invariant=lambda see: ~(see(Filling.FILLED) & ~see.tile(Tile.EMPTY)),
    theorem=Theorem(BRANCHES.axioms, BRANCHES.ghosts, relations=BRANCHES.relations, further=_in_a_tree),
    learning=SMALL,
)
"""Fills dead ends: free tiles with at most one open neighbour. In a maze without loops, only the path remains."""


class Living(IntEnum):
    """The signals of `LIFE`: LIVE is on at living tiles, and BEGUN everywhere after the first iteration."""

    PATH, LIVE, BEGUN = range(3)


LIVES = "lives"
"""The ghost of the living tiles of each generation."""


def _lives(live: Any, see: TileView) -> Bits:
    """Return whether a tile lives in the next generation: it has three living neighbours, or it lives and has two."""
    neighbours = [see(live, tap) for tap in AROUND]
    few, many = at_least(2, neighbours), at_least(4, neighbours)
    return ~many & (at_least(3, neighbours) | (few & see(live)))


LIFE = Automaton(
    name="life",
    task="diameter",
    signals=Living,
    rules={
        Living.PATH: lambda see: see(Living.LIVE),
        Living.LIVE: lambda see: (
            (_lives(Living.LIVE, see) & see(Living.BEGUN)) | (see.tile(Tile.WALL) & ~see(Living.BEGUN))
        ),
        Living.BEGUN: lambda see: see.tile(Tile.EMPTY) | see.tile(Tile.WALL),
    },
    neighbourhood=9,
    everywhere=(Living.BEGUN,),
    settles=False,
    theorem=evolution(**{LIVES: (lambda see: see.tile(Tile.WALL), partial(_lives, LIVES))}),
    learning=SMALL,
)
"""Conway's Game of Life. At the beginning the walls are alive, and afterwards no rule reads the maze."""


class Passing(IntEnum):
    """The signals of `FIRST_PASSAGE`: FRONT is on where the front is, and SEEN where it was before."""

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
    theorem=distance(Tile.SOURCE, AROUND),
    learning=SMALL,
)
"""A front that runs from the source to all eight neighbours. It is at each tile once, when it first arrives there."""


class Following(IntEnum):
    """The signals of `WALL_FOLLOWER`.

    - HEADS_* is on at the walker's tile, for the direction in which the walker faces.
    - OPEN_* is on for each direction in which a tile can be left.
    - TRAIL is on where the walker has been.
    - BEGUN is on everywhere after the first iteration.
    - START is on at the source before the walker's first move.
    """

    PATH, TRAIL = range(2)
    OPEN_U, OPEN_L, OPEN_D, OPEN_R = range(2, 6)
    HEADS_U, HEADS_L, HEADS_D, HEADS_R = range(6, 10)
    START, BEGUN = range(10, 12)


OPEN = {towards: Following[f"OPEN_{towards}"] for towards in DIRECTIONS}
HEADS = {towards: Following[f"HEADS_{towards}"] for towards in DIRECTIONS}
TRIED = {heading: [DIRECTIONS[(i + turn) % 4] for turn in (-1, 0, 1, 2)] for i, heading in enumerate(DIRECTIONS)}
"""The directions that a walker tries, by its heading: right, ahead, left, back. `DIRECTIONS` is counterclockwise."""
FIRST, WALKER, HEADING = "first", "walker", "heading"
"""Ghosts of the walk. WALKER is the walker's place after n moves. HEADING is the direction of its last move as an
index, at first up; -1 once the walker has stopped. FIRST is the number of moves after which the walker first comes to a
tile; -1 if it never does."""


def _heads(towards: str, see: TileView) -> Bits:
    """Return whether the walker enters a tile by a move in a direction: the walker is at the tile before, and the
    direction is the first open direction that the walker tries there."""
    before, comes = OPPOSITE[towards], []
    for heading, tried in TRIED.items():
        goes = see(HEADS[heading], before) & see(OPEN[towards], before)
        for side in tried[: tried.index(towards)]:
            goes = goes & ~see(OPEN[side], before)
        comes.append(goes)
    enters = reduce(or_, comes) & ~see.tile(Tile.TARGET, before)
    return enters | see(Following.START) if towards == "U" else enters


def _walks(picture: Picture, at: Place, n: Number) -> Truth:
    """Return whether a walker that has not stopped is at a tile after n moves."""
    here = picture.inside(at) & (picture.number(PLACE, at) == picture.of_map(WALKER, n))
    return here & (n >= 0) & (picture.of_map(HEADING, n) >= 0)


def _way(picture: Picture, at: Place, towards: str) -> Truth:
    """Return whether a tile and its neighbour in a direction are free."""
    return is_free(picture, at) & is_free(picture, moved(at, towards))


def _walking_axioms(picture: Picture, at: Place, t: Number) -> dict[str, Truth]:
    n = t - 2
    place, first, stride = picture.number(PLACE, at), picture.number(FIRST, at), picture.of_map(STRIDE)
    before, after = picture.of_map(HEADING, n), picture.of_map(HEADING, n + 1)
    is_at, goes_to = picture.of_map(WALKER, n), picture.of_map(WALKER, n + 1)
    here, stops = _walks(picture, at, n), picture.tile(Tile.TARGET, at)
    facts = {
        "it begins at the source": _walks(picture, at, 0) == picture.tile(Tile.SOURCE, at),
        "it heads up at first": picture.of_map(HEADING, 0) == 0,
        "it heads one of four ways, or has stopped": (before >= -1) & (before < 4) & (after >= -1) & (after < 4),
        "at the target it stops": implies(here & stops, after == -1),
        "what is first happens": implies(picture.inside(at) & (first >= 0) & (first == n), here),
        "what happens is not before the first time": implies(here, (first >= 0) & (first <= n)),
        **place_axioms(picture, at),
    }
    for heading, towards in enumerate(DIRECTIONS):
        neighbour, ((down, right),) = moved(at, towards), offsets(towards)
        step = down * stride + right
        facts[f"it is on the map, {towards}"] = implies(
            (n >= 0) & (before >= 0) & picture.inside(at) & (is_at == place + step), picture.inside(neighbour)
        )
        facts[f"it moves to a neighbour, {towards}"] = implies(
            (n >= 0) & (after == heading), (before >= 0) & (goes_to == is_at + step)
        )
        shut: Truth = picture.inside(at)
        for side in TRIED[towards]:
            facts[f"right, ahead, left, back, from {towards} to {side}"] = implies(
                here & ~stops & (before == heading) & shut,
                (after == DIRECTIONS.index(side)) == _way(picture, at, side),
            )
            shut = shut & ~_way(picture, at, side)
    return facts


def _walking_ghosts(tiles: Tiles) -> Mapping[str, Any]:
    places, free_tiles = place_ghosts(tiles), np.pad(tiles != Tile.WALL, ((0, 0), (1, 1), (1, 1)))
    turns = np.array([[DIRECTIONS.index(side) for side in TRIED[heading]] for heading in DIRECTIONS])
    steps = np.array([offsets(side)[0] for side in DIRECTIONS])
    maze, row, col = np.nonzero(tiles == Tile.SOURCE)
    first, heading, walk = np.full(tiles.shape, -1), np.zeros_like(maze), []
    for n in range(N_ITERATIONS):
        walk.append((places[PLACE][maze, row, col], heading))
        here = (maze, row, col)
        first[here] = np.where((heading >= 0) & (first[here] < 0), n, first[here])
        neighbours = np.stack([row, col], axis=1)[:, None] + steps[turns[heading]]  # of a walker that has stopped, any
        ways = free_tiles[maze[:, None], 1 + neighbours[..., 0], 1 + neighbours[..., 1]]
        goes = (heading >= 0) & ways.any(axis=1) & (tiles[here] != Tile.TARGET)
        heading = np.where(goes, turns[heading, ways.argmax(axis=1)], -1)
        row, col = np.where(goes, np.stack([row, col]) + steps[heading].T, np.stack([row, col]))
    walker, headings = (np.array(numbers)[..., None, None] for numbers in zip(*walk, strict=True))
    return {**places, FIRST: first, WALKER: walker, HEADING: headings}


WALL_FOLLOWER = Automaton(
    name="wall-follower",
    task="shortest-path",
    signals=Following,
    rules={
        Following.PATH: lambda see: see(Following.TRAIL),
        Following.TRAIL: lambda see: see(Following.TRAIL) | any_on(see, HEADS.values()),
        **{OPEN[towards]: partial(lambda side, see: free(see) & free(see, side), towards) for towards in DIRECTIONS},
        **{HEADS[towards]: partial(_heads, towards) for towards in DIRECTIONS},
        # an iteration before the first step, while OPEN is read off the maze
        Following.START: lambda see: see.tile(Tile.SOURCE) & ~see(Following.BEGUN),
        Following.BEGUN: lambda see: free(see) | see.tile(Tile.WALL),
    },
    everywhere=(Following.BEGUN,),
    invariant=lambda see: ~several_on(see, tuple(HEADS.values())),
    settles=False,
    theorem=Ghosts(_walking_axioms, _walking_ghosts),
    learning=SMALL,
)
"""A walker with its right hand on the wall, from the source until it is at the target. PATH marks the tiles that it has
visited."""

GALLERY = (REACHABLE, DEAD_ENDS, LIFE, FIRST_PASSAGE, WALL_FOLLOWER)
