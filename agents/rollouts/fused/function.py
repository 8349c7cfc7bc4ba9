"""Rollouts in machine code as a differentiable function; importing this imports numba."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.mazes._kernels.compiling import jit_within

from . import blocks, kernels, sparse, vectors
from .layout import Floats, Integers, MemoryLayout, zeros

GROUPS = 64
"""Largest number of groups of mazes. Each group has its own sums, so that results do not depend on the number of
threads."""
MODULES = (vectors, blocks, sparse, kernels)
"""Modules that contribute source to the machine code; a change to any of them invalidates numba's cache."""


@cache
def compiled() -> SimpleNamespace:
    """Return the compiled kernels `forward` and `backward` as attributes of a namespace; they release the GIL.

    The first call compiles the kernels or loads them from numba's cache.
    """
    namespace: dict[str, Any] = dict(vars(kernels))
    for function in kernels.HELPERS:
        namespace[function.__name__] = jit_within(namespace, MODULES, function)
    functions = {
        function.__name__: jit_within(namespace, MODULES, function, signature)
        for function, signature in kernels.KERNELS
    }
    return SimpleNamespace(**functions)


@dataclass(frozen=True)
class Plan:
    """The options of a rollout.

    Attributes:
        layout: the layout of the maps and the weights.
        keep: the numbers of iterations after which to return a state, ascending; the last is the length of the rollout.
        n_returned: the number of channels to return.
        n_seen: the number of iterations that read the maze, the first ones.
        unbounded: the index of the iteration that has no ReLU; outside of the rollout if every iteration has a ReLU.
        max_pool: whether the last two channels become maxima, see `NCA`.
        state_limit: the upper bound of a state.
        growth: the largest growth of a state's gradient per step back, as a factor, see `rollout`.
        low: whether products are of bfloat16 numbers; sums are float32 in any case.
    """

    layout: MemoryLayout
    keep: tuple[int, ...]
    n_returned: int
    n_seen: int
    unbounded: int
    max_pool: bool
    state_limit: float
    growth: float
    low: bool = False

    @property
    def steps(self) -> tuple[int, int, Integers, int, np.float32]:
        """The arguments `n_seen`, `unbounded`, `returned`, `n_pooled` and `most` of `kernels.forward`."""
        returned = np.full(self.keep[-1] + 1, -1, np.int64)
        returned[list(self.keep)] = range(len(self.keep))
        n_pooled = self.layout.n_channels if self.max_pool else 0
        return self.n_seen, self.unbounded, returned, n_pooled, np.float32(self.state_limit)

    def unpooled(self, n: int, n_states: int, n_tiles: int) -> Floats:
        """Return memory for the pooled channels of n rollouts before pooling, (n, n_states, n_tiles, 2) float32."""
        return np.empty((n, n_states, n_tiles if self.max_pool else 0, 2), np.float32)


class Unroll(torch.autograd.Function):
    """A rollout as a function of its weights.

    Its arguments are a `Plan`, the mazes, (B, T, H, W), the first state, (B, C, H, W), or None for zeros, the weights,
    (C, T + C, taps), and the bias, (C,).
    """

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, maze: Tensor, state: Tensor | None, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the states that the plan keeps, each (B, n_returned, H, W), in channels-last memory."""
        mazes, history = _as_tiles([maze])[0], None
        # Without gradients there is no history: two maps take turns, however long the rollout is.
        if any(ctx.needs_input_grad):
            shape = len(maze), plan.keep[-1] + 1
            history = _histories.take(*shape, plan.layout), plan.unpooled(*shape, mazes.shape[1])
            ctx.save_for_backward(*map(torch.from_numpy, history), weight)
            ctx.plan, ctx.mazes, ctx.has_state = plan, mazes, state is not None
        return tuple(
            torch.from_numpy(out).unflatten(1, maze.shape[2:]).permute(0, 3, 1, 2)
            for out in _forward(plan, history, mazes, state, weight, bias)
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of weights and bias, and None for each of the other arguments."""
        *history, weight = ctx.saved_tensors
        sums = _backward(ctx.plan, [part.numpy() for part in history], gradients, ctx.mazes, ctx.has_state, weight)
        return None, None, None, *map(torch.from_numpy, ctx.plan.layout.unpack(*sums))


def _forward(
    plan: Plan, history: Sequence[Floats] | None, mazes: Floats, state: Tensor | None, weight: Tensor, bias: Tensor
) -> Floats:
    """Return the states after the numbers of steps in `keep`, (k, B, H W, n_returned).

    Every state is also written to the history, if there is one.
    """
    layout, (n_mazes, n_tiles, n_fed) = plan.layout, mazes.shape
    # An iteration reads the positive part of a state only, and the kernels rely on that for the first one.
    start = np.empty((0, 0, 0), np.float32) if state is None else _as_tiles([state.clamp(min=0)])[0]
    outs = np.empty((len(plan.keep), n_mazes, n_tiles, plan.n_returned), np.float32)
    dense = weight.detach().numpy()
    packed = layout.pack_inputs(dense[:, :n_fed], bias.detach().numpy()), *_packed(plan, dense[:, n_fed:])
    run, steps = compiled().forward, plan.steps

    def work(group: range) -> None:
        states = history or (zeros((1, 2, layout.size)), plan.unpooled(1, 2, n_tiles))
        mine = group.start, group.stop, history is None
        run(*mine, *states, mazes, start, *packed, layout.form, *steps, outs)

    # on one thread a single call does all, since nothing is summed here
    _on_threads(work, [range(n_mazes)] if torch.get_num_threads() == 1 else _groups(n_mazes))
    return outs


