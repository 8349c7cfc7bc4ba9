"""Runs of a policy on mazes of any kind, which show whether the policy solves them, by the rule of environments and
`solve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.tasks import Task

from ..policies.policy import Policy
from ..rollouts.pytorch import threads
from ..rollouts.scores import Batch, encode, label, usual_batch
from ..rollouts.solving import find_paths, run_until_solved, step_limit

SMALL_BATCH_TILES = 1 << 15
"""Smallest number of tiles in a batch. `usual_batch` alone would run small mazes in small batches, which is slow."""

N_TRIED = 8
"""Number of mazes of a shape that are tried if the policy raises errors. If all of them fail, the policy refuses the
shape."""

T = TypeVar("T")


class Examined(NamedTuple):
    """The results of a policy on N mazes or, if the policy raised an error, on the mazes up to the error.

    Attributes:
        failed: (n,) bool, whether the policy never showed a correct answer within its limit. n = N, or fewer after an
            error.
        steps: (n,) int64, iterations until the answer was correct, or until the episode ended without a correct answer.
        error: the error on the last of these mazes, in words; empty if there was no error.
    """

    failed: NDArray[np.bool_]
    steps: NDArray[np.int64]
    error: str = ""


@dataclass(frozen=True)
class Examiner:
    """Runs a policy on mazes of its task, each until the answer is correct or the limit of iterations is reached.

    Attributes:
        policy: the policy, on any device.
        steps: the limit of iterations, or None for `step_limit` of each maze alone, so that no result depends on other
            mazes.
    """

    policy: Policy
    steps: int | None

    def limits(self, levels: Batch) -> NDArray[np.int64]:
        """Return the limit of iterations on each of N levels, (N,) int64."""
        if self.steps is not None:
            return np.full(len(levels), self.steps)
        lengths, firsts, groups = np.unique(lengths_of(levels.target), return_index=True, return_inverse=True)
        limits = [step_limit(self.policy, levels.target[[first]]) for first in firsts]
        return np.asarray(limits, np.int64)[groups.reshape(-1)] if len(lengths) else np.zeros(0, np.int64)

    def __call__(self, tiles: Tiles, targets: NDArray[np.bool_]) -> Examined:
        """Return the results of the policy on mazes.

        Args:
            tiles: (N, H, W) uint8, the mazes.
            targets: (N, H, W) or (N, K, H, W) bool, their canonical solutions.
        """
        levels = label(self.policy, tiles, targets)
        limits, batch = self.limits(levels), max(usual_batch(tiles), SMALL_BATCH_TILES // tiles[0].size)
        result, error = _attempt(run_until_solved, self.policy, levels, int(limits.max()), batch=batch)
        if result is not None:
            return Examined(~(result.solved & (result.steps <= limits)), result.steps)
        if len(tiles) == 1:
            return Examined(np.ones(1, np.bool_), np.zeros(1, np.int64), error)
        half = len(tiles) // 2  # find the first maze of the error
        first = self(tiles[:half], targets[:half])
        if first.error:
            return first
        second = self(tiles[half:], targets[half:])
        failed = np.concatenate([first.failed, second.failed])
        return Examined(failed, np.concatenate([first.steps, second.steps]), second.error)

    @threads(1)
    @torch.no_grad()
    def refusal(self, tiles: Tiles) -> str:
        """Return the error that one iteration raises on mazes of this shape, in words, or "" if the policy accepts the
        shape.

        The policy accepts the shape if it runs on one of `N_TRIED` mazes, because then errors on other mazes have
        another cause.

        Args:
            tiles: (N, H, W) uint8, the mazes.
        """
        errors = list[str]()
        for index in np.linspace(0, len(tiles) - 1, min(len(tiles), N_TRIED)).astype(int).tolist():
            maze = encode(self.policy, tiles[index : index + 1])
            state = maze.new_zeros(1, self.policy.n_channels, *maze.shape[2:])
            after, error = _attempt(self.policy, maze, state)
            shape = tuple(getattr(after, "shape", ()))
            if not error and shape == tuple(state.shape):
                return ""
            errors.append(error or f"the next state must have shape {tuple(state.shape)}, got {shape}")
        return errors[0]

    def last_answer(self, level: Batch) -> NDArray[np.bool_]:
        """Return the answer after the last iteration on one level, (H, W) or (K, H, W) bool; all False if the policy
        raises an error."""
        paths, _ = _attempt(find_paths, self.policy, level.tiles, int(self.limits(level)[0]))
        return np.zeros(level.wanted.shape[1:], np.bool_) if paths is None else np.asarray(paths[0] > 0.5)


def _attempt(call: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T | None, str]:
    """Return the result of a call and an empty text or, if the policy raises an error, None and the error in words.

    The policy may be anything that a user wrote, so it may raise any error. Only a lack of memory is raised again.
    """
    try:
        return call(*arguments, **options), ""
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"


def solvable(task: Task, tiles: Tiles) -> tuple[Tiles, NDArray[np.bool_]]:
    """Return those of (N, H, W) mazes that have an answer, and their canonical solutions.

    Mazes that the task's solver refuses with an error are left out, because the task's generators may never draw them.
    """
    try:
        targets = task.solve(tiles)
    except Exception:
        if len(tiles) == 1:
            return tiles[:0], np.zeros(task.shape_of_answers(0, *tiles.shape[1:]), np.bool_)
        half = len(tiles) // 2
        parts = [solvable(task, part) for part in (tiles[:half], tiles[half:])]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    has_answer = task.is_answer(targets)
    return tiles[has_answer], targets[has_answer]
