"""The automaton of a task whose exact solver is a fixpoint: each relation is a signal that stays on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import Any

from maze_nca_gym.mazes.facts import Number, Picture, Place, Truth
from maze_nca_gym.mazes.ghosts import Fixpoint, anywhere
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.mazes.terms import Bits, Rule, TileView, term_of

from ..policies.guarantees import StepBound
from .automaton import NEIGHBOURHOODS, Automaton
from .theorem import Theorem


def _copied(signal: IntEnum, see: TileView) -> Bits:
    return see(signal)


def with_stages(automaton: Automaton, theorem: Theorem) -> Theorem | None:
    """Return a theorem with the statement that each relation of the task's fixpoint is on from t = 1 + its stage, as in
    an automaton that is `grown`, and answers that it does not have an iteration later.

    None if the automaton has other signals than relations and answers, or the theorem no ghosts of these relations.
    """
    solve, shown = automaton.problem.solve, automaton.answers
    if not isinstance(solve, Fixpoint) or not {*solve.rules} <= {*theorem.relations}:
        return None
    said = {signal: (signal.name, 1) for signal in automaton.signals if signal not in shown}
    if {name for name, _ in said.values()} != {*solve.rules}:
        return None
    if not theorem.answers:
        said |= {signal: (name, 2) for signal, name in zip(shown, solve.answers, strict=True)}

    def signals(picture: Picture, at: Place, t: Number) -> dict[IntEnum, Truth]:
        return {signal: solve.on(name, picture, at, t - after) for signal, (name, after) in said.items()}

    means = {signal: f"from t = {after} + {name} stage" for signal, (name, after) in said.items()}
    return replace(theorem, signals=signals, means=means)


def grown(task: str | Task) -> Automaton:
    """Return the automaton that computes a task's `fixpoint`, a round in each iteration, to be proven and compiled.

    A relation is a signal that stays on once its rule is true; one that is on `anywhere` is pooled; answers are copies.

    Args:
        task: the task, or its name.

    Raises:
        ValueError: the task's `solve` is no fixpoint, or has a relation named as an answer.
    """
    problem = find_task(task)
    solve, task = problem.solve, problem.name
    if not isinstance(solve, Fixpoint):
        raise ValueError(f"the solve of the task {task} must be a fixpoint, to grow an automaton, got {solve!r}")
    outputs = ["PATH"] if len(problem.answers) == 1 else [answer.upper() for answer in problem.answers]
    pooled = [name for name, rule in solve.rules.items() if isinstance(rule, anywhere)]
    if taken := {*outputs} & {*solve.rules}:
        raise ValueError(f"{min(taken)} is a relation and an answer of the task {task}: give one another name")
    names = [*outputs, *(name for name in solve.rules if name not in pooled), *pooled]
    signals: type[IntEnum] = IntEnum("Signal", names, start=0)  # type: ignore[misc]

    def stays(name: str, rule: Callable[[Any], Any], see: TileView) -> Any:
        on = rule(see)
        return on if solve.least else see(signals[name]) | on  # rules of a least fixed point stay true

    rules: dict[IntEnum, Rule] = {signals[name]: partial(stays, name, rule) for name, rule in solve.rules.items()}
    for output, name in zip(outputs, solve.answers, strict=True):
        rules[signals[output]] = partial(_copied, signals[name])
    taps = {tap for rule in rules.values() for tap in term_of(rule, signals).taps}
    return Automaton(
        name=task,
        task=task,
        signals=signals,
        rules=rules,
        neighbourhood=5 if taps <= {*NEIGHBOURHOODS[5]} else 9,
        bound=StepBound(constant=2, per_tile=len(solve.rules)),
        pooled=tuple(signals[name] for name in pooled),
        everywhere=tuple(signals[name] for name in pooled),
    )
