"""Gradients that do not grow on their way back through a rollout in PyTorch: what `kernels` does in machine code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Shrinking:
    """Scaling of gradients of states.

    Attributes:
        growth: the largest growth of a state's gradient over that of the next state, as a factor; infinity means no
            limit.
        most: the largest number in a state; there, and at 0, gradients stop and do not count.
    """

    growth: float
    most: float

    def before(self, state: Tensor) -> Tensor:
        """Return what the next iteration should read in place of a (B, C, H, W) state."""
        if self.growth == math.inf or not state.requires_grad:
            return state
        seen = state.view_as(state)
        seen.register_hook(lambda gradient: self._shrunk(gradient, state))
        return seen

    def after(self, state: Tensor) -> None:
        """Take note of the gradient of a (B, C, H, W) state, from the next one and from losses."""
        if self.growth < math.inf and state.requires_grad:
            state.register_hook(lambda gradient: self._note(gradient, state))

    def _note(self, gradient: Tensor, state: Tensor) -> None:
        self._longest = self.growth * self._lengths(gradient, state)

    def _shrunk(self, gradient: Tensor, state: Tensor) -> Tensor:
        lengths = self._lengths(gradient, state)
        return gradient * torch.where(lengths > self._longest, self._longest / lengths, 1)

    def _lengths(self, gradient: Tensor, state: Tensor) -> Tensor:
        """Return (B, 1, 1, 1) norms."""
        inside = (state != 0) & (state < self.most)
        return (gradient * inside).square().sum(dim=(1, 2, 3), keepdim=True).sqrt()
