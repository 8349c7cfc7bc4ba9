"""How an `NCA` computes its convolutions: exactly where it has to, and over few weights where most are zero.

A certificate bounds float32 sums in any order (`hinting.certificate`). TF32 and bfloat16 round the inputs as well, and
fast convolutions (Winograd) transform them, so neither is covered. float64 is: it rounds less, and neither TF32 nor
autocast nor these transforms apply to it.

Under a dense convolution, 1 of 70 products of the diameter's exact network is not a zero. On a CPU it is many times
faster to visit these weights alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..handcoded.weight_table import convolve, taps
from ..policy import Policy

FLOAT32_BITS = 32
FEW = 0.05
"""The largest fraction of weights that are not zero with which a network is run so."""


def computing_dtype(values: Tensor) -> torch.dtype:
    """Return the dtype in which PyTorch convolves (...) values: autocast replaces all but float64."""
    kind = values.device.type
    if values.dtype == torch.float64 or not torch.amp.is_autocast_available(kind):
        return values.dtype
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else values.dtype


def is_low(dtype: torch.dtype) -> bool:
    """Return whether a floating dtype rounds more than float32."""
    return torch.finfo(dtype).bits < FLOAT32_BITS


def may_round_more(values: Tensor) -> bool:
    """Return whether a convolution of (...) float32 values may round more than float32 sums do.

    On a GPU it may, by TF32, which is on by default, or by a fast convolution. On a CPU only a setting makes it so.
    """
    setting = getattr(torch.backends.mkldnn, "conv", None)  # since PyTorch 2.9
    return not values.is_cpu or (setting is not None and setting.fp32_precision not in ("none", "ieee"))


def convolve_exactly(values: Tensor, kernel: Tensor, bias: Tensor | None, padding: int) -> Tensor:
    """Return the convolution of (B, C, H, W) values in their dtype, computed in float64 where float32 sums are not
    certain."""
    if not may_round_more(values):
        return F.conv2d(values, kernel, bias, padding=padding)
    bias = None if bias is None else bias.double()
    return F.conv2d(values.double(), kernel.double(), bias, padding=padding).to(values.dtype)


class SparseNCA(Policy):
    """An `NCA` of shared weights, without gradients, on the CPU.

    Sums are taken in float64. So states are the network's own to the bit where its weights and activations are integers
    below 2**24, and up to rounding elsewhere.

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
        self.guarantees, self.output = model.guarantees, model.output
        self._taps, self._bounded, self._check_precision = taps(kernel, bias), bounded, check_precision

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the state after one iteration, (B, C, H, W) floats.

        Raises:
            ValueError: the same errors as from `NCA.update`.
        """
        self._check_precision(state)
        return self._bounded(convolve(maze, state.clamp(min=0), self._taps))


def has_few_weights(weight: Tensor) -> bool:
    """Return whether enough of the (...) float weights are zero that a `SparseNCA` is faster."""
    return bool(torch.count_nonzero(weight) <= FEW * weight.numel())
