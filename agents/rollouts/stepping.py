"""Rollouts that equal stepping environments, bit for bit: one `Policy.forward` after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT

from ..policy import Policy


def trace(
    policy: Policy, maze: Tensor, n_steps: int, state: Tensor | None = None, *, start_step: int = 0
) -> Iterator[Tensor]:
    """Return every state of a rollout, one at a time: the first as given, then one after each iteration.

    Arguments and errors are those of `rollout`; `torch.stack(list(trace(...)))` is (n_steps + 1, B, C, H, W).
    """
    if n_steps < 0:
        raise ValueError(f"n_steps must be at least 0, got {n_steps}")
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")
    if state is None:
        state = maze.new_zeros(maze.shape[0], policy.n_channels, *maze.shape[2:])
    return _iterate(policy, maze, n_steps, state, start_step)


def _iterate(policy: Policy, maze: Tensor, n_steps: int, state: Tensor, start_step: int) -> Iterator[Tensor]:
    yield state
    for step in range(start_step, start_step + n_steps):
        state = policy(maze, state, step).clamp(-STATE_LIMIT, STATE_LIMIT)
        yield state


def rollout(policy: Policy, maze: Tensor, n_steps: int, state: Tensor | None = None, *, start_step: int = 0) -> Tensor:
    """Iterate a policy under the environment's dynamics, which clip every state to +-2**24; differentiable.

    Equal, bit for bit, to stepping the environments one by one with the policy's actions.

    Args:
        policy: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles, which stay as they are.
        n_steps: iterations, at least 0.
        state: (B, C, H, W), where to start; by default `policy.n_channels` channels of zeros.
        start_step: iterations that `state` has already had.

    Returns:
        The last state, (B, C, H, W).

    Raises:
        ValueError: a negative `n_steps`, or as `Policy.forward`.
    """
    return deque(trace(policy, maze, n_steps, state, start_step=start_step), maxlen=1).pop()
