"""The files of an evolution: the population, its statistics by round, and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.files import load_arrays, save_arrays, validated_read
from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation
from maze_nca_gym.tasks import find_task

from ..runs import METRICS, Line, RunFolder

if TYPE_CHECKING:
    from .figures import Snapshot  # loading matplotlib

POPULATION, SNAPSHOTS, CURVES, HARDEST = "population.npz", "snapshots.npz", "curves.png", "hardest.gif"
FILES = (POPULATION, SNAPSHOTS, CURVES, HARDEST)
"""Files of such a folder, besides those of every run."""
ROUND = "round"
"""The figure of a line that counts rounds."""
N_SHOWN = 9
"""Levels of a snapshot, or fewer of a small population."""


class Records:
    """A population with its past, in the folder of a run.

    The population is saved last, and its clock determines how much of the rest belongs to it.

    Attributes:
        run: the folder; its lines are the population's statistics after every round, those of round 0 first.
        population: the population as it is now.
        snapshots: the hardest levels after some of the rounds.
    """

    def __init__(self, run: RunFolder, population: LevelPopulation) -> None:
        """Begin with what the folder has of a run, or with a population that is empty.

        Args:
            run: the folder, which has been opened.
            population: an empty population, if there is none in the folder.

        Raises:
            ValueError: a file is damaged, or they do not belong together; nothing has changed then.
            OSError: a file is missing or cannot be read.
        """
        self.run, self.population, self.snapshots = run, population, list["Snapshot"]()
        self._is_new = not (run.path / POPULATION).exists()
        if self._is_new:
            return
        self.population = LevelPopulation.load(run.path / POPULATION)
        clock = self.population.clock
        rounds = [line[ROUND] for line in run.lines if line[ROUND] <= clock]
        # Ctrl-C may come before the round that the clock tells is noted
        if rounds != list(range(len(rounds))) or len(rounds) < clock:
            wanted = f"it must have a line for every round from 0 to {clock}, but has {len(rounds)}"
            raise ValueError(f"{run.path / METRICS} is not readable: {wanted}")
        with validated_read(run.path / SNAPSHOTS, "is not readable"):
            self.snapshots = _read_snapshots(run.path / SNAPSHOTS, len(rounds))

    def begin(self, command: str) -> None:
        """Write what made the population, and drop what was noted after it was saved."""
        self.run.begin({"command": command}, -1 if self._is_new else self.population.clock)

    @property
    def lines(self) -> list[Line]:
        """The population's statistics after every round, those of round 0 first."""
        return self.run.lines

    def note(self, picture_every: int, paths: Callable[[Tiles], NDArray[np.float32]]) -> None:
        """Record the round of the population's clock, unless it is recorded already.

        Args:
            picture_every: the number of rounds between two snapshots.
            paths: a function from (n, H, W) tiles to a policy's paths, (n, H, W); not called for most rounds.
        """
        clock = self.population.clock
        if clock % picture_every == 0 and not any(snapshot["round"] == clock for snapshot in self.snapshots):
            self.snapshots.append(self._snapshot(paths))
        if not self.lines or self.lines[-1][ROUND] < clock:
            complete = float(self.population.complete_rate.mean())
            self.run.log({ROUND: clock, **self.population.statistics(), "complete": complete})

    def _snapshot(self, paths: Callable[[Tiles], NDArray[np.float32]]) -> Snapshot:
        which = hardest(self.population, N_SHOWN)
        tiles = self.population.tiles[which]
        return {
            "round": np.array(self.population.clock),
            "tiles": tiles,
            "paths": np.rint(255 * np.clip(paths(tiles), 0, 1)).astype(np.uint8),
            "regret": self.population.members["fitness"][which],
        }

    def save(self) -> None:
        """Write the snapshots and the population, each file atomically; lines are there already.

        Raises:
            OSError: a file could not be written.
        """
        if not len(self.population):
            return
        arrays = {f"{k}_{i}": v for i, snapshot in enumerate(self.snapshots) for k, v in snapshot.items()}
        save_arrays(self.run.path / SNAPSHOTS, arrays)
        self.population.save(self.run.path / POPULATION)

    def draw(self, title: str) -> None:
        """Draw both pictures.

        Raises:
            OSError: a file could not be written.
        """
        from .figures import draw_curves, draw_hardest

        draw_curves(self.lines, title, self.run.path / CURVES)
        draw_hardest(self.snapshots, self.lines, find_task(self.population.config.task), self.run.path / HARDEST)


def hardest(population: LevelPopulation, n: int) -> NDArray[np.int64]:
    """Return (n,) indices of the levels of most regret, those of long solutions first among equals."""
    members = population.members
    return np.lexsort((members["id"], -members["length"], -members["fitness"]))[:n]


_PARTS = ("round", "tiles", "paths", "regret")
"""Arrays of a snapshot."""


def _read_snapshots(path: Path, n_rounds: int) -> list[Snapshot]:
    """Return the snapshots of the first `n_rounds` rounds."""
    arrays = load_arrays(path)
    snapshots = [{name: arrays[f"{name}_{i}"] for name in _PARTS} for i in range(len(arrays) // len(_PARTS))]
    return [snapshot for snapshot in snapshots if snapshot["round"] < n_rounds]
