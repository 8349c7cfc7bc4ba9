"""Levels to train on, fixed or fresh, which are prepared in the background and never belong to a test set."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets import held_out
from maze_nca_gym.mazes.families import FAMILIES, is_reserved, most_levels, validation_levels
from maze_nca_gym.mazes.levels import Tiles, has_border, level_hashes, orientations
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import rng_for

from ..policies.guarantees import USUAL_FAMILY, USUAL_SIZE, Guarantees
from ..rollouts.scores import Batch
from .config import TrainingConfig

AHEAD = 8
"""Number of batches that are prepared in advance."""
PATIENCE = 100
"""Largest number of times that a held-out level is replaced by a new draw."""
MOST_VALIDATED = 1024
"""Largest number of levels in a validation."""


def concatenate(batches: list[Batch]) -> Batch:
    """Return a batch of the levels of all batches, in order. The batches are (N, H, W) and can differ in N."""
    tiles, targets = [batch.tiles for batch in batches], [batch.target for batch in batches]
    return Batch(np.concatenate(tiles), np.concatenate(targets))


class LevelStream:
    """The levels of a run: the batches for its updates, and its validation set.

    A batch depends only on the configuration and on the number of the update.

    Attributes:
        config: the configuration of the run.
        all_sizes: whether all sizes are in use from the first update. This is the case if the run continues a finished
            run.

    Raises:
        ValueError: the level set in the configuration cannot be used for training.
    """

    def __init__(self, config: TrainingConfig) -> None:
        self.config, self.all_sizes = config, False
        self._given: Tiles | None = None
        if config.level_set is not None:
            name, self._given = config.level_set, _named(config.level_set, config).tiles
            n_held_out = np.count_nonzero(is_held_out(self._given, config.problem))
            message = f"{n_held_out:,} of {len(self._given):,} levels of {name} are in test sets: train on others"
            check(not n_held_out, message)

    @property
    def guarantees(self) -> Guarantees:
        """The guarantees of policies that are trained on these levels: the border, family and size that levels must
        have."""
        sizes, families, own = self.config.sizes, self.config.families, self._given
        size = min(max(USUAL_SIZE, min(sizes)), max(sizes))
        return Guarantees(
            needs_border=self.config.borderless == 0 if own is None else bool(has_border(own).all()),
            family=families[0] if own is None and USUAL_FAMILY not in families else None,
            size=None if size == USUAL_SIZE else size,
        )

    def size(self, update: int) -> int:
        """Return the inner size of the levels of an update, a random choice among the sizes in use at this update."""
        sizes = self.config.sizes
        n_joined = len(sizes) if self.all_sizes else min(len(sizes), 1 + update * len(sizes) // self.config.n_updates)
        return sizes[int(rng_for(self.config.seed, "size", update).integers(n_joined))]

    def batch(self, update: int) -> Batch:
        """Return the (n_fresh, H, W) new levels of an update: the whole batch, or with a pool or a population only the
        newcomers.

        A fixed training set is passed through in epochs: every level occurs once in an epoch, in a new random order.
        """
        config = self.config
        if config.n_levels is None or config.evolve:
            return self.draw(rng_for(config.seed, "levels", update), config.n_fresh, self.size(update))
        n_levels, batch_size = len(self.fixed), config.batch_size
        places = np.arange(update * batch_size, (update + 1) * batch_size)
        indices = np.empty(batch_size, np.int64)
        for epoch in np.unique(places // n_levels):
            order = rng_for(config.seed, "epoch", int(epoch)).permutation(n_levels)
            here = places // n_levels == epoch
            indices[here] = order[places[here] % n_levels]
        return self.fixed[indices]

    def draw(self, rng: np.random.Generator, n: int, size: int) -> Batch:
        """Draw n levels, (n, size + 2, size + 2), from the level set, or generate them if there is no level set. None
        of the levels are held out.

        Generated levels have equal parts of all families, in random order. In every family, a fraction `long_fraction`
        of the levels has long solutions.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        config, task = self.config, self.config.problem
        if self._given is not None:
            tiles = self._given[rng.integers(len(self._given), size=n)]
            if config.dihedral:
                turned = tiles.copy()
                for level, symmetry in zip(turned, rng.integers(8, size=n), strict=True):
                    level[:] = np.rot90(level.T.copy() if symmetry >= 4 else level.copy(), symmetry % 4)
                tiles = np.where(is_held_out(turned, task)[:, None, None], tiles, turned)
            return with_solutions(tiles, task)
        parts = []
        for i, family in enumerate(config.families):
            n_of_family = (n - i + len(config.families) - 1) // len(config.families)
            # The remainder becomes a level without a border by chance. With rounding, a family with a single fresh
            # level would always have a border.
            n_borderless, left = divmod(round(config.borderless * n_of_family, 9), 1)
            n_borderless = int(n_borderless) + (left > 0 and rng.random() < left)
            counts = ((True, n_of_family - n_borderless), (False, n_borderless))
            # without borderless levels, no numbers are drawn for them, so that runs without this option have the same
            # levels as before the option existed
            for border, count in counts[: 1 + bool(n_borderless)]:
                n_long = round(config.long_fraction * count)
                for n_each, of in ((n_long, config.long_of), (count - n_long, 1)):
                    candidates = with_solutions(self._allowed(rng, family, n_each * of, size, border), task)
                    longest = lengths_of(candidates.target).reshape(n_each, of).argmax(axis=1)
                    parts.append(candidates[np.arange(n_each) * of + longest])
        return concatenate(parts)[rng.permutation(n)]

    def _allowed(self, rng: np.random.Generator, family: str, n: int, size: int, border: bool) -> Tiles:
        """Return n levels of a family, (n, size + 2, size + 2), that are not held out, in equal parts of each variant
        of the family.

        Raises:
            ValueError: some level was held out in each of `PATIENCE` draws.
        """
        task, generator, variants = self.config.problem, FAMILIES[family].generator, FAMILIES[family].variants
        tiles, places = np.empty((n, size + 2, size + 2), np.uint8), np.arange(n)
        for _ in range(PATIENCE):
            order = rng.permutation(len(places)) % len(variants)
            for i, options in enumerate(variants):
                chosen, inner = places[order == i], size if border else size + 2
                tiles[chosen] = task.generate(rng, len(chosen), inner, generator, border=border, **options)
            places = np.flatnonzero(is_held_out(tiles, task))
            if not len(places):
                return tiles
        raise ValueError(f"nearly all {family} levels of size {size} are in the test sets; train on larger ones")

    @cached_property
    def fixed(self) -> Batch:
        """The fixed training set, (n_levels, H, W), or the first members of a population.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        n_levels = self.config.n_levels or self.config.capacity
        return self.draw(rng_for(self.config.seed, "fixed levels"), n_levels, self.config.sizes[0])

    @cached_property
    def validation(self) -> Batch:
        """The first levels of the run's validation set, (N, H, W), at most 1,024.

        By default, the levels are of the paper's kind and have the first size of the run.

        Raises:
            ValueError: there is no such set. Or its levels are not square, do not have a size of the run, are not all
                solvable, or belong to a test set or to the training set.
        """
        config, task, name, size = self.config, self.config.problem, self.config.validation_set, self.config.sizes[0]
        if name is None:
            n = min(MOST_VALIDATED, most_levels(size, "validation"))
            return with_solutions(validation_levels("random", size, task, n).tiles, task)
        batch = _named(name, config)[:MOST_VALIDATED]
        tests = held_out(batch.tiles.shape[1] - 2, task, validated=False)
        n_tests = np.count_nonzero(is_reserved(batch.tiles, tests))
        check(not n_tests, f"{n_tests:,} of {len(batch):,} levels of {name} are in test sets: validate on others")
        if self._given is not None:
            trained = orientations(self._given) if config.dihedral else self._given
            n_shared = np.count_nonzero(np.isin(level_hashes(batch.tiles), level_hashes(trained)))
            check(not n_shared, f"{n_shared:,} of {len(batch):,} levels of {name} are trained on: validate on others")
        return batch


@contextmanager
def made_ahead(stream: LevelStream, start: int) -> Iterator[Iterator[Batch]]:
    """Yield an iterator over the batches of all updates from `start` on. Another thread prepares up to `AHEAD` batches
    while the device trains.

    The thread runs in parallel, because generators and solvers are machine code that releases the GIL.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="levels") as pool:

        def batches() -> Iterator[Batch]:
            calls = (pool.submit(stream.batch, update) for update in range(start, stream.config.n_updates))
            queue = deque(islice(calls, AHEAD))
            while queue:
                queue.extend(islice(calls, 1))
                yield queue.popleft().result()

        try:
            yield batches()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def with_solutions(tiles: Tiles, task: Task) -> Batch:
    """Solve (N, H, W) levels, and return the levels with their solutions as a batch.

    Raises:
        ValueError: a level is unsolvable or malformed.
    """
    return Batch(tiles, task.solve_all(tiles))


