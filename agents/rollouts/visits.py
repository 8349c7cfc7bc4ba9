"""Running a policy on many levels, looking at it now and then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ..policy import Policy
from .unrolling import unroll

Report = Callable[[int], Any]
"""Is told how many iterations of a level were done since the last call."""


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
    policy: Policy,
    maze: Tensor,
    steps: Sequence[int],
    state: Tensor | None = None,
    *,
    start_step: int = 0,
    undisturbed: bool = False,
) -> Iterator[Visit]:
    """Yield a rollout after each of some numbers of iterations, until it has finished on all levels (`Policy.rests`).

    A policy that tells from a state which began at zero when it has finished is asked that instead.

    Args:
        policy: what to run.
        maze: (B, T, H, W).
        steps: ascending, at least 1.
        state: where to start, by default at zero.
        start_step: iterations that `state` has already had.
        undisturbed: whether `state` comes from zero on the same maze, and nothing else.
    """
    undisturbed, done = undisturbed or state is None, 0
    last = [] if state is None else [state]
    for step in steps:
        n_steps, start = step - done, start_step + done
        last += unroll(policy, maze, n_steps, range(max(1, n_steps - 2), n_steps + 1), state, start)
        last, state, done = last[-3:], last[-1], step
        if undisturbed and policy.tells_when_finished:
            finished = bool(policy.finished(maze, state, start_step + step).all())
        else:
            finished = _all_rest(policy, start_step + step, last, undisturbed)
        yield Visit(step, state, finished)
        if finished:
            return


def _all_rest(policy: Policy, step: int, last: Sequence[Tensor], undisturbed: bool) -> bool:
    """Return whether a rollout has come to rest on all levels, by its last three states; not if there are fewer."""
    if len(last) < 3 or policy.same_from is None or step - 2 < policy.same_from:
        return False
    earlier, before, now = last
    return bool(policy.rests(earlier, before, now, undisturbed).all())


def run(
    policy: Policy, maze: Tensor, n_steps: int, state: Tensor | None = None, *, start_step: int = 0, every: int = 32
) -> Tensor:
    """Return the last state of a rollout, (B, C, H, W), which asks every few iterations whether it has finished."""
    steps = [*range(every, n_steps, every), n_steps]
    return deque(visit(policy, maze, steps, state, start_step=start_step), maxlen=1).pop().state
