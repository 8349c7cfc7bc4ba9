"""Activations of the hand-coded automata (paper, appendix "Hand-coded NCA"), each made of ReLUs.

The paper prints step(0) = 1 and a sawtooth that ends at 1; both are slips, since with them an empty channel
switches itself on. What it does with them, and its prose, ask for the functions here.
"""

from __future__ import annotations

import torch
from torch import Tensor


def step(x: Tensor) -> Tensor:
    """Return relu(x) - relu(x - 1) of (...) x in one pass: 0 up to 0, 1 from 1 on, linear between."""
    return x.clamp(0, 1)


def sawtooth(x: Tensor, peak: float) -> Tensor:
    """Return relu(1 - relu(x - peak) - relu(peak - x)) of (...) x: 1 at the peak, 0 from a distance of 1 on."""
    return torch.relu(1 - (x - peak).abs())


def global_max(x: Tensor) -> Tensor:
    """Return the maximum over each maze, (B, C, H, W) -> (B, C, 1, 1)."""
    return x.amax(dim=(2, 3), keepdim=True)


def global_min(x: Tensor) -> Tensor:
    """Return the minimum over each maze, (B, C, H, W) -> (B, C, 1, 1)."""
    return x.amin(dim=(2, 3), keepdim=True)
