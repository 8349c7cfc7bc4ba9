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

from maze_nca_gym._kernels.compiling import jit_within

from . import blocks, kernels, sparse, vectors
from .layout import Floats, Integers, Layout, zeros

GROUPS = 64
"""Largest number of groups of mazes, each with its own sums, so that no sum depends on the number of threads."""
MODULES = (vectors, blocks, sparse, kernels)
"""All whose change makes cached machine code worthless."""


@cache
def compiled() -> SimpleNamespace:
    """Return `forward` and `backward`, which release Python's lock while they run; the first call compiles them."""
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
    """The options of a computation.

    Attributes:
        layout: the layout of the maps and the weights.
        keep: the numbers of iterations after which to return a state; the last is that of the whole rollout.
        n_returned: the number of its channels to return.
        n_seen: the number of iterations, the first ones, that read the maze.
        unbounded: the iteration without a ReLU, counted from the first, if it is one of these.
        max_pool: whether the last two channels become maxima, see `NCA`.
        state_limit: the largest number that an iteration leaves.
        growth: the largest growth of a gradient from a state to the one before, see `rollout`.
        low: whether numbers are multiplied as bfloat16 ones; sums are of float32.
    """

    layout: Layout
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
        """Arguments for the kernels: iterations that read the maze, the unbounded one, places of kept states, pools and
        a bound."""
        kept = np.full(self.keep[-1] + 1, -1, np.int64)
        kept[list(self.keep)] = range(len(self.keep))
        n_pooled = self.layout.n_channels if self.max_pool else 0
        return self.n_seen, self.unbounded, kept, n_pooled, np.float32(self.state_limit)

    def unpooled(self, n: int, n_states: int, n_tiles: int) -> Floats:
        """Return memory for what the channels of maxima are before these are taken, of n rollouts."""
        return np.empty((n, n_states, n_tiles if self.max_pool else 0, 2), np.float32)


class Unroll(torch.autograd.Function):
    """States after some numbers of iterations.

    Its arguments are a `Plan`; the mazes, (B, T, H, W); and the first state, (B, C, H, W), or None for zeros. Then come
    the weights, (C, T + C, taps), and the bias, (C,).
    """

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, maze: Tensor, state: Tensor | None, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the states, each (B, n_returned, H, W), channels side by side in memory."""
        mazes, history = _as_tiles([maze])[0], None
        # Without gradients two maps in turn are enough, however long the rollout.
        if any(ctx.needs_input_grad):
            shape = len(maze), plan.keep[-1] + 1
            history = _histories.take((*shape, plan.layout.size)), plan.unpooled(*shape, mazes.shape[1])
            ctx.save_for_backward(*map(torch.from_numpy, history), weight)
            ctx.plan, ctx.mazes, ctx.has_state = plan, mazes, state is not None
        return tuple(
            torch.from_numpy(out).unflatten(1, maze.shape[2:]).permute(0, 3, 1, 2)
            for out in _forward(plan, history, mazes, state, weight, bias)
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return none for plan, mazes and state, and the gradients of weights and bias."""
        *history, weight = ctx.saved_tensors
        sums = _backward(ctx.plan, [part.numpy() for part in history], gradients, ctx.mazes, ctx.has_state, weight)
        return None, None, None, *map(torch.from_numpy, ctx.plan.layout.unpack(*sums))


def _forward(
    plan: Plan, history: Sequence[Floats] | None, mazes: Floats, state: Tensor | None, weight: Tensor, bias: Tensor
) -> Floats:
    """Return the (k, B, H W, n_returned) states; every state goes to `history`, maps and `unpooled`, if there is
    one."""
    layout, (n_mazes, n_tiles, n_fed) = plan.layout, mazes.shape
    # Every iteration reads the positive part alone, so the first state may as well begin there.
    start = np.empty((0, 0, 0), np.float32) if state is None else _as_tiles([state.clamp(min=0)])[0]
    outs = np.empty((len(plan.keep), n_mazes, n_tiles, plan.n_returned), np.float32)
    dense = weight.detach().numpy()
    packed = layout.pack_inputs(dense[:, :n_fed], bias.detach().numpy()), *_packed(plan, dense[:, n_fed:])
    run = compiled().forward

    def work(group: range) -> None:
        states = history or (zeros((1, 2, layout.size)), plan.unpooled(1, 2, n_tiles))
        for maze in group:
            slot = 0 if history is None else maze
            run(maze, slot, *states, mazes, start, *packed, layout.form, *plan.steps, outs)

    _on_threads(work, _groups(n_mazes))
    return outs


