"""The default number of iterations on a level, and rollouts on many levels, each until it is solved."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym import ENVIRONMENTS, environment_id
from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.scoring import OPTIMAL, lengths_of
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.options import check
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.guarantees import USUAL_SIZE
from ..policies.policy import Policy
from .iterating import finished, iterate, rollout
from .pytorch import threads
from .scores import Batch, batches, encode, label, path_of, score_table

_ASK_EVERY = 32
"""Number of steps between two checks whether a policy has finished; each costs one or two iterations."""
_AT_ONCE = 4
"""Number of steps in one rollout, which encodes the mazes once and waits for a GPU once. `_ASK_EVERY` is a multiple of
it."""

Report = Callable[[int], Any]
"""A function that receives the number of iterations of a level since the last call."""


class SolveResult(NamedTuple):
    """The ends of the episodes on N levels.

    Attributes:
        solved: (N,) bool, whether the path became optimal, which ended the episode.
        limited: (N,) bool, whether the episode ended at the limit of iterations, unsolved, before the policy had
            finished.
        steps: (N,) int64, the number of iterations until the episode ended.
    """

    solved: NDArray[np.bool_]
    limited: NDArray[np.bool_]
    steps: NDArray[np.int64]


def default_steps(policy: Policy, targets: NDArray[np.bool_]) -> int:
    """Return the number of iterations that a policy gets on some levels.

    - A policy with a bound gets the number that the longest solution may need, so that it always finishes.
    - A policy with different weights for each iteration gets the number of iterations for which it has weights.
    - Any other policy gets its `Policy.default_steps`, scaled up in proportion to the size of the levels or to their
      longest solution, whichever gives more. For example, 64 iterations at size 16 remain 64 on the paper's mazes and
      become 150 on perfect mazes.

    Args:
        policy: the policy that will run.
        targets: (N, H, W) or (N, K, H, W) bool, the levels' canonical solutions.
    """
    height, width = targets.shape[-2:]
    if policy.max_steps is not None:
        return policy.max_steps
    bound = policy.guarantees.enough_steps(height, width, max(0, int(lengths_of(targets).max()) - 1))
    return scaled_steps(policy.default_steps, policy.problem, targets) if bound is None else bound


def scaled_steps(n_steps: int, task: Task, targets: NDArray[np.bool_]) -> int:
    """Return a number of iterations for size 16, scaled up for some levels as in `default_steps`.

    Args:
        n_steps: the number of iterations for levels of inner size 16.
        task: the task of the levels.
        targets: (N, H, W) or (N, K, H, W) bool, their canonical solutions.
    """
    by_size, by_length = (max(targets.shape[-2:]) - 2) / USUAL_SIZE, lengths_of(targets).max() / task.usual_length
    return math.ceil(n_steps * max(1.0, by_size, float(by_length)))


def check_steps(policy: Policy, n_steps: int) -> None:
    """Check that a policy can run for a number of iterations.

    Raises:
        ValueError: the number is below 1, or the policy has weights for fewer iterations.
    """
    most = policy.max_steps
    check(n_steps >= 1, f"a policy needs at least 1 iteration, got {n_steps}")
    own = f"this policy has weights for {most} iterations, which it does not share among them"
    check(most is None or n_steps <= most, f"{own}: it cannot run for {n_steps}")


@torch.no_grad()
def try_out(policy: Policy, tiles: Tiles, n_steps: int, name: str) -> None:
    """Check a number of iterations, and run one iteration on the first of (N, H, W) levels.

    Raises:
        ValueError: the policy cannot run on such levels, or for that number of iterations; the message begins with
            `name`.
    """
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, tiles[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def curve_steps(n_steps: int) -> list[int]:
    """Return ascending numbers of iterations from 1 to `n_steps`, about four for each doubling.

    For 16 they are 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13 and 16. The numbers before the last are the same for every
    `n_steps`.
    """
    quarters = range(4 * n_steps.bit_length())
    return sorted({step for q in quarters if (step := round(2 ** (q / 4))) < n_steps} | {n_steps})


def step_limit(policy: Policy, targets: NDArray[np.bool_]) -> int:
    """Return the number of iterations after which a policy is not expected to solve levels with these solutions.

    It is the policy's bound. Without a bound it is the environment's time limit, or the `default_steps` if these are
    more. It never exceeds the number of iterations that the policy has weights for.

    Args:
        policy: the policy that will run.
        targets: (N, H, W) or (N, K, H, W) bool, the levels' canonical solutions.
    """
    usual = default_steps(policy, targets)
    if policy.max_steps is not None or policy.guarantees.bound is not None:
        return usual
    return max(usual, ENVIRONMENTS[environment_id(policy.task)][1])


def run_to_end(
    policy: Policy,
    maze: Tensor,
    n_steps: int,
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    every: int = 32,
    pause: Callable[[], Any] = lambda: None,
) -> Tensor:
    """Return the last state of a rollout, (B, C, H, W) floats; the rollout stops early once no path changes any more.

    Args:
        policy: the policy to run.
        maze: (B, T, H, W) floats, the one-hot tiles.
        n_steps: the number of iterations, at least 1.
        state: (B, C, H, W), the first state; by default zeros.
        start_step: the number of iterations that led to `state`.
        every: the number of iterations between two checks whether the policy has finished.
        pause: called at each check; an exception that it raises ends the rollout.
    """
    steps = [*range(every, n_steps, every), n_steps]
    for reached in iterate(policy, maze, steps, state, start_step=start_step, until_finished=True):
        state = reached
        pause()
    assert state is not None
    return state


def find_paths(
    policy: Policy, tiles: Tiles, n_steps: int, *, batch: int | None = None, pause: Callable[[], Any] = lambda: None
) -> NDArray[np.float32]:
    """Return a policy's final path on each level, (N, H, W) float32, or (N, K, H, W) for answers of K channels.

    Args:
        policy: the policy to run.
        tiles: (N, H, W) uint8.
        n_steps: the number of iterations, at least 1.
        batch: the number of levels that run at once; by default a number that keeps the state small.
        pause: called every 64 iterations; an exception that it raises ends the work.
    """
    paths = np.zeros(policy.problem.shape_of_answers(*tiles.shape), np.float32)
    for members in batches(tiles, batch):
        maze = encode(policy, tiles[members])
        paths[members] = path_of(policy, run_to_end(policy, maze, n_steps, every=64, pause=pause))
    return paths


@threads(1)
@torch.no_grad()
def run_until_solved(
    policy: Policy,
    levels: LevelSet | Tiles | Batch,
    n_steps: int | None = None,
    *,
    batch: int | None = None,
    report: Callable[[int], Any] = lambda _: None,
) -> SolveResult:
    """Run a policy on levels, each until it is solved or the policy has finished; return how the episodes ended.

    A level leaves the batch when its episode ends.

    Args:
        policy: the policy to run, on any device.
        levels: a set or (N, H, W) tiles, levels of the policy's task, or the result of `label` for them.
        n_steps: the largest number of iterations, which `check_steps` accepts; by default the `step_limit`.
        batch: the number of levels that run at once; by default a number that keeps the state small.
        report: called after every iteration with the number of episodes that have ended since the last call.

    Raises:
        ValueError: levels of another task, an unsolvable level, or a level that is too large for the policy.
    """
    labelled = label(policy, levels)
    n_steps = step_limit(policy, labelled.target) if n_steps is None else n_steps
    parts = [_run_batch(policy, labelled[part], n_steps, report) for part in batches(labelled.tiles, batch)]
    return SolveResult(*map(np.concatenate, zip(*parts, strict=True)))


def _run_batch(policy: Policy, levels: Batch, n_steps: int, report: Callable[[int], Any]) -> SolveResult:
    n = len(levels)
    result = SolveResult(np.zeros(n, np.bool_), np.ones(n, np.bool_), np.full(n, n_steps))
    rows, answers, maze = np.arange(n), policy.problem.drawn, encode(policy, levels.tiles)
    state: Tensor | None = None
    for begin in range(0, n_steps, _AT_ONCE):
        n_more = min(_AT_ONCE, n_steps - begin)
        states = rollout(policy, maze, range(1, n_more + 1), state, start_step=begin)
        state = states[-1]
        paths = read_back(torch.stack([reached[:, answers] for reached in states]).float())
        left = np.arange(len(rows))
        for step, path in enumerate(paths, begin + 1):
            ended = score_table(policy, levels, path[left])[:, OPTIMAL] != 0
            result.solved[rows[left[ended]]] = True
            if step % _ASK_EVERY == 0 or step == n_steps:
                ended |= read_back(finished(policy, maze, state, step))[left]
            gone = rows[left[ended]]
            result.limited[gone], result.steps[gone] = False, step
            report(len(gone))
            if len(gone):
                left, levels = left[~ended], levels[~ended]
            if not len(left):
                return result
        if len(left) < len(rows):
            where = upload(left, state.device)
            rows, maze, state = rows[left], maze[where], state[where]
    report(len(rows))
    return result
