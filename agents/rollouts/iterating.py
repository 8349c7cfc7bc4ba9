"""Running policies: `rollout` returns the states after chosen numbers of iterations, `iterate` yields them one by one.

Both use the first of the `engines` that supports the policy. Training, `solve`, `evaluate`, `play` and all measurements
call them, so that all have the same numbers. The states equal stepping an environment up to rounding, and bit for bit
within `with engines.preferring(engines.STEPPING)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TypedDict, overload

import torch
from torch import Tensor

from maze_nca_gym.support.keywords import Unpack
from maze_nca_gym.support.options import check
from maze_nca_gym.support.transfer import read_back

from ..policies.identity import speaks_for
from ..policies.policy import Policy, is_precise, stationary_from
from .engines import engine_for
from .pytorch import RolloutRequest

ROUNDING = 0.1
"""Largest difference between two floats that represent the same integer or boolean; rounding errors are far smaller."""


class RolloutOptions(TypedDict, total=False):
    """The options of `rollout`, except for the first state."""

    start_step: int
    n_returned: int | None
    growth: float


@overload
def rollout(
    policy: Policy, maze: Tensor, steps: int, state: Tensor | None = None, **options: Unpack[RolloutOptions]
) -> Tensor: ...


@overload
def rollout(
    policy: Policy, maze: Tensor, steps: Sequence[int], state: Tensor | None = None, **options: Unpack[RolloutOptions]
) -> list[Tensor]: ...


def rollout(
    policy: Policy,
    maze: Tensor,
    steps: int | Sequence[int],
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    n_returned: int | None = None,
    growth: float = math.inf,
) -> Tensor | list[Tensor]:
    """Iterate a policy under the environment's dynamics, which clip every state to +-2**24; differentiable.

    The states equal the states from stepping an environment with the policy's actions up to rounding, and bit for bit
    within `with engines.preferring(engines.STEPPING)`. Without gradients, only the returned states stay in memory.
    Numbers at a bound of the state have a gradient of 0. Numbers that are 0 receive no gradient from the next
    iteration.

    Args:
        policy: the policy to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles, which do not change.
        steps: the number of iterations, at least 0; or several numbers, ascending from at least 1.
        state: (B, C, H, W), the first state; by default zeros. Channels that the policy does not have are ignored.
        start_step: the number of iterations that led to `state`.
        n_returned: the number of channels to return, the first ones; by default all channels of the policy. With 1, a
            loss on the path alone is computed faster.
        growth: the largest growth of a maze's state gradient per step back, as a factor, at least 0. Larger gradients
            are scaled down, so with 1 gradients never explode, however long the rollout is. The gradient of a loss on
            the state itself is added afterwards. Numbers at a bound, which have a gradient of 0, are not counted.

    Returns:
        The last state, (B, n_returned, H, W). For several numbers, a list of the states after each number of
            iterations. The memory format may be channels last.

    Raises:
        ValueError: numbers of iterations that are negative or do not ascend; fewer channels than `n_returned`; a growth
            that is negative or NaN. Or an error of `Policy.forward`.
    """
    keep, several = (tuple(steps), True) if isinstance(steps, Iterable) else ((steps,), False)
    if not keep or list(keep) != sorted(set(keep)) or keep[0] < several:
        wanted = "several steps must ascend from at least 1" if several else "the number of steps must be at least 0"
        raise ValueError(f"{wanted}, got {list(keep) if several else steps}")
    if n_returned is not None and not 1 <= n_returned <= policy.n_channels:
        raise ValueError(f"n_returned must be from 1 to {policy.n_channels}, got {n_returned}")
    check(growth >= 0, f"growth must be at least 0, got {growth}")
    maze, first = _first(policy, maze, state)
    if not keep[-1]:
        return first[:, :n_returned]
    start = None if state is None else first
    states = engine_for(policy, maze, start)(policy, maze, start, RolloutRequest(keep, start_step, n_returned, growth))
    return states if several else states[-1]


def _first(policy: Policy, maze: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the maze as the policy reads it, and the (B, C, H, W) state from which a rollout starts, by default zeros.

    Both are checked.
    """
    if not isinstance(maze, Tensor) or maze.ndim != 4:
        shape = tuple(maze.shape) if isinstance(maze, Tensor) else type(maze).__name__
        raise ValueError(f"maze must be a tensor of shape (B, T, H, W), got {shape}")
    if state is None:
        state = maze.new_zeros(()).expand(len(maze), policy.n_channels, *maze.shape[2:])
    return policy._checked(maze, state), state[:, : policy.n_channels]


