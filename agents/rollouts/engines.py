"""The engines that run rollouts, in order of preference: the first that supports a policy and its mazes runs it.

On the CPU that is machine code for policies that are a `Program`, and PyTorch for all others; on a GPU it is PyTorch.
Recordings as CUDA graphs wait for tests on a GPU: `with preferring(RECORDED)` asks for them. What equals stepping the
environments bit for bit runs `with preferring(STEPPING)`. An engine of your own may join `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from torch import Tensor

from ..policy import Policy
from .few_weights import FewWeights
from .machine_code import MachineCode
from .pytorch import PyTorch, Request, Stepping
from .recording import Recorded


class Engine(Protocol):
    """One way to run rollouts."""

    def supports(self, policy: Policy, maze: Tensor, state: Tensor | None) -> bool:
        """Return whether it runs a policy on (B, T, H, W) mazes here.

        That depends on their dtype, the present autocast, and whether maze or state, (B, C, H, W), need gradients.
        """

    def __call__(self, policy: Policy, maze: Tensor, state: Tensor | None, request: Request) -> list[Tensor]:
        """Return the states that are asked for, each (B, n_returned, H, W).

        Args:
            policy: the policy to iterate.
            maze: (B, T, H, W) floats.
            state: (B, C, H, W), the first state; None for zeros.
            request: what is asked for.
        """


FEW_WEIGHTS, MACHINE_CODE, PYTORCH, STEPPING, RECORDED = FewWeights(), MachineCode(), PyTorch(), Stepping(), Recorded()
ENGINES: list[Engine] = [FEW_WEIGHTS, MACHINE_CODE, PYTORCH]
"""The engines in order of preference; the last supports every policy."""


def engine_for(policy: Policy, maze: Tensor, state: Tensor | None = None) -> Engine:
    """Return the first of `ENGINES` that supports a policy on (B, T, H, W) mazes, from a state or from zeros."""
    return next(engine for engine in ENGINES if engine.supports(policy, maze, state))


@contextmanager
def preferring(engine: Engine) -> Iterator[None]:
    """Let an engine run all that it supports while the block runs."""
    ENGINES.insert(0, engine)
    try:
        yield
    finally:
        ENGINES.remove(engine)
