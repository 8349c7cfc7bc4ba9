"""Benchmark sets of mazes by name: sets on which other work measures solvers, and sets of the same sizes.

Two are the sets that recurrent reasoners are scored on: Maze-Unique, rebuilt tile for tile, and Maze-Hard, drawn again
by the same procedure and also read from its own files, which do not ship. The others are drawn here, in the sizes of
published experiments, with seeds of their own. Published figures for those sizes were measured on other mazes of the
same kind. All mazes have a start and a goal, here called source and target. Training sees none of the test sets that
are drawn: see `held_out_levels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.benchmark_sets import hard, original, streams, unique
from maze_nca_gym.families import FAMILIES, named_seed, number_of, test_levels, validation_levels
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import LevelSet, Tiles
from maze_nca_gym.names import find
from maze_nca_gym.solvers import shortest_path
from maze_nca_gym.tasks import find_task


@dataclass(frozen=True, kw_only=True)
class BenchmarkSet:
    """A set of levels that are all of one size.

    Attributes:
        name: its family and size, such as "maze-unique-30".
        stands_for: what its levels are, in one line.
        source: where the levels come from.
        n: number of instances, which are levels or streams of levels.
        side: rows and columns of tiles, the border included.
        draw: n -> the first n levels, (n, side, side) uint8.
        label: (N, H, W) tiles -> (N, H, W) bool, the one answer that counts as exact.
        stream: number of levels in an instance; 1 if levels are independent.
        for_training: whether it is meant for training, and so not for tests.
        redraws: name of the set that it is like, and whose published figures stand beside its own.
        read: folder -> levels and labels, for a set that does not ship; None if the set is drawn.
    """

    name: str
    stands_for: str
    source: str
    n: int
    side: int
    draw: Callable[[int], Tiles]
    label: Callable[[Tiles], NDArray[np.bool_]] = shortest_path
    stream: int = 1
    for_training: bool = False
    redraws: str | None = None
    read: Callable[[str | Path], tuple[Tiles, NDArray[np.bool_]]] | None = None

    def from_files(self, folder: str | Path) -> BenchmarkSet:
        """Return the set with levels and labels from the files in a folder; a set that is drawn stays as it is.

        Raises:
            ValueError: a file with another content.
            OSError: a file is missing or cannot be read.
        """
        if self.read is None:
            return self
        tiles, labels = self.read(folder)
        return replace(self, draw=lambda n: tiles[:n], label=lambda first: labels[: len(first)])

    def levels(self, n: int | None = None) -> LevelSet:
        """Return the levels of the first `n` instances, by default of all.

        Raises:
            ValueError: another number of instances than the set has, or a set that must be read from files first.
        """
        count = number_of(f"the set {self.name}", "instances", self.n, n)
        family, size = self.name.rsplit("-", 1)
        config = {"set": "benchmark", "name": self.name, "family": family, "size": int(size), "n": count}
        return LevelSet(self.draw(count * self.stream), {**config, "source": self.source})


def _drawn(name: str, generator: str, size: int, n: int) -> Tiles:
    """Return the first `n` levels of a generator with a border; each has a seed of its own."""
    rngs = (np.random.default_rng(named_seed(f"benchmark {name}", i)) for i in range(n))
    return np.concatenate([generate(rng, 1, size, generator) for rng in rngs])


def _generated(family: str, side: int, n: int, generator: str, size: int, stands_for: str, source: str) -> BenchmarkSet:
    name = f"{family}-{side}"
    draw = partial(_drawn, name, generator, size)
    return BenchmarkSet(name=name, stands_for=stands_for, source=source, n=n, side=size + 2, draw=draw)


def _original(split: str, family: str) -> BenchmarkSet:
    name = f"{family}-{hard.SIDE}"

    def refuse(n: int) -> Tiles:
        raise ValueError(f"the mazes of {name} do not ship; name the folder that has their files: bench --data FOLDER")

    return BenchmarkSet(
        name=name,
        stands_for=f"HRM's Maze-Hard itself, its {split} mazes; needs its files (bench --data)",
        source="HRM, arXiv 2506.21734: the same levels, read from its files",
        n=original.N,
        side=hard.SIDE,
        draw=refuse,
        for_training=split == "train",
        read=partial(original.read_original, split),
    )


def _streams(size: int, n: int) -> BenchmarkSet:
    return BenchmarkSet(
        name=f"edits-{size}",
        stands_for=f"a random maze and then {streams.EDITS} edits of a wall in a row, the state kept",
        source="drawn here",
        n=n,
        side=size + 2,
        draw=partial(streams.stream_levels, f"edits-{size}", size),
        stream=streams.STREAM,
    )


_UNIQUE = "perfect maze with a border, its only path of 100 to 140 moves"
_HARD = "no border, 30 to 50 % walls at random, more than 110 moves, ties everywhere"
_EQR = "EqR, arXiv 2605.21488: the same levels"
_HRM = "procedure of Searchformer, arXiv 2402.14083, and HRM, arXiv 2506.21734; drawn here"
_PERFECT = "perfect maze with a border, any two tiles"

_ALL = (
    BenchmarkSet(
        name="maze-unique-30", stands_for=_UNIQUE, source=_EQR, n=unique.SPLIT, side=30, draw=unique.test_levels
    ),
    BenchmarkSet(
        name="maze-unique-train-30",
        stands_for=f"{_UNIQUE}; for training",
        source=_EQR,
        n=unique.SPLIT,
        side=30,
        draw=unique.train_levels,
        for_training=True,
    ),
    BenchmarkSet(
        name="maze-hard-30",
        stands_for=_HARD,
        source=_HRM,
        n=1000,
        side=30,
        draw=partial(hard.hard_levels, "maze-hard-30"),
        label=hard.label_hard,
        redraws="maze-hard-original-30",
    ),
    BenchmarkSet(
        name="maze-hard-train-30",
        stands_for=f"{_HARD}; for training",
        source=_HRM,
        n=1000,
        side=30,
        draw=partial(hard.hard_levels, "maze-hard-train-30"),
        label=hard.label_hard,
        for_training=True,
    ),
    _original("test", "maze-hard-original"),
    _original("train", "maze-hard-original-train"),
    *(
        _generated("ctm", side, n, "perfect", side - 2, _PERFECT, "size of CTM's, arXiv 2505.05522; drawn here")
        for side, n in ((39, 1000), (99, 200))
    ),
    *(
        _generated("dt-net", size, n, "perfect", size, _PERFECT, "size of DT-Net's, arXiv 2202.05826; drawn here")
        for size, n in ((9, 1000), (13, 1000), (59, 500), (201, 100))
    ),
    *(
        _generated("paper", size, n, "random", size, "random maze, half of it walls", "the paper's mazes; drawn here")
        for size, n in ((16, 1000), (32, 1000), (64, 500), (128, 200))
    ),
    *(_streams(size, n) for size, n in ((12, 100), (20, 100), (101, 10))),
)
BENCHMARK_SETS = {each.name: each for each in _ALL}
"""The sets by name."""


def list_benchmark_sets(for_training: bool = False) -> list[str]:
    """Return the names of the test sets that are drawn here, or of the two sets for training."""
    drawn = {name: each for name, each in BENCHMARK_SETS.items() if each.read is None}
    return [name for name, each in drawn.items() if each.for_training == for_training]


def find_benchmark_set(name: str) -> BenchmarkSet:
    """Return the set of that name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    return find("benchmark set", name, BENCHMARK_SETS)


def held_out_levels(sizes: Iterable[int], task: str) -> list[LevelSet]:
    """Return the levels that training at these sizes must not see: the families' sets and the benchmark test sets.

    Args:
        sizes: inner sizes of levels with a border; levels without one have two rows and columns more.
        task: the task's name; benchmark sets are of mazes with source and target.

    Raises:
        ValueError: an unknown task, or a size that some generator cannot fill.
    """
    sizes = sorted(set(sizes))
    named = [
        draw(family, size, task) for size in sizes for family in FAMILIES for draw in (test_levels, validation_levels)
    ]
    tests = [BENCHMARK_SETS[name] for name in list_benchmark_sets()] if find_task(task).has_endpoints else []
    return [*named, *(each.levels() for each in tests if each.side - 2 in sizes)]
