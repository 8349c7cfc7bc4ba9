"""Rollouts without gradients that are visited now and then, and end once nothing changes any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.levels import Tiles
from maze_nca_gym.transfer import read_back

from ..policy import Policy
from .scores import batches, encode, path_of
from .unrolling import unroll

Report = Callable[[int], Any]
"""Receives the number of iterations of a level since the last call."""


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


@torch.no_grad()
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

    A policy that can decide for itself when it has finished, after a start at zero, is asked instead.

    Args:
        policy: the policy to run.
        maze: (B, T, H, W).
        steps: numbers of iterations, ascending, at least 1.
        state: (B, C, H, W), the first state; by default zeros.
        start_step: iterations that `state` has already had.
        undisturbed: whether `state` comes from zero on the same maze, and nothing else.
    """
    policy, undisturbed, done = policy.without_gradients(), undisturbed or state is None, 0
    last = [] if state is None else [state]
    for step in steps:
        n_steps, start = step - done, start_step + done
        with nullcontext() if policy.gains_from_threads else one_thread():
            last += unroll(policy, maze, n_steps, range(max(1, n_steps - 2), n_steps + 1), state, start)
        last, state, done = last[-3:], last[-1], step
        if undisturbed and policy.tells_when_finished:
            finished = bool(read_back(policy.finished(maze, state, start_step + step).all()))
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
    return bool(read_back(policy.rests(earlier, before, now, undisturbed).all()))


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
    """Return the last state of a rollout, (B, C, H, W) floats; arguments as of `visit`, and:

    Args:
        n_steps: iterations, at least 1.
        every: iterations between two moments at which the rollout may be found to have finished.
        pause: called at these moments; what it raises ends the rollout.
    """
    steps = [*range(every, n_steps, every), n_steps]
    for moment in visit(policy, maze, steps, state, start_step=start_step):
        state = moment.state
        pause()
    assert state is not None
    return state


def find_paths(
    policy: Policy, tiles: Tiles, n_steps: int, *, batch: int | None = None, pause: Callable[[], Any] = lambda: None
) -> NDArray[np.float32]:
    """Return the path with which a policy ends on each level, (N, H, W).

    Args:
        policy: what to run.
        tiles: (N, H, W).
        n_steps: iterations, at least 1.
        batch: levels that run at once; by default as many as keep the state small.
        pause: called every 64 iterations; what it raises ends the work.
    """
    found = np.zeros(tiles.shape, np.float32)
    for members in batches(tiles, batch):
        maze = encode(policy, tiles[members])
        found[members] = path_of(run_to_end(policy, maze, n_steps, every=64, pause=pause))
    return found
