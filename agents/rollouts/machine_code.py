"""Rollouts in machine code on the CPU, for policies that have a `Program`."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from maze_nca_gym.envs.dynamics import STATE_LIMIT

from ..policies.policy import Policy, is_precise, program_of
from ..policies.program import RELU
from .pytorch import RolloutRequest, needs_gradients


class MachineCode:
    """Rollouts compiled by numba for the CPU: several times as fast as PyTorch, and equal up to rounding.

    Machine code computes in float32. Under autocast it multiplies in bfloat16, if the CPU has instructions for that,
    and adds in float32. Exact policies under autocast are left to PyTorch, because only the policy itself decides in
    which dtypes it stays exact. States and gradients do not depend on the number of threads. The first rollout compiles
    the code, which takes some seconds once per installation.
    """

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether machine code can run a policy on (B, T, H, W) mazes. It computes gradients of weights only."""
        low = torch.is_autocast_enabled("cpu")
        program = None if is_precise(policy) and low else program_of(policy)
        able = (
            program is not None
            and not needs_gradients(maze, state)
            and program.activation == RELU
            and not program.pool_before_activation  # where it is no faster than PyTorch
            and program.n_maxima <= 1
            and all(x.dtype == torch.float32 and x.is_cpu for x in (maze, program.weight, program.bias))
            and (not low or torch.get_autocast_dtype("cpu") == torch.bfloat16)
            and maze.numel() > 0
            and _compiles()
        )
        if able and low:
            from .fused.vectors import MULTIPLIES_PAIRS  # here, because it imports numba

            return MULTIPLIES_PAIRS
        return able

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W)."""
        from .fused.function import Plan, Unroll  # here, because they import numba
        from .fused.layout import layout

        program = program_of(policy)
        assert program is not None  # else it does not support the policy
        weight, bias = program.weight, program.bias
        form = layout(maze.shape[1], len(weight), *maze.shape[2:], program.kernel_size, program.taps)
        unbounded = -1 if program.unbounded is None else program.unbounded - request.start_step
        n_seen = request.n_steps if program.sees_inputs else int(request.start_step == 0)
        shape = form, request.keep, request.n_returned or len(weight), n_seen, unbounded
        low = torch.is_autocast_enabled("cpu")
        limit = STATE_LIMIT if program.state_limit is None else program.state_limit
        plan = Plan(*shape, program.max_pool, limit, request.growth, low)
        if not torch.is_grad_enabled():  # else `needs_input_grad` within the function would be true for parameters
            weight, bias = weight.detach(), bias.detach()
        return list(Unroll.apply(plan, maze, state, weight, bias))


@cache
def _compiles() -> bool:
    try:
        from .fused.function import compiled  # here, because importing numba takes a third of a second

        compiled()
    except Exception:  # whatever the reason is: PyTorch runs everything that this engine does not
        return False
    return True