def _backward(
    plan: Plan, history: Sequence[Floats], gradients: Sequence[Tensor], mazes: Floats, has_state: bool, weight: Tensor
) -> list[Floats]:
    """Return the gradients of the weights, by row: of what is fed in, and of the state."""
    layout, groups = plan.layout, _groups(len(mazes))
    input_rows, channels = layout.form[3], layout.form[4]
    # Sums of each group, added in the order of the groups: no result depends on which thread was first.
    sums = [zeros((len(groups), n_rows, channels)) for n_rows in (len(input_rows), layout.n_rows)]
    packed = _packed(plan, weight.detach()[:, mazes.shape[2] :].transpose(0, 1).numpy())
    given, growth, run = _as_tiles(gradients), np.float32(plan.growth), compiled().backward

    def work(group: range) -> None:
        own = [of_groups[groups.index(group)] for of_groups in sums]
        for maze in group:
            run(maze, maze, *history, given, mazes, has_state, *packed, layout.mirrored, *plan.steps, growth, *own)

    _on_threads(work, groups)
    return [of_groups.sum(0) for of_groups in sums]


def _packed(plan: Plan, weight: Floats) -> tuple[Floats, Floats, int, bool]:
    """Return the arguments of the kernels for (C out, C in, taps) weights of the state."""
    layout = plan.layout
    most_active = layout.most_active // 2 if plan.low else layout.most_active  # reading all takes half the time then
    return layout.pack(weight, plan.low), layout.pack_rows(weight), most_active, plan.low


def _groups(n_mazes: int) -> list[range]:
    # By the number of mazes alone, not of threads, for the same reason.
    size = -(-n_mazes // GROUPS)
    return [range(begin, min(begin + size, n_mazes)) for begin in range(0, n_mazes, size)]


def _on_threads(work: Callable[[range], None], groups: Sequence[range]) -> None:
    """Do the work on as many threads as PyTorch may use."""
    n_threads = torch.get_num_threads()
    if min(n_threads, len(groups)) == 1:
        for group in groups:
            work(group)
    else:
        for _ in _threads(n_threads, os.getpid()).map(work, groups):  # raises what a thread has raised
            pass


@cache
def _threads(n_threads: int, process: int) -> ThreadPoolExecutor:
    """Return one for each process: a fork has none of its parent's threads."""
    return ThreadPoolExecutor(n_threads, "maze_nca_gym rollouts")


def _as_tiles(tensors: Sequence[Tensor]) -> Floats:
    """Return (B, C, H, W) tensors as one (k, B, H W, C) array."""
    n_mazes, n_channels, height, width = tensors[0].shape
    tiles = torch.empty(len(tensors), n_mazes, height, width, n_channels)
    for tensor, out in zip(tensors, tiles, strict=True):
        out.copy_(tensor.detach().permute(0, 2, 3, 1))
    return tiles.flatten(2, 3).numpy()


class _Histories:
    """The memory of one history, for the next one of the same shape: memory fresh from the system is slow."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], Floats] = {}
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...]) -> Floats:
        """Return an array with zeros where none of its users writes; it comes back here once nothing refers to it."""
        with self._lock:
            # Taken out, not shared: two rollouts may be waiting for their gradients at once.
            memory = self._free.pop(shape, None)
        if memory is None:
            memory = zeros(shape)
        history = memory.view()
        weakref.finalize(history, self._put_back, memory).atexit = False
        return history

    def _put_back(self, memory: Floats) -> None:
        with self._lock:
            # The last one alone: another shape means another size of levels, and memory should not add up.
            self._free = {memory.shape: memory}


_histories = _Histories()
