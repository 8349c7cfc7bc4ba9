"""The engines that run rollouts, in order of preference: the first engine that supports a policy and its mazes is used.

On the CPU, machine code runs policies that have a `Program`, and PyTorch runs all others. On a GPU, PyTorch runs every
policy. Within `with preferring(STEPPING)`, rollouts equal stepping an environment bit for bit. You can add an engine of
your own to `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from torch import Tensor

from ..policies.policy import Policy
from .machine_code import MachineCode
from .pytorch import PyTorch, RolloutRequest, Stepping


class Engine(Protocol):
    """Protocol of an engine, which runs rollouts."""

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether the engine can run a policy on (B, T, H, W) mazes.

        This may depend on dtype and device of the mazes, on autocast, and on whether mazes or the (B, C, H, W) first
        state need gradients. The state is None if the rollout starts from zeros.
        """

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: RolloutRequest) -> list[Tensor]:
        """Return the requested states, each (B, n_returned, H, W).

        Args:
            policy: the policy to iterate.
            maze: (B, T, H, W) floats.
            state: (B, C, H, W), the first state, or None for zeros.
            request: which states to return, and the options of the rollout.
        """


MACHINE_CODE, PYTORCH, STEPPING = MachineCode(), PyTorch(), Stepping()
ENGINES: list[Engine] = [MACHINE_CODE, PYTORCH]
"""The engines in order of preference; the last supports every policy."""
_PREFERRED: ContextVar[tuple[Engine, ...]] = ContextVar("_PREFERRED", default=())
"""Engines that are tried before `ENGINES`; the engine of the innermost block comes first."""


def engine_for(policy: Policy, maze: Tensor, state: Tensor | None = None) -> Engine:
    """Return the first engine that supports a policy on (B, T, H, W) mazes, from a state or from zeros.

    Engines from surrounding `preferring` blocks are tried first, then `ENGINES`.
    """
    return next(engine for engine in (*_PREFERRED.get(), *ENGINES) if engine.supports(policy, maze, state))


@contextmanager
def preferring(engine: Engine) -> Iterator[None]:
    """Use an engine for every rollout that it supports while the block runs, in this thread or task alone."""
    before = _PREFERRED.set((engine, *_PREFERRED.get()))
    try:
        yield
    finally:
        _PREFERRED.reset(before)
