"""How often the waves of the paper's Algorithm 1 collide: `python -m experiments.collisions --help`.

A depth-first search walks the largest component of a maze. At each tile it waits, launches a wave, and walks on. Every
tile stores the farthest wave that reaches it, its eccentricity. A wave that a later one overtakes is lost there. The
algorithm prints |prior.since - u.since| as the wait, but defines `since` in more than one way, so each reading is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tyro
from numpy.typing import NDArray

from maze_nca_gym.mazes import Tile, Tiles, distances, test_levels

MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Rows and columns to move: down, right, up, left, in the order in which the paper's pebble prefers them."""


class Visit(NamedTuple):
    """A tile that the search enters, and which visits, counted from 0, were to its neighbours before.

    Attributes:
        place: its row and column.
        steps: iterations since the visit before: 1 to a neighbour, 2 to a tile that is popped from the stack.
        first: the first visit to a neighbour; -1 for the start.
        last: the last one before this; -1 for the start.
    """

    place: tuple[int, int]
    steps: int
    first: int
    last: int


def search(tiles: Tiles, start: tuple[int, int]) -> list[Visit]:
    """Return the visits of a depth-first search of a (H, W) level, in order."""
    visits: list[Visit] = []
    visited: set[tuple[int, int]] = set()
    beside: dict[tuple[int, int], list[int]] = {}  # free tile -> visits to its neighbours so far
    stack = [start]
    while stack:
        place = stack.pop()
        if place in visited:
            continue
        before = beside.get(place, [-1])
        steps = 1 if before[-1] == len(visits) - 1 else 2
        visits.append(Visit(place, steps, before[0], before[-1]))
        visited.add(place)
        nearby = [(place[0] + down, place[1] + right) for down, right in MOVES]
        inside = [tile for tile in nearby if 0 <= tile[0] < tiles.shape[0] and 0 <= tile[1] < tiles.shape[1]]
        free = [tile for tile in inside if tiles[tile] != Tile.WALL and tile not in visited]
        for tile in free:
            beside.setdefault(tile, []).append(len(visits) - 1)
        stack.extend(reversed(free))
    return visits


class Walk(NamedTuple):
    """A search so far: what a rule of waiting may know.

    Attributes:
        visits: all visits of the search.
        walked: iteration of each visit so far, on a clock that stands still while the search waits.
        arrived: the same, on a clock that never stops.
        gaps: moves from the tile of each visit to that of the next.
    """

    visits: Sequence[Visit]
    walked: Sequence[int]
    arrived: Sequence[int]
    gaps: NDArray[np.int32]


Rule = Callable[[Walk], int]
"""Returns how many iterations the last visit of a walk, not its first, waits before it launches its wave."""


def since(which: str, clock: str, extra: int = 0) -> Rule:
    """Return the printed rule: the difference of `since` of this tile and of the one before.

    Args:
        which: what `since` counts from: the "first" or "last" visit to a neighbour, or the "own" visit of the tile.
        clock: the one by which it counts, "walked" or "arrived".
        extra: is added. The text has a "+1", the formula has not.
    """

    def wait(walk: Walk) -> int:
        times = getattr(walk, clock)
        now = len(times) - 1
        began = []
        for visit in (now, now - 1):
            from_visit = visit if which == "own" else getattr(walk.visits[visit], which)
            # where it is undefined, for the start, one step before its visit
            began.append(times[visit] - 1 if from_visit < 0 else times[from_visit])
        return abs(began[0] - began[1]) + extra

    return wait


def wave_passed(walk: Walk) -> int:
    """Return the wait of our automaton: until the wave before has passed this tile."""
    last = len(walk.arrived) - 1
    return max(0, int(walk.gaps[last - 1]) + 1 - walk.visits[last].steps)


RULES: dict[str, Rule] = {
    "a step, always": lambda walk: 1,
    "since the last neighbour": since("last", "walked"),
    "since the first neighbour": since("first", "walked"),
    "since the tile itself (the table)": since("own", "walked"),
    "since the last neighbour, waits counted": since("last", "arrived"),
    "since the first neighbour, waits counted": since("first", "arrived"),
    "since the last neighbour, + 1 (the text)": since("last", "walked", 1),
    "since the first neighbour, + 1 (the text)": since("first", "walked", 1),
    "until the wave before has passed (ours)": wave_passed,
}


def launches(visits: Sequence[Visit], gaps: NDArray[np.int32], rule: Rule) -> list[int]:
    """Return the iteration at which each visit launches its wave, from 0, under a rule of waiting."""
    walked, arrived, launched = [0], [0], [0]
    for visit in visits[1:]:
        walked.append(walked[-1] + visit.steps)
        arrived.append(launched[-1] + visit.steps)
        launched.append(arrived[-1] + rule(Walk(visits, walked, arrived, gaps)))
    return launched


class Outcome(NamedTuple):
    """What a rule does on a level: whether waves collide, an eccentricity is wrong, and iterations per free tile."""

    collides: bool
    is_wrong: bool
    pace: float


def outcomes(tiles: Tiles, start: tuple[int, int]) -> dict[str, Outcome]:
    """Return what each rule does on the component of a tile of a (H, W) level."""
    visits = search(tiles, start)
    places = np.array([visit.place for visit in visits])
    n = len(places)
    moves = distances(np.broadcast_to(tiles, (n, *tiles.shape)), places)[:, places[:, 0], places[:, 1]]
    gaps = moves[np.arange(n - 1), np.arange(1, n)]
    return {name: _outcome(moves, launches(visits, gaps, rule)) for name, rule in RULES.items()}


def _outcome(moves: NDArray[np.int32], launched: Sequence[int]) -> Outcome:
    """Judge launches of the waves of n tiles, (n, n) moves apart."""
    start = np.array(launched)
    gaps = np.diff(start) <= moves[np.arange(len(moves) - 1), np.arange(1, len(moves))]
    arrivals = start[:, None] + moves
    later = np.minimum.accumulate(arrivals[::-1], axis=0)[::-1]  # the earliest arrival of this wave or a later one
    is_registered = np.ones(moves.shape, np.bool_)
    is_registered[:-1] = arrivals[:-1] < later[1:]
    farthest = np.where(is_registered, moves, 0).max(axis=0)
    return Outcome(bool(gaps.any()), bool((farthest != moves.max(axis=0)).any()), (launched[-1] + 1) / len(launched))


def largest_component(tiles: Tiles) -> tuple[int, int]:
    """Return the first tile, row by row, of the largest component of a (H, W) level."""
    seen, best, most = np.zeros(tiles.shape, np.bool_), (0, 0), 0
    for row, col in np.argwhere(tiles != Tile.WALL):
        if not seen[row, col]:
            reached = distances(tiles, (row, col)) >= 0
            seen |= reached
            if reached.sum() > most:
                best, most = (int(row), int(col)), int(reached.sum())
    return best


def main(n: int = 2_000) -> None:
    """Print a table of all rules on the first n levels of the test set random-16."""
    levels = test_levels("random", 16, "diameter", n).tiles
    found = [outcomes(tiles, largest_component(tiles)) for tiles in levels]
    print(f"| wait | levels of {len(levels):,} in which waves collide | eccentricities wrong | iterations a tile |")
    print("|---|---|---|---|")
    for name in RULES:
        collide, wrong, pace = (np.array([getattr(level[name], f) for level in found]) for f in Outcome._fields)
        print(f"| {name} | {collide.sum():,} | {wrong.sum():,} | {pace.mean():.3g} |")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
