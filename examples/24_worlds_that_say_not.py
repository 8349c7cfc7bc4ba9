"""Tasks with negation: a rule reads that a relation never comes on, such as `~see("WET")` in a `fixpoint`.

    python examples/24_worlds_that_say_not.py        # all tasks; or with names of tasks

The rule that negates WET belongs to a later stratum: its rounds begin when nothing changes in WET's stratum any more.
The exact solver, the specification and the automaton follow from the rules as in `22_worlds.py`.
"""

import inspect
import sys
import time
from functools import reduce
from operator import or_

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents import compile_automaton
from maze_nca_gym.agents.automata import anywhere, at_least, fixpoint, grown
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, register_task

WALL, SOURCE, TARGET = Tile.WALL, Tile.SOURCE, Tile.TARGET
FOUR = "ULDR"


def near(see, name, taps=FOUR):
    """Return whether a relation is on at a neighbour."""
    return reduce(or_, (see(name, tap) for tap in taps))


def free(see, tap="C", *more):
    """Return whether a tile is on the map and is empty, the source, the target or one of the kinds `more`."""
    return reduce(or_, (see.tile(kind, tap) for kind in (Tile.EMPTY, SOURCE, TARGET, *more)))


def sprinkled(*numbers, share=0.3):
    """Return a function that gives a share of the empty tiles of levels one of several kinds at random."""
    return lambda rng, tiles: np.where(
        (tiles == Tile.EMPTY) & (rng.random(tiles.shape) < share), rng.choice(numbers, tiles.shape), tiles
    ).astype(np.uint8)


def at_corners(rng, tiles):
    """Return the levels with the source on the first tile that is not a wall, and the target on the last."""
    for level in tiles:
        level[level != WALL] = Tile.EMPTY
        places = np.argwhere(level == Tile.EMPTY)
        level[tuple(places[0])], level[tuple(places[-1])] = SOURCE, TARGET
    return tiles


def unreachable():
    """Which tiles cannot be reached from the source?"""
    cut = fixpoint(
        "CUT",
        WET=lambda see: see.tile(SOURCE) | (near(see, "WET") & free(see)),
        CUT=lambda see: free(see) & ~see("WET"),
    )
    return Task(name="unreachable", solve=cut, may_be_empty=True)


def captured():
    """Which stones are captured, black or white, as in Go?"""
    black, white = 4, 5

    def lives(name, stone):
        return lambda see: see.tile(stone) & (near(see, name) | reduce(or_, (free(see, tap) for tap in FOUR)))

    rules = {"BLACK": lives("BLACK", black), "WHITE": lives("WHITE", white)}
    dead = fixpoint(
        "TAKEN",
        **rules,
        TAKEN=lambda see: (see.tile(black) & ~see("BLACK")) | (see.tile(white) & ~see("WHITE")),
    )
    kinds = (*KINDS, Kind("black", "x", "#000000"), Kind("white", "o", "#999999"))
    return Task(name="captured", solve=dead, kinds=kinds, mark=sprinkled(black, white, share=0.9), may_be_empty=True)


def leader():
    """Which robot is the first, row by row?"""
    robot = 4
    first = fixpoint(
        "FIRST",
        ROW=lambda see: see.tile(robot) | near(see, "ROW", "LRU"),  # a robot is in this row or above
        AFTER=lambda see: see.tile(robot, "L") | see("AFTER", "L") | see("ROW", "U"),
        FIRST=lambda see: see.tile(robot) & ~see("AFTER"),
    )
    kinds = (*KINDS, Kind("robot", "r", "#cc79a7"))
    return Task(name="leader", solve=first, kinds=kinds, mark=sprinkled(robot, share=0.2), may_be_empty=True)


def largest():
    """Which lakes contain the largest square of water, up to 3 x 3 tiles?"""
    water, square = 4, ("C", "U", "L", "UL")

    def fits(see, name):
        return reduce(lambda one, other: one & other, (see(name, tap) for tap in square))

    def most(see):
        start = see("THREE") | (see("TWO") & ~see("ANY_THREE")) | ~see("ANY_TWO")
        return see("ONE") & (start | near(see, "MOST"))

    sizes = {"ONE": lambda see: see.tile(water), "TWO": lambda see: fits(see, "ONE")}
    sizes["THREE"] = lambda see: fits(see, "TWO")
    anywhere_relations = {f"ANY_{name}": anywhere(lambda see, name=name: see(name)) for name in ("TWO", "THREE")}
    kinds = (*KINDS, Kind("water", "w", "#56b4e9"))
    solve = fixpoint("MOST", **sizes, **anywhere_relations, MOST=most)
    return Task(name="largest", solve=solve, kinds=kinds, mark=sprinkled(water, share=0.6), may_be_empty=True)


