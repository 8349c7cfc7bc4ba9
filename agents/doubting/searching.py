"""The mazes on which a policy is tried: every small maze, then families and sizes, then levels that evolve.

Their order depends on the seed alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.small import every_maze, number_of_mazes
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import rng_for

from ..policies.guarantees import USUAL_SIZE
from .examining import Examined, Examiner, solvable

MOST_SMALL, MOST_TILES = 50_000, 16
"""Default limits of the part that tries every maze: the largest number of mazes, and the largest number of tiles of a
maze."""
PART_TILES = 1 << 15
"""Approximate number of tiles of the mazes that are examined between two looks at the clock."""
N_EVOLVING = 256
"""Number of levels that evolve, and number of offspring in a round."""


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1: "1 maze", "1,000 mazes"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


class Part(NamedTuple):
    """Mazes to examine.

    Attributes:
        tiles: (N, H, W) uint8, at least one maze, all solvable.
        targets: (N, H, W) or (N, K, H, W) bool, their canonical solutions.
        place: the part of the search, in words, such as "every maze of 6 tiles" or "random 8 x 8".
        complete: every maze of up to this number of tiles has been examined in earlier parts.
        n_tiles: the number of tiles within the border if the search yields every maze of that number of tiles, else 0.
    """

    tiles: Tiles
    targets: NDArray[np.bool_]
    place: str
    complete: int
    n_tiles: int = 0


class FailedMaze(NamedTuple):
    """A maze on which the policy fails.

    Attributes:
        tiles: (H, W) uint8.
        error: the error that the policy raised; empty for a wrong answer.
    """

    tiles: Tiles
    error: str


@dataclass
class Search:
    """A search for a maze on which a policy fails, and a record of the mazes that were tried.

    Attributes:
        examiner: runs the policy.
        seed: the seed of all randomness.
        least: the smallest number of tiles of a maze, without its border.
        tiles: the largest number of tiles for which every maze is tried, or None for the default limits, `MOST_SMALL`
            mazes and `MOST_TILES` tiles.
        families: names of families of mazes.
        sizes: inner sizes of the mazes of these families, in order.
        n: number of mazes of each family and size.
        n_mazes: the number of mazes that were tried, up to the first failure.
        n_correct: number of tiles -> how many of all mazes with that number of tiles the policy solved correctly.
        complete: the number of tiles up to which every maze was tried.
        place: the last part of the search, in words.
        skipped: the parts of the search that were not possible, in words.
        failed: the first maze on which the policy fails, or None if there was none.
    """

    examiner: Examiner
    seed: int
    least: int
    tiles: int | None
    families: Sequence[str]
    sizes: Sequence[int]
    n: int
    n_mazes: int = 0
    n_correct: Counter[int] = field(default_factory=Counter)
    complete: int = 0
    place: str = ""
    skipped: list[str] = field(default_factory=list)
    failed: FailedMaze | None = None

    @property
    def task(self) -> Task:
        """The task of the policy."""
        return self.examiner.policy.problem

    @property
    def has_border(self) -> bool:
        """Whether the search puts a border of walls around small mazes, because the policy needs a border or has a
        fixed size."""
        policy = self.examiner.policy
        return policy.guarantees.needs_border or policy.size is not None

    @property
    def n_complete(self) -> int:
        """The number of solvable mazes with at most `complete` tiles, all of which the policy solved."""
        return sum(n for size, n in self.n_correct.items() if 0 < size <= self.complete)

    def run(self, seconds: float, report: Callable[[float], Any]) -> None:
        """Search until the policy fails, the time is over, or there is nothing left to try.

        Args:
            seconds: the largest duration; the first mazes are tried in any case.
            report: called after every part with the seconds since the beginning; an exception that it raises ends the
                search.
        """
        began, parts = time.monotonic(), self.parts()
        part = next(parts, None)
        while part is not None:
            self.complete = part.complete
            if self.n_mazes and time.monotonic() - began >= seconds:
                return
            self.place = part.place
            examined = self.examiner(part.tiles, part.targets)
            failed = np.flatnonzero(examined.failed)
            n_correct = int(failed[0]) if len(failed) else len(part.tiles)
            self.n_mazes += n_correct + bool(len(failed))
            self.n_correct[part.n_tiles] += n_correct
            if len(failed):
                is_last = n_correct == len(examined.failed) - 1
                self.failed = FailedMaze(part.tiles[n_correct], examined.error if is_last else "")
                return
            report(time.monotonic() - began)
            try:
                part = parts.send(examined)
            except StopIteration as end:
                part, self.complete = None, end.value

    def parts(self) -> Generator[Part, Examined, int]:
        """Yield mazes to examine, and receive the policy's results on them by `send`.

        If there are no further mazes, return the number of tiles up to which every maze was tried.
        """
        largest = yield from self.every(self.largest())
        if len(self.task.answers) > 1:  # populations have answers of one channel
            passes, has_mazes = 0, True
            while has_mazes:
                has_mazes = False
                for part in self._drawn(largest, passes):
                    has_mazes = True
                    yield part
                passes += 1
            return largest
        yield from self._drawn(largest, 0)
        yield from self._evolving(largest)
        return largest

    def largest(self) -> int:
        """Return the largest number of tiles for which every maze is tried."""
        if self.tiles is not None:
            return self.tiles
        total = 0
        for n in range(self.least, MOST_TILES + 1):
            total += sum(number_of_mazes(self.task, n) for height in range(1, n + 1) if n % height == 0)
            if total > MOST_SMALL:
                return n - 1
        return MOST_TILES

    def every(self, largest: int) -> Generator[Part, Examined, int]:
        """Yield every solvable maze of up to `largest` tiles, in ascending order of their number of tiles.

        Return the number of tiles up to which every maze was tried: `largest`, or fewer if the policy refused a shape.
        """
        fixed, complete = self.examiner.policy.size, largest
        for n in range(self.least, largest + 1):
            shapes = [(height, n // height) for height in range(1, n + 1) if n % height == 0]
            for height, width in shapes if fixed is None else [shape for shape in shapes if shape == fixed]:
                runs = False
                for mazes in every_maze(self.task, height, width):
                    tiles, targets = solvable(self.task, self.bordered(mazes))
                    if not len(tiles):
                        continue
                    refusal = "" if runs else self.examiner.refusal(tiles)
                    if refusal:
                        self.skipped.append(f"mazes of {height} x {width}: {refusal}")
                        complete = min(complete, n - 1)
                        break
                    runs = True
                    yield Part(tiles, targets, f"every maze of {counted(n, 'tile')}", min(complete, n - 1), n)
        return complete

    def bordered(self, mazes: Tiles) -> Tiles:
        """Return (N, H, W) mazes within a border of walls, (N, H + 2, W + 2), or unchanged if the search uses no
        border."""
        around = ((0, 0), (1, 1), (1, 1))
        return np.pad(mazes, around, constant_values=Tile.WALL) if self.has_border else mazes

    def _drawn(self, largest: int, number: int) -> Iterator[Part]:
        """Yield mazes of the families, one size after another. The number is part of the seed: another number gives
        other mazes."""
        fixed = self.examiner.policy.size
        for size in [(size, size) for size in self.sizes] if fixed is None else [fixed]:
            for index, name in enumerate(self.families):
                words = f"{name} {size[0]} x {size[1]}"
                try:
                    tiles = self._of_family(rng_for(self.seed, "doubt", number, index, *size), name, size)
                except Exception as error:  # a size that the generator cannot fill, or a task's own `mark`
                    self.skipped.append(f"{words}: {error}")
                    continue
                tiles, targets = solvable(self.task, tiles)
                refusal = self.examiner.refusal(tiles) if len(tiles) else "no maze has an answer"
                if refusal:
                    self.skipped.append(f"{words}: {refusal}")
                    continue
                at_once = max(1, PART_TILES // tiles[0].size)  # so that the time is looked at between large mazes
                for begin in range(0, len(tiles), at_once):
                    some = slice(begin, begin + at_once)
                    yield Part(tiles[some], targets[some], words, largest)

    def _of_family(self, rng: np.random.Generator, name: str, size: tuple[int, int]) -> Tiles:
        family = FAMILIES.find(name)
        n_each = -(-self.n // len(family.variants))
        mazes = [self.task.generate(rng, n_each, size, family.generator, **options) for options in family.variants]
        return np.concatenate(mazes)[: self.n]

    def _evolving(self, largest: int) -> Generator[Part, Examined, None]:
        """Yield levels that evolve. Those levels survive on which the policy takes the most iterations per tile of the
        solution."""
        size = self.examiner.policy.size or (USUAL_SIZE, USUAL_SIZE)
        population = LevelPopulation(PopulationConfig(task=self.task.name, capacity=N_EVOLVING))
        rng = rng_for(self.seed, "doubt evolving", 0)
        try:
            first = np.concatenate([self._of_family(rng, name, size) for name in self.families])
            candidates = population.fresh(solvable(self.task, first)[0])
            check(not (refusal := self.examiner.refusal(candidates.tiles)), refusal)
        except Exception as error:
            self.skipped.append(f"evolving levels: {error}")
            return
        number = 0
        while len(candidates):
            place = f"round {number} of evolving levels of {size[0]} x {size[1]}"
            examined = yield Part(candidates.tiles, candidates.targets, place, largest)
            hardness = examined.steps / np.maximum(lengths_of(candidates.targets), 1)
            population.insert(candidates, hardness, ~examined.failed)
            number += 1
            candidates = population.offspring(rng_for(self.seed, "doubt evolving", number), N_EVOLVING)
