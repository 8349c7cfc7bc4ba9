"""Rollouts on the CPU that compute only with non-zero weights, without gradients.

In a dense convolution with the exact network of the diameter, 69 of 70 products are zero. Skipping them is many times
faster.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from maze_nca_gym.dynamics import STATE_LIMIT

from ..handcoded.weight_table import Taps, convolve, taps
from ..policy import Policy
from ..program import RELU, Program, rectified
from .pytorch import Request

FEW = 0.05
"""Largest fraction of non-zero weights with which this engine runs a network."""


class FewWeights:
    """Rollouts of networks with few non-zero weights, such as those written by hand.

    Sums are computed in float64. So states equal the network's own bit for bit if its weights and activations are
    integers below 2**24, and up to rounding otherwise.
    """

    def __init__(self) -> None:
        self._taps: WeakKeyDictionary[Policy, tuple[tuple[int, ...], Taps | None]] = WeakKeyDictionary()

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether it can run a policy on (B, T, H, W) mazes; the policy must be a `Program`."""
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return False
        program = policy.program()
        return (
            program is not None
            and (program.activation, program.sees_inputs, program.unbounded) == (RELU, True, None)
            and all(x.dtype == torch.float32 and x.is_cpu for x in (maze, program.weight))
            and self._taps_of(policy, program) is not None
        )

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W)."""
        program = policy.program()
        assert program is not None  # else it does not support the policy
        few = self._taps_of(policy, program)
        assert few is not None
        state, kept = maze.new_zeros(len(maze), policy.n_channels, *maze.shape[2:]) if state is None else state, []
        for n_steps in range(1, request.n_steps + 1):
            convolved = convolve(maze, state.clamp(min=0), few)
            state = rectified(
                convolved,
                state_limit=program.state_limit,
                max_pool=program.max_pool,
                pool_before_activation=program.pool_before_activation,
            ).clamp(-STATE_LIMIT, STATE_LIMIT)
            if n_steps in request.keep:
                kept.append(state[:, : request.n_returned])
        return kept

    def _taps_of(self, policy: Policy, program: Program) -> Taps | None:
        """Return a policy's non-zero weights; None if they are more than `FEW`."""
        # A tensor's version changes when an optimiser or a user changes its numbers in place.
        now = tuple(number for x in (program.weight, program.bias) for number in (x.data_ptr(), x._version))
        before = self._taps.get(policy)
        if before is not None and before[0] == now:
            return before[1]
        few = bool(torch.count_nonzero(program.weight) <= FEW * program.weight.numel())
        found = taps(program.kernel.detach(), program.bias.detach()) if few else None
        self._taps[policy] = now, found
        return found
