"""Rules define ghosts: facts that axioms add to the definitions are proven, and few axioms are assumed."""

import inspect
import re
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import or_
from pathlib import Path

import numpy as np
import pytest

from maze_nca_gym.agents.automata.proving.symbols import Z3, SymbolicPicture
from maze_nca_gym.mazes import Tile, relations
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.facts import CENTRE, WORLDS, axiom_of, implies, moved
from maze_nca_gym.mazes.neighbours import DIRECTIONS
from maze_nca_gym.mazes.relations import (
    DISTANCE,
    ENTERS,
    GOES,
    LENGTH,
    N_STEPS,
    N_TILES,
    ON_PATH,
    REACHED,
    Relations,
    canonical_path,
    component,
    distance,
    evolution,
    fixpoint,
    inflationary,
    peeling,
    places,
    reached,
)

PAGE = (Path(__file__).parents[2] / "docs/ghosts.md").read_text(encoding="utf-8")
AROUND = [CENTRE, *DIRECTIONS]
MADE = {
    "distance": [distance(Tile.SOURCE), distance(Tile.SOURCE, several=False), distance(3, ["UL", "R"], weights={0: 3})],
    "reached": [reached(Tile.SOURCE)],
    "canonical_path": [canonical_path(), canonical_path("DRUL", weights={0: 3}, several=True)],
    "peeling": [peeling()],
    "evolution": [evolution(on=(lambda see: see.tile(2), lambda see: ~see("on")))],
    "component": [component()],
    "places": [places()],
}
ASSUMED = {
    "component": {"free tiles have a number", "neighbours have the same"},
    "places": {"rows have more than two places, and an odd number", "places of neighbours"},
}
"""The axioms that are written by hand and assumed, by the function whose ghosts have no rules."""


def test_assumed_axioms_are_listed_on_the_page():
    functions = {name for name, member in vars(relations).items() if inspect.isfunction(member)}
    makers = {name for name in functions if inspect.signature(getattr(relations, name)).return_annotation == "Ghosts"}
    assert makers - {"both_of"} == {*MADE}
    picture = MazePicture(np.zeros((1, 2, 2), np.uint8), {name: np.zeros((1, 2, 2)) for name in ("place", "component")})
    picture = picture.with_ghosts({"stride": np.ones((1, 1, 1))})
    on = fixpoint(on=lambda see: see.tile(2)).specification()
    late = inflationary(late=lambda see: ~see("late", "U")).specification()
    for name, ghosts_of_name in {**MADE, "fixpoint": [on], "inflationary": [late]}.items():
        for ghosts in ghosts_of_name:
            axioms = {
                re.sub(", [ULDR]$", "", axiom_of(member).name) for member in ghosts.axioms.assumed(picture, CENTRE)
            }
            assert axioms == ASSUMED.get(name, set()), name
            # all other axioms are generated or lemmas
            assert name in ASSUMED or ghosts.axioms.follow.__func__ is Relations.axioms, name
    for member in set().union(*ASSUMED.values()):
        assert f"*{member}*" in PAGE, member


def test_ghosts_have_values_of_their_kind():
    values = canonical_path(name="to the north").ghosts(np.array([[[2, 0, 3]]], np.uint8))
    kinds = {getattr(name, "kind", name) for name in values}
    assert kinds == {REACHED, DISTANCE, ON_PATH, LENGTH, N_TILES, *ENTERS.values()}
    assert "distance to the north" in values


