"""Rollouts that run from the first step to the last in machine code, with gradients: several times faster on a CPU.

`unroll` takes every policy and runs those that `supported` accepts that way, the others in PyTorch.
"""

from .unrolling import supported, unroll

__all__ = ["supported", "unroll"]
