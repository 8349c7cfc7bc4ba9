"""One iteration of a policy as data, from which machine code and exported files are made."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

RELU = "relu"
"""Name of the activations of learned networks. Hand-coded automata have other activations, for which an exported file
needs a program that knows them."""


class Program(NamedTuple):
    """A convolution of the inputs and the positive part of the state, followed by activations with a name.

    Attributes:
        activation: name of the activations.
        inputs: names of the S input channels, which do not change and come before the state's channels.
        weight: (C, S + C, taps), the weights at the taps.
        bias: (C,).
        kernel_size: side k of the kernel, odd.
        taps: the positions in the kernel that have weights, numbered row by row.
        state_limit: the upper bound of a state, or None for no bound.
        n_maxima: the number of channels before the last that become their maxima over the map, while the last channel
            becomes the maximum over channels, as in `learned.NCA`; 0 for no maxima.
        pool_before_activation: whether these maxima are added to the channels before the activations, instead of
            replacing the channels after them.
        sees_inputs: whether every iteration reads the inputs, instead of only the first.
        unbounded: the step after which there is no ReLU, or None if there is no such step.
    """

    activation: str
    inputs: tuple[str, ...]
    weight: Tensor
    bias: Tensor
    kernel_size: int
    taps: tuple[int, ...]
    state_limit: float | None = None
    n_maxima: int = 0
    pool_before_activation: bool = False
    sees_inputs: bool = True
    unbounded: int | None = None

    @property
    def max_pool(self) -> bool:
        """Whether the last channels become maxima over the map and over channels, see `n_maxima`."""
        return self.n_maxima > 0

    @property
    def kernel(self) -> Tensor:
        """The kernel, (C, S + C, k, k), zero at positions without weights."""
        flat = self.weight.new_zeros(*self.weight.shape[:2], self.kernel_size**2)
        flat[:, :, list(self.taps)] = self.weight
        return flat.view(*flat.shape[:2], self.kernel_size, self.kernel_size)


def rectified(
    convolved: Tensor,
    *,
    below: bool = True,
    state_limit: float | None = None,
    n_maxima: int = 0,
    pool_before_activation: bool = False,
) -> Tensor:
    """Return the state after the activations `RELU`, (B, C, H, W) floats.

    Args:
        convolved: (B, C, H, W) floats, the output of the convolution.
        below: whether a ReLU makes 0 the lower bound of states; otherwise negative numbers remain.
        state_limit, n_maxima, pool_before_activation: the same as in `Program`.
    """
    if n_maxima and pool_before_activation:
        # the last channel but one gets its maximum over the map added, then the last the maximum over channels; of
        # several equal maxima only the first receives a gradient, as in the paper's code
        unpooled, of_map, last = convolved[:, :-2], convolved[:, -2:-1], convolved[:, -1:]
        over_map = of_map.flatten(1).max(dim=1).values if of_map.numel() else of_map.new_zeros(len(of_map))
        of_map = of_map + over_map[:, None, None, None]
        over_channels = torch.cat([unpooled, of_map, last], dim=1).max(dim=1, keepdim=True).values
        convolved = torch.cat([unpooled, of_map, last + over_channels], dim=1)
    if below:
        convolved = convolved.relu()
    if state_limit is not None:
        convolved = convolved.clamp(max=state_limit)
    if n_maxima and not pool_before_activation:  # the last ones become the maxima over the map and over channels
        unpooled, of_map = convolved[:, : -n_maxima - 1], convolved[:, -n_maxima - 1 : -1]
        over_map = of_map.amax(dim=(2, 3), keepdim=True).expand_as(of_map)
        convolved = torch.cat([unpooled, over_map, convolved.amax(dim=1, keepdim=True)], dim=1)
    return convolved
