"""Tasks given by rules: from its rules, each task gets an exact solver, a specification, and a proven automaton.

    python examples/22_worlds.py        # all tasks that have a network; or with names of tasks

The `solve` of each task is a fixpoint: rules switch relations on, round by round. `grown` derives an automaton whose
signals are these relations. Only the automaton of the wave is written by hand.
"""

import inspect
import sys
import time
from enum import IntEnum
from functools import reduce
from operator import and_, or_

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents import Automaton, compile_automaton
from maze_nca_gym.agents.automata import Count, StepBound, anywhere, at_least, fixpoint, grown, inflationary
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, register_task

WALL, SOURCE, TARGET = Tile.WALL, Tile.SOURCE, Tile.TARGET
FOUR = "ULDR"
EIGHT = ("UL", "U", "UR", "L", "R", "DL", "D", "DR")
BACK = dict(zip(FOUR, "DRUL", strict=True))


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


def once(*numbers):
    """Return a function that places each of several kinds on an empty tile of every level, if there are enough."""

    def mark(rng, tiles):
        for level in tiles:
            empty = np.argwhere(level == Tile.EMPTY)
            for number, place in zip(numbers, rng.permutation(empty), strict=False):
                level[tuple(place)] = number
        return tiles

    return mark


def fire():
    """Which tiles burn, if a fire starts at the source and water stops it?"""
    water = 4
    burns = fixpoint(BURNS=lambda see: see.tile(SOURCE) | (near(see, "BURNS") & free(see)))
    kinds = (*KINDS, Kind("water", "w", "#56b4e9"))
    return Task(name="fire", solve=burns, kinds=kinds, mark=sprinkled(water, share=0.2))


def parity():
    """Which tiles are an even number of moves from the source?"""
    even = fixpoint(
        EVEN=lambda see: see.tile(SOURCE) | (near(see, "ODD") & free(see)),
        ODD=lambda see: near(see, "EVEN") & free(see),
    )
    return Task(name="parity", solve=even)


def one_way():
    """From which tiles can the target be reached, if arrows can be left in one direction only?"""
    arrows = dict(zip(FOUR, range(4, 8), strict=True))

    def leaves(see, to):
        others = (~see.tile(kind) for way, kind in arrows.items() if way != to)
        return reduce(and_, others, ~see.tile(WALL))

    def reaches(see):
        ways = (see("REACHES", to) & leaves(see, to) & free(see, "C", *arrows.values()) for to in FOUR)
        return reduce(or_, ways, see.tile(TARGET))

    kinds = (*KINDS, *(Kind(f"arrow_{to}", to.lower(), "#999999") for to in FOUR))
    return Task(name="one-way", solve=fixpoint(REACHES=reaches), kinds=kinds, mark=sprinkled(4, 5, 6, 7))


def king():
    """Which tiles can a king reach from the source?"""
    return Task(name="king", solve=fixpoint(MET=lambda see: see.tile(SOURCE) | (near(see, "MET", EIGHT) & free(see))))


def careful_king():
    """Which tiles can a king reach without cutting corners?"""

    def met(see):
        corners = (see("MET", c) & free(see, c[0]) & free(see, c[1]) for c in ("UL", "UR", "DL", "DR"))
        return see.tile(SOURCE) | (reduce(or_, corners, near(see, "MET")) & free(see))

    return Task(name="careful-king", solve=fixpoint(MET=met))


def ice():
    """Where does a token stop that slides until it hits a wall?"""

    def stands(see):
        return reduce(or_, (see(f"SLIDES_{to}") & ~free(see, to) for to in FOUR), see.tile(SOURCE))

    def slides(to):
        return lambda see: free(see) & (see("STANDS", BACK[to]) | see(f"SLIDES_{to}", BACK[to]))

    return Task(name="ice", solve=fixpoint(STANDS=stands, **{f"SLIDES_{to}": slides(to) for to in FOUR}))


def core():
    """Which tiles have no wall within two moves?"""

    def on_map(see, tap="C"):
        return free(see, tap, WALL)

    def clear(see):
        return reduce(and_, (~see.tile(WALL, tap) for tap in FOUR), free(see))

    def is_core(see):
        return reduce(and_, (see("CLEAR", tap) | ~on_map(see, tap) for tap in FOUR), see("CLEAR"))

    return Task(name="core", solve=fixpoint(CORE=is_core, CLEAR=clear), may_be_empty=True)


