"""Families of wrong automata and networks, made from correct ones, and an evaluator that shares no code with proofs."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache, partial, reduce

import numpy as np
import torch

from maze_nca_gym.agents.automata import Automaton
from maze_nca_gym.agents.automata.run import compile_automaton
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE, Reached
from maze_nca_gym.agents.automata.shipped.shortest_path import CANONICAL, SHORTEST_PATH, PathSignal
from maze_nca_gym.agents.policies.guarantees import StepBound
from maze_nca_gym.mazes import Tile, parse
from maze_nca_gym.mazes.rules import around
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.mazes.terms import Term, term_of

MOVES = {"C": (0, 0), "U": (-1, 0), "L": (0, -1), "D": (1, 0), "R": (0, 1)}
SNAKE = "\n".join(["S" + "." * 15, *(("#" * 15 + ".", "." * 16, "." + "#" * 15, "." * 16)[i % 4] for i in range(13))])
"""A maze with one long way, 15 columns wide, without a target."""
ODD = [
    "S.T",
    "ST",
    "S\n.\nT",
    ".S.\n#.#\n.T.",
    "S..T\n....",
    "T#S\n...",
    SNAKE + "\n" + "#" * 15 + ".\n" + "T" + "." * 15,
]


class View:
    """The atoms that a rule reads on one maze, as arrays with a frame."""

    def __init__(self, tiles, signals):
        self.tiles, self.signals = (
            np.pad(tiles.astype(int), 1, constant_values=-1),
            np.pad(signals, ((0, 0), (1, 1), (1, 1))),
        )

    def at(self, values, tap):
        (down, right), (height, width) = MOVES[tap], values.shape
        return values[1 + down : height - 1 + down, 1 + right : width - 1 + right]

    def __call__(self, signal, tap="C"):
        return self.at(self.signals[int(signal)], tap)

    def tile(self, kind, tap="C"):
        return self.at(self.tiles, tap) == int(kind)


def states(automaton, tiles, n):
    """Yield the (S, H, W) signals after 0 to n iterations."""
    signals = np.zeros((len(automaton.signals), *tiles.shape), bool)
    for _ in range(n + 1):
        yield signals
        view, after = View(tiles, signals), []
        for signal in automaton.signals:
            value = np.broadcast_to(automaton.rules[signal](view), tiles.shape)
            after.append(np.full(tiles.shape, value.any()) if signal in automaton.pooled else value)
        signals = np.array(after)


@lru_cache
def mazes(task: Task):
    """Return (H, W) mazes of up to 16 x 16 tiles, and unusual mazes, that the task can solve."""
    rng, levels = np.random.default_rng(11), []
    for size in ((3, 3), (2, 6), (1, 9), (6, 6), (10, 10), (16, 16)):
        for generator in ("random", "perfect", "loops"):
            for border in (True, False):
                levels += [*task.generate(rng, 2, size, generator, border=border)]
    levels += [parse(drawing) for drawing in ODD] if task.is_plain and task.has_endpoints else []
    return [maze for maze in levels if task.is_answer(task.solve(maze[None]))[0]]


def is_correct(automaton, later=0, on=None):
    """Return whether an automaton shows an optimal answer from its bound on, on all mazes or on some mazes."""
    task, answers = find_task(automaton.task), [int(signal) for signal in automaton.answers]
    for maze in mazes(task) if on is None else on:
        due = automaton.bound(maze.size, int(task.solve(maze[None]).sum()) - 1)
        for t, signals in enumerate(states(automaton, maze, due + later)):
            answer = signals[answers].reshape(task.shape_of_answers(1, *maze.shape))
            if (t in (due, due + later) or (on is not None and t > due)) and not task.is_optimal(maze[None], answer)[0]:
                return False
    return True


def mutated(rng, automaton):
    """Return an automaton with one rule changed: another operator, a negation, another tap or another signal."""
    signal = rng.choice([s for s in automaton.signals if s not in automaton.everywhere])
    root = term_of(automaton.rules[automaton.signals(signal)])
    nodes = [root]
    for node in nodes:
        nodes += [part for part in node.parts if not any(part is node_before for node_before in nodes)]
    node_to_change = nodes[rng.integers(len(nodes))]
    if node_to_change.seen is not None and rng.random() < 0.5:
        mutant = replace(
            node_to_change, tap=str(rng.choice([tap for tap in automaton.taps if tap != node_to_change.tap]))
        )
    elif node_to_change.join in (operator.and_, operator.or_):
        swapped = {operator.and_: operator.or_, operator.or_: operator.and_}[node_to_change.join]
        mutant = (replace(node_to_change, join=swapped), node_to_change.parts[0], node_to_change.parts[1])[
            rng.integers(3)
        ]
    else:
        mutant = ~node_to_change

    def rebuilt(node):
        if node is node_to_change:
            return mutant
        return node if node.seen is not None else Term(join=node.join, parts=tuple(map(rebuilt, node.parts)))

    return replace(automaton, rules={**automaton.rules, automaton.signals(signal): rebuilt(root)})


def inside(see, tap):
    return reduce(operator.or_, (see.tile(kind, tap) for kind in range(4)))


def with_rule(signal, rule, automaton=SHORTEST_PATH, **changes):
    return replace(automaton, rules={**automaton.rules, signal: rule}, **changes)


def further(n, rules, spoils):
    """Return the automaton of the shortest path with n more signals X0, X1, ..., one of which spoils the path."""
    names = [*PathSignal.__members__, *(f"X{i}" for i in range(n))]
    signals = IntEnum("Signal", names, start=0)
    path = replace(CANONICAL, signals=signals)
    shows = lambda see: see(signals.FLOOD) & path.on_path(see)  # noqa: E731
    own_rules = {signals.PATH: lambda see: shows(see) & ~spoils(see, signals), **path.rules}
    own_rules |= {signals[f"X{i}"]: partial(rule, signals) for i, rule in enumerate(rules)}
    return replace(
        SHORTEST_PATH, signals=signals, rules=own_rules, parts=(), invariant=None, in_order=None, theorem=None
    )


def far(n) -> Automaton:
    """Return an automaton that forgets its path when a wave from the source has gone n tiles."""

    def starts(signals, see):
        return see.tile(Tile.SOURCE)

    def goes(i, signals, see):
        before = signals[f"X{i - 1}"]
        return (see(before) | around(see, before)) & ~see.tile(Tile.WALL)

    # X_n spreads one tile per iteration, and X_n-1 leaves these tiles for good
    def spoils(see, signals):
        return see(signals[f"X{n - 1}"]) & see.tile(Tile.TARGET)

    return further(n, [starts, *(partial(goes, i) for i in range(1, n))], spoils)


def late(n) -> Automaton:
    """Return an automaton that forgets its path when a counter of n bits is full."""

    def bit(i, signals, see):
        lower = [see(signals[f"X{j}"]) for j in range(i)]
        carry, here, full = reduce(operator.and_, lower, inside(see, "C")), see(signals[f"X{i}"]), see(signals[f"X{n}"])
        return (carry & ~here) | (here & ~carry) | full

    def full(signals, see):
        return reduce(operator.and_, [see(signals[f"X{j}"]) for j in range(n)]) | see(signals[f"X{n}"])

    return further(n + 1, [*(partial(bit, i) for i in range(n)), full], lambda see, signals: see(signals[f"X{n}"]))


P = PathSignal


def families() -> Iterator[tuple[str, Automaton]]:
    """Yield wrong automata of the shortest path with the names of their families. Some mutants are still correct."""
    rng = np.random.default_rng(23)
    yield from (("a mutation", mutated(rng, SHORTEST_PATH)) for _ in range(90))
    for bound in [
        *((1, 2, 0), (0, 2, 0), (2, 1, 0), (3, 1, 0), (9, 1, 0), (2, 1.5, 0), (5, 0, 0), (40, 0, 0), (0, 0, 1))
    ]:
        yield "a bound too small", replace(SHORTEST_PATH, bound=StepBound(*bound))
    yield from (("wrong far away", far(n)) for n in (4, 8, 12, 20, 30, 40))
    yield from (("wrong late", late(n)) for n in (4, 7, 10))
    path, flood = SHORTEST_PATH.rules[P.PATH], SHORTEST_PATH.rules[P.FLOOD]
    edges = [(towards, kind) for towards in "ULDR" for kind in (Tile.EMPTY, Tile.SOURCE)]
    for towards, kind in edges:
        wet = lambda see, to=towards, kind=kind: flood(see) | (see.tile(kind) & ~inside(see, to))  # noqa: E731
        yield "beyond the edge", with_rule(P.FLOOD, wet)
    for one, other in (("U", "D"), ("L", "R")):
        thin = lambda see, a=one, b=other: path(see) & (inside(see, a) | inside(see, b))  # noqa: E731
        yield "in a row of one", with_rule(P.PATH, thin)
    for signal in [signal for signal in P if signal != P.PATH]:
        same = {"everywhere": (signal,), "parts": (), "invariant": None}
        yield "said to be everywhere", replace(SHORTEST_PATH, **same)
    for order in ("DLRU", "RDLU", "LURD", "DRUL", "UDLR"):
        other = SHORTEST_PATH.ordered(order)
        yield "rules of another order", replace(other, task="shortest-path", name="other", in_order=None)
    for kind in (Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.TARGET):
        yield "shows a kind too", with_rule(P.PATH, lambda see, kind=kind: path(see) | see.tile(kind))
        yield "hides a kind", with_rule(P.PATH, lambda see, kind=kind: path(see) & ~see.tile(kind))
    yield "no answer", with_rule(P.PATH, lambda see: see(P.FLOOD) & ~see(P.FLOOD))
    yield "all that is flooded", with_rule(P.PATH, lambda see: see(P.FLOOD))
    yield "a flood for an answer", replace(REACHABLE, bound=StepBound(per_tile=2), theorem=None)


def false_invariants() -> Iterator[Automaton]:
    """Yield automata whose invariant is false on some maze."""
    for one in P:
        for other in P:
            if one != other:
                yield replace(SHORTEST_PATH, invariant=lambda see, a=one, b=other: ~see(a) | see(b))
    yield replace(REACHABLE, heals=True)
    yield replace(REACHABLE, invariant=lambda see: see(Reached.WET))


def breaks(automaton) -> bool:
    """Return whether an automaton's invariant is false somewhere; if the automaton heals, also after a change."""
    task = find_task(automaton.task)
    for maze in mazes(task)[::3]:
        for signals in states(automaton, maze, 30):
            if not np.broadcast_to(automaton.invariant(View(maze, signals)), maze.shape).all():
                return True
            walls = np.full_like(maze, Tile.WALL)
            if automaton.heals and not np.broadcast_to(automaton.invariant(View(walls, signals)), maze.shape).all():
                return True
    return False


