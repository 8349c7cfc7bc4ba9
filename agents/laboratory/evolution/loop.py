"""The evolution of levels against policies: first levels, rounds of offspring, and the record of them in a folder.

(Paper, section "Adversarial data generation".) Every round has its own random generator, seeded by its number. So a
population that was saved continues as if it had never stopped. Its clock counts the rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import is_reserved
from maze_nca_gym.mazes.levels import Tiles, level_hashes
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.random_streams import rng_for

from ...runs import METRICS, ProgressBar, RunFolder
from .measure import EvaluatedPolicy, Regret

if TYPE_CHECKING:
    from .figures import Snapshot  # loading matplotlib

Draw: TypeAlias = Callable[[np.random.Generator, int], Tiles]
"""rng, n -> (n, H, W) tiles."""

PATIENCE = 100
"""Largest number of attempts to replace first levels that were rejected."""
POPULATION, CURVES, HARDEST = "population.npz", "curves.png", "hardest.gif"
FILES = (POPULATION, CURVES, HARDEST)
"""Files of an evolution, besides those of every run."""
ROUND = "round"
"""The metric that counts rounds."""
N_SHOWN = 9
"""Number of levels of a snapshot; fewer if the population is smaller."""


@dataclass(frozen=True)
class Job:
    """All that a run needs, checked.

    The items of `given` can be read as attributes: `job.rounds`.

    Attributes:
        given: the arguments of `evolve`, without the policies, and of its further options only those of rounds.
        evaluated: the policies by name.
        levels: (n, H, W) uint8, the first levels.
        reserved: hashes of the levels of the test sets.
        population: the configuration of the population.
        configuration: everything that determines the resulting levels, JSON-serialisable.
        command: the command that evolves the same levels.
    """

    given: Mapping[str, Any]
    evaluated: dict[str, EvaluatedPolicy]
    levels: Tiles
    reserved: NDArray[np.uint64]
    population: PopulationConfig
    configuration: dict[str, Any]
    command: str

    def __getattr__(self, name: str) -> Any:
        return self.given[name]

    @property
    def folder(self) -> Path:
        """The population's folder."""
        return Path(self.given["out"])


def first_levels(draw: Draw, seed: int, n: int, reserved: NDArray[np.uint64]) -> Tiles:
    """Return (n, H, W) uint8 levels that all differ, none of them reserved.

    Args:
        draw: generates levels.
        seed: the seed of the generator.
        n: the number of levels, at least 1.
        reserved: hashes from `families.reserved_hashes`.

    Raises:
        ValueError: there are hardly `n` different levels of this kind.
    """
    rng = rng_for(seed, "first levels")
    levels = draw(rng, n)
    for _ in range(PATIENCE):
        firsts = np.sort(np.unique(level_hashes(levels), return_index=True)[1])
        kept = levels[firsts]
        kept = kept[~is_reserved(kept, reserved)]
        if len(kept) == n:
            return kept
        levels = np.concatenate([kept, draw(rng, n - len(kept))])
    raise ValueError(f"there are hardly {n:,} different levels of this kind outside of the test sets; ask for fewer")


