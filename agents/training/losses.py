"""What training minimises: losses of the path channel against the exact solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..policy import PATH

TINY = 1e-8
"""Keeps a loss of zero from being divided by zero; far below what a rollout with one wrong tile loses."""
STEEPNESS = 8.0
"""Of the sigmoid through which cross-entropy reads the path: it crosses 0.5 where rounding does."""


def mse(path: Tensor, target: Tensor) -> Tensor:
    """Mean squared error of (B, H, W) paths, not clipped, so that what overshoots is pulled back (paper, eq. for L)."""
    return F.mse_loss(path, target)


def cross_entropy(path: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy of (B, H, W) paths with sigmoid(8 (path - 0.5)) as the probability of a path tile."""
    return F.binary_cross_entropy_with_logits(STEEPNESS * (path - 0.5), target)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": mse, "cross-entropy": cross_entropy}


def each(loss: str, states: Sequence[Tensor], target: Tensor) -> Tensor:
    """The loss of each of K states, (B, C, H, W), against (B, H, W) float targets, as (K,)."""
    return torch.stack([LOSSES[loss](state[:, PATH].float(), target) for state in states])


def relative(losses: Tensor, values: Tensor) -> Tensor:
    """Sum of losses, each in parts of its value: its gradient is that of the sum of their logarithms.

    An early loss stays large where paths are longer than its iterations; summed as they are, its gradient drowns that
    of the last one, which is what counts.

    Args:
        losses: (K,).
        values: (K,), what to divide by, without gradient.
    """
    return (losses / (values + TINY)).sum()


def checkpoints(loss_at: Sequence[float], n_steps: int) -> list[int]:
    """After which iterations the losses are taken: parts of `n_steps`, rounded, at least 1, ascending, each once."""
    return sorted({max(1, round(part * n_steps)) for part in loss_at})
