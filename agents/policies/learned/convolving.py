"""How an exact `NCA` computes its convolutions.

A certificate covers float32 sums in any order (`compiling.certificate`). It does not cover TF32 and bfloat16, which
also round the inputs, nor fast convolutions (Winograd), which transform them. It covers float64, which rounds less,
and to which TF32, autocast and these transforms do not apply.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

FLOAT32_BITS = 32


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
    """Return a convolution of (B, C, H, W) values in their dtype, computed in float64 if float32 might round more."""
    if not may_round_more(values):
        return F.conv2d(values, kernel, bias, padding=padding)
    bias = None if bias is None else bias.double()
    return F.conv2d(values.double(), kernel.double(), bias, padding=padding).to(values.dtype)