class Tiles:
    """Any tile of any graph of four doors, its neighbours, and the known facts about them.

    The known facts are the axioms of `ghosts` that follow from definitions, and the lemmas that were proven.
    """

    def __init__(self, z3, ghosts, name="", extra=()):
        self.z3, self.picture = z3, SymbolicPicture(z3, is_grid=False, prefix=name)
        definition = ghosts.axioms.follow.__self__
        # here all stages have axioms
        self.relations = replace(
            definition, hidden=[relation for relation in definition.hidden if relation in definition.definitions]
        )
        self.known = [self.picture.of_map(N_TILES) >= 1]
        t = self.picture.of_map("t")
        for at in AROUND:
            self.known += [*self.relations.axioms(self.picture, at, t).values(), self.picture.kind(at) >= -1]
            self.known += [fact(self.picture, at) for fact in extra]

    def on(self, relation, at=CENTRE):
        """Return whether a relation is on at a tile, and the stage at which it comes on."""
        return self.relations.on(relation, self.picture, at)

    def goes(self, towards, at):
        """Return whether the path would leave a tile by a move."""
        return self.relations.definitions[GOES[towards]].fact(self.picture, at)

    def proves(self, fact, *supposed):
        """Return whether the known facts imply a fact."""
        solver = self.z3.Solver()
        solver.add(*self.known, *supposed)
        assert solver.check() == self.z3.sat, "what is supposed never occurs"
        solver.add(self.z3.Not(fact))
        return solver.check() == self.z3.unsat

    def learn(self, facts, along=""):
        """Prove a fact about the tile, (picture, at) -> truth, by induction along the stages of a relation if one is
        named. The fact is then known of all tiles."""
        earlier, (on_here, stage_here) = [], self.on(along or REACHED)
        for at in DIRECTIONS if along else ():
            on, stage = self.on(along, at)
            earlier.append(implies(on & on_here & (stage < stage_here), facts(self.picture, at)))
        assert self.proves(facts(self.picture, CENTRE), *earlier)
        self.known += [facts(self.picture, at) for at in AROUND]


def free(picture, at):
    """Return whether a tile is free: any tiles of the map may be."""
    return picture.inside(at) & picture.true("free", at)


def every(lemma):
    """Return all facts of a lemma as one."""
    return lambda picture, at: reduce(lambda one, other: one & other, lemma.facts(picture, at).values())


def named(ghosts, name):
    """Return the lemma with a fact whose name begins with a text."""
    picture = SymbolicPicture(Z3(), is_grid=False)
    (lemma,) = [
        candidate
        for candidate in ghosts.axioms.lemmas
        if any(axiom_of(key).name.startswith(name) for key in candidate.facts(picture, CENTRE))
    ]
    return lemma


PATHS = [
    canonical_path(free=free),
    canonical_path("DRUL", free=free, start=Tile.TARGET, end=0, several=True),
    canonical_path("LURD", free=free, weights={0: 3, Tile.TARGET: 2}),
]


@pytest.mark.parametrize("ghosts", [distance(Tile.SOURCE, free=free, several=False), PATHS[0]], ids=["flood", "path"])
def test_distances_of_neighbours_differ_where_moves_change_halves(ghosts):
    def halves(picture, at):
        sides = [
            implies(picture.inside(at) & picture.inside(q), picture.true("half", at) != picture.true("half", q))
            for q in (moved(at, towards) for towards in DIRECTIONS)
        ]
        # the half of the only start is called off
        kind = Tile.SOURCE if len(ghosts.axioms.lemmas) == 1 else Tile.TARGET
        return reduce(lambda one, other: one & other, sides, ~(picture.tile(kind, at) & picture.true("half", at)))

    tiles = Tiles(Z3(), ghosts, extra=[halves])
    tiles.learn(
        lambda picture, at: implies(
            picture.true(REACHED, at), (picture.number(DISTANCE, at) % 2 == 1) == picture.true("half", at)
        ),
        along=REACHED,
    )
    lemma = named(ghosts, "distances of neighbours differ")
    assert {axiom_of(fact).holds_on for fact in lemma.facts(tiles.picture, CENTRE)} == {WORLDS[1]}
    tiles.learn(every(lemma))


