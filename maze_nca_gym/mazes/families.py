"""Test and validation sets by name, so that two people measure on the same levels, and training sees none of them.

A set's name is its family and size, such as "random-16" or "perfect-31". The set is seeded by its name alone, so a set
of m levels contains the first m levels of every larger set of that name. The diameter's sets are the shortest path's
sets without sources and targets. Only a change of NumPy's random streams could change the levels of a name, and the
tests would detect the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.generation import check_size, find_generator, generate
from maze_nca_gym.mazes.levels import LevelSet, Tiles, level_hashes
from maze_nca_gym.mazes.tasks import Task, find_task
from maze_nca_gym.support.names import Registry, is_integer
from maze_nca_gym.support.options import ReadOnly

CHUNK = 256
"""Largest number of levels drawn from one seed."""
CHUNK_TILES = CHUNK * 32 * 32
"""Largest number of inner tiles in a chunk: from size 33 on, a chunk has fewer levels."""
LEAST_SIZE = 4
"""Smallest inner size for which every family has levels; sets exist from this size on."""
CHUNKS = {"test": 32, "validation": 4}
"""Number of chunks in each kind of set: 8,192 test and 1,024 validation levels up to size 32, 2,048 and 256 at size 64,
768 and 96 at size 101."""


@dataclass(frozen=True)
class Family:
    """A source of the levels of a set.

    Attributes:
        generator: one of `generation.GENERATORS`.
        variants: alternatives for the generator's options; level i has the variant at index i modulo their number.
        stands_for: a description of the levels, in one line.
    """

    generator: str
    stands_for: str
    variants: tuple[Mapping[str, Any], ...] = ({},)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", tuple(map(ReadOnly, self.variants)))


_OWN = {
    "random": Family(
        "random",
        "the paper's mazes: short paths, many ties, much of the map out of reach",
        ({"wall_probability": 0.5},),
    ),
    "perfect": Family("perfect", "the longest paths, one way only, few and long dead ends"),
    "kruskal": Family("kruskal", "one way only, many short dead ends"),
    "loops": Family("loops", "long paths with several ways round, of different lengths", ({"loop_fraction": 0.1},)),
    "rooms": Family("rooms", "open space, hence ties, between narrow doors", ({"largest_room": 5},)),
    "caves": Family("caves", "wide irregular space", ({"wall_probability": 0.45, "smoothing": 4},)),
    "sparse": Family(
        "random",
        "from the paper's mazes to nearly empty maps, where ties are everywhere",
        tuple({"wall_probability": p} for p in (0.2, 0.3, 0.4, 0.5)),
    ),
}
"""The families of this package by name. All options are written out, so that a generator's new default would not change
a family."""


def register_family(name: str, family: Family) -> Family:
    """Register a family of your own, so that test and validation sets exist under its name; return it.

    >>> register_family("dense", Family("random", "walls nearly everywhere", ({"wall_probability": 0.55},)))

    Raises:
        ValueError: the name of a family of this package, or a family of which no levels can be generated.
    """
    return FAMILIES.register(name, family)


def _try_out(name: str, family: Family) -> None:
    if not isinstance(family, Family):
        raise ValueError(f"a Family is expected, got {family!r}")
    if len(family.variants) not in (1, 2, 4):  # they divide every chunk evenly
        raise ValueError(f"the family {name} must have 1, 2 or 4 variants, got {len(family.variants)}")
    for options in family.variants:
        generate(np.random.default_rng(0), 1, 12, family.generator, **options)


FAMILIES: Registry[Family] = Registry("family of levels", _OWN, _try_out)
"""The families by name."""


def test_levels(family: str, size: int, task: str | Task, n: int | None = None) -> LevelSet:  # noqa: PT028
    """Return the first `n` levels of the test set "<family>-<size>", by default all: see `most_levels`.

    Args:
        family: one of `FAMILIES`.
        size: inner size; a border of one wall tile is added.
        task: a task, or its name in `tasks.TASKS`; "diameter" has the same mazes without sources and targets.
        n: the number of levels, or None for all.

    Raises:
        ValueError: an unknown family or task, a size that the generator cannot fill, or more levels than the set has.
    """
    return named_set("test", family, FAMILIES.find(family), size, task, n)


def validation_levels(family: str, size: int, task: str | Task, n: int | None = None) -> LevelSet:
    """Return the first levels of a validation set, for choices during training; the arguments are the same as for
    `test_levels`."""
    return named_set("validation", family, FAMILIES.find(family), size, task, n)


test_levels.__test__ = False  # type: ignore[attr-defined] # pytest takes every function of such a name for a test


def find_test_set(name: str) -> tuple[str, int] | None:
    """Return the family and size in the name of a test set, such as "perfect-31", or None for any other name."""
    family, _, size = name.rpartition("-")
    return (family, int(size)) if family in FAMILIES and re.fullmatch(r"[1-9]\d{0,3}", size) else None


def most_levels(size: int, kind: str = "test") -> int:
    """Return the number of levels in a "test" or "validation" set of a size; from size 32 on, sets have about equally
    many tiles."""
    return CHUNKS[kind] * _chunk_length(size)


def _chunk_length(size: int) -> int:
    """Return the number of levels in a chunk, a multiple of four so that variants divide it evenly."""
    rows, cols = check_size(size)
    return max(4, min(CHUNK, CHUNK_TILES // (rows * cols)) // 4 * 4)


def named_set(kind: str, called: str, family: Family, size: int, task: str | Task, n: int | None = None) -> LevelSet:
    """Return the first `n` levels of the "test" or "validation" set of a family.

    Args:
        kind: "test" or "validation".
        called: the name of the family in the name of the set.
        family: the family.
        size: inner size.
        task: a task, or its name.
        n: the number of levels, or None for all.

    Raises:
        ValueError: a size that the generator cannot fill, or more levels than the set has.
    """
    task = find_task(task)
    if not is_integer(size, 2):
        raise ValueError(f"a named set's size must be an integer >= 2, got {size!r}")
    name = f"{called}-{size}"
    n = number_of(f"the {kind} set {name}", "levels", most_levels(size, kind), n)
    # Draw whole chunks and cut off the rest, so that a set of m levels is the first m of any larger one. In a chunk the
    # variants take turns, and each has its own seed.
    length, chunks = _chunk_length(size), []
    generators = [find_generator(family.generator, options) for options in family.variants]
    for chunk in range(-(-n // length)):
        parts = []
        for variant, (generator, options) in enumerate(zip(generators, family.variants, strict=True)):
            rng = np.random.default_rng(named_seed(f"{kind} {name}", chunk, variant))
            tiles = generator(rng, length // len(generators), size, endpoints=task.has_endpoints, **options)
            parts.append(task.marked(rng, tiles))
        chunks.append(np.stack(parts, axis=1).reshape(length, *parts[0].shape[1:]))
    config = {"set": kind, "name": name, "family": called, "size": size, "task": task.name, "n": n}
    return LevelSet(np.concatenate(chunks)[:n], config)


def number_of(owner: str, things: str, most: int, n: int | None) -> int:
    """Return the number of items to take from a set: `n`, or `most`, the number of all items, if `n` is None.

    Raises:
        ValueError: `n` is not from 1 to `most`; the message names the set (`owner`) and its items (`things`).
    """
    n = most if n is None else n
    if not is_integer(n, 1) or n > most:
        raise ValueError(f"{owner} has {most:,} {things}: n must be from 1 to {most}, got {n!r}")
    return n


def named_seed(name: str, *indices: int) -> np.random.SeedSequence:
    """Return a seed made from a text. It has more than a hundred bits, so no seed of a training ever equals it."""
    return np.random.SeedSequence(int.from_bytes(f"maze_nca_gym {name}".encode(), "little"), spawn_key=indices)


def reserved_hashes(sets: Iterable[LevelSet]) -> NDArray[np.uint64]:
    """Return the sorted, distinct hashes of all levels in the sets, (K,) uint64, for `is_reserved`."""
    hashes = [level_hashes(levels.tiles) for levels in sets]
    return np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)


def is_reserved(tiles: Tiles, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of (N, H, W) levels are in the hashed sets, (N,) bool.

    A turned or mirrored copy of a reserved level is another level, and is not reserved.

    Args:
        tiles: (N, H, W) levels in the form of the task, borders included.
        hashes: hashes from `reserved_hashes`, of sets of the same task.
    """
    wanted = level_hashes(tiles)
    if not len(hashes):
        return np.zeros(len(wanted), np.bool_)
    places = np.searchsorted(hashes, wanted)  # the length for a hash larger than all, which matches none
    return hashes[np.minimum(places, len(hashes) - 1)] == wanted
