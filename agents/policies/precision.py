"""The precision of float32 products on a GPU.

The matrix units of GPUs can compute them in TF32, which is faster and rounds the factors to 11 bits. PyTorch does so in
convolutions by default. The proofs of exactness do not cover TF32, so exact policies run without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 in float32 convolutions and matrix products on GPUs, within the block or the function.

    PyTorch's settings are restored afterwards. On a CPU they have no effect.
    """
    backends: Any = torch.backends
    wanted: Any
    general = getattr(backends, "fp32_precision", None)
    if general is None:  # PyTorch before 2.9
        name, wanted, parts = "allow_tf32", allowed, [backends.cudnn, backends.cuda.matmul]
    else:
        name, wanted, cudnn = "fp32_precision", "tf32" if allowed else "ieee", backends.cudnn
        parts = [cudnn, cudnn.conv, cudnn.rnn, backends.cuda.matmul]
        backends.fp32_precision = "none"  # without a general setting, that of cuDNN can be read
    # The first part decides for those that were not set themselves. What they then show cannot be set: PyTorch has a
    # default for them that no setting restores. So only those that still differ are set.
    changed = []
    for part in parts:
        if (before := getattr(part, name)) != wanted:
            changed.append((part, before))
            setattr(part, name, wanted)
    if general is not None:
        backends.fp32_precision = general
    try:
        yield
    finally:
        for part, before in reversed(changed):
            setattr(part, name, before)
