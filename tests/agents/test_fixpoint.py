"""Worlds whose exact solver is one rule: a task in a line, and automata that are proven right with nothing named."""

from collections import deque
from enum import IntEnum
from functools import partial, reduce
from operator import and_, or_

import numpy as np
import pytest
import torch

from maze_nca_gym.agents import rollout
from maze_nca_gym.agents.automata import Automaton, StepBound, fixpoint, prove
from maze_nca_gym.agents.automata.compiling.run import compile_automaton
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, one_hot, register_task
from maze_nca_gym.mazes.facts import broken_axioms
from tests.tables import for_each

WALL, SOURCE, TARGET = (int(kind) for kind in (Tile.WALL, Tile.SOURCE, Tile.TARGET))
MOVES = {"U": (-1, 0), "L": (0, -1), "D": (1, 0), "R": (0, 1)}
OPPOSITE = {"U": "D", "L": "R", "D": "U", "R": "L"}
KING = ("UL", "U", "UR", "L", "R", "DL", "D", "DR")
WATER, ARROWS = 4, {towards: 4 + i for i, towards in enumerate(MOVES)}


def any_of(see, name, taps=tuple(MOVES)):
    return reduce(or_, (see(name, tap) for tap in taps))


def free(see, tap="C"):
    return reduce(or_, (see.tile(kind, tap) for kind in (0, SOURCE, TARGET)))


def may_leave(see, towards):
    others = [~see.tile(kind) for way, kind in ARROWS.items() if way != towards]
    return reduce(and_, others, ~see.tile(WALL))


def reaches(see):
    return reduce(or_, (see("REACHES", to) & may_leave(see, to) & on_map(see) for to in MOVES), see.tile(TARGET))


def on_map(see, tap="C"):
    return reduce(or_, (see.tile(kind, tap) for kind in range(8)))


def slides(to, see):
    back = OPPOSITE[to]
    return free(see) & (see("STANDS", back) | see(f"SLIDES_{to}", back))


def stands(see):
    return reduce(or_, (see(f"SLIDES_{to}") & ~free(see, to) for to in MOVES), see.tile(SOURCE))


def clear(see):
    return reduce(and_, (~see.tile(WALL, tap) for tap in MOVES), on_map(see) & ~see.tile(WALL))


def core(see):
    return reduce(and_, (see("CLEAR", tap) | ~on_map(see, tap) for tap in MOVES), see("CLEAR"))


def burn_mark(rng, tiles):
    return np.where((tiles == Tile.EMPTY) & (rng.random(tiles.shape) < 0.2), np.uint8(WATER), tiles)