def _backward(
    plan: Plan, history: Sequence[Floats], gradients: Sequence[Tensor], mazes: Floats, has_state: bool, weight: Tensor
) -> list[Floats]:
    """Return the gradients of the weights of the inputs and of the state, as (rows, channels) sums."""
    layout, groups = plan.layout, _groups(len(mazes))
    input_rows, channels = layout.form[3], layout.form[4]
    # Groups have sums of their own, which are added in the order of the groups, whichever thread finished first.
    sums = [zeros((len(groups), n_rows, channels)) for n_rows in (len(input_rows), layout.n_rows)]
    packed = _packed(plan, weight.detach()[:, mazes.shape[2] :].transpose(0, 1).numpy())
    of_states, growth, run = _as_tiles(gradients), np.float32(plan.growth), compiled().backward

    def work(group: range) -> None:
        own = [of_groups[groups.index(group)] for of_groups in sums]
        for maze in group:
            run(maze, maze, *history, of_states, mazes, has_state, *packed, layout.mirrored, *plan.steps, growth, *own)

    _on_threads(work, groups)
    return [of_groups.sum(0) for of_groups in sums]


def _packed(plan: Plan, weight: Floats) -> tuple[Floats, Floats, int, bool]:
    """Return the kernels' arguments `weights` to `low` for (C out, C in, taps) weights of the state."""
    layout = plan.layout
    # In bfloat16 the dense kernels are twice as fast, so fewer states gain from the sparse ones.
    most_active = layout.most_active // 2 if plan.low else layout.most_active
    return layout.pack(weight, plan.low), layout.pack_rows(weight), most_active, plan.low


def _groups(n_mazes: int) -> list[range]:
    # They depend on the number of mazes only, not of threads, and so does the order of sums.
    size = -(-n_mazes // GROUPS)
    return [range(begin, min(begin + size, n_mazes)) for begin in range(0, n_mazes, size)]


def _on_threads(work: Callable[[range], None], groups: Sequence[range]) -> None:
    """Do the work for every group, on as many threads as PyTorch may use."""
    n_threads = torch.get_num_threads()
    if min(n_threads, len(groups)) == 1:
        for group in groups:
            work(group)
    else:
        for _ in executor(n_threads, os.getpid()).map(work, groups):  # re-raises an error of a thread
            pass


@cache
def executor(n_threads: int, process: int) -> ThreadPoolExecutor:
    """Return an executor with `n_threads` threads, the same executor for all calls in a process.

    A forked child gets its own executor, because it has none of its parent's threads.
    """
    return ThreadPoolExecutor(n_threads, "maze_nca_gym rollouts")


def _as_tiles(tensors: Sequence[Tensor]) -> Floats:
    """Return (B, C, H, W) tensors as one (k, B, H W, C) array."""
    n_mazes, n_channels, height, width = tensors[0].shape
    shape = len(tensors), n_mazes, height, width, n_channels
    tiles = torch.empty(shape, dtype=torch.float32, device="cpu")
    for tensor, out in zip(tensors, tiles, strict=True):
        out.copy_(tensor.detach().permute(0, 2, 3, 1))
    return tiles.flatten(2, 3).numpy()


class _Histories:
    """A cache for the memory of the last history: fresh memory from the system is slow at its first use."""

    def __init__(self) -> None:
        self._free: dict[tuple[int | bytes, ...], Floats] = {}
        self._lock = threading.Lock()

    def take(self, n_mazes: int, n_states: int, layout: MemoryLayout) -> Floats:
        """Return (n_mazes, n_states, map) floats, zero around the mazes; their memory comes back once it is unused."""
        # By the places of the tiles, not by the size: maps of 3 x 3 and of 8 x 1 tiles take as much memory, but the
        # tiles of one lie where the other has padding, which kernels read and never write.
        key = n_mazes, n_states, layout.n_channels, layout.size, layout.form[0].tobytes()
        with self._lock:
            # Removed from the cache, not shared: two rollouts may await their backward passes at once.
            memory = self._free.pop(key, None)
        if memory is None:
            memory = zeros((n_mazes, n_states, layout.size))

        def put_back() -> None:
            with self._lock:
                # Only the last one is kept, or runs with levels of many sizes would keep memory for every size.
                self._free = {key: memory}

        history = memory.view()
        weakref.finalize(history, put_back).atexit = False
        return history


_histories = _Histories()
