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
from maze_nca_gym.agents.evaluation.iterations import most_steps
from maze_nca_gym.agents.handcoded.base import HandcodedNCA
from maze_nca_gym.envs.tasks import Task
from maze_nca_gym.levels import Tiles, one_hot
from maze_nca_gym.scoring import Scores, score

_ASK_EVERY = 16
"""Steps between two questions whether an automaton has finished; each costs about one iteration."""


class Outcome(NamedTuple):
    """Where the episodes on N levels ended.

    Attributes:
        scores: at the end of each episode.
        steps: (N,) int64, iterations until the path was optimal, or until the policy had finished or ran out of steps.
    """

    scores: Scores
    steps: NDArray[np.int64]


class _Episodes(NamedTuple):
    """The episodes of a batch that still run.

    Attributes:
        rows: (B,) their places in the batch.
        tiles: (B, H, W) uint8.
        target: (B, H, W) bool.
        maze: (B, T, H, W) float32, on the policy's device.
        state: (B, C, H, W) float32, on the policy's device.
    """

    rows: NDArray[np.intp]
    tiles: Tiles
    target: NDArray[np.bool_]
    maze: torch.Tensor
    state: torch.Tensor

    def keep(self, mask: NDArray[np.bool_]) -> _Episodes:
        where = torch.from_numpy(mask).to(self.state.device)
        return _Episodes(self.rows[mask], self.tiles[mask], self.target[mask], self.maze[where], self.state[where])


def step_limit(policy: Policy, task: Task, height: int, width: int) -> int:
    """Iterations after which waiting is no use: the policy's proven bound, as many as it has weights for, or else the
    environment's time limit."""
    if isinstance(policy, HandcodedNCA):
        return policy.max_steps(height, width)
    limit = next(limit for name, limit in ENVIRONMENTS.values() if name == task.name)
    return min(limit, most_steps(policy) or limit)


def has_finished(policy: Policy, maze: torch.Tensor, state: torch.Tensor) -> NDArray[np.bool_]:
    """(B,) where the path will stay as it is for ever; nowhere for a policy that cannot tell."""
    if isinstance(policy, HandcodedNCA):
        return policy.solved(maze, state).cpu().numpy()
    return np.zeros(len(state), np.bool_)


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
    targets = task.solve_all(tiles)
    parts = []
    for begin in range(0, len(tiles), batch):
        members = slice(begin, begin + batch)
        parts.append(_run_batch(policy, task, tiles[members], targets[members], n_steps, report))
    tables, steps = zip(*parts, strict=True)
    return Outcome(Scores(np.concatenate(tables)), np.concatenate(steps))


def _run_batch(
    policy: Policy,
    task: Task,
    tiles: Tiles,
    target: NDArray[np.bool_],
    n_steps: int,
    report: Callable[[int], Any],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    table, steps = np.empty((len(tiles), 4)), np.empty(len(tiles), np.int64)
    episodes = _begin(policy, task, tiles, target)
    for step in range(n_steps):
        state = rollout(policy, episodes.maze, 1, episodes.state, start_step=step)
        episodes = episodes._replace(state=state)
        scores = score(episodes.tiles, state[:, 0].cpu().numpy(), episodes.target)
        table[episodes.rows], steps[episodes.rows] = scores.table, step + 1
        ended = scores.optimal
        if (step + 1) % _ASK_EVERY == 0:
            ended = ended | has_finished(policy, episodes.maze, state)
        if ended.any():
            report(int(ended.sum()))
            episodes = episodes.keep(~ended)
        if not len(episodes.rows):
            return table, steps
    report(len(episodes.rows))
    return table, steps


def _begin(policy: Policy, task: Task, tiles: Tiles, target: NDArray[np.bool_]) -> _Episodes:
    maze = torch.from_numpy(one_hot(tiles, task.n_tiles)).to(policy.device)
    state = maze.new_zeros(len(tiles), policy.n_channels, *tiles.shape[1:])
    return _Episodes(np.arange(len(tiles)), tiles, target, maze, state)
