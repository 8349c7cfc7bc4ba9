"""Rollouts in one launch for each direction, as a differentiable function; importing this imports triton."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT
from maze_nca_gym.transfer import upload

from . import kernels
from .maps import NARROW, Form

PROGRAMS = 2
"""Programs for each multiprocessor, so that one computes while the other waits for memory."""
ON_CPU = 1
"""Programs under Triton's interpreter, which runs them one after the other."""
WARPS = 8
"""Groups of 32 threads in a program."""
STAGES = 2
"""Blocks that are on their way from memory while others are multiplied."""


@dataclass(frozen=True)
class Plan:
    """The options of a computation.

    Attributes:
        form: the form of the maps.
        keep: the numbers of iterations after which to return a state; the last is that of the whole rollout.
        n_returned: the number of its channels to return.
        unbounded: the iteration without a ReLU, counted from the first, if it is one of these.
        ceiling: the largest number that an iteration leaves.
        growth: the largest growth of a gradient from a state to the one before, see `unroll`.
        precision: of products: "ieee", "tf32" or "bf16".
        every: iterations from one state that is kept for the way back to the next.
    """

    form: Form
    keep: tuple[int, ...]
    n_returned: int
    unbounded: int
    ceiling: float
    growth: float
    precision: str
    every: int

    @property
    def n_kept(self) -> int:
        """Number of states that are kept for the way back."""
        return -(-self.keep[-1] // self.every)

    @property
    def bounds(self) -> tuple[int, float, float]:
        """Arguments for the kernels: the unbounded iteration, the least number that it leaves, and the largest."""
        return self.unbounded, -float(STATE_LIMIT), self.ceiling

    @property
    def places(self) -> tuple[int, int, int, int, int]:
        """Arguments for the kernels: the form of a map."""
        form = self.form
        return form.n_places, form.end, form.width, form.stride, form.map_size

    @property
    def constants(self) -> dict[str, Any]:
        """Arguments for the kernels that are compiled in."""
        return {
            "RETURNED": self.n_returned,
            "CHANNELS": self.form.channels,
            "BLOCK": self.form.columns,
            "PLACES": self.form.block,
            "TAPS": len(self.form.distances),
            "PRECISION": self.precision,
            "enable_fp_fusion": True,  # sums are of products that are not rounded, as on the CPU
            "num_warps": WARPS,
            "num_stages": STAGES,
        }

    def slots(self, device: torch.device) -> Tensor:
        """Return where the state after each number of iterations is returned, (n_steps + 1,) int32, or -1."""
        slots = np.full(self.keep[-1] + 1, -1, np.int32)
        slots[list(self.keep)] = range(len(self.keep))
        return upload(slots, device)

    def distances(self, device: torch.device) -> Tensor:
        """Return the distances of the taps, int32."""
        return upload(np.array(self.form.distances, np.int32), device)


def checkpoint_distance(n_steps: int) -> int:
    """Return after how many iterations to keep a state, so that the fewest maps are in memory at once."""
    return max(1, round(math.sqrt(n_steps)))


class Unroll(torch.autograd.Function):
    """States after some numbers of iterations.

    Its arguments are a `Plan`, the shares, the first state and the weights. A share is what the maze and the bias add
    to every convolution, (B, n_places, channels). The first state has the same form, or is None for zeros. The weights
    are (taps, channels in, channels out).
    """

    @staticmethod
    def forward(ctx: Any, plan: Plan, share: Tensor, start: Tensor | None, weight: Tensor) -> Tensor:
        """Return the first channels of the states, (k, B, n_places, n_returned)."""
        n_mazes, form, n_programs = len(share), plan.form, _n_programs(share)
        outs = share.new_empty(len(plan.keep), n_mazes, form.n_places, plan.n_returned)
        keeps = any(ctx.needs_input_grad)
        kept = share.new_empty(n_mazes, plan.n_kept, form.n_places, form.channels) if keeps else share
        slots, distances = plan.slots(share.device), plan.distances(share.device)
        with torch.cuda.device_of(share):
            kernels.forward[(n_programs,)](
                share,
                share if start is None else start,
                weight,
                distances,
                slots,
                form.scratch(2 * n_programs, share)[form.margin * form.channels :],
                outs,
                kept,
                n_mazes,
                plan.keep[-1],
                plan.every,
                *plan.bounds,
                *plan.places,
                HAS_START=start is not None,
                KEEPS=keeps,
                **plan.constants,
            )
        if keeps:
            ctx.save_for_backward(share, kept, weight, distances, slots)
            ctx.plan = plan
        return outs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return none for plan and first state, and the gradients of shares and weights."""
        plan, (share, kept, weight, distances, slots) = ctx.plan, ctx.saved_tensors
        form, n_programs = plan.form, _n_programs(share)
        sums, share_sums = weight.new_zeros(n_programs, *weight.shape), torch.zeros_like(share)
        with torch.cuda.device_of(share):
            kernels.backward[(n_programs,)](
                share,
                kept,
                gradient.contiguous(),
                weight,
                weight.transpose(1, 2).contiguous(),
                distances,
                -distances,
                slots,
                form.scratch((2 * plan.every + 2) * n_programs, share)[form.margin * form.channels :],
                sums,
                share_sums,
                len(share),
                plan.keep[-1],
                plan.every,
                *plan.bounds,
                plan.growth,
                *plan.places,
                SHRINKS=plan.growth < math.inf,
                **plan.constants,
            )
        return None, share_sums, None, sums.sum(0)


def try_out(device: torch.device) -> None:
    """Compile and launch the smallest kernel; raises whatever keeps kernels from running on a device."""
    row = torch.ones(NARROW, NARROW, device=device)
    with torch.cuda.device_of(row):
        kernels.clear[(1,)](row, NARROW, CHANNELS=NARROW, BLOCK=NARROW, PLACES=NARROW)


def _n_programs(share: Tensor) -> int:
    """Return how many programs roll out the mazes of a (B, ...) share, one after the other."""
    if share.is_cpu:
        return min(len(share), ON_CPU)
    return min(len(share), PROGRAMS * torch.cuda.get_device_properties(share.device).multi_processor_count)
