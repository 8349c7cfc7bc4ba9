"""Benchmark sets of mazes by name: sets on which other work measures solvers, and sets of the same sizes.

Three groups of sets differ in how close they are to other publications:

- The same mazes, tile for tile, on which other publications report scores. Maze-Unique and aNCA's Prim mazes are
  generated. Maze-Hard is read from its own files, because the package includes only hashes of its mazes.
- Maze-Hard, generated again by the same procedure.
- Mazes by the rules, or in the sizes, of published experiments, with this package's own seeds. The published figures
  were measured on other mazes of the same kind.

All mazes have a start and a goal, here called source and target. Training does not use mazes of the test sets, see
`held_out`.
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
    """A set of levels that all have the same size.

    Attributes:
        name: its family and size, such as "maze-unique-30", with a suffix for a variant.
        stands_for: a description of its levels, in one line.
        source: the publication or code that the levels come from, in one line.
        n: number of instances. An instance is a level, a stream of levels, or with `every_tile` a maze.
        side: number of rows and of columns, the border included.
        draw: function that returns the first n levels, (n, side, side) uint8.
        label: function of (N, H, W) tiles that returns (N, H, W) bool: the only answers that count as exact.
        stream: number of levels in an instance, or 1 if levels are independent.
        every_tile: whether each maze gives many levels: a level for each tile that can reach the target, with its
            source there.
        may_be_empty: whether some levels have no route. The correct answer is then empty.
        for_training: whether the set is meant for training, and therefore not for tests.
        redraws: name of the original set whose rule this set follows, or None. The original's published figures are
            listed beside the figures of this set.
        read: function of a folder that returns levels and labels, for a set that the package does not include, or None.
        hashes: function that returns hashes of its levels in all orientations, (K,) uint64, for a test set that the
            package does not include, or None.
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
        """Return the set with levels and labels from the files in a folder. A set without `read` is returned unchanged.

        Raises:
            ValueError: a file has another content.
            OSError: a file is missing or cannot be read.
        """
        if self.read is None:
            return self
        tiles, labels = self.read(folder)
        return replace(self, draw=lambda n: tiles[:n], label=lambda first: labels[: len(first)])

    def levels(self, n: int | None = None) -> LevelSet:
        """Return the levels of the first `n` instances, by default of all.

        Raises:
            ValueError: `n` is not from 1 to the number of instances, or the set must be read from files first.
        """
        count = number_of(f"the set {self.name}", "instances", self.n, n)
        words = self.name.split("-")
        size = next(word for word in words if word.isdigit())
        family = "-".join(word for word in words if word != size)
        config = {"set": "benchmark", "name": self.name, "family": family, "size": int(size), "n": count}
        levels = self.draw(count * self.stream)
        return LevelSet(from_every_tile(levels) if self.every_tile else levels, {**config, "source": self.source})


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
    """Return a set whose mazes are seeded by its name, and have `frame` more rows and columns than its size."""
    name = f"{family}-{size}"
    return BenchmarkSet(
        name=name, stands_for=stands_for, source=source, n=n, side=size + frame, draw=partial(draw, name), **options
    )


def _generated(generator: Callable[..., Tiles], size: int) -> Callable[[str, int], Tiles]:
    """Return a function for `_drawn` that draws levels of a generator, with a border. Each level has its own seed."""
    return lambda name, n: np.concatenate([generator(rng, 1, size) for rng in rngs(name, n)])


