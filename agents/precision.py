"""Number formats on a GPU, where a product of float32 matrices need not be one.

Its matrix units have a faster format, TF32, which rounds the factors to 11 bits. PyTorch uses it for convolutions by
default. No proof covers it, so exact policies run without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Let convolutions and matrix products of float32 on GPUs use TF32 within the block, or forbid it.

    After the block the settings of PyTorch are as before. On a CPU they mean nothing.
    """
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = allowed
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before
