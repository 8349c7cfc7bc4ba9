"""Differentiable rollouts: equal to stepping environments bit for bit, or in machine code where possible.

`rollout` and `trace` call `Policy.forward` once for each iteration. `unroll` gives the same up to rounding, by one of
`engines`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT

from ..policy import Policy
from .eager import Request
from .engines import engine_for, roll_out_in_machine_code


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


def unroll(
    model: Policy,
    maze: Tensor,
    n_steps: int,
    keep: Sequence[int],
    state: Tensor | None = None,
    start_step: int = 0,
    *,
    n_returned: int | None = None,
    growth: float = math.inf,
) -> list[Tensor]:
    """Return the states of a rollout after some numbers of iterations, differentiable in the model's weights and
    biases.

    They equal those of `rollout` up to rounding, clipped as there. Where a number is at a bound, gradients stop;
    where it is 0, those that come from the next iteration stop. Neither states nor gradients depend on the number of
    threads, `torch.get_num_threads()`, where `supported`. There, and without gradients, as under `torch.no_grad()`,
    only the states returned stay in memory.

    Args:
        model: the policy to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles.
        n_steps: iterations, at least 1.
        keep: the numbers of iterations after which to return the state, ascending, the last of them `n_steps`.
        state: (B, C, H, W), the first state; by default zeros. It gets no gradient.
        start_step: iterations that `state` has already had.
        n_returned: the number of channels to return, the first ones; by default all. A loss of only the path is faster
            with 1.
        growth: the largest growth of a maze's state gradient per step back, as a factor, at least 0. Longer gradients
            are scaled down, so that with 1 none explodes, however long the rollout. Losses of a state itself are added
            after that. Numbers at a bound, where gradients stop, do not count.

    Returns:
        A (B, n_returned, H, W) state for each entry of `keep`; in memory its channels may be side by side.

    Raises:
        ValueError: `keep` does not ascend from at least 1 to `n_steps`; the model has fewer than `n_returned` channels;
            the growth is negative or no number.
        ValueError: an error of `Policy.forward`.
    """
    _check(model, n_steps, keep, n_returned, growth)
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")
    start = maze.new_zeros(()).expand(len(maze), model.n_channels, *maze.shape[2:]) if state is None else state.detach()
    model._check(maze, start)
    start = start[:, : model.n_channels]
    request = Request(tuple(keep), start_step, n_returned, growth)
    return engine_for(model, maze)(model, maze, None if state is None else start, request)


def supported(model: Policy, maze: Tensor) -> bool:
    """Return whether `unroll` runs a model on (B, T, H, W) mazes in machine code.

    It does so for a `Policy.convolution` in float32 on the CPU, where the compiler works. Under autocast to bfloat16,
    where the machine has instructions for that, it rounds what it multiplies and adds up in float32. The first call
    compiles, which takes some seconds once per installation.
    """
    return engine_for(model, maze) is roll_out_in_machine_code


def _check(model: Policy, n_steps: int, keep: Sequence[int], n_returned: int | None, growth: float) -> None:
    if not keep or list(keep) != sorted(set(keep)) or keep[0] < 1 or keep[-1] != n_steps:
        raise ValueError(f"keep must ascend from at least 1 to n_steps, {n_steps}, got {list(keep)}")
    if n_returned is not None and not 1 <= n_returned <= model.n_channels:
        raise ValueError(f"n_returned must be from 1 to {model.n_channels}, got {n_returned}")
    if not growth >= 0:
        raise ValueError(f"growth must be at least 0, got {growth}")
