"""Random draws of a training run: each belongs to a seed, a purpose and an update, so none depends on those before.

A run that resumes draws what the uninterrupted run draws, without any state of a generator being saved, and levels can
be made ahead in any order.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch


def draws(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """A generator of its own for a purpose ("levels", "pool" ...) and what is counted, such as the update."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *indices])


def torch_draws(seed: int, purpose: str, *indices: int) -> torch.Generator:
    """The same for torch, on the CPU."""
    return torch.Generator().manual_seed(int(draws(seed, purpose, *indices).integers(2**63)))
