"""Accuracy (ours and the paper's), complete and optimal as curves over the iterations, with 95 % intervals.

Every final path is also assigned to one of `KINDS`, which states whether it agrees with exact search, and otherwise how
it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import LevelSet, Tile, Tiles
from maze_nca_gym.mazes.scoring import Scores, lengths_of, minibatch_accuracies
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.options import check

from ..policies.policy import Policy
from ..rollouts.iterating import iterate
from ..rollouts.scores import ERROR, LENGTH, Batch, batches, encode, label, path_of, score_paths
from ..rollouts.solving import Report, check_steps, curve_steps, default_steps
from .named_metrics import score_named
from .statistics import Estimate, mean, proportion

KINDS = {
    "canonical": "the path that exact search returns",
    "other optimum": "another path, as short (as long, for the diameter)",
    "extra tiles": "an optimal path, and more tiles",
    "longer path": "source and target are joined, with a detour",
    "broken path": "source and target are not joined; for the diameter, the tiles reach less far than they should",
    "through walls": "at least one tile is a wall",
    "nothing": "no tile at all",
}
"""Kinds of paths and their meanings; every path is of exactly one kind."""
CANONICAL, OTHER, EXTRA, LONGER, BROKEN, WALLS, NOTHING = range(len(KINDS))


@dataclass(frozen=True)
class Metrics:
    """The metrics of a sample of levels, after a fixed number of iterations.

    Attributes:
        accuracy: our accuracy, of each level against the nearest optimum: mean, with a normal interval.
        paper_accuracy: the paper's accuracy (`scoring.paper_accuracy`), of minibatches of 64 consecutive levels against
            the canonical solutions: mean over minibatches, with a normal interval.
        complete, optimal: fractions of levels, with Wilson intervals.
    """

    accuracy: Estimate
    paper_accuracy: Estimate
    complete: Estimate
    optimal: Estimate

    @classmethod
    def of(cls, table: NDArray[np.float64]) -> Metrics:
        """Return the metrics for the (N, 6) float64 scores from `rollouts.score_paths`."""
        scores = Scores(table)
        return cls(
            accuracy=mean(scores.accuracy, most=1),
            paper_accuracy=mean(minibatch_accuracies(table[:, ERROR], table[:, LENGTH]), most=1),
            complete=proportion(scores.complete),
            optimal=proportion(scores.optimal),
        )


@dataclass(frozen=True)
class Point:
    """A point of a curve: the metrics after a number of iterations.

    Attributes:
        step: the number of iterations.
        metrics: the metrics after this number of iterations.
    """

    step: int
    metrics: Metrics


@dataclass(frozen=True)
class Evaluation:
    """The performance of a policy on some levels.

    Attributes:
        n_levels: the number of levels.
        n_steps: the largest number of iterations.
        curve: the metrics from the first iteration to the last, or to the iteration after which no level changed.
        agreement: kind of path (`KINDS`) -> the fraction of levels that end with it; empty for policies with an output
            that is not a path.
        named: further metrics after the last iteration, by name: means, with normal intervals.
    """

    n_levels: int
    n_steps: int
    curve: tuple[Point, ...]
    agreement: dict[str, float]
    named: dict[str, Estimate] = field(default_factory=dict)

    @property
    def final(self) -> Metrics:
        """The metrics after the last iteration."""
        return self.curve[-1].metrics


@torch.no_grad()
def measure(
    policy: Policy,
    levels: LevelSet | Tiles | Batch,
    n_steps: int | None = None,
    *,
    batch: int | None = None,
    steps: Sequence[int] | None = None,
    metrics: Sequence[str] = (),
    report: Report = lambda _: None,
) -> Evaluation:
    """Run a policy on levels; return the scores of its paths after several numbers of iterations.

    All scored states come from one rollout, so all points of the curve come from the same model. For example, a model
    without a ReLU in its last iteration has no ReLU at its usual last step, whatever `n_steps` is.

    Args:
        policy: a policy on any device.
        levels: a set, or (N, H, W) tiles, prepared for the policy's task, or the result of `label` for them.
        n_steps: the number of iterations; by default `default_steps`.
        batch: number of levels that run at once; it changes the results only by the rounding of fast convolutions.
        steps: numbers of iterations after which to score, from 1 to `n_steps`; by default `curve_steps`.
        metrics: names of further metrics (`named_metrics.METRICS`).
        report: receives progress, `N * n_steps` in all.

    Raises:
        ValueError: levels of another task or size than the policy's, an unsolvable level, more iterations than the
            policy has weights for, or an option out of range.
    """
    labelled = label(policy, levels)
    tiles, target = labelled.tiles, labelled.target
    n_steps = default_steps(policy, target) if n_steps is None else n_steps
    check_steps(policy, n_steps)
    steps = curve_steps(n_steps) if steps is None else steps
    marks = sorted({*steps, n_steps})
    check(marks[0] >= 1 and marks[-1] == n_steps, f"steps must be from 1 to n_steps, {n_steps}, got {list(steps)}")
    tables, paths = np.empty((len(marks), len(tiles), LENGTH + 1)), np.empty(target.shape, np.bool_)
    n_used = 0
    for members in batches(tiles, batch):
        part, done, index = labelled[members], 0, 0
        states = iterate(policy, encode(policy, part.tiles), marks, until_finished=True)
        for index, (step, state) in enumerate(zip(marks, states, strict=False)):
            path = path_of(policy, state)
            # where nothing changes any more, the rollout ends early, and all later scores are the last ones
            tables[index:, members], paths[members] = score_paths(policy, part, path), path > 0.5
            report((step - done) * len(part))
            done = step
        report((marks[-1] - done) * len(part))
        n_used = max(n_used, index + 1)
    curve = tuple(Point(step, Metrics.of(table)) for step, table in zip(marks[:n_used], tables, strict=False))
    values = score_named(metrics, tiles, paths, labelled.wanted)
    named = {name: mean(value, most=1, least=0) for name, value in values.items()}
    if labelled.drawing is not None:
        return Evaluation(len(tiles), n_steps, curve, {}, named)
    kinds = path_kinds(policy.problem, tiles, paths, target, Scores(tables[-1]).optimal)
    fractions = np.bincount(kinds, minlength=len(KINDS)) / len(tiles)
    return Evaluation(len(tiles), n_steps, curve, dict(zip(KINDS, fractions.tolist(), strict=True)), named)


def path_kinds(
    task: Task, tiles: Tiles, path: NDArray[np.bool_], target: NDArray[np.bool_], optimal: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the kind of every path, (N,) int64, as its index in `KINDS`.

    Args:
        task: the task of the levels.
        tiles: (N, H, W) uint8.
        path: (N, H, W) or (N, K, H, W) bool, the rounded predictions.
        target: bool of that shape, the canonical solutions.
        optimal: (N,) bool, from `scoring.score`.
    """
    length = np.zeros(len(tiles), np.int64)
    # of marked levels or of several channels, only the task knows which part of a path would be a solution
    if task.is_plain and len(task.answers) == 1:
        # the length, in tiles, of the solution that stays within each path; 0 where there is none
        ends = tiles >= Tile.SOURCE
        within = task.solve(np.where(path | ends, tiles, np.uint8(Tile.WALL))).sum(axis=(1, 2), dtype=np.int64)
        length = np.where((ends & ~path).any(axis=(1, 2)), 0, within)
    longest = lengths_of(target)
    tiles_drawn = path if path.ndim == 3 else np.logical_or.reduce(path, axis=1)
    enough = length == longest if task.has_endpoints else length >= longest
    conditions = [
        lengths_of(path != target) == 0,
        optimal,
        ~tiles_drawn.any(axis=(1, 2)),
        (tiles_drawn & (tiles == Tile.WALL)).any(axis=(1, 2)),
        enough,
        task.has_endpoints & (length > 0),
    ]
    return np.select(conditions, [CANONICAL, OTHER, NOTHING, WALLS, EXTRA, LONGER], BROKEN)