def wave():
    """Over which tiles does an excitable wave pass?"""
    seen = fixpoint(SEEN=lambda see: see.tile(SOURCE) | (near(see, "SEEN") & free(see)))
    return Task(name="wave", solve=seen)


def tree():
    """For each tile: which is the first move, in order, of a shortest path back to the source? (four answers)"""

    def parent(to):
        def first(see):
            earlier = (~see("REACHED", before) for before in FOUR[: FOUR.index(to)])
            return reduce(and_, earlier, free(see) & ~see.tile(SOURCE) & ~see("REACHED") & see("REACHED", to))

        return first

    spans = inflationary(
        *(f"BY_{to}" for to in FOUR),
        **{f"BY_{to}": parent(to) for to in FOUR},
        REACHED=lambda see: see.tile(SOURCE) | (near(see, "REACHED") & free(see)),
    )
    return Task(name="tree", solve=spans, answers=("up", "left", "down", "right"), may_be_empty=True)


def portals():
    """Which tiles are reachable, if entering a portal also reaches the other portal?"""
    portal = 4
    wet = fixpoint(
        WET=lambda see: (
            see.tile(SOURCE) | (near(see, "WET") & free(see, "C", portal)) | (see.tile(portal) & see("LIT"))
        ),
        LIT=anywhere(lambda see: see("WET") & see.tile(portal)),
    )
    kinds = (*KINDS, Kind("portal", "o", "#cc79a7"))
    return Task(name="portals", solve=wet, kinds=kinds, mark=once(portal, portal))


def colours():
    """Which tiles are reachable, with two pairs of portals of a colour each?"""
    colour = {"LIT_A": 4, "LIT_B": 5}

    def wet(see):
        comes = (see.tile(portal) & see(lit) for lit, portal in colour.items())
        return reduce(or_, comes, see.tile(SOURCE) | (near(see, "WET") & free(see, "C", *colour.values())))

    lit = {name: anywhere(lambda see, portal=portal: see("WET") & see.tile(portal)) for name, portal in colour.items()}
    kinds = (*KINDS, Kind("portal_a", "a", "#cc79a7"), Kind("portal_b", "b", "#e69f00"))
    return Task(name="colours", solve=fixpoint(WET=wet, **lit), kinds=kinds, mark=once(4, 4, 5, 5))


def within():
    """Which tiles can the source reach in at most four moves?"""
    left = Count("LEFT", 5)

    def says(see, n):
        return see.tile(SOURCE) | (free(see) & reduce(or_, (left.at_least(see, n + 1, to) for to in FOUR)))

    return Task(name="within", solve=fixpoint(**left.rules(says)))


def nearest():
    """Which is the canonical shortest path to the nearest of several targets?"""

    def first(to):
        def comes(see):
            earlier = (~see("FLOOD", before) for before in FOUR[: FOUR.index(to)])
            return reduce(and_, earlier, free(see) & ~see("FLOOD") & see("FLOOD", to))

        return comes

    leads = {f"TO_{to}": first(to) for to in FOUR}
    way = inflationary(
        "WAY",
        **leads,
        FLOOD=lambda see: see.tile(TARGET) | (near(see, "FLOOD") & free(see)),
        WAY=lambda see: reduce(
            or_, (see("WAY", to) & see(f"TO_{BACK[to]}", to) for to in FOUR), see.tile(SOURCE) & see("FLOOD")
        ),
    )
    return Task(name="nearest", solve=way, mark=once(TARGET, TARGET))


def rook():
    """Which tiles does a rook at the source attack?"""

    def ray(to):
        return lambda see: free(see) & (see.tile(SOURCE, BACK[to]) | see(f"RAY_{to}", BACK[to]))

    rays = {f"RAY_{to}": ray(to) for to in FOUR}
    attacked = fixpoint(SEEN=lambda see: reduce(or_, map(see, rays)), **rays)
    return Task(name="rook", solve=attacked, may_be_empty=True)


