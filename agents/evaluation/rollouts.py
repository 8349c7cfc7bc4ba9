"""Running a policy on many levels, looking at it now and then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.envs.tasks import Task, find_task
from maze_nca_gym.levels import LevelSet, Tile, Tiles, one_hot
from maze_nca_gym.scoring import score

from ..handcoded.base import HandcodedNCA
from ..learned.fused import unroll
from ..policy import PATH, Policy
from .iterations import alike_from

Report = Callable[[int], Any]
"""Is told how many iterations of a level were done since the last call."""
BATCH, BATCH_TILES = 256, 1 << 17
"""Levels and tiles that run at once by default, at the most."""


class Visit(NamedTuple):
    """A moment of a rollout.

    Attributes:
        step: iterations since the rollout began, from 1 on.
        state: (B, C, H, W).
        finished: whether nothing that counts will change any more, on no level of the batch.
    """

    step: int
    state: Tensor
    finished: bool


def visit(
    policy: Policy, maze: Tensor, steps: Sequence[int], state: Tensor | None = None, *, start_step: int = 0
) -> Iterator[Visit]:
    """A rollout after each of some numbers of iterations, until it has finished.

    A rollout has finished where an iteration leaves every bit as it was, and every later one is the same; and one
    from the start, where a hand-coded automaton says so.

    Args:
        policy: what to run.
        maze: (B, T, H, W).
        steps: ascending, at least 1.
        state: where to start, by default at zero.
        start_step: iterations that `state` has already had.
    """
    fresh, done = state is None, 0
    for step in steps:
        before, state = _segment(policy, maze, step - done, state, start_step + done)
        done = step
        finished = _rests(policy, start_step + step - 1, before, state)
        finished = finished or (fresh and isinstance(policy, HandcodedNCA) and bool(policy.solved(maze, state).all()))
        yield Visit(step, state, finished)
        if finished:
            return


def _segment(
    policy: Policy, maze: Tensor, n_steps: int, state: Tensor | None, start_step: int
) -> tuple[Tensor | None, Tensor]:
    """The last state but one of a rollout, None where that is the zero from which it began, and the last."""
    if n_steps == 1:
        return state, unroll(policy, maze, 1, [1], state, start_step)[0]
    before, last = unroll(policy, maze, n_steps, [n_steps - 1, n_steps], state, start_step)
    return before, last


def _rests(policy: Policy, step: int, before: Tensor | None, after: Tensor) -> bool:
    """Whether the iteration of this step changed nothing, so that none ever will."""
    first = alike_from(policy)
    return before is not None and first is not None and step >= first and torch.equal(before, after)


def run(
    policy: Policy, maze: Tensor, n_steps: int, state: Tensor | None = None, *, start_step: int = 0, every: int = 32
) -> Tensor:
    """The last state of a rollout, (B, C, H, W), which asks every few iterations whether it has finished."""
    steps = [*range(every, n_steps, every), n_steps]
    return deque(visit(policy, maze, steps, state, start_step=start_step), maxlen=1).pop().state


def task_of(policy: Policy, tiles: Tiles) -> Task:
    """The policy's task, if these are levels of it.

    Raises:
        ValueError: they are not.
    """
    task = find_task(policy.task)
    with_endpoints = (tiles >= Tile.SOURCE).any(axis=(1, 2))
    if (with_endpoints != task.has_endpoints).any():
        has, wanted = ("no ", "a ") if task.has_endpoints else ("a ", "no ")
        raise ValueError(
            f"the policy is for the task {task.name!r}, whose levels have {wanted}source and target; level "
            f"{int(np.argmax(with_endpoints != task.has_endpoints))} has {has}source and target"
        )
    return task


def encode(policy: Policy, tiles: Tiles) -> Tensor:
    """(B, T, H, W) float32 one-hot tiles on the policy's device."""
    return torch.from_numpy(one_hot(tiles, policy.n_tiles)).to(policy.device)


def path_of(state: Tensor) -> NDArray[np.float32]:
    """(B, H, W) float32, the predicted path."""
    return state[:, PATH].float().cpu().numpy()


def score_state(tiles: Tiles, state: Tensor, target: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(B, 4) of the state's path, the columns of `Scores.table`."""
    return score(tiles, path_of(state), target).table


def batches(tiles: Tiles, batch: int | None) -> list[slice]:
    """The levels in turn, `batch` at a time; by default as many as keep the state small."""
    n, height, width = tiles.shape
    if batch is None:
        batch = max(1, min(BATCH, BATCH_TILES // (height * width)))
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    return [slice(begin, min(begin + batch, n)) for begin in range(0, n, batch)]


def tiles_of(levels: LevelSet | Tiles) -> Tiles:
    """(N, H, W) tiles of either.

    Raises:
        ValueError: no level at all, or no tiles.
    """
    return levels.tiles if isinstance(levels, LevelSet) else LevelSet(levels).tiles
