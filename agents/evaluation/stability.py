"""Stability of a policy: whether it stays right if it runs on, its state is corrupted, or the maze is edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.scoring import OPTIMAL
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.support.transfer import upload

from ..policies.policy import Policy
from ..rollouts import (
    Batch,
    Report,
    batches,
    check_steps,
    curve_steps,
    default_steps,
    encode,
    iterate,
    label,
    path_of,
    run_to_end,
    score_paths,
)
from .cycles import Habit, find_periods
from .disturbances import FRACTIONS, corrupt, edit_levels, edits_of
from .metrics import Metrics, Point
from .statistics import Estimate, proportion

LONGER = 10
"""Factor by which the long run exceeds the usual number of iterations."""
NOTICE = 8
"""Extra iterations after a disturbance, in which a policy can notice it and start over."""


@dataclass(frozen=True)
class Corruption:
    """The effect of a corrupted state.

    Attributes:
        fraction: the fraction of the state's entries that were replaced, after `n_steps` iterations.
        after: the metrics after `n_steps` and `NOTICE` more iterations.
    """

    fraction: float
    after: Metrics


@dataclass(frozen=True)
class Edited:
    """The effect of a change of the maze while the state stays.

    Attributes:
        edit: the edit, one of `disturbances.EDITS`, made after `n_steps` iterations.
        n_levels: the number of levels that could be edited so that their old solution is wrong.
        fresh: the metrics on the edited mazes from a state of zeros, after `n_steps` iterations, or more in proportion
            to longer solutions.
        continued: the metrics on the edited mazes from the state reached on the old mazes, after as many further
            iterations plus `NOTICE`.
        hysteresis: the fraction of levels on which the fresh start ends with an optimal path and the other does not.
    """

    edit: str
    n_levels: int
    fresh: Metrics
    continued: Metrics
    hysteresis: Estimate


@dataclass(frozen=True)
class Stability:
    """The stability of a policy on some levels.

    Attributes:
        n_levels: the number of levels.
        n_steps: the usual number of iterations of an episode.
        before: the metrics after `n_steps` iterations.
        after: the metrics after `LONGER` times as many iterations.
        curve: the metrics between these two.
        state, path: the behaviour of the state and of the rounded path from there on.
        corruption: one for each of `disturbances.FRACTIONS`.
        edits: one for each edit that could be made on any level.
        hysteresis: the same fraction over all edits; None without edits.
    """

    n_levels: int
    n_steps: int
    before: Metrics
    after: Metrics
    curve: tuple[Point, ...]
    state: Habit
    path: Habit
    corruption: tuple[Corruption, ...]
    edits: tuple[Edited, ...]
    hysteresis: Estimate | None


Tables: TypeAlias = dict[tuple[str, Any], NDArray[Any]]
"""(kind of measurement, number of iterations, fraction or edit) -> a row of scores, or a period, for each level."""


@torch.no_grad()
def measure_stability(
    policy: Policy,
    levels: LevelSet | Tiles | Batch,
    n_steps: int,
    *,
    batch: int | None = None,
    report: Report = lambda _: None,
) -> Stability:
    """Run a policy for longer than usual, and disturb it.

    Args:
        policy: a policy on any device.
        levels: a set, or (N, H, W) tiles, prepared for the policy's task, or what `label` returned.
        n_steps: the usual number of iterations of an episode.
        batch: levels that run at once.
        report: receives progress, `N * n_steps * effort(task)` in all.

    Raises:
        ValueError: the same errors as from `measure`, or the policy's weights are not shared among iterations.
    """
    if policy.max_steps is not None:
        raise ValueError(
            f"this policy has weights for {policy.max_steps} iterations only, so it cannot run on: it has no stability"
        )
    check_steps(policy, n_steps)
    labelled, task = label(policy, levels), find_task(policy.task)
    marks = [n_steps + step for step in curve_steps((LONGER - 1) * n_steps) if step >= n_steps / 4]
    parts = []
    for members in batches(labelled.tiles, batch):
        probe = _Probe(policy, task, labelled[members], members.start, n_steps, report)
        probe.settle()
        probe.run_on(marks)
        for fraction in FRACTIONS:
            probe.corrupt(fraction)
        for edit in edits_of(task):
            probe.edit(edit)
        parts.append(probe.tables)
    # a batch whose levels cannot be edited in some way has no table of that edit
    keys = dict.fromkeys(key for part in parts for key in part)
    tables = {key: np.concatenate([part[key] for part in parts if key in part]) for key in keys}
    return _summary(len(labelled), n_steps, marks, tables)


def effort(task: Task) -> int:
    """Return the number of iterations of `measure_stability` as a multiple of `n_steps`."""
    return LONGER + len(FRACTIONS) + 2 * len(edits_of(task))


class _Probe:
    """A batch of levels, and the policy's state on them after an episode."""

    def __init__(self, policy: Policy, task: Task, levels: Batch, first: int, n_steps: int, report: Report) -> None:
        self.policy, self.task, self.levels, self.first = policy, task, levels, first
        self.n_steps, self.report = n_steps, report
        self.maze = self.state = encode(policy, levels.tiles)
        self.tables: Tables = {}

    def settle(self) -> None:
        """Run the episode that comes before all disturbances, and score it."""
        self.state = self._run(self.maze)
        self.tables["before", None] = self._score(self.state)

    def _score(self, state: Tensor) -> NDArray[np.float64]:
        """Return the scores on the unedited levels."""
        return score_paths(self.policy, self.levels, path_of(self.policy, state))

    def _run(self, maze: Tensor, state: Tensor | None = None, extra: int = 0) -> Tensor:
        """Return the state after an episode from zeros, or from a state with `NOTICE` more iterations."""
        start, notice = (0, 0) if state is None else (self.n_steps, NOTICE)
        self.report(self.n_steps * len(self.levels))
        return run_to_end(self.policy, maze, self.n_steps + extra + notice, state, start_step=start)

    def run_on(self, marks: Sequence[int]) -> None:
        """Continue the episode, score it at the marks, and find the periods at its end."""
        steps = [mark - self.n_steps for mark in marks]
        state, table = self.state, np.empty(0)
        states = iterate(
            self.policy, self.maze, steps, self.state, start_step=self.n_steps, until_finished=True, undisturbed=True
        )
        for index, mark in enumerate(marks):
            later = next(states, None)  # None once the rollout has ended early: its last scores then hold for the rest
            if later is not None:
                state, table = later, self._score(later)
            self.tables["longer", mark] = table
            self.report((steps[index] - ([0, *steps])[index]) * len(self.levels))
        of_state, of_path = find_periods(self.policy, self.maze, state, marks[-1])
        self.tables["period", "state"] = of_state
        self.tables["period", "path"] = of_path

    def corrupt(self, fraction: float) -> None:
        """Corrupt the episode's last state and run another episode from it."""
        state = self._run(self.maze, corrupt(self.state, fraction, self.first))
        self.tables["corrupted", fraction] = self._score(state)

    def edit(self, name: str) -> None:
        """Edit the mazes; run an episode from the old state, and one from zeros."""
        rows, edited = edit_levels(name, self.task, self.levels.tiles, self.levels.target, self.first)
        if not len(rows):
            self.report(2 * self.n_steps * len(self.levels))
            return
        levels, maze = label(self.policy, edited), encode(self.policy, edited)
        longer = max(0, default_steps(self.policy, levels.target) - default_steps(self.policy, self.levels.target))
        kept = self.state[upload(rows, self.state.device)]
        for kind, state in (("fresh", self._run(maze, extra=longer)), ("continued", self._run(maze, kept, longer))):
            self.tables[kind, name] = score_paths(self.policy, levels, path_of(self.policy, state))


def _summary(n_levels: int, n_steps: int, marks: Sequence[int], tables: Tables) -> Stability:
    curve = tuple(Point(mark, Metrics.of(tables["longer", mark])) for mark in marks)
    # where a fresh start ends with an optimal path and the continued state does not, (N,) bool
    lags = {
        name: (tables["fresh", name][:, OPTIMAL] != 0) & (tables["continued", name][:, OPTIMAL] == 0)
        for kind, name in tables
        if kind == "fresh"
    }
    return Stability(
        n_levels=n_levels,
        n_steps=n_steps,
        before=Metrics.of(tables["before", None]),
        after=curve[-1].metrics,
        curve=curve,
        state=Habit.of(tables["period", "state"]),
        path=Habit.of(tables["period", "path"]),
        corruption=tuple(Corruption(f, Metrics.of(tables["corrupted", f])) for f in FRACTIONS),
        edits=tuple(
            Edited(
                name,
                len(lag),
                Metrics.of(tables["fresh", name]),
                Metrics.of(tables["continued", name]),
                proportion(lag),
            )
            for name, lag in lags.items()
        ),
        hysteresis=proportion(np.concatenate(list(lags.values()))) if lags else None,
    )
