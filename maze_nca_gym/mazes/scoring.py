"""Scores of predicted paths: this package's metrics for each level, and the published accuracy for each minibatch.

Exact match with the canonical target (`complete`; paper, section "Experimental setup") rejects another path of the same
length, and `optimal` accepts it. Our accuracy is computed for each level, against the nearest optimum, with the path
clipped at 1. The published evaluation does none of these three (`paper_accuracy`), so its figures can only be compared
with each other.

Our accuracy is 1 - E / L, where E is the squared error of a path, summed over all tiles, and L the number of tiles of
the solution. If the answer is empty (`tasks.Task.may_be_empty`), L counts as 1, so a wrong tile costs as much as with
an answer of one tile. Accuracy on such a level is 1 if nothing is drawn, 0 for one tile, and continuous in between.
Other levels are not affected, since every other answer has at least one tile.

An answer of K channels (`tasks.Task.answers`) is scored as one map of K times as many tiles: errors and tiles of the
solution are summed over all channels, and the answer is complete or optimal as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.levels import MOST_KINDS, Tiles, as_contiguous, as_path, as_tiles
from maze_nca_gym.support.arrays import as_array
from maze_nca_gym.support.names import check_flag

IsOptimal: TypeAlias = Callable[[Tiles, NDArray[np.bool_]], bool | NDArray[np.bool_]]
"""A function of (N, H, W) tiles and bool paths, (N, H, W) or with K channels (N, K, H, W), that returns (N,) bool:
whether each path is some optimal solution."""
LOSS, ACCURACY, COMPLETE, OPTIMAL = range(4)
"""Columns of `Scores.table`."""
MINIBATCH = 64
"""Number of levels in a minibatch of the published evaluation."""


class Scores(NamedTuple):
    """Metrics of N levels.

    Attributes:
        table: (N, 4) float64, one row for each level: loss, accuracy, complete (0 or 1), optimal (0 or 1).
    """

    table: NDArray[np.float64]

    def __repr__(self) -> str:
        n, complete, optimal = len(self.table), int(self.complete.sum()), int(self.optimal.sum())
        accuracy = self.accuracy.sum() / max(n, 1)
        return f"Scores({n:,} levels: {complete:,} complete, {optimal:,} optimal, mean accuracy {accuracy:.4f})"

    @property
    def loss(self) -> NDArray[np.float64]:
        """The mean of (clip(path, 0, 1) - target)^2 over all tiles and channels, (N,) float64. The target is the
        predicted path, rounded, if that is optimal, and else the canonical solution."""
        return self.table[:, LOSS]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """1 - loss / (loss of an all-zero path), (N,) float64: 1 for a perfect path, 0 for an empty path, and negative
        for worse paths.

        If the answer is empty, accuracy is 1 - loss / (loss of one tile): 1 for an empty path, 0 for one tile.
        """
        return self.table[:, ACCURACY]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Whether the rounded path is the canonical target, (N,) bool."""
        return self.table[:, COMPLETE] != 0

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """Whether the rounded path is some optimal path, (N,) bool. If so, loss and accuracy are measured against this
        path."""
        return self.table[:, OPTIMAL] != 0


def score(
    tiles: ArrayLike,
    path: ArrayLike,
    target: ArrayLike,
    is_optimal: IsOptimal | None = None,
    *,
    canonical: bool = False,
) -> Scores:
    """Return the scores of predicted paths against the exact solutions.

    Args:
        tiles: (N, H, W) uint8.
        path: (N, H, W) floats, the predictions; or (N, K, H, W) with `is_optimal`.
        target: bool of the same shape, the canonical solutions. Without `is_optimal`, each has at least one tile.
        is_optimal: `tasks.Task.judge` of the levels' task. If None, optimal is a shortest path on levels with source
            and target, and a diameter path on levels without.
        canonical: whether to compare with the canonical solutions only, so that no other path is optimal.

    Raises:
        ValueError: the shapes differ; a prediction is NaN; a target has other values than 0 and 1; or a target is empty
            and `is_optimal` is None.
    """
    check_flag("canonical", canonical)
    levels: Tiles = as_tiles(tiles, ndim=(3,), n_kinds=MOST_KINDS)
    paths, targets = as_contiguous(as_array(path, "path", np.float32), np.float32), as_path(target, "target")
    one_level = paths.ndim == 4 and is_optimal is not None and (len(paths), *paths.shape[2:])
    if levels.shape not in (paths.shape, one_level) or paths.shape != targets.shape:
        raise ValueError(
            f"tiles, path and target must have one shape, got {levels.shape}, {paths.shape}, {targets.shape}"
        )
    check_numbers(paths)
    empty = lengths_of(targets) == 0 if is_optimal is None else np.zeros(0, np.bool_)  # or the task allows them itself
    if empty.any():
        raise ValueError(f"the target of level {int(np.argmax(empty))} is empty: the level is unsolvable")
    table = np.empty((len(levels), 4))
    if not len(levels):
        return Scores(table)
    if canonical:
        kernels.compare_paths(as_one_map(targets), as_one_map(paths), table)
    elif is_optimal is None:
        kernels.fill_scores(levels, targets, paths, table)
    else:
        kernels.compare_paths(as_one_map(targets), as_one_map(paths), table)
        rounded, others = paths > 0.5, np.flatnonzero(table[:, COMPLETE] == 0)
        if len(others):
            others = others[np.asarray(is_optimal(levels[others], rounded[others]), np.bool_)]
        if len(others):  # another optimum than the target is measured against its own rounding
            measured = np.empty((len(others), 4))
            kernels.compare_paths(as_one_map(rounded[others]), as_one_map(paths[others]), measured)
            measured[:, COMPLETE], measured[:, OPTIMAL] = 0, 1
            table[others] = measured
    return Scores(table)


