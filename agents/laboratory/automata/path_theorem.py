"""The theorem of the canonical path: how far the flood and the walk back have come after t iterations.

Its ghosts are what a search of the maze finds. A tile that the target can be reached from is REACHED, and DISTANCE
is its number of moves to the target. A tile of the path that is canonical in the order of directions is ON_PATH, and
ENTERS_U ... say by which move the path comes into it. LENGTH is the number of moves of the path.

The flood is at distance d in iteration d + 1. It is at the source after LENGTH + 1 iterations, and from there the path
takes a tile an iteration: it comes to distance d in iteration 2 LENGTH + 1 - d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import partial, reduce
from itertools import combinations
from operator import or_
from typing import Any

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances, shortest_path

from ...policies.neighbours import DIRECTIONS, OPPOSITE, Offset
from .canonical_path import CanonicalPath
from .theorem import CENTRE, Claim, Number, Picture, Steps, Theorem, Truth, implies, moved

REACHED, DISTANCE, ON_PATH, LENGTH = "reached", "distance", "on_path", "length"
PLACE, STRIDE = "place", "stride"
ENTERS = {towards: f"enters_{towards}" for towards in DIRECTIONS}


def is_free(picture: Picture, at: Offset) -> Truth:
    """Return whether a tile is on the map and not a wall."""
    return picture.inside(at) & ~picture.tile(Tile.WALL, at)


def nearer(picture: Picture, at: Offset, towards: str) -> Truth:
    """Return whether the neighbour in a direction is nearer to the target."""
    there = moved(at, towards)
    return picture.true(REACHED, there) & (picture.number(DISTANCE, there) < picture.number(DISTANCE, at))


def goes(picture: Picture, at: Offset, towards: str, order: str) -> Truth:
    """Return whether the canonical move from a tile is in a direction: the first of its neighbours that is nearer."""
    earlier = order[: order.index(towards)]
    return reduce(lambda kept, rival: kept & ~nearer(picture, at, rival), earlier, nearer(picture, at, towards))


def distance_axioms(picture: Picture, at: Offset, start: Truth, around: Iterable[Offset]) -> dict[str, Truth]:
    """Return what is true of REACHED and of DISTANCE from a start, by name.

    Args:
        picture: the maze.
        at: a tile.
        start: whether distances are those from this tile.
        around: the tiles to which a move from it can lead, those that are free.
    """
    reached, distance, around = picture.true(REACHED, at), picture.number(DISTANCE, at), list(around)
    found = {
        "only free tiles are reached": implies(reached, is_free(picture, at) & (distance >= 0)),
        "the start is the tile at distance 0": start == (reached & (distance == 0)),
        "some neighbour of a reached tile is nearer by one": implies(
            reached & ~start,
            reduce(or_, (picture.true(REACHED, q) & (picture.number(DISTANCE, q) == distance - 1) for q in around)),
        ),
    }
    for there in around:
        found[f"distances of neighbours, {there}"] = implies(
            reached & is_free(picture, there),
            picture.true(REACHED, there) & (picture.number(DISTANCE, there) <= distance + 1),
        )
    return found


def axioms(order: str, picture: Picture, at: Offset, t: Number) -> dict[str, Truth]:
    """Return what is true of the ghosts of a tile and its neighbours in every maze, by name; the canonical path is that
    of an order of directions."""
    reached, distance = picture.true(REACHED, at), picture.number(DISTANCE, at)
    on_path, length = picture.true(ON_PATH, at), picture.of_map(LENGTH)
    is_source, is_target = picture.tile(Tile.SOURCE, at), picture.tile(Tile.TARGET, at)
    around = [moved(at, towards) for towards in DIRECTIONS]
    found = {
        **distance_axioms(picture, at, is_target, around),
        "the path begins at the source, and enters all its other tiles": on_path
        == ((is_source & reached) | entered(picture, at)),
        "the source is at the distance of the path's length": implies(is_source & reached, distance == length),
        "the path is reached and never farther than the source": implies(on_path, reached & (distance <= length)),
        "what it enters is nearer than the source": implies(entered(picture, at), distance < length),
    }
    for towards in DIRECTIONS:
        there, before = moved(at, towards), moved(at, OPPOSITE[towards])
        # on a grid a move changes the parity of every distance, so none of them stays the same
        found[f"distances of neighbours differ, {towards}"] = implies(
            reached & picture.true(REACHED, there), picture.number(DISTANCE, there) != distance
        )
        found[f"the path enters along canonical moves, {towards}"] = picture.true(ENTERS[towards], at) == (
            is_free(picture, at)
            & picture.true(ON_PATH, before)
            & ~picture.tile(Tile.TARGET, before)
            & goes(picture, before, towards, order)
        )
    for p, q in combinations((at, *around), 2):
        apart = picture.number(DISTANCE, p) != picture.number(DISTANCE, q)
        found[f"no two tiles of the path are equally far, {p} {q}"] = implies(
            picture.true(ON_PATH, p) & picture.true(ON_PATH, q), apart
        )
    return found


def flooded(picture: Picture, at: Offset, t: Number) -> Truth:
    """Return whether a tile is reached in fewer than t moves."""
    return picture.true(REACHED, at) & (picture.number(DISTANCE, at) < t)


def path_theorem(
    path: CanonicalPath,
    others: Callable[[Picture, Offset, Number], Mapping[IntEnum, Truth]] = lambda picture, at, t: {},
    further: Callable[[Steps], Iterable[Claim]] = lambda steps: (),
    shown: str = "",
) -> Theorem:
    """Return the theorem of an automaton with the signals of a path from source to target.

    Args:
        path: the rule, with the signals that it has.
        others: (picture, at, t) -> the automaton's other signals but PATH; by default none.
        further: further claims, as `Theorem` has them.
        shown: what they add to the answer, in words.
    """

    def signals(picture: Picture, at: Offset, t: Number) -> dict[IntEnum, Truth]:
        flood, directions = flooded(picture, at, t), path.order
        near = {s: flood & nearer(picture, at, towards) for towards, s in zip(directions, path.near, strict=False)}
        entering = zip(directions, path.enter, strict=True)
        enter = {s: picture.true(ENTERS[towards], at) & has_come(picture, at, t) for towards, s in entering}
        return {path.signals["FLOOD"]: flood, **near, **enter, **others(picture, at, t)}

    return Theorem(
        partial(axioms, path.order),
        signals,
        partial(ghosts, path.order),
        shown,
        answer=lambda picture, at: picture.true(ON_PATH, at),
        n_moves=lambda picture: picture.of_map(LENGTH),
        further=further,
    )


def has_come(picture: Picture, at: Offset, t: Number) -> Truth:
    """Return whether t iterations are enough for the path to come to a tile on it."""
    return t >= 2 * picture.of_map(LENGTH) + 1 - picture.number(DISTANCE, at)


def entered(picture: Picture, at: Offset) -> Truth:
    """Return whether the path comes into a tile by some move."""
    return reduce(or_, (picture.true(ENTERS[towards], at) for towards in DIRECTIONS))


def ghosts(order: str, tiles: Tiles) -> Mapping[str, Any]:
    """Return the ghosts of a (H, W) maze by the exact solvers; nothing is on a path if there is none."""
    target = tiles == Tile.TARGET
    distance = np.asarray(distances(tiles, tuple(np.argwhere(target)[0])), np.int64)
    path = np.asarray(shortest_path(tiles[None], order)[0])
    found: dict[str, Any] = {REACHED: distance >= 0, DISTANCE: distance, ON_PATH: path}
    found[LENGTH] = max(0, int(path.sum()) - 1)
    framed = np.pad(path, 1)
    far = np.pad(np.where(path, distance, -2), 1, constant_values=-2)
    for towards in DIRECTIONS:
        down, right = moved(CENTRE, OPPOSITE[towards])
        before = far[1 + down : far.shape[0] - 1 + down, 1 + right : far.shape[1] - 1 + right]
        found[ENTERS[towards]] = framed[1:-1, 1:-1] & (before == distance + 1)
    return found


def place_axioms(picture: Picture, at: Offset) -> dict[str, Truth]:
    """Return what is true of PLACE, a number for each tile, and of STRIDE, by which it is larger one row below.

    STRIDE is odd, so of two neighbours one has an even place.
    """
    place, stride = picture.number(PLACE, at), picture.of_map(STRIDE)
    found = {"rows have more than two places, and an odd number": (stride > 2) & (stride % 2 == 1)}
    for towards in DIRECTIONS:
        there = moved(at, towards)
        step = (there[0] - at[0]) * stride + there[1] - at[1]
        found[f"places of neighbours, {towards}"] = implies(
            picture.inside(at) & picture.inside(there), picture.number(PLACE, there) == place + step
        )
    return found


def place_ghosts(tiles: Tiles) -> dict[str, Any]:
    """Return the places of the tiles of a (H, W) maze."""
    stride, (rows, cols) = tiles.shape[1] // 2 * 2 + 3, np.indices(tiles.shape)
    return {PLACE: rows * stride + cols, STRIDE: stride}