def two_keys():
    """Which tiles are reachable, if a door opens once both keys were collected?"""
    door, key = 4, {"A": 5, "B": 6}

    def held(keys):
        def comes(see):
            entered = near(see, f"HAS{keys}") & free(see, "C", *key.values(), *((door,) if keys == "_AB" else ()))
            taken = [see.tile(key[k]) & see(f"HAS{keys.replace(k, '').rstrip('_')}") for k in keys.strip("_")]
            return reduce(or_, taken, entered | see.tile(SOURCE) if not keys else entered)

        return comes

    sets = ("", "_A", "_B", "_AB")
    been = fixpoint(
        "BEEN",
        **{f"HAS{keys}": held(keys) for keys in sets},
        BEEN=lambda see: reduce(or_, (see(f"HAS{keys}") for keys in sets)),
    )
    kinds = (
        *KINDS,
        *(Kind(name, letter, "#e69f00") for name, letter in (("door", "d"), ("key_a", "a"), ("key_b", "b"))),
    )

    def mark(rng, tiles):
        return once(5, 6)(rng, sprinkled(door, share=0.1)(rng, tiles))

    return Task(name="two-keys", solve=been, kinds=kinds, mark=mark)


def lamps():
    """Which lamps switch on, if a lamp needs two neighbours that are on?"""
    lamp = 4

    def lit(see):
        return see.tile(lamp) | (free(see) & at_least(2, [see("LIT", to) for to in FOUR]))

    kinds = (*KINDS, Kind("lamp", "l", "#f0e442"))
    return Task(name="lamps", solve=fixpoint(LIT=lit), kinds=kinds, mark=sprinkled(lamp), may_be_empty=True)


def nearer():
    """Which tiles are nearer to the source than to the target?"""

    mine = inflationary(
        "MINE",
        REACHED=lambda see: see.tile(SOURCE) | (near(see, "REACHED") & free(see)),
        OTHER=lambda see: see.tile(TARGET) | (near(see, "OTHER") & free(see)),
        MINE=lambda see: (
            ~see.tile(TARGET)
            & (see.tile(SOURCE) | (near(see, "REACHED") & free(see) & ~see("OTHER") & ~near(see, "OTHER")))
        ),
    )
    return Task(name="nearer", solve=mine)


WORLDS = {
    make.__name__.replace("_", "-"): make
    for make in (
        fire, parity, one_way, king, careful_king, ice, core, wave, tree, portals, colours, within, nearest, rook,
        two_keys, lamps, nearer,
    )
}  # fmt: skip


def excitable():
    """Return the automaton of the wave: an excited tile is tired for three iterations, and then at rest."""
    tired = Count("TIRED", 3)
    signals = IntEnum("Wave", ["PATH", "SEEN", "FIRED", "EXCITED", *tired.signals], start=0)

    def excited(see):
        comes = (see.tile(SOURCE) & ~see("FIRED")) | near(see, "EXCITED")
        return comes & ~see("EXCITED") & ~tired.at_least(see, 1) & ~see.tile(WALL)

    rules = {
        "PATH": lambda see: see("SEEN"),
        "SEEN": lambda see: see("SEEN") | see("EXCITED"),
        "FIRED": lambda see: see.tile(SOURCE),
        "EXCITED": excited,
        **tired.rules(lambda see, n: see("EXCITED") | tired.at_least(see, n + 1)),
    }
    return Automaton("wave", "wave", signals, rules, bound=StepBound(constant=3, per_tile=1))


def register(name):
    """Register a task and its environment, and return its automaton."""
    register_task(WORLDS[name]())
    register_environment(f"Maze{name.title().replace('-', '')}-v0", name, max_episode_steps=256)
    return excitable() if name == "wave" else grown(name)


def lines(name):
    """Return the number of lines of code that define a task."""
    return sum(bool(line.strip()) for line in inspect.getsource(WORLDS[name]).splitlines()[2:])


if __name__ == "__main__":
    # the tiles of two-keys have too many states for a network
    for name in sys.argv[1:] or [name for name in WORLDS if name != "two-keys"]:
        began, automaton = time.perf_counter(), register(name)
        network, certificate = compile_automaton(automaton)
        counts = f"{lines(name)} lines, {len(automaton.signals)} signals, {len(certificate.helpers)} helpers"
        verdict, seconds = network.guarantees.verdict, time.perf_counter() - began
        print(f"{name}: {counts}, {network.n_weights:,} weights: {verdict}, {seconds:.0f} s")
