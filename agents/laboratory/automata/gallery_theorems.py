"""Theorems of the gallery's automata: what each signal is after t iterations, and so what PATH shows.

Each is a function of the automaton's signals, in their order. None has a bound: what PATH shows is stated for every
number of iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles

from ...policies.neighbours import DIRECTIONS, Offset, offsets
from .path_theorem import DISTANCE, REACHED, distance_axioms, flooded, free
from .rules import at_least
from .theorem import Number, Picture, Theorem, Truth, implies, moved, shifted

KEPT, ROUND = "kept", "round"
LIVES = "lives"
PLACE, STRIDE, FIRST, WALKER, HEADING = "place", "stride", "first", "walker", "heading"
N_STEPS = 100
"""Number of iterations for which ghosts that change are computed on real mazes."""
MOVES = offsets("N4")
"""Moves in the order of the directions."""
KING_MOVES = tuple(move for move in offsets("3x3") if move != (0, 0))


def _moved(at: Offset, moves: Sequence[Offset]) -> list[Offset]:
    return [(at[0] + down, at[1] + right) for down, right in moves]


def _from_source(moves: Sequence[Offset], signals: Any, shown: str) -> Theorem:
    """Return a theorem whose ghosts are distances from the source."""

    def axioms(picture: Picture, at: Offset, t: Number) -> dict[str, Truth]:
        return distance_axioms(picture, at, picture.tile(Tile.SOURCE, at), _moved(at, moves))

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        distance = np.where(tiles == Tile.SOURCE, 0, -1)
        for number in range(1, tiles.size):
            near = _around(distance == number - 1, moves).any(axis=0)
            distance[near & (tiles != Tile.WALL) & (distance < 0)] = number
        return {REACHED: distance >= 0, DISTANCE: distance}

    return Theorem(axioms, signals, ghosts, shown)


def _around(values: NDArray[Any], moves: Sequence[Offset]) -> NDArray[Any]:
    """Return the values of each tile's neighbours, (N, H, W)."""
    return np.stack([shifted(values, move) for move in moves])


