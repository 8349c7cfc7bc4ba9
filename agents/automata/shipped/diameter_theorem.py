"""The proof that the invariant of the diameter's automaton is true of every tile at every iteration, checked by
`proof`.

The proof is an induction over iterations: facts are assumed for all tiles and shown for one tile. They refer to numbers
of the map, and each claim states the values of these numbers in the next iteration:

- **walker, mode**: the place of the walker, and which of MODES is on there; -1 if there is no walker.
- **origin, grown**: TOKEN is at one place until it has grown, after a GROW. By then wave A rests.
- **phase**: this number is odd or even, and so are the places of all tiles where A is NEW.
- **age**: the number of iterations since the last BETTER, 0 before the first. The flood has come this far from the
  tiles that were FAR at that BETTER, and the path has come this far from the former place of TOKEN, as in the automaton
  of the shortest path. This requires that all FAR tiles have one phase: otherwise two neighbours could be equally far.

The existence of a tile that launches a wave, or that switches MOVES on, is stated for a tile somewhere on the map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from maze_nca_gym.mazes.facts import CENTRE, Axioms, Number, Picture, Place, Reading, Truth, implies, moved
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    PLACE,
    REACHED,
    STRIDE,
    canonical_path,
    flooded,
    has_come,
    has_less,
    place_axioms,
    place_ghosts,
)
from maze_nca_gym.mazes.solvers import distances

from ..theorem import Claim, State, Steps, Theorem
from .canonical import CanonicalPath

ENDS, FARS = "ends", "fars"
MODES = ("SCOUT", "DROP", "WAIT", "LEAVE", "TURN", "BACK")
NUMBERS = ("walker", "mode", "origin", "phase", "age")
MOVER, LAUNCHER = 9 * "DR", 18 * "DR"
"""Tiles somewhere on the map: a tile that makes MOVES true, and a tile that launches a wave."""


def _flood_of(maze: Picture) -> Picture:
    """Return the maze with the beginning of the path as its source, and the FAR tiles as its targets."""
    ghosts: dict[Any, str] = {Tile.SOURCE: ENDS, Tile.TARGET: FARS}

    def read(reading: Reading) -> Any:
        marked = reading.what == "tile" and reading.name in ghosts
        return maze.read(Reading("true", ghosts[reading.name], reading.at) if marked else reading)

    return Picture(read)


def invariant_theorem(path: CanonicalPath) -> Theorem:
    """Return the theorem that the invariant of the diameter's automaton is true. `path` contains the rules of the
    automaton's path."""
    flood = canonical_path(path.order)

    def axioms(picture: Picture, at: Place, t: Number) -> Axioms:
        facts: dict[Any, Truth] = {**flood.axioms(_flood_of(picture), at, t), **place_axioms(picture, at)}
        corner = ~picture.inside(moved(at, "U")) & ~picture.inside(moved(at, "L"))
        facts["the first tile has place 0"] = implies(picture.inside(at) & corner, picture.number(PLACE, at) == 0)
        for side in ("L", "R"):
            below = moved(at, "D")
            facts[f"the map is a rectangle, {side}"] = implies(
                picture.inside(at) & picture.inside(below),
                picture.inside(moved(at, side)) == picture.inside(moved(below, side)),
            )
        return facts

    def real_ghosts(tiles: Tiles) -> Mapping[str, Any]:
        marked = tiles.copy()  # a path from the first free tile of each maze to the farthest
        for level, maze in zip(marked, tiles, strict=True):
            for start in map(tuple, np.argwhere(maze == Tile.EMPTY)[:1]):
                far = np.unravel_index(distances(maze, start).argmax(), maze.shape)
                if far != start:
                    level[start], level[far] = Tile.SOURCE, Tile.TARGET
        ghosts = flood.ghosts(marked)
        fars = ghosts[REACHED] & (marked == Tile.TARGET)
        return {**ghosts, ENDS: marked == Tile.SOURCE, FARS: fars, **place_ghosts(tiles)}

    return Theorem(axioms, real_ghosts, signals=lambda picture, at, t: {}, further=partial(_claims, path))


