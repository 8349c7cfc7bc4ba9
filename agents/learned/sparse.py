"""Networks of few weights, such as those that are written by hand, run over these weights alone.

Under a dense convolution, 1 of 70 products of the diameter's network is not a zero: on a CPU this is many times faster.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..handcoded.sparse import convolve, taps
from ..policy import Policy
from .nca import NCA

FEW = 0.05
"""The largest fraction of weights that are not zero with which a network is run so."""


class SparseNCA(Policy):
    """An `NCA` of shared weights, without gradients, on the CPU.

    Sums are taken in float64, so that states are the network's own to the bit where its weights and activations are
    integers below 2**24, and up to rounding elsewhere.

    Args:
        model: an `NCA` with shared weights that sees the maze at every iteration, and ends no episode without a ReLU.
    """

    uses_step = False
    gains_from_threads = False

    def __init__(self, model: NCA) -> None:
        super().__init__(model.task, model.n_tiles, model.channel_names)
        self._model = model
        self.promises, self.draws = model.promises, model.draws
        self._taps = taps(model.kernel().detach(), model.biases[0].detach())

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the state after one iteration, (B, C, H, W).

        Raises:
            ValueError: the same errors as from `NCA.update`.
        """
        self._model.check_precision(state)
        return self._model.bounded(convolve(maze, state.clamp(min=0), self._taps))


def has_few_weights(model: NCA) -> bool:
    """Return whether enough of the first kernel's weights are zero that a `SparseNCA` is faster."""
    kernel = model.weights[0]
    return bool(torch.count_nonzero(kernel) <= FEW * kernel.numel())