class Evolution:
    """A population with its history, in the folder of a run.

    The lines of the run are the population's statistics after every round, those of round 0 first.

    Attributes:
        run: the folder.
        population: the population as it is now.
        snapshots: the hardest levels after some of the rounds.
    """

    def __init__(self, run: RunFolder, config: PopulationConfig) -> None:
        """Load the run in the folder, or start with an empty population.

        Args:
            run: the folder, which has been opened.
            config: the configuration of the population.

        Raises:
            ValueError: the checkpoint is damaged, or lines of its rounds are missing; nothing has changed.
        """
        self.run, self.population, self.snapshots = run, LevelPopulation(config), list["Snapshot"]()
        found = run.load(POPULATION)
        if found is None:
            return
        arrays = {part: {name: tensor.numpy() for name, tensor in some.items()} for part, some in found[1].items()}
        self.population = LevelPopulation.from_arrays(arrays["population"], found[0])
        self.snapshots = [arrays[f"snapshot {i}"] for i in range(len(arrays) - 1)]
        clock = self.population.clock
        rounds = [line[ROUND] for line in run.lines if line[ROUND] <= clock]
        # the last round of the checkpoint may have no line yet: Ctrl-C can come before `note`
        if rounds != list(range(len(rounds))) or len(rounds) < clock:
            wanted = f"it must have a line for every round from 0 to {clock}, but has {len(rounds)}"
            raise ValueError(f"{run.path / METRICS} is not readable: {wanted}; {run.ways_out}")

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Write the description of the run, and drop the lines of rounds after the checkpoint."""
        self.run.begin(facts, self.population.clock if len(self.population) else -1)

    def is_finished(self, n: int, rounds: int) -> bool:
        """Return whether all n levels are measured, and all rounds are made and recorded."""
        lines, clock = self.run.lines, self.population.clock
        return bool(lines) and lines[-1][ROUND] == clock >= rounds and len(self.population) >= n

    def evolve(self, job: Job, asked: Callable[[], bool]) -> None:
        """Measure the first levels, and make the remaining rounds.

        Args:
            job: the run.
            asked: returns whether to stop now; called every few iterations.

        Raises:
            KeyboardInterrupt: it was asked to stop; only the measurements since the last round are lost.
        """

        population, saved_at = self.population, time.monotonic()

        def pause() -> None:
            if asked():
                raise KeyboardInterrupt

        def after(n: int) -> None:
            nonlocal saved_at
            bar.advance(n)
            if len(population) >= job.n:
                self.note(job.picture_every, shown)
            if time.monotonic() - saved_at > job.save_every:
                self.save()
                saved_at = time.monotonic()
            pause()

        def shown(tiles: Tiles) -> NDArray[np.float32]:
            return regret.paths(first, tiles)

        regret = Regret(list(job.evaluated.values()), job.population.measure, job.batch, pause)
        first = next(iter(job.evaluated.values()))
        if len(population) < job.n:
            with ProgressBar(f"measuring {job.n:,} levels", job.n, len(population)) as bar:
                for start in range(len(population), job.n, job.n_offspring):
                    fresh = population.fresh(job.levels[start : start + job.n_offspring])
                    population.insert(fresh, *regret(fresh.tiles, fresh.targets))
                    after(len(fresh))
        self.note(job.picture_every, shown)
        with ProgressBar("rounds", job.rounds, population.clock) as bar:
            for index in range(population.clock, job.rounds):
                rng = rng_for(job.seed, "offspring", index)
                population.breed(rng, job.n_offspring, job.parents, regret, job.reserved, ticks=1)
                after(1)

    def note(self, picture_every: int, paths: Callable[[Tiles], NDArray[np.float32]]) -> None:
        """Record the round of the population's clock, unless it is recorded already.

        Args:
            picture_every: the number of rounds between two snapshots.
            paths: a function from (n, H, W) tiles to a policy's paths, (n, H, W); not called for most rounds.
        """
        clock, lines = self.population.clock, self.run.lines
        if clock % picture_every == 0 and not any(snapshot["round"] == clock for snapshot in self.snapshots):
            which = hardest(self.population, N_SHOWN)
            tiles = self.population.tiles[which].copy()
            self.snapshots.append(
                {
                    "round": np.array(clock),
                    "tiles": tiles,
                    "paths": np.rint(255 * np.clip(paths(tiles), 0, 1)).astype(np.uint8),
                    "regret": self.population.members["fitness"][which],
                }
            )
        if not lines or lines[-1][ROUND] < clock:
            complete = float(self.population.complete_rate.mean())
            self.run.log({ROUND: clock, **self.population.statistics(), "complete": complete})

    def save(self) -> None:
        """Write the checkpoint, and the population for other programs.

        Raises:
            OSError: a file could not be written.
        """
        if not len(self.population):
            return
        arrays, state = self.population.to_arrays()
        parts = {"population": arrays, **{f"snapshot {i}": each for i, each in enumerate(self.snapshots)}}
        tensors = {part: {name: torch.from_numpy(a) for name, a in some.items()} for part, some in parts.items()}
        self.run.save(state, tensors)
        # the checkpoint first: `RunFolder.load` rejects a folder that has a population without one
        self.population.save(self.run.path / POPULATION)

    def draw(self, title: str) -> None:
        """Draw both pictures.

        Raises:
            OSError: a file could not be written.
        """
        from .figures import draw_curves, draw_hardest

        lines, task = self.run.lines, find_task(self.population.config.task)
        draw_curves(lines, title, self.run.path / CURVES)
        draw_hardest(self.snapshots, lines, task, self.run.path / HARDEST)


def hardest(population: LevelPopulation, n: int) -> NDArray[np.int64]:
    """Return (n,) indices of the levels with the highest regret; among equals, longer solutions come first."""
    members = population.members
    return np.lexsort((members["id"], -members["length"], -members["fitness"]))[:n]
