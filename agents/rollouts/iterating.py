"""The two verbs: `rollout` returns states after chosen numbers of iterations, `iterate` yields one after the other.

Both run by the first of `engines` that supports the policy. Training, `solve`, `evaluate`, `play` and all measurements
use them, so that all have the same numbers. They are those of stepping the environments up to rounding, and bit for bit
within `with engines.preferring(engines.STEPPING)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import overload

import torch
from torch import Tensor

from maze_nca_gym.transfer import read_back

from ..policy import PATH, Policy
from .engines import engine_for
from .pytorch import Request

ROUNDING = 0.1
"""How much numbers that stand for the same integer or boolean may differ: rounding is far smaller, a change larger."""


@overload
def rollout(
    policy: Policy,
    maze: Tensor,
    steps: int,
    state: Tensor | None = None,
    *,
    start_step: int = 0,
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
    n_returned: int | None = None,
    growth: float = math.inf,
) -> Tensor | list[Tensor]:
    """Iterate a policy under the environment's dynamics, which clip every state to +-2**24; differentiable.

    Equal to stepping the environments with the policy's actions up to rounding, and bit for bit within
    `with engines.preferring(engines.STEPPING)`. Without gradients only the states returned stay in memory. Where a
    number is at a bound, gradients of the weights stop; where it is 0, those that come from the next iteration stop.

    Args:
        policy: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles, which stay as they are.
        steps: iterations, at least 0; or several such numbers, ascending from at least 1.
        state: (B, C, H, W), where to start; by default zeros. Channels beyond those of the policy are ignored.
        start_step: iterations that `state` has already had.
        n_returned: the number of channels to return, the first ones; by default those of the policy. A loss of only the
            path is faster with 1.
        growth: the largest growth of a maze's state gradient per step back, as a factor, at least 0. Longer gradients
            are scaled down, so that with 1 none explodes, however long the rollout. Losses of a state itself are added
            after that. Numbers at a bound, where gradients stop, do not count.

    Returns:
        The last state, (B, n_returned, H, W); of several numbers the states after each, whose channels may lie side by
        side in memory.

    Raises:
        ValueError: numbers of iterations that are negative or do not ascend; fewer channels than `n_returned`; a growth
            that is negative or no number. Or an error of `Policy.forward`.
    """
    keep, several = (tuple(steps), True) if isinstance(steps, Iterable) else ((steps,), False)
    if not keep or list(keep) != sorted(set(keep)) or keep[0] < several:
        wanted = "several steps must ascend from at least 1" if several else "the number of steps must be at least 0"
        raise ValueError(f"{wanted}, got {list(keep) if several else steps}")
    if n_returned is not None and not 1 <= n_returned <= policy.n_channels:
        raise ValueError(f"n_returned must be from 1 to {policy.n_channels}, got {n_returned}")
    if not growth >= 0:
        raise ValueError(f"growth must be at least 0, got {growth}")
    first = _first_state(policy, maze, state)
    if not keep[-1]:
        return first[:, :n_returned]
    given = None if state is None else first
    states = engine_for(policy, maze, given)(policy, maze, given, Request(keep, start_step, n_returned, growth))
    return states if several else states[-1]


def _first_state(policy: Policy, maze: Tensor, state: Tensor | None) -> Tensor:
    """Return the checked (B, C, H, W) state from which a rollout starts, by default zeros, which take no memory."""
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")
    if state is None:
        state = maze.new_zeros(()).expand(len(maze), policy.n_channels, *maze.shape[2:])
    policy._check(maze, state)
    return state[:, : policy.n_channels]


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
        policy: what to iterate.
        maze: (B, T, H, W) floats, the one-hot tiles.
        steps: iterations, for the first state as given and then that after each; None for no end. Or numbers of
            iterations after which to yield a state, ascending from at least 1.
        state: (B, C, H, W), the first state; by default zeros.
        start_step: iterations that `state` has already had.
        until_finished: whether to end after the first state from which on no path changes on any level. If the rollout
            is undisturbed, a policy that reads that off a state is asked (`Policy.finished`). Else states are compared.
        undisturbed: whether `state` comes from zero on the same maze, and nothing else.

    Raises:
        ValueError: a negative number of iterations, or as `Policy.forward`.
    """
    first = _first_state(policy, maze, state)
    if isinstance(steps, Iterable):
        return _iterate(policy, maze, steps, state, start_step, until_finished, undisturbed or state is None)
    if steps is not None and steps < 0:
        raise ValueError(f"the number of steps must be at least 0, got {steps}")
    marks = count(1) if steps is None else range(1, steps + 1)
    return chain(
        [first], _iterate(policy, maze, marks, state, start_step, until_finished, undisturbed or state is None)
    )