def networks(n) -> Iterator[torch.nn.Module]:
    """Yield networks of the shortest path with one weight or bias changed."""
    model, _ = compile_automaton(SHORTEST_PATH)
    rng, parameters = np.random.default_rng(29), [*model.parameters()]
    sizes = [parameter.numel() for parameter in parameters]
    for place in rng.choice(sum(sizes), n, replace=False):
        changed, which = deepcopy(model), int(place >= sizes[0])
        with torch.no_grad():
            flat = [*changed.parameters()][which].view(-1)
            flat[int(place) - which * sizes[0]] += float(rng.choice([-1, 1, -0.25, 0.25, 0.01]))
        yield changed


def follows(model, automaton) -> bool:
    """Return whether a network shows the signals of an automaton at every iteration, on several mazes."""
    (weight, *_) = model.parameters()
    for maze in mazes(find_task(automaton.task))[::2]:
        encoded = torch.from_numpy(np.stack([maze == kind for kind in range(4)])[None]).to(weight)
        state = encoded.new_zeros(1, model.n_channels, *maze.shape)
        for step, signals in enumerate(states(automaton, maze, 60)):
            if not np.array_equal(state[0, 0].numpy() > 0.5, signals[0]):
                return False
            with torch.no_grad():
                state = model(encoded, state, step)
    return True
