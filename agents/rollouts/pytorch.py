"""Rollouts in PyTorch, one iteration after the other, for every policy on every device."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from maze_nca_gym.envs.dynamics import STATE_LIMIT

from ..policies.policy import Policy, iteration

Iteration = Callable[[Tensor, int], Tensor]
"""A function from a (B, C, H, W) state and its step to the next state."""


_SETTING = threading.Lock()
"""Held while PyTorch's numbers of threads change."""


@dataclass(frozen=True)
class RolloutRequest:
    """The options of a rollout, see `rollout`.

    Attributes:
        keep: the numbers of iterations after which to return a state, ascending; the last is the length of the rollout.
        start_step: the number of iterations that led to the first state.
        n_returned: the number of channels to return, or None for all.
        growth: the largest growth of a maze's state gradient per step back.
    """

    keep: tuple[int, ...]
    start_step: int = 0
    n_returned: int | None = None
    growth: float = math.inf

    @property
    def n_steps(self) -> int:
        """The length of the rollout in iterations."""
        return self.keep[-1]


def needs_gradients(*tensors: Tensor | None) -> bool:
    """Return whether gradients are enabled and one of the tensors requires a gradient; None stands for no tensor."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


class PyTorch:
    """Rollouts of every policy, on every device, in every dtype."""

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return True, because PyTorch runs every policy."""
        return True

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W)."""
        if state is None:
            state = maze.new_zeros(()).expand(len(maze), policy.n_channels, *maze.shape[2:])
        # Not with gradients: the backward pass, outside of this block, uses all threads anyway.
        few_threads = not policy.engine_hints.gains_from_threads and not torch.is_grad_enabled()
        with threads(1) if few_threads else nullcontext():
            maze, state, iteration = self._prepared(policy, maze, state)
            limit = _GrowthLimit(request.growth, policy.engine_hints.state_limit)
            returned = []
            for n_steps in range(1, request.n_steps + 1):
                seen = limit.read(state)
                state = iteration(seen, request.start_step + n_steps - 1).clamp(-STATE_LIMIT, STATE_LIMIT)
                limit.note(state)
                if n_steps in request.keep:
                    returned.append(state[:, : request.n_returned])
            return returned

    def _prepared(self, policy: Policy, maze: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Iteration]:
        """Return maze and state in the fastest memory format, and an iteration for which the maze is encoded once."""
        layout = policy.engine_hints.memory_format
        maze, state = (tensor.contiguous(memory_format=layout) for tensor in (maze, state))
        return maze, state, iteration(policy, maze)


class Stepping(PyTorch):
    """Rollouts that equal stepping an environment with the policy's actions, bit for bit; slower than other engines.

    Other engines differ in rounding: they encode the maze once, choose a memory format, or add in another order.
    """

    def _prepared(self, policy: Policy, maze: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Iteration]:
        return maze, state, partial(policy, maze)


@dataclass
class _GrowthLimit:
    """A limit on the growth of the gradients of states from step to step, applied by hooks on the states.

    Attributes:
        growth: the largest ratio of a state's gradient to the next state's gradient; infinity means no limit.
        most: the upper bound of a state. Gradients of numbers that are at this bound or at 0 do not count.
    """

    growth: float
    most: float

    def read(self, state: Tensor) -> Tensor:
        """Return a view of a (B, C, H, W) state, which the next iteration reads and whose gradient is limited."""
        if self.growth == math.inf or not state.requires_grad:
            return state

        def shrunk(gradient: Tensor) -> Tensor:
            lengths = self._lengths(gradient, state)
            return gradient * torch.where(lengths > self._longest, self._longest / lengths, 1)

        seen = state.view_as(state)
        seen.register_hook(shrunk)
        return seen

    def note(self, state: Tensor) -> None:
        """Let the whole gradient of a (B, C, H, W) state, including the gradients of losses, set the next limit."""

        def longest(gradient: Tensor) -> None:
            self._longest = self.growth * self._lengths(gradient, state)

        if self.growth < math.inf and state.requires_grad:
            state.register_hook(longest)

    def _lengths(self, gradient: Tensor, state: Tensor) -> Tensor:
        """Return the norms of (B, C, H, W) gradients, without numbers at a bound, (B, 1, 1, 1)."""
        inside = (state != 0) & (state < self.most)
        return (gradient * inside).square().sum(dim=(1, 2, 3), keepdim=True).sqrt()


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let torch use `n` threads within a block or a decorated function, in this thread alone; restore the number at its
    end.

    On small maps a second thread gains little. On a CPU shared with other programs threads wait for each other, which
    makes them many times slower.
    """
    before = torch.get_num_threads()
    _set_threads(n)
    try:
        yield
    finally:
        _set_threads(before)


@contextmanager
def learning_on(n: int) -> Iterator[None]:
    """Prepare torch for learning within the block, whatever the caller's settings are.

    torch then uses `n` threads, records gradients, and makes new tensors on the CPU.
    """
    # where it is the default anyway, naming a device slows every operator
    on_cpu = nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")
    with threads(n), torch.inference_mode(False), torch.enable_grad(), on_cpu:
        yield


def _set_threads(n: int) -> None:
    """Set the number of threads for operations of this thread.

    PyTorch stores a number for each thread. Its setter also changes the number with which new threads start. Therefore
    this function reads that number in a new thread and restores it.
    """
    if n == torch.get_num_threads():
        return
    with _SETTING, ThreadPoolExecutor(1) as new:
        usual = new.submit(torch.get_num_threads).result()
        torch.set_num_threads(n)
        new.submit(torch.set_num_threads, usual).result()
