"""Rollouts that visit only the weights that are not zero, without gradients on the CPU.

Under a dense convolution, 1 of 70 products of the diameter's exact network is not a zero. It is many times faster to
visit these weights alone.
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
"""The largest fraction of weights that are not zero with which a network is run so."""


class FewWeights:
    """Rollouts of networks of which nearly all weights are zero, such as those written by hand.

    Sums are taken in float64. So states are the network's own to the bit where its weights and activations are integers
    below 2**24, and up to rounding elsewhere.
    """

    def __init__(self) -> None:
        self._taps: WeakKeyDictionary[Policy, tuple[tuple[int, ...], Taps | None]] = WeakKeyDictionary()

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether it runs a policy that is a `Program` on (B, T, H, W) mazes here."""
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
        """Return the states that are asked for, each (B, n_returned, H, W)."""
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
        """Return the weights of a policy that are not zero; None where they are many."""
        # Weights that an optimiser or a user has changed in place have another version.
        now = tuple(number for x in (program.weight, program.bias) for number in (x.data_ptr(), x._version))
        before = self._taps.get(policy)
        if before is not None and before[0] == now:
            return before[1]
        few = bool(torch.count_nonzero(program.weight) <= FEW * program.weight.numel())
        found = taps(program.kernel.detach(), program.bias.detach()) if few else None
        self._taps[policy] = now, found
        return found
