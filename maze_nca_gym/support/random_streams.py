"""Random draws that depend only on a seed and an index, never on earlier draws.

`rng_for` makes a generator from a seed, a purpose and a count, such as the number of the update. Therefore a resumed
run draws the same numbers as an uninterrupted run, although no state of a generator is saved, and levels can be made
ahead in any order. `words` and `scramble` are SplitMix64 on arrays, the same on every platform: Steele, Lea, Flood,
*Fast Splittable Pseudorandom Number Generators* (2014).
"""

from __future__ import annotations

import zlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""The difference between one state of SplitMix64 and the next."""
_FIRST, _SECOND = (np.uint64(c) for c in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

_30, _27, _31 = (np.uint64(bits) for bits in (30, 27, 31))


def scramble(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply SplitMix64's finaliser to (...) uint64, in place, and return the array.

    The finaliser is a bijection in which each bit affects about half of all bits.
    """
    numbers ^= numbers >> _30
    numbers *= _FIRST
    numbers ^= numbers >> _27
    numbers *= _SECOND
    numbers ^= numbers >> _31
    return numbers


def words(seeds: NDArray[np.int64], start: int, n: int) -> NDArray[np.uint64]:
    """Return n random numbers for every seed, from the `start`-th number on: (S, n) uint64 for (S,) int64 seeds.

    Seeds are scrambled first; otherwise neighbouring seeds would share most of their numbers.
    """
    states = scramble(seeds.astype(np.uint64))[:, None] + np.arange(start + 1, start + n + 1, dtype=np.uint64) * GAMMA
    return scramble(states)


def check_rng(rng: Any) -> None:
    """Check a source of randomness.

    Raises:
        ValueError: the value is not a `numpy.random.Generator`.
    """
    if not isinstance(rng, np.random.Generator):
        kind = rng.__name__ if isinstance(rng, (type, ModuleType)) else type(rng).__name__
        raise ValueError(f"rng must be a numpy.random.Generator, got {kind}; see numpy.random.default_rng")


def rng_for(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """Return a generator that depends only on a seed, a purpose and counts.

    For example, `rng_for(seed, "levels", update)` draws the levels of an update of a training.
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *indices])


def torch_rng_for(seed: int, purpose: str, *indices: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a torch generator on a device that depends only on a seed, a purpose and counts; see `rng_for`."""
    import torch  # importing the core must not load it

    return torch.Generator(device).manual_seed(int(rng_for(seed, purpose, *indices).integers(2**63)))
