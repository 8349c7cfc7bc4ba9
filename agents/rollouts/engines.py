"""The engines that run rollouts, in order of preference: the first that supports a policy and its mazes is used.

On the CPU that is machine code for policies that are a `Program`, and PyTorch for all others. On a GPU it is PyTorch.
For rollouts that equal stepping an environment bit for bit, use `with preferring(STEPPING)`. You can add an engine of
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
    """One way to run rollouts."""

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
"""Engines that are tried before these, the innermost block's first."""


def engine_for(policy: Policy, maze: Tensor, state: Tensor | None = None) -> Engine:
    """Return the first engine that supports a policy on (B, T, H, W) mazes, from a state or from zeros: engines that
    a surrounding `preferring` names come first, then `ENGINES`."""
    return next(engine for engine in (*_PREFERRED.get(), *ENGINES) if engine.supports(policy, maze, state))


@contextmanager
def preferring(engine: Engine) -> Iterator[None]:
    """Use an engine for everything that it supports while the block runs, in this thread or task alone."""
    before = _PREFERRED.set((engine, *_PREFERRED.get()))
    try:
        yield
    finally:
        _PREFERRED.reset(before)