@dataclass(frozen=True)
class _Facts:
    """The facts about a tile that the induction assumes, for some values of the numbers of the map. The module's
    docstring explains these numbers."""

    path: CanonicalPath
    walker: Number
    mode: Number
    origin: Number
    phase: Number
    age: Number
    grown: Truth

    def of(self, maze: Picture, state: State, at: Place) -> Truth:
        """Return whether all facts hold except for the facts about the flood and the path."""
        s, holds = self.path.signals, state(at)
        on = {name: holds[s[name]] for name in s.__members__}
        tick, place, empty = on["TICK"], maze.number(PLACE, at), maze.tile(Tile.EMPTY, at)
        even, modes = (place - self.phase) % 2 == 0, enumerate(MODES)
        so = {
            "A_NEW": ~tick & empty & even & ~on["GROW"] & ~on["OVER"] & ~self.grown,
            "A_MID": tick & even & on["MOVES"] & ~self.grown,
            "B_NEW": tick & on["BEFORE"],
            "B_MID": ~tick & on["MOVES"],
            "FAR_NEXT": tick & empty & even & on["MOVES"] & ~on["BEFORE"],
            "FAR": empty & ~even & on["BETTER"],
            "MARK": tick,
            "TOKEN": empty & (self.grown | (place == self.origin)),
            "WAIT": empty,
            "LAUNCH": tick & empty & on["RESET"] & (place == self.walker),
            "BETTER": ~tick & ~self.grown,
            "GROW": ~tick & ~on["A_MID"],
            "OVER": ~tick & ~on["GROW"] & ~(on["MOVES"] & self.grown),
            "RESET": tick,
            "CALLED": tick & on["BEFORE"] & ~on["A_MID"] & ~self.grown,
            "MOVES": ~(tick & self.grown),
        }
        facts = [implies(on[name], fact) for name, fact in so.items()]
        facts += [implies(on[name], (place == self.walker) & (self.mode == number)) for number, name in modes]
        return implies(maze.inside(at), reduce(and_, facts) & (on["BOOT"] | (self.mode == -1)))

    def of_flood(self, maze: Picture, state: State, at: Place) -> Truth:
        """Return whether the facts about the flood and the path hold."""
        s, flood = self.path.signals, _flood_of(maze)
        begins = flood.tile(Tile.SOURCE, at)
        wet, order = flooded(flood, at, self.age), self.path.order
        values = {s["FLOOD"]: wet, s["MARK"]: begins & (self.age == 1), s["END"]: begins & (self.age >= 2)}
        values |= {
            near: wet & has_less(flood, DISTANCE, at, towards)
            for near, towards in zip(self.path.near, order, strict=False)
        }
        values |= {
            enter: flood.true(ENTERS[towards], at) & has_come(flood, at, self.age)
            for enter, towards in zip(self.path.enter, order, strict=True)
        }
        return reduce(and_, (state(at)[signal] == value for signal, value in values.items()))


