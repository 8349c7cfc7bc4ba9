"""Benchmark sets of mazes by name: sets on which other work measures solvers, and sets of the same sizes.

Some are sets on which others report their scores: Maze-Unique and aNCA's Prim mazes, rebuilt tile for tile, and
Maze-Hard, read from its own files, of which only hashes ship, and also drawn again by the same procedure. The others
are drawn here, by the rules or in the sizes of published experiments, with seeds of their own. Published figures for
those were measured on other mazes of the same kind. All mazes have a start and a goal, here called source and target.
Training sees none of the test sets: see `held_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes import generation
from maze_nca_gym.mazes.benchmark_sets import hard, original, prim, streams, unique
from maze_nca_gym.mazes.benchmark_sets.cells import draw_mazes, from_every_tile, news_levels, rngs
from maze_nca_gym.mazes.benchmark_sets.streams import STREAM, stream_levels
from maze_nca_gym.mazes.families import FAMILIES, named_set, number_of, reserved_hashes
from maze_nca_gym.mazes.levels import LevelSet, Tiles
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.names import Registry, find


@dataclass(frozen=True, kw_only=True)
class BenchmarkSet:
    """A set of levels that are all of one size.

    Attributes:
        name: its family and size, such as "maze-unique-30", with a suffix for a variant.
        stands_for: a description of its levels, in one line.
        source: where the levels come from.
        n: number of instances, which are levels or streams of levels.
        side: rows and columns of tiles, the border included.
        draw: n -> the first n levels, (n, side, side) uint8.
        label: (N, H, W) tiles -> (N, H, W) bool, the one answer that counts as exact.
        stream: number of levels in an instance; 1 if levels are independent.
        every_tile: whether each maze gives many levels: one with its source at each tile that can reach the target.
        may_be_empty: whether some levels have no route, where the right answer is an empty one.
        for_training: whether it is meant for training, and so not for tests.
        redraws: name of the original set, whose rule this one follows; its published figures are listed beside this
            set's.
        read: folder -> levels and labels, for a set that does not ship; None if the set is drawn.
        hashes: returns the hashes of its levels in all orientations, (K,) uint64, for a test set that does not ship.
    """

    name: str
    stands_for: str
    source: str
    n: int
    side: int
    draw: Callable[[int], Tiles]
    label: Callable[[Tiles], NDArray[np.bool_]] = shortest_path
    stream: int = 1
    every_tile: bool = False
    may_be_empty: bool = False
    for_training: bool = False
    redraws: str | None = None
    read: Callable[[str | Path], tuple[Tiles, NDArray[np.bool_]]] | None = None
    hashes: Callable[[], NDArray[np.uint64]] | None = None

    def __repr__(self) -> str:
        return f"BenchmarkSet({self.name}: {self.stands_for}; {self.n:,} {'levels' if self.stream == 1 else 'streams'})"

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
        words = self.name.split("-")
        size = next(word for word in words if word.isdigit())
        family = "-".join(word for word in words if word != size)
        config = {"set": "benchmark", "name": self.name, "family": family, "size": int(size), "n": count}
        drawn = self.draw(count * self.stream)
        return LevelSet(from_every_tile(drawn) if self.every_tile else drawn, {**config, "source": self.source})


def _drawn(
    family: str,
    size: int,
    n: int,
    draw: Callable[[str, int], Tiles],
    stands_for: str,
    source: str,
    *,
    frame: int = 2,
    **options: Any,
) -> BenchmarkSet:
    """Return a set whose name seeds its mazes; they have `frame` more rows and columns than their size."""
    name = f"{family}-{size}"
    return BenchmarkSet(
        name=name, stands_for=stands_for, source=source, n=n, side=size + frame, draw=partial(draw, name), **options
    )


def _generated(generator: Callable[..., Tiles], size: int) -> Callable[[str, int], Tiles]:
    """Return a draw of the levels of a generator with a border; each has a seed of its own."""
    return lambda name, n: np.concatenate([generator(rng, 1, size) for rng in rngs(name, n)])


def _cells(size: int, root: str, loops: float = 0.0) -> Callable[[str, int], Tiles]:
    return lambda name, n: draw_mazes(rngs(name, n), (size + 1) // 2, root, loops)


def _named(name: str, draw: Callable[[str, int], Tiles]) -> Callable[[str, int], Tiles]:
    """Return a draw of the levels that a set of another name has."""
    return lambda _, n: draw(name, n)


def _refuse(name: str, n: int) -> Tiles:
    raise ValueError(f"the mazes of {name} do not ship: bench --data FOLDER reads {original.FILES}")


def _all_sets() -> Iterator[BenchmarkSet]:
    """Yield the sets in the order of lists."""
    # mazes of other papers, tile for tile
    for name, part, use in (("maze-unique-30", 1, ""), ("maze-unique-train-30", 0, "; for training")):
        yield BenchmarkSet(
            name=name,
            stands_for=f"perfect maze with a border, its only path of 100 to 140 moves{use}",
            source="EqR, arXiv 2605.21488: the same levels",
            n=unique.SPLIT,
            side=unique.SIDE,
            draw=partial(unique.split_levels, part),
            for_training=part == 0,
        )
    splits = {"test": "maze-hard-30", "train": "maze-hard-train-30"}
    for split, name in splits.items():
        yield BenchmarkSet(
            name=name,
            stands_for=f"HRM's Maze-Hard itself, its {split} mazes; needs its files (bench --data)",
            source="HRM, arXiv 2506.21734: the same levels, read from its files",
            n=original.N,
            side=hard.SIDE,
            draw=partial(_refuse, name),
            label=partial(shortest_path, order=hard.ORDER),
            for_training=split == "train",
            read=partial(original.read_original, split),
            hashes=original.held_out_hashes if split == "test" else None,
        )
    # HRM's procedure, for those who have no files of it
    for split, name in splits.items():
        rule = f"no border, 30 to 50 % walls at random, at least {hard.LEAST_MOVES[split]} moves, ties everywhere"
        yield BenchmarkSet(
            name=f"{name}-redrawn",
            stands_for=rule if split == "test" else f"{rule}; for training",
            source="procedure of Searchformer, arXiv 2402.14083, and HRM, arXiv 2506.21734; drawn here",
            n=1000,
            side=hard.SIDE,
            draw=partial(hard.hard_levels, split),
            label=partial(shortest_path, order=hard.ORDER),
            for_training=split == "train",
            redraws=name if split == "test" else None,
        )
    rule = "perfect maze with a border by randomised Prim, start in the left third, goal in the right third"
    source = "aNCA, github.com/mspitzna/NCAtorch: the same levels"
    for side in (21, 31):
        draw = partial(prim.prim_levels, side)
        yield BenchmarkSet(name=f"anca-prim-{side}", stands_for=rule, source=source, n=1000, side=side, draw=draw)
    # kinds of mazes that other papers describe, drawn by their rules
    perfect, source = "perfect maze with a border, any two tiles", "size of CTM's, arXiv 2505.05522; drawn here"
    for size, n in ((39, 1000), (99, 200)):
        yield _drawn("ctm", size, n, _generated(generation.perfect, size - 2), perfect, source, frame=0)
    rule = "perfect maze with a border, carved from its start, which is nearly always a dead end; any cell as goal"
    source = "{} of DT-Net's, arXiv 2202.05826; drawn here"
    for size, n in ((9, 1000), (13, 1000), (59, 500), (201, 100)):
        yield _drawn("dt-net-rooted", size, n, _cells(size, "start"), rule, source.format("rule"))
        like = f"dt-net-rooted-{size}"
        yield _drawn(
            "dt-net", size, n, _generated(generation.perfect, size), perfect, source.format("size"), redraws=like
        )
    free = "perfect maze with a border, any two cells, the start mostly no dead end"
    loops = "maze with a border, a tenth of the walls between cells open, any two cells"
    source = "rule of On Logical Extrapolation for Mazes, arXiv 2410.03020; drawn here"
    for size, n in ((9, 1000), (59, 500)):
        yield _drawn("dt-net-free", size, n, _cells(size, "any"), free, source)
        yield _drawn("dt-net-loops", size, n, _cells(size, "any", 0.1), loops, source)
    rule = "perfect maze with a border, any two cells, carved from a third one"
    source = "rule of NeuralSolver's, arXiv 2402.15393; drawn here"
    for size, n in ((23, 1000), (59, 500)):
        yield _drawn("1s-maze", size, n, _cells(size, "third"), rule, source)
    rule = "maze of cells, any share of its tiles open, any two ends; if its side is even, two sides have no border"
    source = "rule of GPPN's for moves to north, east, west and south, arXiv 1806.06408; drawn here"
    for side in (15, 28):
        yield _drawn("news", side, 1000, partial(news_levels, side), rule, source, frame=0)
    for side, n in ((15, 100), (28, 20)):
        rule = f"the first {n} mazes of news-{side}, each once for every tile from which there is a way to its goal, "
        levels = _named(f"news-{side}", partial(news_levels, side))
        yield _drawn("news-every", side, n, levels, f"{rule}as the start", source, frame=0, every_tile=True)
    rule, source = "random maze, half of it walls", "the paper's mazes; drawn here"
    for size, n in ((16, 1000), (32, 1000), (64, 500), (128, 200)):
        yield _drawn("paper", size, n, _generated(generation.random, size), rule, source)
    rule = (
        f"maze of cells with loops, every fourth cut in two, and then {streams.EDITS} edits of one passage in a row; "
        "no route is an empty answer"
    )
    source = "like Cleo Spiers' study, but with ends at random and another cut; drawn here"
    for size, n in ((23, 100), (101, 10)):
        edits = partial(stream_levels, (size + 1) // 2)
        yield _drawn("edits", size, n, edits, rule, source, stream=STREAM, may_be_empty=True)


BENCHMARK_SETS = {each.name: each for each in _all_sets()}
"""The sets by name."""


def list_benchmark_sets() -> list[str]:
    """Return the names of the benchmark test sets that this package generates."""
    return [name for name, each in BENCHMARK_SETS.items() if each.read is None and not each.for_training]


def find_benchmark_set(name: str) -> BenchmarkSet:
    """Return the set of that name.

    Raises:
        ValueError: unknown name; the message lists the known ones.
    """
    return find("benchmark set", name, BENCHMARK_SETS)


def held_out(size: int, task: Task, validated: bool = True) -> NDArray[np.uint64]:
    """Return hashes of the levels that training at a size must not see, (K,) uint64 for `families.is_reserved`.

    Levels that are read from files are hashed in all orientations, since training turns and mirrors levels.

    Args:
        size: inner size, see `held_out_levels`.
        task: the task.
        validated: whether validation levels are included.

    Raises:
        ValueError: a size that some generator cannot fill.
    """
    return _held_out(size, task, validated, Registry.version)


@lru_cache(maxsize=64)
def _held_out(size: int, task: Task, validated: bool, version: int) -> NDArray[np.uint64]:
    """Return the hashes for a version of the registries, in another of which a family may have other levels."""
    sets = held_out_levels([size], task)
    drawn = reserved_hashes(each for each in sets if validated or each.config["set"] != "validation")
    read = [each.hashes() for each in BENCHMARK_SETS.values() if each.hashes is not None and each.side - 2 == size]
    return np.unique(np.concatenate([drawn, *read]))


def held_out_levels(sizes: Iterable[int], task: Task) -> list[LevelSet]:
    """Return the levels that training at these sizes must not see: the families' test and validation sets, and the
    benchmark test sets that this package generates.

    Args:
        sizes: inner sizes of levels with a border; levels without one have two rows and columns more.
        task: the task; benchmark sets are of mazes with source and target.

    Raises:
        ValueError: a size that some generator cannot fill.
    """
    sizes = sorted(set(sizes))
    named = [
        named_set(kind, name, family, size, task)
        for size in sizes
        for name, family in FAMILIES.items()
        for kind in ("test", "validation")
    ]
    has_these = task.has_endpoints and task.is_plain
    tests = [BENCHMARK_SETS[name] for name in list_benchmark_sets()] if has_these else []
    return [*named, *(each.levels() for each in tests if each.side - 2 in sizes)]
