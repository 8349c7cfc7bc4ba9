"""The signals of automata after t iterations, written by hand. The search for theorems must find the same."""

from dataclasses import replace

from maze_nca_gym.agents.automata import AUTOMATA, Theorem, moved
from maze_nca_gym.agents.automata.shipped.gallery import (
    HEADING,
    HEADS,
    LIVES,
    OPEN,
    WALKER,
    Filling,
    Following,
    Living,
    Passing,
    Reached,
)
from maze_nca_gym.agents.automata.shipped.healing import FOUND
from maze_nca_gym.agents.automata.shipped.healing import S as H
from maze_nca_gym.mazes import Tile
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    KEPT,
    PLACE,
    REACHED,
    ROUND,
    entered,
    flooded,
    has_come,
    has_less,
    is_free,
)
from maze_nca_gym.mazes.tasks import find_task


def path(signals, order, picture, at, t):
    flood = flooded(picture, at, t)
    truths = {signals["FLOOD"]: flood}
    for towards in order:
        if f"NEAR_{towards}" in signals.__members__:
            truths[signals[f"NEAR_{towards}"]] = flood & has_less(picture, DISTANCE, at, towards)
        truths[signals[f"ENTER_{towards}"]] = picture.true(ENTERS[towards], at) & has_come(picture, at, t)
    return truths


def healing(picture, at, t):
    # no check fails on a maze that does not change, so signals of checks are off: t is never below 0
    has_begun, is_source = t >= 1, picture.tile(Tile.SOURCE, at)
    return {
        **path(H, "ULDR", picture, at, t),
        H.ROOT: has_begun & picture.tile(Tile.TARGET, at),
        H.ON: has_begun & (is_source | (entered(picture, at) & has_come(picture, at, t - 1))),
        H.WAS_WALL: has_begun & picture.tile(Tile.WALL, at),
        **dict.fromkeys((*FOUND, H.ALARM, H.RESET), picture.inside(at) & (t < 0)),
    }


def is_filled(picture, at, t):
    return picture.tile(Tile.EMPTY, at) & ~picture.true(KEPT, at) & (picture.number(ROUND, at) < t)


def is_at(picture, at, n):
    return picture.true(REACHED, at) & (picture.number(DISTANCE, at) == n)


def lives(picture, at, generation):
    return (generation >= 0) & picture.true(LIVES, at, generation)


def walks(picture, at, n):
    is_here = picture.inside(at) & (picture.number(PLACE, at) == picture.of_map(WALKER, n))
    return is_here & (n >= 0) & (picture.of_map(HEADING, n) >= 0)


def has_been(picture, at, n):
    return picture.inside(at) & (picture.number("first", at) >= 0) & (picture.number("first", at) < n)


def walking(picture, at, t):
    return {
        Following.PATH: has_been(picture, at, t - 3),
        Following.TRAIL: has_been(picture, at, t - 2),
        **{OPEN[towards]: (t >= 1) & is_free(picture, at) & is_free(picture, moved(at, towards)) for towards in "ULDR"},
        **{
            HEADS[towards]: walks(picture, at, t - 2) & (picture.of_map(HEADING, t - 2) == heading)
            for heading, towards in enumerate("ULDR")
        },
        Following.START: (t == 1) & picture.tile(Tile.SOURCE, at),
        Following.BEGUN: (t >= 1) & picture.inside(at),
    }


SAID = {
    "shortest-path": lambda *at: path(AUTOMATA["shortest-path"].signals, "ULDR", *at),
    "shortest-path-healing": healing,
    "reachable": lambda picture, at, t: {
        Reached.PATH: flooded(picture, at, t - 1),
        Reached.WET: flooded(picture, at, t),
    },
    "dead-ends": lambda picture, at, t: {
        Filling.PATH: (t >= 1) & is_free(picture, at) & ~is_filled(picture, at, t - 1),
        Filling.FILLED: is_filled(picture, at, t),
    },
    "life": lambda picture, at, t: {
        Living.PATH: lives(picture, at, t - 2),
        Living.LIVE: lives(picture, at, t - 1),
        Living.BEGUN: (t >= 1) & picture.inside(at),
    },
    "first-passage": lambda picture, at, t: {
        Passing.PATH: is_at(picture, at, t - 2),
        Passing.SEEN: flooded(picture, at, t - 1),
        Passing.FRONT: is_at(picture, at, t - 1),
    },
    "wall-follower": walking,
}
"""Name of an automaton -> its signals."""


def expected(automaton):
    """Return an automaton with the theorem that was written by hand, if there is one."""
    if automaton.name not in SAID:
        return automaton
    ghosts = automaton.theorem or find_task(automaton.task).specification()
    further = ghosts.further if isinstance(ghosts, Theorem) else Theorem.further
    theorem = Theorem(ghosts.axioms, ghosts.ghosts, ghosts.answers, signals=SAID[automaton.name], further=further)
    return replace(automaton, theorem=theorem)
