"""Networks of few weights, such as those that are written by hand, run over these weights alone.

Under a dense convolution, 1 of 70 products of the diameter's network is not a zero: on a CPU this is many times faster.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..handcoded.weight_table import convolve, taps
from ..policy import Policy

FEW = 0.05
"""The largest fraction of weights that are not zero with which a network is run so."""


class SparseNCA(Policy):
    """An `NCA` of shared weights, without gradients, on the CPU.

    Sums are taken in float64, so that states are the network's own to the bit where its weights and activations are
    integers below 2**24, and up to rounding elsewhere.

    Args:
        model: an `NCA` that sees the maze at every iteration, and ends no episode without a ReLU.
        kernel: its (C, T + C, k, k) weights.
        bias: its (C,) biases.
        bounded: its function from a convolution to the state after an iteration.
        check_precision: its function that refuses states of a dtype in which it would not be exact.
    """

    uses_step = False
    gains_from_threads = False

    def __init__(
        self,
        model: Policy,
        kernel: Tensor,
        bias: Tensor,
        bounded: Callable[[Tensor], Tensor],
        check_precision: Callable[[Tensor], None],
    ) -> None:
        super().__init__(model.task, model.n_tiles, model.channel_names)
        self.promises, self.draws = model.promises, model.draws
        self._taps, self._bounded, self._check_precision = taps(kernel, bias), bounded, check_precision

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the state after one iteration, (B, C, H, W).

        Raises:
            ValueError: the same errors as from `NCA.update`.
        """
        self._check_precision(state)
        return self._bounded(convolve(maze, state.clamp(min=0), self._taps))


def has_few_weights(weight: Tensor) -> bool:
    """Return whether enough of the weights are zero that a `SparseNCA` is faster."""
    return bool(torch.count_nonzero(weight) <= FEW * weight.numel())
