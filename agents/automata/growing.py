"""The automaton that is generated from a task whose exact solver is a fixpoint: each relation is a signal that stays
on."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import partial, reduce
from itertools import chain, pairwise
from operator import or_
from typing import Any

from maze_nca_gym.mazes.facts import Number, Picture, Place, Truth
from maze_nca_gym.mazes.relations import Fixpoint, anywhere
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.mazes.terms import Rule, TileView, term_of

from ..policies.guarantees import StepBound
from .automaton import NEIGHBOURHOODS, Automaton
from .theorem import Theorem

BEGUN, CHANGED, NEW, LAST = "BEGUN{}_", "CHANGED_", "NEW_", "LAST_"
"""Prefixes of the signals with which a layer detects that it is at rest, see `grown`."""
PAUSE = 3
"""Number of iterations between the last round of a layer in which a relation comes on and the first round of the next
layer."""


def _start(solve: Fixpoint, picture: Picture, layer: int) -> Number:
    """Return the number of iterations before the first round of a layer."""
    return sum((solve.rounds(picture, i) + PAUSE for i in range(layer)), 0)


def _meaning(solve: Fixpoint, name: str, picture: Picture, at: Place, t: Number) -> Truth | None:
    """Return whether a signal of a generated automaton is on at a tile after t iterations, or None if it has no such
    signal."""
    if name in solve.rules:
        return solve.on(name, picture, at, t - 1 - _start(solve, picture, solve.layer_of(name)))
    for i, layer in enumerate(solve.layers[:-1]):
        start, number = _start(solve, picture, i), f"{i + 1}"
        for ago in range(1, PAUSE + 1):
            if name == BEGUN.format(ago) + number:
                return picture.inside(at) & (t >= start + ago)
        if name == CHANGED + number:
            return picture.inside(at) & (t >= start + PAUSE) & (t < start + PAUSE + solve.rounds(picture, i))
        if name == NEW + number:
            return reduce(or_, (solve.comes_on(each, picture, at, t - 2 - start) for each in layer))
        for each in layer:
            if name == LAST + each:
                return solve.on(each, picture, at, t - 2 - start)
    return None


def with_stages(automaton: Automaton, theorem: Theorem) -> Theorem | None:
    """Return a theorem with the values of the signals of a generated automaton: each relation of the task's fixpoint is
    on from t = 1 + its stage, and an answer without another value follows one iteration later. The stages of a later
    layer count from its first round.

    None if the automaton has other signals than a generated automaton, or the theorem has no ghosts of these relations.
    """
    solve, shown = automaton.problem.solve, automaton.answers
    if not isinstance(solve, Fixpoint) or not {*solve.rules} <= {*theorem.relations}:
        return None
    if {signal.name for signal in automaton.signals if signal not in shown} != {*solve.rules, *chain(*_clocks(solve))}:
        return None
    copies = {} if theorem.answers else dict(zip(shown, solve.answers, strict=True))

    def signals(picture: Picture, at: Place, t: Number) -> dict[IntEnum, Truth]:
        truths = {signal: _meaning(solve, copies[signal], picture, at, t - 1) for signal in copies}
        truths |= {s: _meaning(solve, s.name, picture, at, t) for s in automaton.signals if s not in shown}
        return {signal: truth for signal, truth in truths.items() if truth is not None}

    def rounds(picture: Picture, t: Number) -> list[Number]:
        return [t - 2 - _start(solve, picture, i) for i in range(len(solve.layers) - 1)]

    means = {s: f"from t = 1 + {s.name} stage" for s in automaton.signals if solve.rules and s.name in solve.layers[0]}
    means |= {signal: f"from t = 2 + {name} stage" for signal, name in copies.items() if name in solve.layers[0]}
    return replace(theorem, signals=signals, means=means, rounds=rounds)


def _clocks(solve: Fixpoint) -> tuple[list[str], list[str]]:
    """Return the names of the signals with which layers detect that they are at rest: of tiles, and pooled."""
    early = [*enumerate(solve.layers[:-1], 1)]
    local = [name for i, layer in early for name in (*(LAST + each for each in layer), f"{NEW}{i}")]
    begun = [BEGUN.format(ago) for ago in range(1, PAUSE + 1)]
    return local, [f"{name}{i}" for i, _ in early for name in (*begun, CHANGED)]


def grown(task: str | Task) -> Automaton:
    """Return the automaton that computes a task's `fixpoint`, one round per iteration. It can be proven and compiled.

    Each relation becomes a signal that stays on once its rule is true. A relation that is read with `anywhere` is
    pooled. The answers are copies of relations.

    If rules negate relations, the rules of a later layer (stratum) wait until nothing changes any more in the layer
    before. For this purpose the first layer has auxiliary signals. For each relation A, LAST_A is the value of A one
    iteration earlier. NEW_1 is on where a relation of the layer has just changed. The others are pooled over the map:
    CHANGED_1 is on if NEW_1 was on anywhere, and BEGUN1_1, BEGUN2_1 and BEGUN3_1 are on if the layer began at least
    one, two or three iterations ago. CHANGED_1 refers to changes of three iterations ago, so the layer is at rest when
    BEGUN3_1 is on and CHANGED_1 is off.

    Args:
        task: the task, or its name.

    Raises:
        ValueError: the task's `solve` is not a fixpoint, or a relation has the name of an answer or of an auxiliary
            signal.
    """
    problem = find_task(task)
    solve, task = problem.solve, problem.name
    if not isinstance(solve, Fixpoint):
        raise ValueError(f"to generate an automaton, the solve of the task {task} must be a fixpoint, got {solve!r}")
    outputs = ["PATH"] if len(problem.answers) == 1 else [answer.upper() for answer in problem.answers]
    local, of_map = _clocks(solve)
    clocks = [*local, *of_map]
    for others, what in ((outputs, "an answer"), (clocks, "a signal of its layers")):
        if taken := {*others} & {*solve.rules}:
            raise ValueError(f"{min(taken)} is a relation and {what} of the task {task}: give one another name")
    pooled = [name for name, rule in solve.rules.items() if isinstance(rule, anywhere)]
    pooled += of_map
    names = [*outputs, *(name for name in (*solve.rules, *clocks) if name not in pooled), *pooled]
    signals: type[IntEnum] = IntEnum("Signal", names, start=0)  # type: ignore[misc]

    def begins(layer: int, see: TileView) -> Any:
        """Return whether all layers before a layer are at rest."""
        if layer:
            return see(signals[f"{BEGUN.format(PAUSE)}{layer}"]) & ~see(signals[f"{CHANGED}{layer}"])
        return reduce(or_, map(see.tile, range(problem.n_tiles)))

    def stays(name: str, see: TileView) -> Any:
        layer, on = solve.layer_of(name), solve.rules[name](see)
        on = begins(layer, see) & on if layer else on
        # rules of a least fixed point stay true; in layers a tile says so by itself, which a certificate needs
        return on if solve.least and (len(solve.layers) == 1 or name in pooled) else see(signals[name]) | on

    def copies(name: str, see: TileView) -> Any:
        return see(signals[name])

    def is_new(layer: int, see: TileView) -> Any:
        return reduce(or_, (see(signals[name]) & ~see(signals[LAST + name]) for name in solve.layers[layer]))

    rules: dict[str, Rule] = {name: partial(stays, name) for name in solve.rules}
    rules |= {output: partial(copies, name) for output, name in zip(outputs, solve.answers, strict=True)}
    for i, layer in enumerate(solve.layers[:-1]):
        rules |= {LAST + name: partial(copies, name) for name in layer}
        rules |= {f"{NEW}{i + 1}": partial(is_new, i), f"{CHANGED}{i + 1}": partial(copies, f"{NEW}{i + 1}")}
        began = [f"{BEGUN.format(ago)}{i + 1}" for ago in range(1, PAUSE + 1)]
        rules |= {began[0]: partial(begins, i), **{name: partial(copies, last) for last, name in pairwise(began)}}
    taps = {tap for rule in rules.values() for tap in term_of(rule, signals).taps}
    return Automaton(
        name=task,
        task=task,
        signals=signals,
        rules={signals[name]: rule for name, rule in rules.items()},
        neighbourhood=5 if taps <= {*NEIGHBOURHOODS[5]} else 9,
        bound=StepBound(constant=2 + PAUSE * (len(solve.layers) - 1), per_tile=len(solve.rules)),
        pooled=tuple(signals[name] for name in pooled),
        everywhere=tuple(signals[name] for name in pooled),
    )