def _claims(path: CanonicalPath, steps: Steps) -> Iterator[Claim]:
    """Yield the claims of the induction, see the module's docstring."""
    s, maze, held = path.signals, steps.picture, steps.state("held")
    around = [CENTRE, *(moved(CENTRE, towards) for towards in DIRECTIONS)]
    grown, launched, moves = (maze.of_map(name) == 1 for name in ("grown", "launched", "moves"))
    walker, mode, origin, phase, age = (maze.of_map(name) for name in NUMBERS)
    walker_next, mode_next, origin_next, phase_next, age_next = (maze.of_map(f"{name}_next") for name in NUMBERS)
    now = _Facts(path, walker, mode, origin, phase, age, grown)
    local, here = steps.after(maze, held), held(CENTRE)
    next_grown = (grown | here[s["GROW"]]) & ~launched
    then = _Facts(path, walker_next, mode_next, origin_next, phase_next, age_next, next_grown)

    def after(at: Place) -> Mapping[IntEnum, Truth]:
        return {**local(at), s["MOVES"]: moves}

    def makes_moves(at: Place) -> Truth:
        return reduce(or_, (held(at)[s[name]] for name in ("A_NEW", "B_NEW", "LAUNCH")))

    premises = [maze.inside(MOVER), maze.inside(LAUNCHER), age >= 0, mode >= -1]
    premises += [now.of(maze, held, at) & now.of_flood(maze, held, at) for at in (*around, MOVER, LAUNCHER)]
    premises += [implies(makes_moves(at), moves) & implies(held(at)[s["LAUNCH"]], launched) for at in (*around, MOVER)]
    premises += [implies(moves, makes_moves(MOVER)), implies(launched, held(LAUNCHER)[s["LAUNCH"]])]
    premises += [implies(launched, origin_next == walker), launched | (origin_next == origin)]
    called, tick = here[s["CALLED"]], here[s["TICK"]]
    premises += [implies(called, phase_next == origin), implies(tick & ~called, phase_next == phase + 1)]
    premises += [tick | (phase_next == phase)]
    premises += [implies(age == 0, age_next == 0), (age == 0) | (age_next == age + 1)]
    premises += [here[s["BOOT"]] | ((mode_next == MODES.index("DROP")) & (walker_next == 0))]
    premises += [_walks(now, then, maze, held, at) for at in (*around, MOVER, LAUNCHER)]

    def off(at: Place) -> Mapping[IntEnum, Truth]:
        return dict.fromkeys(s, steps.t < 0)

    at_first = [now.of(maze, off, CENTRE), now.of_flood(maze, off, CENTRE)]
    yield Claim("all is as it should be at first", [mode == -1, age == 0, ~grown], at_first)
    yield Claim("the invariant holds where all is so", premises, [steps.invariant(maze, held)])
    yield Claim("waves, the walker and the token stay so", premises, [then.of(maze, after, CENTRE)])
    better, one = here[s["BETTER"]], maze.of_map("one")
    yield Claim("so do the flood and its path", [*premises, ~better], [then.of_flood(maze, after, CENTRE)])
    new = steps.maze("next")
    premises += [new.true(FARS, at) == held(at)[s["FAR"]] for at in around]
    premises += [new.true(ENDS, at) == held(at)[s["TOKEN"]] for at in around]
    premises += [new.tile(Tile.WALL, at) == maze.tile(Tile.WALL, at) for at in around]
    begun = replace(then, age=one).of_flood(new, after, CENTRE)
    yield Claim("BETTER begins another flood and path", [*premises, better, one == 1], [begun])


def _walks(now: _Facts, then: _Facts, maze: Picture, state: State, at: Place) -> Truth:
    """Return whether a walker that is at a tile now is next at the tile, and in the mode, to which the rules take
    it."""
    on = {name: state(at)[now.path.signals[name]] for name in (*MODES, "SKIP")}
    arrives, passable = on["SCOUT"] | on["DROP"], maze.tile(Tile.WALL, at) | on["SKIP"]

    def goes(step: Number, mode: str) -> Truth:
        return (then.walker == now.walker + step) & (then.mode == MODES.index(mode))

    def by_side(condition: Truth, side: str, inside: Truth, beyond: Truth) -> Truth:
        is_inside = maze.inside(moved(at, side))
        return implies(condition & is_inside, inside) & implies(condition & ~is_inside, beyond)

    moves = (arrives & passable) | on["LEAVE"]
    return implies(
        maze.inside(at) & (maze.number(PLACE, at) == now.walker) & (now.mode >= 0),
        by_side(moves, "R", goes(1, "SCOUT"), goes(0, "TURN"))
        & by_side(on["TURN"] | on["BACK"], "L", goes(-1, "BACK"), goes(maze.of_map(STRIDE), "DROP"))
        & implies((arrives | on["WAIT"]) & ~passable, goes(0, "WAIT"))
        & implies(on["WAIT"] & on["SKIP"], goes(0, "LEAVE")),
    )