def one_at_each_step(z3, ghosts):
    """Prove that two tiles of the path are the same tile if equally many moves lead to them from the start, or from
    them to the end. Both proofs are inductions over pairs of tiles, along the number of moves."""
    one, other = Tiles(z3, ghosts, "one "), Tiles(z3, ghosts, "other ")
    (on_one, step_one), (on_other, step_other) = one.on(ON_PATH), other.on(ON_PATH)
    far_one, far_other = one.picture.number(DISTANCE), other.picture.number(DISTANCE)
    same_map = [one.picture.of_map(name) == other.picture.of_map(name) for name in (LENGTH, N_STEPS, N_TILES, "t")]
    supposed, same = [*other.known, *same_map, on_one, on_other], {}
    for p, q in product(DIRECTIONS, repeat=2):
        (on_p, step_p), (on_q, step_q) = one.on(ON_PATH, p), other.on(ON_PATH, q)
        same[p, q] = z3.Bool(f"{p} of one is {q} of the other")
        supposed += [implies(on_p & on_q & (step_p == step_q) & (step_p < step_one), same[p, q])]
        supposed += [implies(same[p, q], one.goes(to, p) == other.goes(to, q)) for to in DIRECTIONS]
    first = Tile.TARGET if ghosts is PATHS[1] else Tile.SOURCE
    begin = one.picture.tile(first) & other.picture.tile(first)  # only one tile is of this kind
    assert one.proves(reduce(or_, (same[p, p] for p in DIRECTIONS), begin), *supposed, step_one == step_other)
    # tiles with more moves before them are nearer to the end
    supposed = [*other.known, *same_map, on_one, on_other]
    for q in DIRECTIONS:
        (on_q, step_q), far_q = other.on(ON_PATH, q), other.picture.number(DISTANCE, q)
        before = on_q & (step_q < step_other)
        supposed += [implies(before & (step_one < step_q), far_one > far_q)]
        supposed += [implies(before & (step_one == step_q), far_one == far_q)]  # then they are the same tile
    assert one.proves(far_one > far_other, *supposed, step_one < step_other)


@pytest.mark.parametrize("ghosts", PATHS, ids=["moves", "several ends", "weights"])
def test_lemmas_of_the_canonical_path_follow_from_its_definition(ghosts):
    z3 = Z3()
    tiles, weighted = Tiles(z3, ghosts), N_STEPS in ghosts.relations
    proven = [named(ghosts, "the path is reached"), named(ghosts, "what it enters"), named(ghosts, "the path comes in")]
    near, nearer, once = proven
    assert (near.along, nearer.along, once.along) == (ON_PATH, "", "")
    assert not tiles.proves(every(near)(tiles.picture, CENTRE)), "without an induction"
    tiles.learn(every(near), near.along)
    tiles.learn(every(nearer))
    one_at_each_step(z3, ghosts)
    equally_far = []
    for p, q in product(DIRECTIONS, repeat=2):
        (on_p, _), (on_q, _) = tiles.on(ON_PATH, p), tiles.on(ON_PATH, q)
        equal = on_p & on_q & (tiles.picture.number(DISTANCE, p) == tiles.picture.number(DISTANCE, q))
        equally_far += [implies(equal, tiles.goes(to, p) == tiles.goes(to, q)) for to in DIRECTIONS]  # they are one
    assert not tiles.proves(every(once)(tiles.picture, CENTRE)), "of one tile alone"
    tiles.known += equally_far
    tiles.learn(every(once))
    if weighted:
        proven.append(named(ghosts, "a step is no longer"))
        tiles.learn(
            lambda picture, at: implies(
                picture.true(ON_PATH, at),
                picture.of_map(LENGTH) - picture.number(DISTANCE, at) <= 3 * tiles.on(ON_PATH, at)[1],
            ),
            along=ON_PATH,
        )
        # some tile has the largest number of moves before it
        on, step = tiles.on(ON_PATH)
        last = on & (step == tiles.picture.of_map(N_STEPS))
        assert tiles.proves(every(proven[-1])(tiles.picture, CENTRE), last)
    unproven = [lemma for lemma in ghosts.axioms.lemmas if lemma not in proven]
    assert unproven == ([] if ghosts is not PATHS[0] else [named(ghosts, "distances of neighbours differ")])
