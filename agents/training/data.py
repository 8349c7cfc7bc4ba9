"""Levels to train on: fixed or fresh, prepared in the background, and never those that policies are tested on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets import held_out_levels
from maze_nca_gym.mazes.families import (
    FAMILIES,
    is_reserved,
    most_levels,
    reserved_hashes,
    validation_levels,
)
from maze_nca_gym.mazes.levels import Tiles, level_hashes
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import rng_for

from ..rollouts import Batch
from .config import TrainingConfig

AHEAD = 8
"""Number of batches that are made ahead."""
PATIENCE = 100
"""Largest number of times that held-out levels are drawn again."""
MOST_VALIDATED = 1024
"""Largest number of levels of a validation."""


def concatenate(batches: list[Batch]) -> Batch:
    """Return the levels of many batches, each (N, H, W) of any N, as one batch, in order."""
    tiles, targets = [batch.tiles for batch in batches], [batch.target for batch in batches]
    return Batch(np.concatenate(tiles), np.concatenate(targets))


class LevelStream:
    """The batches of a run. Each depends on the configuration and the number of its update alone.

    Args:
        config: the configuration.
        all_sizes: whether all sizes are in use from the start, as in a run that was finished before.

    Raises:
        ValueError: the configuration has a level set that cannot be trained on.
    """

    def __init__(self, config: TrainingConfig, all_sizes: bool = False) -> None:
        self.config, self.all_sizes = config, all_sizes
        self._given = None if config.levels.level_set is None else given_levels(config)

    def size(self, update: int) -> int:
        """Return the inner size of an update's levels, drawn from the sizes that are in use by then."""
        sizes = self.config.levels.sizes
        n_joined = len(sizes) if self.all_sizes else min(len(sizes), 1 + update * len(sizes) // self.config.n_updates)
        return sizes[int(rng_for(self.config.seed, "size", update).integers(n_joined))]

    def batch(self, update: int) -> Batch:
        """Return the (n_fresh, H, W) levels of an update: its batch, or the newcomers of a pool or population."""
        config = self.config
        if config.levels.n_levels is None or config.evolve:
            return self.draw(rng_for(config.seed, "levels", update), config.n_fresh, self.size(update))
        return self.fixed[self._of_epochs(update)]

    def draw(self, rng: np.random.Generator, n: int, size: int) -> Batch:
        """Return n levels, (n, size + 2, size + 2), none held out: from the level set if there is one, else fresh.

        Fresh levels come from all families in equal parts, in random order. A `long_fraction` of each family is long.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        if self._given is not None:
            tiles = self._given[rng.integers(len(self._given), size=n)]
            tiles = self._turned(rng, tiles) if self.config.levels.dihedral else tiles
            return with_solutions(tiles, self.config.task)
        families = self.config.levels.families
        counts = [(n - i + len(families) - 1) // len(families) for i in range(len(families))]
        batch = concatenate([self._of_family(rng, *part, size) for part in zip(families, counts, strict=True)])
        return batch[rng.permutation(n)]

    def _turned(self, rng: np.random.Generator, tiles: Tiles) -> Tiles:
        """Return (N, S, S) levels, each turned and mirrored at random, or unchanged if the result is held out."""
        turned = tiles.copy()
        for level, symmetry in zip(turned, rng.integers(8, size=len(tiles)), strict=True):
            level[:] = np.rot90(level.T.copy() if symmetry >= 4 else level.copy(), symmetry % 4)
        refused = is_held_out(turned, self.config.task)
        return np.where(refused[:, None, None], tiles, turned)

    def _of_family(self, rng: np.random.Generator, family: str, n: int, size: int) -> Batch:
        levels, parts = self.config.levels, []
        n_borderless = round(levels.borderless * n)
        # no draws for none without a border: the levels of runs without this option stay what they were
        for border, count in ((True, n - n_borderless), (False, n_borderless))[: 1 + bool(n_borderless)]:
            n_long = round(levels.long_fraction * count)
            parts += [
                self._longest(rng, family, n_long, size, border, levels.long_of),
                self._longest(rng, family, count - n_long, size, border, 1),
            ]
        return concatenate(parts)

    def _longest(self, rng: np.random.Generator, family: str, n: int, size: int, border: bool, of: int) -> Batch:
        """Return n levels, each the one with the longest solution among `of` candidates."""
        candidates = with_solutions(self._allowed(rng, family, n * of, size, border), self.config.task)
        return candidates[np.arange(n) * of + lengths_of(candidates.target).reshape(n, of).argmax(axis=1)]

    def _allowed(self, rng: np.random.Generator, family: str, n: int, size: int, border: bool) -> Tiles:
        """Return (n, H, W) uint8 levels of a family; held-out ones are drawn again."""
        tiles = self._draw(rng, family, n, size, border)
        for _ in range(PATIENCE):
            refused = np.flatnonzero(is_held_out(tiles, self.config.task))
            if not len(refused):
                return tiles
            tiles[refused] = self._draw(rng, family, len(refused), size, border)
        raise ValueError(f"nearly all {family} levels of size {size} are in the test sets; train on larger ones")

    def _draw(self, rng: np.random.Generator, family: str, n: int, size: int, border: bool) -> Tiles:
        """Return (n, size + 2, size + 2) levels of a family, in equal parts from each of its variants."""
        generator, variants = FAMILIES[family].generator, FAMILIES[family].variants
        task = find_task(self.config.task)
        inner = size if border else size + 2
        order = rng.permutation(n) % len(variants)
        tiles = np.empty((n, size + 2, size + 2), np.uint8)
        for i, options in enumerate(variants):
            count = int((order == i).sum())
            tiles[order == i] = task.generate(rng, count, inner, generator, border=border, **options)
        return tiles

    @cached_property
    def fixed(self) -> Batch:
        """The levels of a fixed training set, (n_levels, H, W), or those with which a population starts.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        n_levels = self.config.levels.n_levels or self.config.population.capacity
        return self.draw(rng_for(self.config.seed, "fixed levels"), n_levels, self.config.levels.sizes[0])

    def _of_epochs(self, update: int) -> NDArray[np.int64]:
        """Return which levels of the fixed set an update uses: each level once an epoch, in a new random order."""
        n_levels, batch_size = len(self.fixed), self.config.batch_size
        places = np.arange(update * batch_size, (update + 1) * batch_size)
        indices = np.empty(batch_size, np.int64)
        for epoch in np.unique(places // n_levels):
            order = rng_for(self.config.seed, "epoch", int(epoch)).permutation(n_levels)
            here = places // n_levels == epoch
            indices[here] = order[places[here] % n_levels]
        return indices


@contextmanager
def made_ahead(stream: LevelStream, start: int) -> Iterator[Iterator[Batch]]:
    """Yield the batches from update `start` to the last, which another thread prepares while the device trains.

    The generators and solvers are machine code that releases the GIL, so the thread runs in parallel.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="levels") as pool:
        try:
            yield _ahead(stream, start, pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ahead(stream: LevelStream, start: int, pool: ThreadPoolExecutor) -> Iterator[Batch]:
    queue: deque[Future[Batch]] = deque()
    for update in range(start, stream.config.n_updates + AHEAD):
        if update < stream.config.n_updates:
            queue.append(pool.submit(stream.batch, update))
        if (len(queue) > AHEAD or update >= stream.config.n_updates) and queue:
            yield queue.popleft().result()


def with_solutions(tiles: Tiles, task: str) -> Batch:
    """Return (N, H, W) levels with their solutions.

    Raises:
        ValueError: a level is unsolvable or malformed.
    """
    return Batch(tiles, find_task(task).solve_all(tiles))


def is_held_out(tiles: Tiles, task: str) -> NDArray[np.bool_]:
    """Return which of (N, S, S) levels no training may use, (N,) bool."""
    return is_reserved(tiles, held_out(tiles.shape[1] - 2, task))


@cache
def held_out(size: int, task: str) -> NDArray[np.uint64]:
    """Return hashes of the levels of a size that no training may see."""
    return reserved_hashes(held_out_levels([size], task))


@cache
def _tested_on(size: int, task: str) -> NDArray[np.uint64]:
    """Return hashes of the levels of a size that are in test sets."""
    return reserved_hashes(
        levels for levels in held_out_levels([size], task) if levels.config.get("set") != "validation"
    )


def given_levels(config: TrainingConfig) -> Tiles:
    """Return the tiles of a run's level set, (N, S, S) uint8.

    Raises:
        ValueError: no such set; or its levels are not square, not of the run's size, not all solvable, or held out.
    """
    name = str(config.levels.level_set)
    tiles = _named(name, config).tiles
    n_held_out = np.count_nonzero(is_held_out(tiles, config.task))
    check(not n_held_out, f"{n_held_out:,} of {len(tiles):,} levels of {name} are in test sets: train on others")
    return tiles


def validation_batch(config: TrainingConfig) -> Batch:
    """Return up to 1,024 levels, (N, H, W), of a run's validation set.

    By default the set has levels of the paper's kind, at the run's first size.

    Raises:
        ValueError: no such set; or its levels are not square, not of a size of the run, not all solvable, in test sets,
            or trained on.
    """
    name, size = config.levels.validation_set, config.levels.sizes[0]
    if name is None:
        n = min(MOST_VALIDATED, most_levels(size, "validation"))
        return with_solutions(validation_levels("random", size, config.task, n).tiles, config.task)
    batch = _named(name, config)[:MOST_VALIDATED]
    n_tests = np.count_nonzero(is_reserved(batch.tiles, _tested_on(batch.tiles.shape[1] - 2, config.task)))
    check(not n_tests, f"{n_tests:,} of {len(batch):,} levels of {name} are in test sets: validate on others")
    if config.levels.level_set is not None:
        trained = level_hashes(_copies(_tiles(config.levels.level_set, config), config.levels.dihedral))
        n_shared = np.count_nonzero(np.isin(level_hashes(batch.tiles), trained))
        check(not n_shared, f"{n_shared:,} of {len(batch):,} levels of {name} are trained on: validate on others")
    return batch


def _named(name: str, config: TrainingConfig) -> Batch:
    """Return all levels of a set, (N, S, S), after checking that the run can use them."""
    tiles = _tiles(name, config)
    height, width = tiles.shape[1:]
    check(height == width, f"the levels of {name} must be square, got {height}x{width}")
    sizes = ", ".join(map(str, config.levels.sizes))
    check(
        height - 2 in config.levels.sizes,
        f"the levels of {name} have an inner size of {height - 2}, and sizes is {sizes}: give {height - 2}",
    )
    task = find_task(config.task)
    target = task.solve(tiles)
    unsolvable = len(tiles) - np.count_nonzero(task.is_answer(target))
    check(not unsolvable, f"all levels of {name} must have a solution, {unsolvable:,} of {len(tiles):,} have none")
    return Batch(tiles, target)


def _copies(tiles: Tiles, dihedral: bool) -> Tiles:
    """Return (N, S, S) levels; if dihedral, all eight orientations of each, (8 N, S, S)."""
    if not dihedral:
        return tiles
    both = (tiles, tiles.transpose(0, 2, 1))
    return np.concatenate([np.rot90(each, turns, axes=(1, 2)) for each in both for turns in range(4)])


def _tiles(name: str, config: TrainingConfig) -> Tiles:
    """Return the (N, H, W) tiles of a set; sources and targets become empty tiles if the task has none."""
    task = find_task(config.task)
    return task.prepare(load_levels(name, task.letters, task.name).tiles)