def iterate(
    policy: Policy,
    maze: Tensor,
    steps: int | Iterable[int] | None = None,
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    until_finished: bool = False,
    undisturbed: bool = False,
) -> Iterator[Tensor]:
    """Yield the states of a rollout one at a time, without gradients.

    `torch.stack(list(iterate(policy, maze, n)))` is (n + 1, B, C, H, W).

    Args:
        policy: the policy to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles.
        steps: the number of iterations, or None for no end: the first state is yielded, and then the state after each
            iteration. Or numbers of iterations, ascending from at least 1: only the states after these numbers are
            yielded.
        state: (B, C, H, W), the first state; by default zeros.
        start_step: the number of iterations that led to `state`.
        until_finished: whether to stop at the first yielded state after which no path on any level changes any more.
            `Policy.finished` decides this if it can and the rollout is undisturbed. Otherwise states are compared.
        undisturbed: whether the policy reached `state` from zeros on the same maze, without changes from outside.

    Raises:
        ValueError: a negative number of iterations, or an error of `Policy.forward`.
    """
    maze, first = _first(policy, maze, state)
    check(isinstance(steps, Iterable | None) or steps >= 0, f"the number of steps must be at least 0, got {steps}")
    undisturbed = undisturbed or state is None

    @torch.no_grad()
    def states() -> Iterator[Tensor]:
        if not isinstance(steps, Iterable):
            yield first
        marks = steps if isinstance(steps, Iterable) else count(1) if steps is None else range(1, steps + 1)
        now, done, last = state, 0, [] if state is None else [first]
        for mark in marks:
            # three successive states show whether anything still changes, so the two before the yielded one are needed
            begin = max(1, mark - done - 2) if until_finished else mark - done
            last += rollout(policy, maze, range(begin, mark - done + 1), now, start_step=start_step + done)
            last, now, done = last[-3:], last[-1], mark
            yield now
            if not until_finished:
                continue
            ended = _ended_by_policy(policy, maze, now, start_step + mark) if undisturbed else None
            if ended is None and len(last) == 3 and _repeats_from(policy, start_step + mark - 2):
                earlier, before, _ = last
                ended = at_fixed_point(policy, earlier, before, now, undisturbed)
            if ended is not None and bool(read_back(ended.all())):
                return

    return states()


@torch.no_grad()
def finished(policy: Policy, maze: Tensor, state: Tensor, step: int) -> Tensor:
    """Return for each maze whether the path never changes again, (B,) bool, in a rollout from zeros on unchanging
    mazes.

    If `Policy.finished` cannot decide this, the policy makes two more iterations and the states are compared.

    Args:
        policy: the policy.
        maze: (B, T, H, W) floats, the one-hot tiles.
        state: (B, C, H, W), the state after `step` iterations.
        step: the number of iterations since the episode began.
    """
    ended = _ended_by_policy(policy, maze, state, step)
    if ended is not None:
        return ended
    if not _repeats_from(policy, step):
        return torch.zeros(len(state), dtype=torch.bool, device=state.device)
    before, now = rollout(policy, maze, [1, 2], state, start_step=step)
    return at_fixed_point(policy, state, before, now)


def _ended_by_policy(policy: Policy, maze: Tensor, state: Tensor, step: int) -> Tensor | None:
    """Return for each maze whether the path never changes again by `Policy.finished`, (B,) bool.

    None if the method returns None, or if someone has changed the policy's iterations.
    """
    return policy.finished(maze, state, step) if speaks_for(policy, "finished") else None


def _repeats_from(policy: Policy, step: int) -> bool:
    first = stationary_from(policy)
    return first is not None and step >= first


def at_fixed_point(policy: Policy, earlier: Tensor, before: Tensor, now: Tensor, undisturbed: bool = True) -> Tensor:
    """Return for each maze whether three successive states show that the path never changes again, (B,) bool.

    The path never changes again if the last state equals the first, and all three paths are equal. The numbers of an
    exact policy represent integers or booleans, so differences up to `ROUNDING` do not count.

    Args:
        policy: a policy with equal iterations from the first of these states on.
        earlier: (B, C, H, W) floats, the state two iterations before `now`.
        before: (B, C, H, W) floats, the state one iteration before `now`.
        now: (B, C, H, W) floats, the last state.
        undisturbed: whether the rollout began with zeros, and neither maze nor state was changed from outside.
    """
    most = ROUNDING if is_precise(policy) and undisturbed else 0.0
    same = ((now - earlier).abs() <= most).flatten(1).all(dim=1)
    answers = policy.problem.drawn
    return same & ((before[:, answers] - now[:, answers]).abs() <= most).flatten(1).all(dim=1)
