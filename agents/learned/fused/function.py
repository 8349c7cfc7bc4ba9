"""Rollouts in machine code as a differentiable function; importing this imports numba."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .compiling import compiled
from .layout import Floats, Integers, Layout

GROUPS = 64
"""Mazes form at most so many groups, each with sums of its own, so that no sum depends on the number of threads."""


@dataclass(frozen=True)
class Plan:
    """What to compute.

    Attributes:
        layout: of the maps and the weights.
        keep: the numbers of iterations after which to return a state; the last is that of the whole rollout.
        n_returned: how many channels of it.
        unbounded: the iteration without a ReLU, counted from the first, if it is one of these.
    """

    layout: Layout
    keep: tuple[int, ...]
    n_returned: int
    unbounded: int

    @property
    def kept(self) -> Integers:
        """Of the state after each number of iterations, its place among those to return, or -1."""
        kept = np.full(self.keep[-1] + 1, -1, np.int64)
        kept[list(self.keep)] = range(len(self.keep))
        return kept


class Unroll(torch.autograd.Function):
    """States after some numbers of iterations.

    Its arguments are a `Plan`, the first state or None for zeros, the weights of the state, (C, C, taps), and what the
    maze adds, (B, C, H, W), in the first step and, where that differs, in all others.
    """

    @staticmethod
    def forward(ctx: Any, plan: Plan, state: Tensor | None, weight: Tensor, *shares: Tensor) -> tuple[Tensor, ...]:
        """The states, each (B, n_returned, H, W), channels side by side in memory."""
        history = None
        if any(ctx.needs_input_grad):
            history = _histories.take((len(shares[0]), plan.keep[-1] + 1, plan.layout.size))
            ctx.save_for_backward(torch.from_numpy(history), weight)
            ctx.plan, ctx.has_state, ctx.n_shares = plan, state is not None, len(shares)
        outs = _forward(plan, history, state, weight, shares)
        return tuple(_as_maps(out, shares[0].shape[2:]) for out in outs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """None for plan and state, and the gradients of weights and shares."""
        history, weight = ctx.saved_tensors
        sums, shares = _backward(ctx.plan, history.numpy(), ctx.has_state, weight, gradients, ctx.n_shares)
        maps = [_as_maps(share, gradients[0].shape[2:]) for share in shares]
        return None, None, torch.from_numpy(ctx.plan.layout.unpack(sums)), *maps


def _forward(
    plan: Plan, history: Floats | None, state: Tensor | None, weight: Tensor, shares: Sequence[Tensor]
) -> Floats:
    """The (k, B, H W, n_returned) states; every state goes to `history`, if there is one."""
    inputs, kept, layout = _as_tiles(shares), plan.kept, plan.layout
    n_mazes, n_tiles = inputs.shape[1:3]
    start = (
        np.empty((0, n_tiles, layout.n_channels), np.float32) if state is None else _as_tiles([state.clamp(min=0)])[0]
    )
    outs = np.empty((len(plan.keep), n_mazes, n_tiles, plan.n_returned), np.float32)
    packed, run = layout.pack(weight.detach().numpy()), compiled().forward

    def work(group: range) -> None:
        maps = np.zeros((1, 2, layout.size), np.float32) if history is None else history
        for maze in group:
            slot = 0 if history is None else maze
            run(maze, slot, maps, inputs, start, packed, layout.form, plan.unbounded, kept, outs)

    _on_threads(work, _groups(n_mazes))
    return outs


def _backward(
    plan: Plan, history: Floats, has_state: bool, weight: Tensor, gradients: Sequence[Tensor], n_shares: int
) -> tuple[Floats, Floats]:
    """The gradients of the weights, by row, and of the (n_shares, B, H W, C) shares."""
    given, kept, layout = _as_tiles(gradients), plan.kept, plan.layout
    n_mazes, n_tiles = given.shape[1:3]
    groups = _groups(n_mazes)
    shares = np.empty((n_shares, n_mazes, n_tiles, layout.n_channels), np.float32)
    sums = np.zeros((len(groups), len(layout.form[2]), layout.channels), np.float32)
    packed, run = layout.pack(weight.detach().transpose(0, 1).numpy()), compiled().backward

    def work(group: range) -> None:
        own = sums[groups.index(group)]
        for maze in group:
            run(maze, maze, history, given, has_state, packed, layout.mirrored, plan.unbounded, kept, shares, own)

    _on_threads(work, groups)
    return sums.sum(0), shares


def _groups(n_mazes: int) -> list[range]:
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
    """One for each process: a fork has none of its parent's threads."""
    return ThreadPoolExecutor(n_threads, "maze_nca_gym rollouts")


def _as_tiles(tensors: Sequence[Tensor]) -> Floats:
    """(B, C, H, W) tensors as one (k, B, H W, C) array."""
    n_mazes, n_channels, height, width = tensors[0].shape
    tiles = torch.empty(len(tensors), n_mazes, height, width, n_channels)
    for tensor, out in zip(tensors, tiles, strict=True):
        out.copy_(tensor.detach().permute(0, 2, 3, 1))
    return tiles.flatten(2, 3).numpy()


def _as_maps(tiles: Floats, size: torch.Size) -> Tensor:
    """A (B, H W, C) array as (B, C, H, W)."""
    return torch.from_numpy(tiles.reshape(len(tiles), *size, -1)).permute(0, 3, 1, 2)


class _Histories:
    """The memory of one history, for the next one of the same shape: memory fresh from the system is slow."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], Floats] = {}
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...]) -> Floats:
        """An array with zeros where none of its users writes; it returns to this when nobody refers to it any more."""
        with self._lock:
            memory = self._free.pop(shape, None)
        if memory is None:
            memory = np.zeros(shape, np.float32)
        history = memory.view()
        weakref.finalize(history, self._put_back, memory).atexit = False
        return history

    def _put_back(self, memory: Floats) -> None:
        with self._lock:
            self._free = {memory.shape: memory}


_histories = _Histories()