def on_every_path():
    """Which tiles are on every path from the source to the target, if moves lead right and down only?"""
    passed = fixpoint(
        "ALWAYS",
        GOOD=lambda see: see.tile(TARGET) | (near(see, "GOOD", "RD") & free(see)),
        # HIGH is the path that moves right if possible, LOW moves down if possible: all other paths lie between them
        HIGH=lambda see: see("GOOD") & (see.tile(SOURCE) | see("HIGH", "L") | (see("HIGH", "U") & ~see("GOOD", "UR"))),
        LOW=lambda see: see("GOOD") & (see.tile(SOURCE) | see("LOW", "U") | (see("LOW", "L") & ~see("GOOD", "DL"))),
        ALWAYS=lambda see: see("HIGH") & see("LOW"),
    )
    return Task(name="on-every-path", solve=passed, mark=at_corners, may_be_empty=True)


def pits():
    """Which tiles can the source reach without a way back, if a move up needs a ladder?"""
    ladder = 4

    def reached(see):
        climbs = see("REACHED", "D") & see.tile(ladder, "D")
        return see.tile(SOURCE) | (free(see, "C", ladder) & (near(see, "REACHED", "ULR") | climbs))

    def returns(see):
        climbs = see("RETURNS", "U") & see.tile(ladder)
        return see.tile(SOURCE) | (free(see, "C", ladder) & (near(see, "RETURNS", "DLR") | climbs))

    rules = {"REACHED": reached, "RETURNS": returns, "PIT": lambda see: see("REACHED") & ~see("RETURNS")}
    kinds = (*KINDS, Kind("ladder", "h", "#e69f00"))
    return Task(name="pits", solve=fixpoint("PIT", **rules), kinds=kinds, mark=sprinkled(ladder), may_be_empty=True)


def unseen():
    """Which tiles can the source reach unseen by guards, who look in four directions?"""
    guard, back = 4, dict(zip(FOUR, "DRUL", strict=True))

    def ray(to):
        return lambda see: free(see) & (see.tile(guard, back[to]) | see(f"RAY_{to}", back[to]))

    def safe(see):
        seen = reduce(or_, (see(f"RAY_{to}") for to in FOUR))
        return ~seen & (see.tile(SOURCE) | (near(see, "SAFE") & free(see)))

    solve = fixpoint("SAFE", **{f"RAY_{to}": ray(to) for to in FOUR}, SAFE=safe)
    kinds = (*KINDS, Kind("guard", "g", "#d55e00"))
    return Task(name="unseen", solve=solve, kinds=kinds, mark=sprinkled(guard, share=0.1), may_be_empty=True)


def stranded():
    """Which tiles do not burn, but cannot be reached from the source without crossing fire?"""
    fire = 4
    left = fixpoint(
        "LEFT",
        BURNS=lambda see: see.tile(fire) | (near(see, "BURNS") & see.tile(Tile.EMPTY)),
        SAVED=lambda see: ~see("BURNS") & (see.tile(SOURCE) | (near(see, "SAVED") & free(see))),
        LEFT=lambda see: free(see) & ~see("BURNS") & ~see("SAVED"),
    )
    kinds = (*KINDS, Kind("fire", "f", "#d55e00"))
    return Task(name="stranded", solve=left, kinds=kinds, mark=sprinkled(fire, share=0.03), may_be_empty=True)


def loops():
    """Which tiles are left if dead ends are filled until there is none?"""

    def filled(see):
        closed = (~free(see, tap) | see("FILLED", tap) for tap in FOUR)
        return see.tile(Tile.EMPTY) & at_least(3, list(closed))

    left = fixpoint("LEFT", FILLED=filled, LEFT=lambda see: free(see) & ~see("FILLED"))
    return Task(name="loops", solve=left)


WORLDS = {
    make.__name__.replace("_", "-"): make
    for make in (unreachable, captured, leader, largest, on_every_path, pits, unseen, stranded, loops)
}


def register(name):
    """Register a task and its environment, and return its automaton."""
    register_task(WORLDS[name]())
    register_environment(f"Maze{name.title().replace('-', '')}-v0", name, max_episode_steps=256)
    return grown(name)


def lines(name):
    """Return the number of lines of code that define a task."""
    return sum(bool(line.strip()) for line in inspect.getsource(WORLDS[name]).splitlines()[2:])


if __name__ == "__main__":
    for name in sys.argv[1:] or WORLDS:
        began, automaton = time.perf_counter(), register(name)
        network, certificate = compile_automaton(automaton)
        counts = f"{lines(name)} lines, {len(automaton.signals)} signals, {len(certificate.helpers)} helpers"
        verdict, seconds = network.guarantees.verdict, time.perf_counter() - began
        print(f"{name}: {counts}, {network.n_weights:,} weights: {verdict}, {seconds:.0f} s")
