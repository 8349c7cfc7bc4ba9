"""Rollouts in machine code as a differentiable function; importing this imports numba."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .compiling import compiled
from .layout import Floats, Layout, layout, pack, unpack

GROUPS = 32
"""Mazes are dealt to at most so many groups, each of which sums up gradients of its own: never by the number of threads."""


@dataclass(frozen=True)
class Plan:
    """What to compute.

    Attributes:
        kernel_size: side of the kernel.
        live: places of the live taps in it, row by row.
        keep: the numbers of iterations after which to return a state; the last is that of the whole rollout.
        raw: the iteration without a ReLU, counted from the first, or -1.
    """

    kernel_size: int
    live: tuple[int, ...]
    keep: tuple[int, ...]
    raw: int

    @property
    def n_steps(self) -> int:
        return self.keep[-1]

    def kept(self) -> Any:
        kept = np.full(self.n_steps + 1, -1)
        kept[list(self.keep)] = range(len(self.keep))
        return kept


class _Histories:
    """Memory for the states of a rollout, kept from one to the next: fresh memory costs a tenth of the time."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], Floats] = {}
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...]) -> Floats:
        """An array whose frames are zero."""
        with self._lock:
            array = self._free.pop(shape, None)
        memory = np.zeros(shape, np.float32) if array is None else array
        view = memory.view()
        weakref.finalize(view, self._put_back, memory).atexit = False
        return view

    def _put_back(self, memory: Floats) -> None:
        with self._lock:
            self._free.clear()
            self._free[memory.shape] = memory


_histories = _Histories()


def _side_by_side(tensor: Tensor) -> Floats:
    """(B, C, H, W) as (B, H W, C)."""
    return tensor.detach().permute(0, 2, 3, 1).flatten(1, 2).contiguous().numpy()


def _on_threads(work: Callable[[int], None], n_items: int) -> None:
    """Do the items on as many threads as PyTorch may use, this one among them."""
    items, lock, errors = iter(range(n_items)), threading.Lock(), []

    def labour() -> None:
        try:
            while True:
                with lock:
                    item = next(items, None)
                if item is None:
                    return
                work(item)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=labour) for _ in range(min(n_items, torch.get_num_threads()) - 1)]
    for thread in threads:
        thread.start()
    labour()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _groups(n_mazes: int) -> list[tuple[int, int]]:
    size = math.ceil(n_mazes / GROUPS)
    return [(begin, min(begin + size, n_mazes)) for begin in range(0, n_mazes, size)]


def _forward(
    plan: Plan, shares: Sequence[Tensor], weight: Tensor, state: Tensor | None, with_history: bool
) -> tuple[Floats, Floats, Layout]:
    n_mazes, n_channels, height, width = shares[0].shape
    form = layout(n_channels, height, width, plan.kernel_size, plan.live)
    n_slots = plan.n_steps + 1 if with_history else 2
    history = _histories.take((n_mazes if with_history else GROUPS, n_slots, form.size))
    inputs = np.stack([_side_by_side(share) for share in shares])
    start = (
        np.empty((0, height * width, n_channels), np.float32) if state is None else _side_by_side(state.clamp(min=0))
    )
    packed = pack(weight.detach().numpy(), form.channels)
    outs = np.empty((len(plan.keep), n_mazes, height * width, n_channels), np.float32)
    groups, kept, run = _groups(n_mazes), plan.kept(), compiled().forward

    def work(group: int) -> None:
        begin, end = groups[group]
        maps = history if with_history else history[group : group + 1]
        run(begin, end, maps, inputs, start, packed, form.places, form.taps, form.channels, plan.raw, kept, outs)

    _on_threads(work, len(groups))
    return outs, history, form


def _backward(
    plan: Plan, form: Layout, history: Floats, gradients: Floats, weight: Tensor, n_shares: int, has_state: bool
) -> tuple[Floats, Floats]:
    n_mazes, n_tiles, n_channels = gradients.shape[1:]
    groups, kept, run = _groups(n_mazes), plan.kept(), compiled().backward
    shares = np.empty((n_shares, n_mazes, n_tiles, n_channels), np.float32)
    weights = np.zeros((len(groups), len(form.rows), form.channels), np.float32)
    packed = pack(weight.detach().transpose(0, 1).numpy(), form.channels)

    def work(group: int) -> None:
        begin, end = groups[group]
        run(
            begin, end, history, gradients, packed, form.places, form.mirrored, form.rows, form.channels,
            has_state, plan.raw, kept, shares, weights[group],
        )  # fmt: skip

    _on_threads(work, len(groups))
    return shares, unpack(weights.sum(0), n_channels, len(plan.live), form.channels)


class Unroll(torch.autograd.Function):
    """States after some numbers of iterations, from the weights of the state, (C, C, taps), and the maze's shares."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, state: Tensor | None, weight: Tensor, *shares: Tensor) -> tuple[Tensor, ...]:
        with_history = any(ctx.needs_input_grad)
        outs, history, form = _forward(plan, shares, weight, state, with_history)
        if with_history:
            ctx.plan, ctx.form, ctx.has_state, ctx.shape = plan, form, state is not None, shares[0].shape
            ctx.save_for_backward(torch.from_numpy(history), weight)
        return tuple(torch.from_numpy(out).unflatten(1, shares[0].shape[2:]).permute(0, 3, 1, 2) for out in outs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        history, weight = ctx.saved_tensors
        n_shares = len(ctx.needs_input_grad) - 3
        shares, weights = _backward(
            ctx.plan,
            ctx.form,
            history.numpy(),
            np.stack([_side_by_side(g) for g in gradients]),
            weight,
            n_shares,
            ctx.has_state,
        )
        height, width = ctx.shape[2:]
        maps = torch.from_numpy(shares).unflatten(2, (height, width)).permute(0, 1, 4, 2, 3)
        return None, None, torch.from_numpy(weights), *maps