def arrow_mark(rng, tiles):
    kinds = rng.choice([0, *ARROWS.values()], size=tiles.shape, p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(np.uint8)
    return np.where(tiles == Tile.EMPTY, kinds, tiles)


ONE_WAY = (*KINDS, *(Kind(f"arrow_{to.lower()}", to.lower(), "#999999") for to in MOVES))
WORLDS = {
    "fire": (
        {"WET": lambda see: see.tile(SOURCE) | (any_of(see, "WET") & ~see.tile(WALL) & ~see.tile(WATER) & on_map(see))},
        {"kinds": (*KINDS, Kind("water", "w", "#56b4e9")), "mark": burn_mark},
        5,
    ),
    "parity": (
        {
            "EVEN": lambda see: see.tile(SOURCE) | (any_of(see, "ODD") & free(see)),
            "ODD": lambda see: any_of(see, "EVEN") & free(see),
        },
        {},
        5,
    ),
    "one-way": ({"REACHES": reaches}, {"kinds": ONE_WAY, "mark": arrow_mark}, 5),
    "king": ({"WET": lambda see: see.tile(SOURCE) | (any_of(see, "WET", KING) & free(see))}, {}, 9),
    "wave": ({"WET": lambda see: see.tile(SOURCE) | (any_of(see, "WET") & free(see))}, {}, 5),
    "core": ({"CORE": core, "CLEAR": clear}, {"may_be_empty": True}, 5),
    "ice": ({"STANDS": stands, **{f"SLIDES_{to}": partial(slides, to) for to in MOVES}}, {}, 5),
}
"""Rules by name, what a task has besides, and the neighbourhood."""


def kinds_of(world):
    return len(WORLDS[world][1].get("kinds", KINDS))


class Only:
    """A view of a world in which kinds that it does not have are nowhere."""

    def __init__(self, see, n_kinds, name=lambda name: name):
        self.see, self.n_kinds, self.name = see, n_kinds, name

    def __call__(self, name, tap="C"):
        return self.see(self.name(name), tap)

    def tile(self, kind, tap="C"):
        there = self.see.tile(0, tap)
        return self.see.tile(kind, tap) if int(kind) < self.n_kinds else there & ~there


def task_of(world):
    rules, more, _ = WORLDS[world]
    alike = {name: (lambda see, rule=rule: rule(Only(see, kinds_of(world)))) for name, rule in rules.items()}
    return Task(name=world, solve=fixpoint(**alike), **more)


def automaton_of(world):
    """Return the natural automaton: each relation a signal that stays on, and PATH a copy of the first."""
    rules, _, neighbourhood = WORLDS[world]
    if world == "wave":
        return excitable()
    signals = IntEnum("Signal", ["PATH", *rules], start=0)
    view = partial(Only, n_kinds=kinds_of(world), name=lambda name: signals[name])

    def stays(name, see):
        return see(signals[name]) | rules[name](view(see))

    own = {signals[name]: partial(stays, name) for name in rules}
    shown = signals[next(iter(rules))]
    bound = StepBound(constant=2, per_tile=len(rules))
    every = {signals.PATH: lambda see: see(shown), **own}
    return Automaton(world, world, signals, every, neighbourhood=neighbourhood, bound=bound)


class Wave(IntEnum):
    PATH, SEEN, FIRED, EXCITED, TIRED = range(5)


def excitable():
    """Return the automaton of a wave: who is excited is tired after that, and then at rest."""
    rules = {
        Wave.PATH: lambda see: see(Wave.SEEN),
        Wave.SEEN: lambda see: see(Wave.SEEN) | see(Wave.EXCITED),
        Wave.FIRED: lambda see: see.tile(SOURCE),
        Wave.EXCITED: lambda see: (
            ((see.tile(SOURCE) & ~see(Wave.FIRED)) | any_of(see, Wave.EXCITED))
            & ~see(Wave.EXCITED)
            & ~see(Wave.TIRED)
            & ~see.tile(WALL)
        ),
        Wave.TIRED: lambda see: see(Wave.EXCITED),
    }
    return Automaton("wave", "wave", Wave, rules, bound=StepBound(constant=3, per_tile=1))


def searched(world, maze):
    """Return the answer on an (H, W) maze by a search of its own."""
    if world == "core":  # no wall within two moves
        walls, (height, width) = np.pad(maze == WALL, 2), maze.shape
        near = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if abs(a) + abs(b) <= 2]
        return ~np.any([walls[2 + a : 2 + a + height, 2 + b : 2 + b + width] for a, b in near], axis=0)

    def enters(at, to):
        return 0 <= at[0] + to[0] < maze.shape[0] and 0 <= at[1] + to[1] < maze.shape[1]

    def is_wall(at):
        return maze[at] == WALL or (world == "fire" and maze[at] == WATER)

    steps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a or b)] if world == "king" else [*MOVES.values()]
    start = tuple(np.argwhere(maze == (TARGET if world == "one-way" else SOURCE))[0])
    seen, queue = {(start, 0)}, deque([(start, 0)])
    while queue:
        at, odd = queue.popleft()
        for step in steps:
            if not enters(at, step):
                continue
            there = (at[0] + step[0], at[1] + step[1])
            if world == "ice":
                there = at
                while enters(there, step) and not is_wall((there[0] + step[0], there[1] + step[1])):
                    there = (there[0] + step[0], there[1] + step[1])
            if world == "one-way":  # from there one has to come here
                back = next(to for to, way in MOVES.items() if way == (-step[0], -step[1]))
                if maze[there] >= 4 and maze[there] != ARROWS[back]:
                    continue
            state = (there, 1 - odd if world == "parity" else 0)
            if not is_wall(there) and state not in seen:
                seen.add(state)
                queue.append(state)
    found = np.zeros(maze.shape, bool)
    for at, odd in seen:
        found[at] |= not odd
    return found


@for_each("world", [*WORLDS])
def test_one_rule_is_solver_specification_and_ghost(world, forgotten):
    task, automaton = register_task(task_of(world)), automaton_of(world)
    mazes = task.generate(np.random.default_rng(5), 200, 9, "random")
    answers = task.solve(mazes)
    for maze, answer in zip(mazes, answers, strict=True):
        np.testing.assert_array_equal(answer, searched(world, maze))
    proof = prove(automaton)
    assert (proof.verdict, proof.stated) == ("right", ())
    assert not broken_axioms(task.specification(), mazes[:20], 30)
    model, certificate = compile_automaton(automaton)
    assert certificate.holds
    assert bool(certificate.helpers) == (world in ("one-way", "ice"))
    assert (model.guarantees.verdict, model.guarantees.exact, model.guarantees.basis) == ("right", True, "proven")
    with torch.no_grad():
        drawn = rollout(model, torch.from_numpy(one_hot(mazes, task.n_tiles)), 250)[:, 0].numpy() > 0.5
    np.testing.assert_array_equal(drawn, answers)


@for_each(
    ("make", "message"),
    [
        (lambda: fixpoint(), "fixpoint needs rules, and answers among these, none, got"),
        (lambda: fixpoint("DRY", WET=lambda see: see.tile(0)), "answers among these, WET, got"),
        (lambda: fixpoint(WET=lambda see: ~see("WET")), "the rule of WET negates a relation"),
        (lambda: fixpoint(WET=lambda see: ~(see.tile(0) & ~see("WET")) & ~see("WET", "U")), "negates a relation"),
        (lambda: fixpoint(WET=lambda see: see("WET") + 1), "must be made of what it sees with &, | and ~"),
        (lambda: fixpoint(WET=lambda see: True), "must be made of what it sees with &, | and ~, got True"),
    ],
)
def test_rules_without_a_least_fixed_point_are_refused(make, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        make()


def test_a_wrong_rule_of_a_world_is_refuted(forgotten):
    register_task(task_of("parity"))
    right = automaton_of("parity")
    even = right.signals.EVEN
    one = {**right.rules, even: lambda see: see(even) | any_of(see, even) | right.rules[even](see)}
    wrong = Automaton("wrong", "parity", right.signals, one, bound=right.bound)
    assert prove(wrong).verdict == "refuted"


def test_a_proof_does_not_depend_on_what_was_proven_before(forgotten):
    register_task(task_of("core"))
    assert {prove(automaton_of("core")).verdict for _ in range(5)} == {"right"}