@torch.no_grad()
def _iterate(
    policy: Policy,
    maze: Tensor,
    marks: Iterable[int],
    state: Tensor | None,
    start_step: int,
    until_finished: bool,
    undisturbed: bool,
) -> Iterator[Tensor]:
    done, last = 0, [] if state is None else [state[:, : policy.n_channels]]
    for mark in marks:
        n_steps, step = mark - done, start_step + mark
        # Three states in a row show whether anything still changes; the third last is one of them.
        first = max(1, n_steps - 2) if until_finished else n_steps
        last += rollout(policy, maze, range(first, n_steps + 1), state, start_step=start_step + done)
        last, state, done = last[-3:], last[-1], mark
        yield state
        if until_finished and _all_finished(policy, maze, last, step, undisturbed):
            return


def _all_finished(policy: Policy, maze: Tensor, last: Sequence[Tensor], step: int, undisturbed: bool) -> bool:
    """Return whether no path changes any more on any level, by the last states after `step` iterations."""
    told = policy.finished(maze, last[-1], step) if undisturbed else None
    if told is None and len(last) == 3 and _repeats_from(policy, step - 2):
        earlier, before, now = last
        told = at_fixed_point(policy, earlier, before, now, undisturbed)
    return told is not None and bool(read_back(told.all()))


@torch.no_grad()
def finished(policy: Policy, maze: Tensor, state: Tensor, step: int) -> Tensor:
    """Return where the path stays as it is forever, (B,) bool, for a rollout from zero on mazes that do not change.

    A policy that cannot tell (`Policy.finished`) makes two more iterations, and these are compared.

    Args:
        policy: the policy.
        maze: (B, T, H, W).
        state: (B, C, H, W), after `step` iterations.
        step: iterations since the episode began.
    """
    told = policy.finished(maze, state, step)
    if told is not None:
        return told
    if not _repeats_from(policy, step):
        return torch.zeros(len(state), dtype=torch.bool, device=state.device)
    before, now = rollout(policy, maze, [1, 2], state, start_step=step)
    return at_fixed_point(policy, state, before, now)


def _repeats_from(policy: Policy, step: int) -> bool:
    return policy.stationary_from is not None and step >= policy.stationary_from


def at_fixed_point(policy: Policy, earlier: Tensor, before: Tensor, now: Tensor, undisturbed: bool = True) -> Tensor:
    """Return where three states in a row, each (B, C, H, W), have a path that will never change, (B,) bool.

    This holds where the last state is the first, and the paths of all are the same. The states of an exact policy stand
    for integers or booleans, so differences below `ROUNDING` do not count.

    Args:
        policy: the policy, all of whose iterations are the same from the first of these states on.
        earlier: the state two iterations before `now`.
        before: the state one iteration before `now`.
        now: the last state.
        undisturbed: whether the rollout began at zero, and neither maze nor state was changed from outside.
    """
    most = ROUNDING if policy.guarantees.exact and undisturbed else 0.0
    same = ((now - earlier).abs() <= most).flatten(1).all(dim=1)
    return same & ((before[:, PATH] - now[:, PATH]).abs() <= most).flatten(1).all(dim=1)
