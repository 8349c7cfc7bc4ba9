"""The precision of float32 products on a GPU.

The matrix units of GPUs can compute them in TF32, which is faster and rounds the factors to 11 bits. PyTorch does so in
convolutions by default. The proofs of exactness do not cover TF32, so exact policies run without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 in float32 convolutions and matrix products on GPUs, within the block or the function.

    PyTorch's settings are restored afterwards. On a CPU they have no effect.
    """
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = allowed
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before
