"""Differentiable rollouts: equal to stepping environments bit for bit, or in machine code where possible.

`rollout` and `trace` call `Policy.forward` once for each iteration. `unroll` gives the same up to rounding.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT

from ..policy import Convolution, Policy
from ..precision import tf32


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
        ValueError: `keep` does not ascend from at least 1 to `n_steps`, the model has fewer than `n_returned` channels,
            the growth is negative or no number, or an error of `Policy.forward`.
    """
    _check(model, n_steps, keep, n_returned, growth)
    if maze.ndim != 4:
        raise ValueError(f"maze must have shape (B, T, H, W), got {tuple(maze.shape)}")
    start = maze.new_zeros(()).expand(len(maze), model.n_channels, *maze.shape[2:]) if state is None else state.detach()
    model._check(maze, start)
    start = start[:, : model.n_channels]
    convolution = model.convolution()
    if convolution is not None and _compiles_for(convolution, maze):
        first = None if state is None else start
        return _fused(convolution, _ceiling(model), maze, keep, first, start_step, n_returned, growth)
    states = enumerate(_trace(model, maze, n_steps, start, start_step, growth))
    return [current[:, :n_returned] for n_iterations, current in states if n_iterations in keep]


def supported(model: Policy, maze: Tensor) -> bool:
    """Return whether `unroll` runs a model on (B, T, H, W) mazes in machine code.

    It does so for a `Policy.convolution` in float32 on the CPU, outside of autocast, where the compiler works. The
    first call compiles, which takes some seconds once per installation.
    """
    convolution = model.convolution()
    return convolution is not None and _compiles_for(convolution, maze)


def _compiles_for(convolution: Convolution, maze: Tensor) -> bool:
    tensors = (maze, convolution.weight, convolution.bias)
    return (
        all(tensor.dtype == torch.float32 and tensor.is_cpu for tensor in tensors)
        and not torch.is_autocast_enabled("cpu")
        and maze.numel() > 0
        and _compiles()
    )


@cache
def _compiles() -> bool:
    try:
        from .fused.compiling import compiled  # here, because importing the compiler takes a third of a second

        compiled()
    except Exception:  # whatever keeps it from working here: everything works without it
        return False
    return True


def _fused(
    convolution: Convolution,
    ceiling: float,
    maze: Tensor,
    keep: Sequence[int],
    state: Tensor | None,
    start_step: int,
    n_returned: int | None,
    growth: float,
) -> list[Tensor]:
    from .fused.function import Plan, Unroll  # here, because they import the compiler
    from .fused.layout import layout

    weight, bias = convolution.weight, convolution.bias
    form = layout(maze.shape[1], len(weight), *maze.shape[2:], convolution.kernel_size, convolution.taps)
    unbounded = -1 if convolution.unbounded is None else convolution.unbounded - start_step
    n_seen = keep[-1] if convolution.sees_maze else int(start_step == 0)
    n_kept = n_returned or len(weight)
    pools = convolution.max_pool, convolution.pool_adds
    plan = Plan(form, tuple(keep), n_kept, n_seen, unbounded, *pools, ceiling, growth)
    if not torch.is_grad_enabled():  # inside of a function that cannot be told from parameters that need gradients
        weight, bias = weight.detach(), bias.detach()
    return list(Unroll.apply(plan, maze, state, weight, bias))


def _trace(
    model: Policy, maze: Tensor, n_steps: int, state: Tensor, start_step: int, growth: float
) -> Iterator[Tensor]:
    """Yield every state of a rollout in PyTorch, the first as given."""
    maze, state = (tensor.contiguous(memory_format=model.memory_format) for tensor in (maze, state))
    advance, shrinking = _iteration(model, maze), _Shrinking(growth, _ceiling(model))
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
    if not model.same_share:
        return partial(model.forward, maze)
    share, advance = model.share, model.advance
    if model.exact and not maze.is_cpu:
        share, advance = tf32(allowed=False)(share), tf32(allowed=False)(advance)
    return partial(advance, share(maze))


def _ceiling(model: Policy) -> float:
    """Return the largest number in a state."""
    return STATE_LIMIT if model.ceiling is None else model.ceiling


def _check(model: Policy, n_steps: int, keep: Sequence[int], n_returned: int | None, growth: float) -> None:
    if not keep or list(keep) != sorted(set(keep)) or keep[0] < 1 or keep[-1] != n_steps:
        raise ValueError(f"keep must ascend from at least 1 to n_steps, {n_steps}, got {list(keep)}")
    if n_returned is not None and not 1 <= n_returned <= model.n_channels:
        raise ValueError(f"n_returned must be from 1 to {model.n_channels}, got {n_returned}")
    if not growth >= 0:
        raise ValueError(f"growth must be at least 0, got {growth}")
