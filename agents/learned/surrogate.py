"""ReLUs that let gradients through where a ReLU lets none: exact forwards, another derivative backwards.

The flood of a hand-written network (`exact_weights`) stays on the flat parts of its ReLUs, where gradients are zero,
and the rest on their kinks. Pass one of these objects as an `NCA`'s `activation`, or set it at any time; outputs stay
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class LeakyGradient:
    """relu(x), with the derivative of a leaky ReLU: 1 above 0, `slope` elsewhere.

    Raises:
        ValueError: a slope outside [0, 1].
    """

    slope: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.slope <= 1:
            raise ValueError(f"slope must be from 0 to 1, got {self.slope}")

    def __call__(self, x: Tensor) -> Tensor:
        """Apply to a tensor of any shape."""
        return _straight_through(torch.relu(x), F.leaky_relu(x, self.slope))


@dataclass(frozen=True)
class SmoothGradient:
    """relu(x), with the derivative of a softplus: sigmoid(x / width).

    Raises:
        ValueError: a width that is not positive and finite.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.width < float("inf"):
            raise ValueError(f"width must be positive and finite, got {self.width}")

    def __call__(self, x: Tensor) -> Tensor:
        """Apply to a tensor of any shape."""
        return _straight_through(torch.relu(x), self.width * F.softplus(x / self.width))


def _straight_through(forwards: Tensor, backwards: Tensor) -> Tensor:
    """Return the values of one tensor, to the bit, with the gradient of another."""
    return forwards.detach() + (backwards - backwards.detach())