def _cells(size: int, root: str, loops: float = 0.0) -> Callable[[str, int], Tiles]:
    return lambda name, n: draw_mazes(rngs(name, n), (size + 1) // 2, root, loops)


def _named(name: str, draw: Callable[[str, int], Tiles]) -> Callable[[str, int], Tiles]:
    """Return a function for `_drawn` that draws the levels of the set of another name."""
    return lambda _, n: draw(name, n)


def _refuse(name: str, n: int) -> Tiles:
    raise ValueError(f"the package does not include the mazes of {name}: bench --data FOLDER reads {original.FILES}")


def _all_sets() -> Iterator[BenchmarkSet]:
    """Yield the sets in the order in which lists and tables show them."""
    # mazes of other papers, tile for tile
    for name, part, use in (("maze-unique-30", 1, ""), ("maze-unique-train-30", 0, "; for training")):
        yield BenchmarkSet(
            name=name,
            stands_for=f"perfect maze with a border, its only path of 100 to 140 moves{use}",
            source="EqR, arXiv 2605.21488; the same levels",
            n=unique.SPLIT,
            side=unique.SIDE,
            draw=partial(unique.split_levels, part),
            for_training=part == 0,
        )
    splits = {"test": "maze-hard-30", "train": "maze-hard-train-30"}
    for split, name in splits.items():
        yield BenchmarkSet(
            name=name,
            stands_for=f"the {original.N:,} {split} mazes of HRM's Maze-Hard; you need their files (bench --data)",
            source="HRM, arXiv 2506.21734; the same levels, read from its files",
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
            source="the procedure of Searchformer, arXiv 2402.14083, and HRM, arXiv 2506.21734; generated here",
            n=1000,
            side=hard.SIDE,
            draw=partial(hard.hard_levels, split),
            label=partial(shortest_path, order=hard.ORDER),
            for_training=split == "train",
            redraws=name if split == "test" else None,
        )
    rule = "perfect maze with a border by randomised Prim, start in the left third, goal in the right third"
    source = "aNCA, github.com/mspitzna/NCAtorch; the same levels"
    for side in (21, 31):
        draw = partial(prim.prim_levels, side)
        yield BenchmarkSet(name=f"anca-prim-{side}", stands_for=rule, source=source, n=1000, side=side, draw=draw)
    # kinds of mazes that other papers describe, drawn by their rules
    perfect, source = "perfect maze with a border, any two tiles", "the sizes of CTM, arXiv 2505.05522; generated here"
    for size, n in ((39, 1000), (99, 200)):
        yield _drawn("ctm", size, n, _generated(generation.perfect, size - 2), perfect, source, frame=0)
    rule = "perfect maze with a border, carved from its start, which is nearly always a dead end; any cell as goal"
    source = "the {} of DT-Net, arXiv 2202.05826; generated here"
    for size, n in ((9, 1000), (13, 1000), (59, 500), (201, 100)):
        yield _drawn("dt-net-rooted", size, n, _cells(size, "start"), rule, source.format("rule"))
        like = f"dt-net-rooted-{size}"
        yield _drawn(
            "dt-net", size, n, _generated(generation.perfect, size), perfect, source.format("sizes"), redraws=like
        )
    free = "perfect maze with a border, any two cells; most starts are not dead ends"
    loops = "maze with a border, a tenth of the walls between cells open, any two cells"
    source = "the rule of On Logical Extrapolation for Mazes, arXiv 2410.03020; generated here"
    for size, n in ((9, 1000), (59, 500)):
        yield _drawn("dt-net-free", size, n, _cells(size, "any"), free, source)
        yield _drawn("dt-net-loops", size, n, _cells(size, "any", 0.1), loops, source)
    rule = "perfect maze with a border, any two cells, carved from a third one"
    source = "the rule of NeuralSolver, arXiv 2402.15393; generated here"
    for size, n in ((23, 1000), (59, 500)):
        yield _drawn("1s-maze", size, n, _cells(size, "third"), rule, source)
    rule = (
        "maze of cells with a random share of further open tiles, any two ends; if its side is even, two sides have no "
        "border"
    )
    source = "the rule of GPPN for moves to north, east, west and south, arXiv 1806.06408; generated here"
    for side in (15, 28):
        yield _drawn("news", side, 1000, partial(news_levels, side), rule, source, frame=0)
    for side, n in ((15, 100), (28, 20)):
        rule = f"the first {n} mazes of news-{side}, each once for every tile from which there is a way to its goal, "
        levels = _named(f"news-{side}", partial(news_levels, side))
        yield _drawn("news-every", side, n, levels, f"{rule}as the start", source, frame=0, every_tile=True)
    rule, source = "random maze, half of it walls", "the paper's rule; generated here"
    for size, n in ((16, 1000), (32, 1000), (64, 500), (128, 200)):
        yield _drawn("paper", size, n, _generated(generation.random, size), rule, source)
    rule = (
        f"stream: a maze of cells with loops, every fourth cut in two, followed by {streams.EDITS} edits of one "
        "passage each; if there is no route, the answer is empty"
    )
    source = "a rule like that of Cleo Spiers' study, but with random ends and another cut; generated here"
    for size, n in ((23, 100), (101, 10)):
        edits = partial(stream_levels, (size + 1) // 2)
        yield _drawn("edits", size, n, edits, rule, source, stream=STREAM, may_be_empty=True)


BENCHMARK_SETS = {benchmark.name: benchmark for benchmark in _all_sets()}
"""The sets by name."""


def list_benchmark_sets() -> list[str]:
    """Return the names of the benchmark test sets that this package generates."""
    return [name for name, benchmark in BENCHMARK_SETS.items() if benchmark.read is None and not benchmark.for_training]


def find_benchmark_set(name: str) -> BenchmarkSet:
    """Return the benchmark set of a name.

    Raises:
        ValueError: unknown name; the message lists the known names.
    """
    return find("benchmark set", name, BENCHMARK_SETS)


def held_out(size: int, task: Task, validated: bool = True) -> NDArray[np.uint64]:
    """Return hashes of the levels that training at a size must not use, (K,) uint64 for `families.is_reserved`.

    The hashes of levels that are read from files cover all orientations, because training turns and mirrors levels.

    Args:
        size: inner size, see `held_out_levels`.
        task: the task.
        validated: whether validation levels are included.

    Raises:
        ValueError: a size for which some generator cannot make levels.
    """
    return _held_out(size, task, validated, Registry.version)


@lru_cache(maxsize=64)
def _held_out(size: int, task: Task, validated: bool, version: int) -> NDArray[np.uint64]:
    """Return the result of `held_out`. `version` is the version of the registries, because a family may have other
    levels in another version."""
    sets = held_out_levels([size], task)
    generated = reserved_hashes(level_set for level_set in sets if validated or level_set.config["set"] != "validation")
    read = [test.hashes() for test in BENCHMARK_SETS.values() if test.hashes is not None and test.side - 2 == size]
    return np.unique(np.concatenate([generated, *read]))


def held_out_levels(sizes: Iterable[int], task: Task) -> list[LevelSet]:
    """Return the levels that training at some sizes must not use: the test and validation sets of all families, and the
    benchmark test sets that this package generates.

    Args:
        sizes: inner sizes, without the border. Levels without a border are included if they have two more rows and
            columns than such a size.
        task: the task. Benchmark sets are included only if its levels have a source and a target and no other marks.

    Raises:
        ValueError: a size for which some generator cannot make levels.
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
    return [*named, *(test.levels() for test in tests if test.side - 2 in sizes)]
