"""Running a policy on many levels, in batches that shrink as levels are solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym import ENVIRONMENTS
from maze_nca_gym.agents import Policy, rollout
from maze_nca_gym.agents.environments import border_warning
from maze_nca_gym.agents.evaluation.rollouts import encode, path_of, score_paths, wanted_of
from maze_nca_gym.agents.iterations import default_steps
from maze_nca_gym.agents.learned.sparse import run_sparsely
from maze_nca_gym.cli.output import complain
from maze_nca_gym.levels import Tiles, has_border
from maze_nca_gym.scoring import OPTIMAL
from maze_nca_gym.tasks import Task

_ASK_EVERY = 32
"""Steps between two questions whether a policy has finished; each costs one or two iterations."""


class Outcome(NamedTuple):
    """Where the episodes on N levels ended.

    Attributes:
        solved: (N,) bool, whether the path was optimal at some iteration; the episode ended at the first such.
        limited: (N,) bool, whether the episode ended at the limit, unsolved, while the policy had not finished.
        steps: (N,) int64, iterations until the episode ended.
    """

    solved: NDArray[np.bool_]
    limited: NDArray[np.bool_]
    steps: NDArray[np.int64]


class _Episodes(NamedTuple):
    """The episodes of a batch that still run.

    Attributes:
        rows: (B,) their places in the batch.
        tiles: (B, H, W) uint8.
        wanted: (B, H, W) bool, what the policy should draw.
        maze: (B, T, H, W) float32, on the policy's device.
        state: (B, C, H, W) float32, on the policy's device.
    """

    rows: NDArray[np.intp]
    tiles: Tiles
    wanted: NDArray[np.bool_]
    maze: torch.Tensor
    state: torch.Tensor

    def keep(self, mask: NDArray[np.bool_]) -> _Episodes:
        where = torch.from_numpy(mask).to(self.state.device)
        return _Episodes(self.rows[mask], self.tiles[mask], self.wanted[mask], self.maze[where], self.state[where])


def step_limit(policy: Policy, task: Task, targets: NDArray[np.bool_]) -> int:
    """Return the iterations after which waiting on levels with these (N, H, W) solutions is no use.

    That is the policy's bound. Without one it is the environment's time limit, or what the policy usually gets if that
    is more, but never more than it has weights for.
    """
    usual = default_steps(policy, targets)
    if policy.most_iterations is not None or policy.max_steps(1, 1) is not None:
        return usual
    return max(usual, next(limit for name, limit in ENVIRONMENTS.values() if name == task.name))


def warn_without_border(policy: Policy, name: str, tiles: Tiles) -> None:
    """Complain on stderr if a policy that needs a wall around each level gets some of the (N, H, W) levels without."""
    if policy.needs_border and not has_border(tiles).all():
        complain(border_warning(name))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: more gain little on mazes, and wait for each other where the CPU is shared,
    which makes them many times slower."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


@one_thread()
@torch.no_grad()
def run_policy(
    policy: Policy, task: Task, tiles: Tiles, batch: int, n_steps: int, report: Callable[[int], Any]
) -> Outcome:
    """Run a policy on (N, H, W) levels, `batch` at a time, each until it is solved or for `n_steps` iterations.

    Args:
        report: told how many episodes have ended since the last call.

    Raises:
        ValueError: a level is unsolvable, or too large for the policy.
    """
    wanted, runner = wanted_of(policy, tiles, task.solve_all(tiles)), run_sparsely(policy)
    parts = []
    for begin in range(0, len(tiles), batch):
        members = slice(begin, begin + batch)
        parts.append(_run_batch(runner, tiles[members], wanted[members], n_steps, report))
    return Outcome(*map(np.concatenate, zip(*parts, strict=True)))


def _run_batch(
    policy: Policy, tiles: Tiles, wanted: NDArray[np.bool_], n_steps: int, report: Callable[[int], Any]
) -> Outcome:
    n = len(tiles)
    outcome = Outcome(np.zeros(n, np.bool_), np.ones(n, np.bool_), np.full(n, n_steps))
    maze = encode(policy, tiles)
    state = maze.new_zeros(n, policy.n_channels, *tiles.shape[1:])
    episodes = _Episodes(np.arange(n), tiles, wanted, maze, state)
    for step in range(1, n_steps + 1):
        episodes = episodes._replace(state=rollout(policy, episodes.maze, 1, episodes.state, start_step=step - 1))
        solved, finished = _ended(policy, episodes, step, last=step == n_steps)
        ended = solved | finished
        if not ended.any():
            continue
        rows = episodes.rows[ended]
        outcome.solved[rows], outcome.limited[rows], outcome.steps[rows] = solved[ended], False, step
        report(len(rows))
        episodes = episodes.keep(~ended)
        if not len(episodes.rows):
            return outcome
    report(len(episodes.rows))
    return outcome


def _ended(policy: Policy, episodes: _Episodes, step: int, last: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which episodes are solved, and of which it is known now that they never will be, (B,) each."""
    scores = score_paths(policy, episodes.tiles, path_of(episodes.state), episodes.wanted)
    solved = scores[:, OPTIMAL] != 0
    if step % _ASK_EVERY and not last:
        return solved, np.zeros_like(solved)
    return solved, policy.finished(episodes.maze, episodes.state, step).cpu().numpy()