def check_numbers(paths: NDArray[np.float32]) -> None:
    """Check that no prediction is NaN, because NaN would be rounded to an empty tile, which can be correct.

    Args:
        paths: (N, H, W) or (N, K, H, W) floats.

    Raises:
        ValueError: a prediction is NaN; the message has the number of the level.
    """
    if np.isnan(paths).any():
        of_level = int(np.argmax(np.isnan(paths).any(axis=tuple(range(1, paths.ndim)))))
        raise ValueError(f"the path of level {of_level} holds NaN")


def answer_of(state: Any, target: Any) -> Any:
    """Return the channels of states that draw the answer.

    Args:
        state: (N, C, H, W) array or tensor.
        target: the canonical solutions, (N, H, W) or (N, K, H, W), whose shape decides the number of channels.

    Returns:
        Channel 0, (N, H, W), or the first K channels, (N, K, H, W).
    """
    return state[:, 0] if target.ndim == 3 else state[:, : target.shape[1]]


def lengths_of(answers: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of tiles of each (N, H, W) or (N, K, H, W) bool answer, summed over all channels, (N,)
    int64."""
    return answers.sum(axis=tuple(range(1, answers.ndim)), dtype=np.int64)


def as_one_map(answers: NDArray[Any]) -> NDArray[Any]:
    """Return (N, K, H, W) answers of any dtype with their channels one below another, (N, K H, W); (N, H, W) answers
    are returned unchanged."""
    return answers.reshape(len(answers), math.prod(answers.shape[1:-1]), answers.shape[-1])


def squared_errors(path: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
    """Return the sum of (relu(path) - target)^2 over all tiles of each level, (N,) float64. The path is not clipped at
    1.

    Args:
        path: (N, H, W) or (N, K, H, W) floats, the predictions.
        target: bool of the same shape, the canonical solutions.

    Raises:
        ValueError: the shapes differ, or a target has other values than 0 and 1.
    """
    paths, targets = as_array(path, "path", np.float64), as_path(target, "target")
    if paths.ndim not in (3, 4) or paths.shape != targets.shape:
        raise ValueError(f"path and target must have one shape (N, H, W), got {paths.shape} and {targets.shape}")
    errors = as_one_map(np.maximum(paths, 0) - targets)
    return np.einsum("nhw,nhw->n", errors, errors)


def minibatch_accuracies(
    errors: NDArray[np.float64], lengths: NDArray[np.float64], minibatch: int = MINIBATCH
) -> NDArray[np.float64]:
    """Return 1 - (sum of errors) / (sum of lengths) of each minibatch of consecutive levels, (N / minibatch, rounded
    up) float64.

    The last minibatch may be smaller. If all answers of a minibatch are empty, the sum of lengths counts as 1.

    Args:
        errors: (N,) float64, the `squared_errors` of levels.
        lengths: (N,) float64, the numbers of tiles on their canonical solutions.
        minibatch: number of levels in a minibatch, at least 1.
    """
    starts = np.arange(0, len(errors), minibatch)
    return 1 - np.add.reduceat(errors, starts) / np.maximum(np.add.reduceat(lengths, starts), 1)


def paper_accuracy(path: ArrayLike, target: ArrayLike, minibatch: int = MINIBATCH) -> float:
    """Return the accuracy that the paper publishes, as its code of 2025 computes it: 1 for perfect paths, 0 for empty
    paths.

    The accuracy of a minibatch is 1 - (sum of squared errors of relu(path)) / (sum of squared targets), against the
    canonical targets only. The result is the mean over minibatches. The path is not clipped at 1, although the code of
    2022 clips it (docs/reproduction.md). So paths of a minibatch count in proportion to their lengths, and another path
    of the same length as the canonical path is wrong.

    Args:
        path: (N, H, W) or (N, K, H, W) floats, the predictions.
        target: bool of the same shape, the canonical solutions, each with at least one tile.
        minibatch: number of levels in a minibatch.

    Raises:
        ValueError: the shapes differ, a target is empty or has other values than 0 and 1, there is no level, or
            `minibatch` is below 1.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch must be at least 1, got {minibatch}")
    errors, lengths = squared_errors(path, target), lengths_of(as_path(target, "target")).astype(np.float64)
    if not len(errors) or not lengths.all():
        raise ValueError(f"accuracy needs at least one level, and no empty target, got {len(errors)} levels")
    return float(minibatch_accuracies(errors, lengths, minibatch).mean())
