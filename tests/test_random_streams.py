"""The generator on arrays compared with the published algorithm in plain integers."""

from __future__ import annotations

import zlib

import numpy as np
from tables import for_each

from maze_nca_gym.support import random_streams
from maze_nca_gym.support.random_streams import scramble, words

MASK = 2**64 - 1


def plainly_scrambled(number: int) -> int:
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & MASK
    return number ^ number >> 31


def test_the_published_stream_of_seed_0() -> None:
    """The finaliser maps 0 to 0, so seed 0 starts the generator at 0."""
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert words(np.array([0]), 0, 4).tolist() == [expected]


@for_each("seed", [1, 2, 12345, 2**63 - 1])
def test_streams_of_other_seeds(seed: int) -> None:
    start = plainly_scrambled(seed)
    expected = [plainly_scrambled((start + i * 0x9E3779B97F4A7C15) & MASK) for i in range(1, 8)]
    seeds = np.array([7, seed])
    assert words(seeds, 0, 7)[1].tolist() == expected
    assert words(seeds, 3, 4)[1].tolist() == expected[3:]


def test_scrambling_works_in_place() -> None:
    numbers = np.arange(5, dtype=np.uint64)
    assert scramble(numbers) is numbers
    assert numbers.tolist() == [plainly_scrambled(i) for i in range(5)]


def test_a_generator_depends_only_on_seed_purpose_and_indices() -> None:
    first = random_streams.rng_for(3, "levels", 5).integers(2**62)
    assert first == np.random.default_rng([3, zlib.crc32(b"levels"), 5]).integers(2**62)
    others = [(4, "levels", 5), (3, "pool", 5), (3, "levels", 6), (3, "levels")]
    assert first not in [random_streams.rng_for(*other).integers(2**62) for other in others]
