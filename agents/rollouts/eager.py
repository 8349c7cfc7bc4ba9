"""Rollouts in PyTorch, one iteration after the other; works for every policy on every device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT

from ..policy import Policy
from ..precision import tf32


@dataclass(frozen=True)
class Request:
    """What is asked of a rollout, see `rollout`.

    Attributes:
        keep: the numbers of iterations after which to return a state; the last is that of the whole rollout.
        start_step: iterations that the first state has already had.
        n_returned: the number of channels to return; None for all.
        growth: the largest growth of a maze's state gradient per step back.
    """

    keep: tuple[int, ...]
    start_step: int = 0
    n_returned: int | None = None
    growth: float = math.inf

    @property
    def n_steps(self) -> int:
        """Iterations of the rollout."""
        return self.keep[-1]


class PyTorch:
    """Rollouts of every policy, on every device, in every dtype."""

    def supports(self, policy: Policy, maze: Tensor) -> bool:
        """Return that it runs the policy."""
        return True

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
        """Return the states that are asked for, each (B, n_returned, H, W)."""
        if state is None:
            state = maze.new_zeros(()).expand(len(maze), policy.n_channels, *maze.shape[2:])
        states = enumerate(_states(policy, maze, request.n_steps, state, request.start_step, request.growth))
        return [current[:, : request.n_returned] for n_iterations, current in states if n_iterations in request.keep]


def _states(
    model: Policy, maze: Tensor, n_steps: int, state: Tensor, start_step: int, growth: float
) -> Iterator[Tensor]:
    """Yield every state of a rollout in PyTorch, the first as given."""
    maze, state = (tensor.contiguous(memory_format=model.memory_format) for tensor in (maze, state))
    advance, shrinking = _iteration(model, maze), _Shrinking(growth, largest(model))
    yield state
    for step in range(start_step, start_step + n_steps):
        state = advance(shrinking.before(state), step).clamp(-STATE_LIMIT, STATE_LIMIT)
        shrinking.after(state)
        yield state


@dataclass
class _Shrinking:
    """Scaling of gradients of states.

    Attributes:
        growth: the largest growth of a state's gradient over that of the next state, as a factor; infinity means no
            limit.
        most: the largest number in a state; there, and at 0, gradients stop and do not count.
    """

    growth: float
    most: float

    def before(self, state: Tensor) -> Tensor:
        """Return what the next iteration should read in place of a (B, C, H, W) state."""
        if self.growth == math.inf or not state.requires_grad:
            return state
        seen = state.view_as(state)
        seen.register_hook(lambda gradient: self._shrunk(gradient, state))
        return seen

    def after(self, state: Tensor) -> None:
        """Take note of the gradient of a (B, C, H, W) state, from the next one and from losses."""
        if self.growth < math.inf and state.requires_grad:
            state.register_hook(lambda gradient: self._note(gradient, state))

    def _note(self, gradient: Tensor, state: Tensor) -> None:
        self._longest = self.growth * self._lengths(gradient, state)

    def _shrunk(self, gradient: Tensor, state: Tensor) -> Tensor:
        lengths = self._lengths(gradient, state)
        return gradient * torch.where(lengths > self._longest, self._longest / lengths, 1)

    def _lengths(self, gradient: Tensor, state: Tensor) -> Tensor:
        """Return (B, 1, 1, 1) norms."""
        inside = (state != 0) & (state < self.most)
        return (gradient * inside).square().sum(dim=(1, 2, 3), keepdim=True).sqrt()


def _iteration(model: Policy, maze: Tensor) -> Callable[[Tensor, int], Tensor]:
    """Return the function from a state and its step to the next; what the maze adds is computed once if it stays."""
    if not model.encodes_once:
        return partial(model.forward, maze)
    encode, step = model.encode_maze, model.step
    if model.exact and not maze.is_cpu:
        encode, step = tf32(allowed=False)(encode), tf32(allowed=False)(step)
    return partial(step, encode(maze))


def largest(model: Policy) -> float:
    """Return the largest number in a state of a policy."""
    return STATE_LIMIT if model.state_limit is None else model.state_limit
