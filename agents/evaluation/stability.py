"""Stability of a policy: whether it stays correct if it runs on, its state is corrupted, or the maze is edited; and
whether it settles in the long run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.levels import LevelSet, Tiles, level_hashes
from maze_nca_gym.mazes.scoring import OPTIMAL, as_one_map
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.policy import Policy
from ..rollouts.iterating import iterate
from ..rollouts.scores import Batch, batches, encode, label, path_of, score_paths
from ..rollouts.solving import Report, curve_steps, default_steps, run_to_end
from .disturbances import FRACTIONS, corrupt, edit_levels, edits_of
from .metrics import Metrics, Point
from .statistics import Estimate, proportion

LONGER = 10
"""Factor by which the long run exceeds the usual number of iterations."""
NOTICE = 8
"""Extra iterations after a disturbance, in which a policy can detect the disturbance and start over."""
WINDOW = 64
"""Number of iterations over which repetitions are searched."""


@dataclass(frozen=True)
class Habit:
    """The long-run behaviour of states, or of paths: fractions of levels.

    Attributes:
        fixed_point: fraction of levels on which the state or path does not change any more.
        limit_cycle: fraction on which it repeats with a period of two or more iterations.
        aperiodic: fraction on which it has no period within `WINDOW` iterations.
        periods: period of a cycle in iterations, as text -> fraction of levels with this period.
    """

    fixed_point: float
    limit_cycle: float
    aperiodic: float
    periods: dict[str, float]

    @classmethod
    def of(cls, periods: NDArray[np.int64]) -> Habit:
        """Return the fractions for (N,) int64 periods: 1 for a fixed point, 0 for no period."""
        counts = Counter(periods[periods > 1].tolist())
        return cls(
            float((periods == 1).mean()),
            float((periods > 1).mean()),
            float((periods == 0).mean()),
            {str(period): count / len(periods) for period, count in sorted(counts.items())},
        )


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
            if solutions are longer.
        continued: the metrics on the edited mazes from the state reached on the old mazes, after the same number of
            further iterations plus `NOTICE`.
        hysteresis: the fraction of levels on which the rollout from zeros ends with an optimal path and the continued
            rollout does not.
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
        after: the metrics after `LONGER` times this number of iterations.
        curve: the metrics between these two.
        state, path: the long-run behaviour of the state and of the rounded path after the last of these iterations.
        corruption: one entry for each of `disturbances.FRACTIONS`.
        edits: one entry for each edit that could be made on any level.
        hysteresis: the fraction in `Edited.hysteresis`, over all edits, or None without edits.
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


@torch.no_grad()
def measure_stability(
    policy: Policy,
    levels: LevelSet | Tiles | Batch,
    n_steps: int,
    *,
    batch: int | None = None,
    report: Report = lambda _: None,
) -> Stability:
    """Run a policy for longer than usual, disturb its state and its maze, and return the changes of its metrics.

    Args:
        policy: a policy on any device, with the same weights for all iterations.
        levels: a set, or (N, H, W) tiles, prepared for the policy's task, or the result of `label` for them.
        n_steps: the usual number of iterations of an episode, at least 1.
        batch: number of levels that run at once, or None for a number that keeps the state small.
        report: receives progress, `N * n_steps * stability_effort(task)` in all.

    Raises:
        ValueError: the levels are of another task, or a level is unsolvable or too large for the policy.
    """
    labelled, task = label(policy, levels), policy.problem
    marks = [n_steps + step for step in curve_steps((LONGER - 1) * n_steps) if step >= n_steps / 4]
    further = [mark - n_steps for mark in marks]

    def episode(maze: Tensor, n: int, state: Tensor | None = None, extra: int = 0) -> Tensor:
        """Return the state after an episode from zeros, or from a state with `NOTICE` more iterations."""
        start, notice = (0, 0) if state is None else (n_steps, NOTICE)
        report(n_steps * n)
        return run_to_end(policy, maze, n_steps + extra + notice, state, start_step=start)

    def scores(levels: Batch, state: Tensor) -> NDArray[np.float64]:
        return score_paths(policy, levels, path_of(policy, state))

    tables: dict[tuple[str, Any], list[NDArray[Any]]] = {}
    for members in batches(labelled.tiles, batch):
        part, first = labelled[members], members.start
        measured: dict[tuple[str, Any], NDArray[Any]] = {}
        maze, n = encode(policy, part.tiles), len(part)
        settled = state = episode(maze, n)
        measured["before", None] = table = scores(part, settled)
        # the episode goes on; once it has ended early, its last scores hold for the rest
        states = iterate(policy, maze, further, settled, start_step=n_steps, until_finished=True, undisturbed=True)
        for index, mark in enumerate(marks):
            later = next(states, None)
            if later is not None:
                state, table = later, scores(part, later)
            measured["longer", mark] = table
            report((further[index] - [0, *further][index]) * n)
        measured["period", "state"], measured["period", "path"] = find_periods(policy, maze, state, marks[-1])
        for fraction in FRACTIONS:
            measured["corrupted", fraction] = scores(part, episode(maze, n, corrupt(settled, fraction, first)))
        for name in edits_of(task):  # an episode from the old state, and one from zeros
            rows, tiles = edit_levels(name, task, part.tiles, part.target, first)
            if not len(rows):
                report(2 * n_steps * n)
                continue
            edited, changed = label(policy, tiles), encode(policy, tiles)
            longer = max(0, default_steps(policy, edited.target) - default_steps(policy, part.target))
            old_states = settled[upload(rows, settled.device)]
            measured["fresh", name] = scores(edited, episode(changed, n, extra=longer))
            measured["continued", name] = scores(edited, episode(changed, n, old_states, longer))
        for key, table in measured.items():
            tables.setdefault(key, []).append(table)
    # kind of measurement, and number of iterations, fraction or edit -> a row of scores, or a period, for each level
    joined = {key: np.concatenate(parts) for key, parts in tables.items()}
    curve = tuple(Point(mark, Metrics.of(joined["longer", mark])) for mark in marks)
    # where a fresh start ends with an optimal path and the continued state does not, (N,) bool
    lags = {
        name: (table[:, OPTIMAL] != 0) & (joined["continued", name][:, OPTIMAL] == 0)
        for (kind, name), table in joined.items()
        if kind == "fresh"
    }
    fresh, continued = ({n: Metrics.of(joined[kind, n]) for n in lags} for kind in ("fresh", "continued"))
    return Stability(
        n_levels=len(labelled),
        n_steps=n_steps,
        before=Metrics.of(joined["before", None]),
        after=curve[-1].metrics,
        curve=curve,
        state=Habit.of(joined["period", "state"]),
        path=Habit.of(joined["period", "path"]),
        corruption=tuple(Corruption(f, Metrics.of(joined["corrupted", f])) for f in FRACTIONS),
        edits=tuple(Edited(n, len(lag), fresh[n], continued[n], proportion(lag)) for n, lag in lags.items()),
        hysteresis=proportion(np.concatenate(list(lags.values()))) if lags else None,
    )


def find_periods(
    policy: Policy, maze: Tensor, state: Tensor, start_step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the periods of the state and of its rounded path, (B,) int64 each: 1 for a fixed point, 0 for no period.

    The period of a state, at most `WINDOW` iterations, is proven: every iteration is the same function, so a state that
    occurs again bit for bit occurs forever. The period of a path, at most `WINDOW // 2`, is only observed over the
    `WINDOW` iterations. A path can have a period although the state has none, for example while the state approaches a
    cycle or counts iterations.

    Args:
        policy: a policy with equal iterations from `start_step` on.
        maze: (B, T, H, W) floats, the one-hot tiles.
        state: (B, C, H, W) floats, after enough iterations to settle on every level on which the policy ever settles.
        start_step: the number of iterations that led to `state`.
    """
    of_state = np.zeros(len(state), np.int64)
    hashes = []
    for step, current in enumerate(iterate(policy, maze, WINDOW, state, start_step=start_step)):
        hashes.append(level_hashes(as_one_map(path_of(policy, current) > 0.5).astype(np.uint8)))
        back = read_back((current == state).flatten(1).all(dim=1))
        of_state[back & (of_state == 0)] = step
    return of_state, repeat_periods(np.array(hashes))


def repeat_periods(history: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the smallest period of every column of a (T, B) history, (B,) int64, at most T // 2; 0 for no period."""
    periods = np.zeros(history.shape[1], np.int64)
    for period in range(len(history) // 2, 0, -1):
        periods[(history[period:] == history[:-period]).all(axis=0)] = period
    return periods


def stability_effort(task: Task) -> int:
    """Return the number of iterations of `measure_stability` as a multiple of `n_steps`."""
    return LONGER + len(FRACTIONS) + 2 * len(edits_of(task))