def is_held_out(tiles: Tiles, task: Task) -> NDArray[np.bool_]:
    """Return which of (N, S, S) levels are held out, (N,) bool. Training must not use held-out levels, because they
    belong to test or validation sets."""
    return is_reserved(tiles, held_out(tiles.shape[1] - 2, task))


def _named(name: str, config: TrainingConfig) -> Batch:
    """Return all levels of a level set with their solutions, (N, S, S), after checking that the run can use them.

    Sources and targets become empty tiles if the task has no sources and targets.

    Raises:
        ValueError: there is no such set, or its levels are not square, do not have a size of the run, or are not all
            solvable.
    """
    task = config.problem
    tiles = task.prepare(load_levels(name, task).tiles)
    height, width = tiles.shape[1:]
    check(height == width, f"the levels of {name} must be square, got {height}x{width}")
    sizes, size = ", ".join(map(str, config.sizes)), height - 2
    other_size = f"the levels of {name} have an inner size of {size}, and sizes is {sizes}: give {size}"
    check(size in config.sizes, other_size)
    target = task.solve(tiles)
    unsolvable = len(tiles) - np.count_nonzero(task.is_answer(target))
    check(not unsolvable, f"all levels of {name} must have a solution, {unsolvable:,} of {len(tiles):,} have none")
    return Batch(tiles, target)
