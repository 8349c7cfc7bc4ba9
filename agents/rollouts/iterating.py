"""The two verbs: `rollout` returns states after chosen numbers of iterations, `iterate` yields one after the other.

Both equal stepping environments bit for bit. With `fast` they run by the first of `engines` that supports the policy,
several times as fast and equal up to rounding; that is what training, `solve`, `evaluate` and all measurements do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import overload

import torch
from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.transfer import read_back

from ..policy import Policy
from .eager import Request
from .engines import engine_for


@overload
def rollout(
    policy: Policy,
    maze: Tensor,
    steps: int,
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    fast: bool = False,
    n_returned: int | None = None,
    growth: float = math.inf,
) -> Tensor: ...


@overload
def rollout(
    policy: Policy,
    maze: Tensor,
    steps: Sequence[int],
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    fast: bool = False,
    n_returned: int | None = None,
    growth: float = math.inf,
) -> list[Tensor]: ...


def rollout(
    policy: Policy,
    maze: Tensor,
    steps: int | Sequence[int],
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    fast: bool = False,
    n_returned: int | None = None,
    growth: float = math.inf,
) -> Tensor | list[Tensor]:
    """Iterate a policy under the environment's dynamics, which clip every state to +-2**24; differentiable.

    Equal, bit for bit, to stepping the environments one by one with the policy's actions. With `fast` equal up to
    rounding, by one of `engines`; without gradients only the states returned then stay in memory. Where a number is at
    a bound, gradients of the weights stop; where it is 0, those that come from the next iteration stop.

    Args:
        policy: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles, which stay as they are.
        steps: iterations, at least 0; or several such numbers, ascending from at least 1.
        state: (B, C, H, W), where to start; by default `policy.n_channels` channels of zeros. With `fast` it gets no
            gradient.
        start_step: iterations that `state` has already had.
        fast: whether to run by one of `engines`.
        n_returned: the number of channels to return, the first ones; by default all. A loss of only the path is faster
            with 1.
        growth: the largest growth of a maze's state gradient per step back, as a factor, at least 0; finite only with
            `fast`. Longer gradients are scaled down, so that with 1 none explodes, however long the rollout. Losses of
            a state itself are added after that. Numbers at a bound, where gradients stop, do not count.

    Returns:
        The last state, (B, n_returned, H, W); of several numbers the states after each, whose channels may lie side by
            side in memory.

    Raises:
        ValueError: numbers of iterations that are negative or do not ascend; fewer channels than `n_returned`; a growth
            that is negative, no number, or finite without `fast`. Or an error of `Policy.forward`.
    """
    keep, several = (tuple(steps), True) if isinstance(steps, Iterable) else ((steps,), False)
    _check(policy, keep, n_returned, growth, least=1 if several else 0, fast=fast)
    if fast and keep[-1]:
        states = _by_engine(policy, maze, state, Request(keep, start_step, n_returned, growth))
    else:
        reached = enumerate(_stepping(policy, maze, range(keep[-1]), state, start_step))
        states = [current[:, :n_returned] for n_steps, current in reached if n_steps in keep]
    return states if several else states[-1]


def iterate(
    policy: Policy,
    maze: Tensor,
    steps: int | Iterable[int] | None = None,
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    fast: bool = False,
    undisturbed: bool = False,
) -> Iterator[Tensor]:
    """Yield the states of a rollout one at a time; with `fast` until nothing changes any more on any level.

    `torch.stack(list(iterate(policy, maze, n)))` is (n + 1, B, C, H, W). With `fast` there are no gradients, and a
    policy that can decide for itself when it has finished, after a start at zero, is asked instead of its states
    (`Policy.fixed_point`).

    Args:
        policy: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles.
        steps: iterations, for the first state as given and then that after each; None for no end. Or numbers of
            iterations after which to yield a state, ascending from at least 1; `fast` needs these.
        state: (B, C, H, W), the first state; by default zeros.
        start_step: iterations that `state` has already had.
        fast: whether to run by one of `engines`, and to end early.
        undisturbed: whether `state` comes from zero on the same maze, and nothing else; matters with `fast`.

    Raises:
        ValueError: a negative number of iterations, or as `Policy.forward`.
    """
    if isinstance(steps, Iterable):
        if fast:
            return _until_finished(policy, maze, steps, state, start_step, undisturbed or state is None)
        return _chosen(_stepping(policy, maze, count(), state, start_step), steps)
    if fast:
        raise ValueError(f"with fast=True steps must be several numbers of iterations, got {steps}")
    if steps is not None and steps < 0:
        raise ValueError(f"the number of steps must be at least 0, got {steps}")
    return _stepping(policy, maze, count() if steps is None else range(steps), state, start_step)


def _check(
    policy: Policy, keep: tuple[int, ...], n_returned: int | None, growth: float, least: int, fast: bool
) -> None:
    if not keep or list(keep) != sorted(set(keep)) or keep[0] < least:
        wanted = "several steps must ascend from at least 1" if least else "the number of steps must be at least 0"
        raise ValueError(f"{wanted}, got {list(keep) if least else keep[0]}")
    if n_returned is not None and not 1 <= n_returned <= policy.n_channels:
        raise ValueError(f"n_returned must be from 1 to {policy.n_channels}, got {n_returned}")
    if not growth >= 0:
        raise ValueError(f"growth must be at least 0, got {growth}")
    if growth < math.inf and not fast:
        raise ValueError(f"growth must be infinite without fast=True, got {growth}")


def _check_maze(maze: Tensor) -> None:
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")


def _stepping(
    policy: Policy, maze: Tensor, steps: Iterable[int], state: Tensor | None, start_step: int
) -> Iterator[Tensor]:
    """Return every state of a rollout that is as stepping environments, the first as given."""
    _check_maze(maze)
    if state is None:
        state = maze.new_zeros(maze.shape[0], policy.n_channels, *maze.shape[2:])
    return _iterations(policy, maze, steps, state, start_step)


def _iterations(policy: Policy, maze: Tensor, steps: Iterable[int], state: Tensor, start_step: int) -> Iterator[Tensor]:
    yield state
    for step in steps:
        state = policy(maze, state, start_step + step).clamp(-STATE_LIMIT, STATE_LIMIT)
        yield state


def _chosen(states: Iterator[Tensor], steps: Iterable[int]) -> Iterator[Tensor]:
    """Yield the states after some of the iterations."""
    reached = enumerate(states)
    for wanted in steps:
        yield next(state for n_steps, state in reached if n_steps == wanted)


def _by_engine(policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
    _check_maze(maze)
    first = maze.new_zeros(()).expand(len(maze), policy.n_channels, *maze.shape[2:]) if state is None else state
    policy._check(maze, first)
    given = None if state is None else state.detach()[:, : policy.n_channels]
    return engine_for(policy, maze)(policy, maze, given, request)


@torch.no_grad()
def _until_finished(
    policy: Policy, maze: Tensor, steps: Iterable[int], state: Tensor | None, start_step: int, undisturbed: bool
) -> Iterator[Tensor]:
    policy, done = policy.without_gradients(), 0
    last = [] if state is None else [state]
    for step in steps:
        n_steps, start = step - done, start_step + done
        with nullcontext() if policy.gains_from_threads else one_thread():
            last += rollout(policy, maze, range(max(1, n_steps - 2), n_steps + 1), state, start_step=start, fast=True)
        last, state, done = last[-3:], last[-1], step
        if undisturbed and policy.tells_when_finished:
            finished = bool(read_back(policy.finished(maze, state, start_step + step).all()))
        else:
            finished = _all_rest(policy, start_step + step, last, undisturbed)
        yield state
        if finished:
            return


def _all_rest(policy: Policy, step: int, last: Sequence[Tensor], undisturbed: bool) -> bool:
    """Return whether a rollout has come to rest on all levels, by its last three states; not if there are fewer."""
    if len(last) < 3 or policy.stationary_from is None or step - 2 < policy.stationary_from:
        return False
    earlier, before, now = last
    return bool(read_back(policy.at_fixed_point(earlier, before, now, undisturbed).all()))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread, and then on as many as before.

    More gain little on small maps, and wait for each other where the CPU is shared, which makes them many times slower.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