def reachable(signals: type[IntEnum]) -> Theorem:
    """Return the theorem of `REACHABLE`: a flood is a move farther at every iteration."""
    path, wet = signals

    def said(picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        return {path: flooded(picture, at, t - 1), wet: flooded(picture, at, t)}

    return _from_source(MOVES, said, "what the source reaches in t - 2 moves")


def first_passage(signals: type[IntEnum]) -> Theorem:
    """Return the theorem of `FIRST_PASSAGE`: the front is where a king first arrives after so many moves."""
    path, seen, front = signals

    def arrives(picture: Picture, at: Offset, n_moves: Number) -> Truth:
        return picture.true(REACHED, at) & (picture.number(DISTANCE, at) == n_moves)

    def said(picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        return {
            path: arrives(picture, at, t - 2),
            seen: flooded(picture, at, t - 1),
            front: arrives(picture, at, t - 1),
        }

    return _from_source(KING_MOVES, said, "the tiles at t - 2 king's moves from the source, and no nearer")


def dead_ends(signals: type[IntEnum]) -> Theorem:
    """Return the theorem of `DEAD_ENDS`.

    A set is closed if each of its tiles is free, and each empty one has two neighbours in it. KEPT is the largest such
    set. A simple path from the source to the target is closed, so all its tiles are KEPT. An empty tile that is not
    KEPT has a ROUND in which it is filled. Nothing larger is closed: of the tiles of a closed set that are filled, the
    first would have two neighbours that are not filled yet.
    """
    path, filled = signals

    def is_filled(picture: Picture, at: Offset, t: Number) -> Truth:
        return picture.tile(Tile.EMPTY, at) & ~picture.true(KEPT, at) & (picture.number(ROUND, at) < t)

    def axioms(picture: Picture, at: Offset, t: Number) -> dict[str, Truth]:
        kept, empty, turn = picture.true(KEPT, at), picture.tile(Tile.EMPTY, at), picture.number(ROUND, at)
        around = _moved(at, MOVES)

        def open_in(number: Number) -> list[Truth]:
            return [free(picture, q) & (picture.true(KEPT, q) | (picture.number(ROUND, q) >= number)) for q in around]

        return {
            "only free tiles are kept": implies(kept, free(picture, at)),
            "the source and the target are kept": implies(free(picture, at) & ~empty, kept),
            "kept tiles have two kept neighbours": implies(
                kept & empty, at_least(2, [picture.true(KEPT, q) for q in around])
            ),
            "others are filled in their round": implies(empty & ~kept, (turn >= 0) & ~at_least(2, open_in(turn))),
            "and not before": implies(empty & ~kept & (turn > 0), at_least(2, open_in(turn - 1))),
        }

    def said(picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        return {
            path: (t >= 1) & free(picture, at) & ~is_filled(picture, at, t - 1),
            filled: is_filled(picture, at, t),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        turn = np.full(tiles.shape, -1)
        for number in range(tiles.size):
            kept = (tiles != Tile.WALL) & (turn < 0)
            turn[kept & (tiles == Tile.EMPTY) & (_around(kept, MOVES).sum(axis=0) < 2)] = number
        return {KEPT: kept, ROUND: turn}

    shown = "what t - 1 rounds of filling leave, in the end the largest set of free tiles in which every empty one"
    return Theorem(axioms, said, ghosts, f"{shown} has two neighbours")


def life(signals: type[IntEnum]) -> Theorem:
    """Return the theorem of `LIFE`: LIVES counts a tile as 1 or 0 in each generation, as the game defines it."""
    path, live, begun = signals

    def lives(picture: Picture, at: Offset, generation: Number) -> Truth:
        return (generation >= 0) & picture.inside(at) & (picture.number(LIVES, at, generation) == 1)

    def axioms(picture: Picture, at: Offset, t: Number) -> dict[str, Truth]:
        before, now = picture.number(LIVES, at, t - 1), picture.number(LIVES, at, t)
        n_around = sum(picture.number(LIVES, q, t - 1) for q in _moved(at, KING_MOVES))
        return {
            "the walls are the first generation": implies(t == 0, (now == 1) == picture.tile(Tile.WALL, at)),
            "a tile lives or not": implies(t >= 1, (before == 0) | ((before == 1) & picture.inside(at))),
            "three neighbours, or two and itself": implies(
                (t >= 1) & picture.inside(at), (now == 1) == ((n_around == 3) | ((n_around == 2) & (before == 1)))
            ),
        }

    def said(picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        return {
            path: lives(picture, at, t - 2),
            live: lives(picture, at, t - 1),
            begun: (t >= 1) & picture.inside(at),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        found = [(tiles == Tile.WALL).astype(np.int64)]
        for _ in range(N_STEPS):
            n_around = _around(found[-1], KING_MOVES).sum(axis=0)
            found.append(((n_around == 3) | ((n_around == 2) & (found[-1] == 1))).astype(np.int64))
        return {LIVES: np.stack(found)}

    return Theorem(axioms, said, ghosts, "generation t - 2 of Life, from the walls as the first, 0")


def place_axioms(picture: Picture, at: Offset) -> dict[str, Truth]:
    """Return what is true of PLACE, a number for each tile, and of STRIDE, by which it is larger one row below.

    STRIDE is odd, so of two neighbours one has an even place.
    """
    place, stride = picture.number(PLACE, at), picture.of_map(STRIDE)
    found = {"rows have more than two places, and an odd number": (stride > 2) & (stride % 2 == 1)}
    for towards, (down, right) in zip(DIRECTIONS, MOVES, strict=True):
        there = moved(at, towards)
        found[f"places of neighbours, {towards}"] = implies(
            picture.inside(at) & picture.inside(there), picture.number(PLACE, there) == place + down * stride + right
        )
    return found


def place_ghosts(tiles: Tiles) -> dict[str, Any]:
    """Return the places of the tiles of a (H, W) maze."""
    stride, (rows, cols) = tiles.shape[1] // 2 * 2 + 3, np.indices(tiles.shape)
    return {PLACE: rows * stride + cols, STRIDE: stride}


def wall_follower(signals: type[IntEnum]) -> Theorem:
    """Return the theorem of `WALL_FOLLOWER`.

    After n moves the walker is at the place WALKER, and HEADING is the direction of its last move as an index, at first
    up; it is -1 once the walker has stopped. FIRST is the number of moves after which it is first at a tile, -1 if it
    never is.
    """
    path, trail, *rest, start, begun = signals
    is_open, heads = rest[:4], rest[4:]

    def walks(picture: Picture, at: Offset, n: Number) -> Truth:
        here = picture.inside(at) & (picture.number(PLACE, at) == picture.of_map(WALKER, n))
        return here & (n >= 0) & (picture.of_map(HEADING, n) >= 0)

    def way(picture: Picture, at: Offset, towards: str) -> Truth:
        return free(picture, at) & free(picture, moved(at, towards))

    def axioms(picture: Picture, at: Offset, t: Number) -> dict[str, Truth]:
        n = t - 2
        place, first, stride = picture.number(PLACE, at), picture.number(FIRST, at), picture.of_map(STRIDE)
        before, after = picture.of_map(HEADING, n), picture.of_map(HEADING, n + 1)
        is_at, goes_to = picture.of_map(WALKER, n), picture.of_map(WALKER, n + 1)
        here, stops = walks(picture, at, n), picture.tile(Tile.TARGET, at)
        found = {
            "it begins at the source": walks(picture, at, 0) == picture.tile(Tile.SOURCE, at),
            "it heads up at first": picture.of_map(HEADING, 0) == 0,
            "it heads one of four ways, or has stopped": (before >= -1) & (before < 4) & (after >= -1) & (after < 4),
            "at the target it stops": implies(here & stops, after == -1),
            "what is first happens": implies((first >= 0) & (first == n), here),
            "what happens is not before the first time": implies(here, (first >= 0) & (first <= n)),
            **place_axioms(picture, at),
        }
        for heading, towards in enumerate(DIRECTIONS):
            (down, right), there = MOVES[heading], moved(at, towards)
            step = down * stride + right
            found[f"it is on the map, {towards}"] = implies(
                (n >= 0) & (before >= 0) & picture.inside(at) & (is_at == place + step), picture.inside(there)
            )
            found[f"it moves to a neighbour, {towards}"] = implies(
                (n >= 0) & (after == heading), (before >= 0) & (goes_to == is_at + step)
            )
            # counterclockwise is the order of the directions, so to the right is one before
            shut: Truth = picture.inside(at)
            for turn in (-1, 0, 1, 2):
                chosen = (heading + turn) % 4
                found[f"right, ahead, left, back, from {towards} to {DIRECTIONS[chosen]}"] = implies(
                    here & ~stops & (before == heading) & shut,
                    (after == chosen) == way(picture, at, DIRECTIONS[chosen]),
                )
                shut = shut & ~way(picture, at, DIRECTIONS[chosen])
        return found

    def been(picture: Picture, at: Offset, n: Number) -> Truth:
        return picture.inside(at) & (picture.number(FIRST, at) >= 0) & (picture.number(FIRST, at) < n)

    def said(picture: Picture, at: Offset, t: Number) -> Mapping[IntEnum, Truth]:
        n = t - 2
        return {
            path: been(picture, at, n - 1),
            trail: been(picture, at, n),
            **{each: (t >= 1) & way(picture, at, towards) for each, towards in zip(is_open, DIRECTIONS, strict=True)},
            **{each: walks(picture, at, n) & (picture.of_map(HEADING, n) == place) for place, each in enumerate(heads)},
            start: (t == 1) & picture.tile(Tile.SOURCE, at),
            begun: (t >= 1) & picture.inside(at),
        }

    def ghosts(tiles: Tiles) -> Mapping[str, Any]:
        places, free_tiles = place_ghosts(tiles), np.pad(tiles != Tile.WALL, 1)
        first, heading, walk = np.full(tiles.shape, -1), 0, []
        (at,) = map(tuple, np.argwhere(tiles == Tile.SOURCE))
        for n in range(N_STEPS):
            walk.append((places[PLACE][at], heading))
            if heading >= 0:
                first[at] = n if first[at] < 0 else first[at]
                ways = [(heading + turn) % 4 for turn in (-1, 0, 1, 2)]
                open_ways = [way for way in ways if free_tiles[at[0] + 1 + MOVES[way][0], at[1] + 1 + MOVES[way][1]]]
                heading = open_ways[0] if open_ways and tiles[at] != Tile.TARGET else -1
                at = at if heading < 0 else _moved(at, MOVES)[heading]
        walker, headings = np.array(walk).T
        return {**places, FIRST: first, WALKER: walker, HEADING: headings}

    return Theorem(axioms, said, ghosts, "where a walker with its right hand on the wall has been in t - 4 moves")
