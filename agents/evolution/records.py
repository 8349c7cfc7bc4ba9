"""The files of an evolution: the population, its statistics by round, and pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.files import load_arrays, reading, remove_partial, replacing, save_arrays
from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation
from maze_nca_gym.tasks import find_task

if TYPE_CHECKING:
    from .figures import Line, Snapshot  # loading matplotlib

POPULATION, STATISTICS, SNAPSHOTS, CURVES, HARDEST = (
    "population.npz",
    "statistics.jsonl",
    "snapshots.npz",
    "curves.png",
    "hardest.gif",
)
_WRITTEN = ("config.json", POPULATION, STATISTICS, SNAPSHOTS, CURVES, HARDEST)
"""Every file of such a folder."""
N_SHOWN = 9
"""Levels of a snapshot, or fewer of a small population."""


class Records:
    """A population with its past, in a folder.

    The population is saved last, and its clock determines how much of the rest belongs to it.

    Attributes:
        folder: the folder of the files.
        population: the population as it is now.
        lines: its statistics after every round, those of round 0 first.
        snapshots: the hardest levels after some of the rounds.
    """

    def __init__(self, folder: Path, population: LevelPopulation, lines: list[Line], snapshots: list[Snapshot]) -> None:
        self.folder, self.population, self.lines, self.snapshots = folder, population, lines, snapshots

    @classmethod
    def start(cls, folder: Path, population: LevelPopulation) -> Records:
        """Return records of a new population; those of an older one are removed."""
        _tidy(folder)
        for name in (POPULATION, STATISTICS, SNAPSHOTS, CURVES, HARDEST):
            (folder / name).unlink(missing_ok=True)
        return cls(folder, population, [], [])

    @classmethod
    def load(cls, folder: Path) -> Records:
        """Load the records that `save` wrote.

        Raises:
            ValueError: a file is damaged, or they do not belong together; nothing has changed then.
            OSError: a file is missing or cannot be read.
        """
        population = LevelPopulation.load(folder / POPULATION)
        with reading(folder / STATISTICS, "is not readable"):
            lines = _read_lines(folder / STATISTICS, population)
        with reading(folder / SNAPSHOTS, "is not readable"):
            snapshots = _read_snapshots(folder / SNAPSHOTS, population, len(lines))
        _tidy(folder)
        return cls(folder, population, lines, snapshots)

    def note(self, picture_every: int, paths: Callable[[Tiles], NDArray[np.float32]]) -> None:
        """Record the round of the population's clock, unless it is recorded already.

        Args:
            picture_every: the number of rounds between two snapshots.
            paths: a function from (n, H, W) tiles to a policy's paths, (n, H, W); not called for most rounds.
        """
        clock = self.population.clock
        if clock % picture_every == 0 and not any(snapshot["round"] == clock for snapshot in self.snapshots):
            self.snapshots.append(self._snapshot(paths))
        if not self.lines or self.lines[-1]["round"] < clock:
            complete = float(self.population.complete_rate.mean())
            self.lines.append({"round": clock, **self.population.statistics(), "complete": complete})

    def hardest(self, n: int) -> NDArray[np.int64]:
        """Return (n,) indices of the levels of most regret, those of long solutions first among equals."""
        members = self.population.members
        return np.lexsort((members["id"], -members["length"], -members["fitness"]))[:n]

    def _snapshot(self, paths: Callable[[Tiles], NDArray[np.float32]]) -> Snapshot:
        which = self.hardest(N_SHOWN)
        tiles = self.population.tiles[which]
        return {
            "round": np.array(self.population.clock),
            "tiles": tiles,
            "paths": np.rint(255 * np.clip(paths(tiles), 0, 1)).astype(np.uint8),
            "regret": self.population.members["fitness"][which],
        }

    def save(self) -> None:
        """Write everything but the pictures, each file atomically.

        Raises:
            OSError: a file could not be written.
        """
        if not len(self.population):
            return
        with replacing(self.folder / STATISTICS) as file:
            file.write("".join(json.dumps(line) + "\n" for line in self.lines).encode())
        arrays = {f"{k}_{i}": v for i, snapshot in enumerate(self.snapshots) for k, v in snapshot.items()}
        save_arrays(self.folder / SNAPSHOTS, arrays)
        self.population.save(self.folder / POPULATION)

    def draw(self, title: str) -> None:
        """Draw both pictures.

        Raises:
            OSError: a file could not be written.
        """
        from .figures import draw_curves, draw_hardest

        draw_curves(self.lines, title, self.folder / CURVES)
        draw_hardest(self.snapshots, self.lines, find_task(self.population.config.task), self.folder / HARDEST)


def _tidy(folder: Path) -> None:
    """Remove what runs that were killed have left half written."""
    for name in _WRITTEN:
        remove_partial(folder / name)


def _read_lines(path: Path, population: LevelPopulation) -> list[Line]:
    """Return the lines up to the population's clock.

    Raises:
        ValueError: a round has no line, or one without all statistics.
    """
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    names = {"round", "complete", *population.statistics()}
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or set(line) != names or not all(map(_is_finite, line.values())):
            raise ValueError(f"line {number} must be an object with a number for each of {', '.join(sorted(names))}")
    rounds = [line["round"] for line in lines if line["round"] <= population.clock]
    # Ctrl-C may come before the round that the clock tells is noted
    if rounds != list(range(len(rounds))) or len(rounds) < population.clock:
        raise ValueError(f"it must have a line for every round from 0 to {population.clock}, but has {len(rounds)}")
    return lines[: len(rounds)]


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _read_snapshots(path: Path, population: LevelPopulation, n_rounds: int) -> list[Snapshot]:
    """Return the snapshots of the first `n_rounds` rounds.

    Raises:
        ValueError: there is none of the first of them, or one is none of such a population.
    """
    arrays = load_arrays(path)
    n = len(arrays) // len(_LAYOUT)
    unknown = arrays.keys() ^ {f"{name}_{i}" for name in _LAYOUT for i in range(n)}
    if unknown:
        raise ValueError(f"it must have {', '.join(_LAYOUT)} of every snapshot, see {', '.join(sorted(unknown))}")
    snapshots = [{name: arrays[f"{name}_{i}"] for name in _LAYOUT} for i in range(n)]
    for snapshot in snapshots:
        _check_snapshot(snapshot, population)
    rounds = [int(snapshot["round"]) for snapshot in snapshots]
    if sorted(set(rounds)) != rounds or (n_rounds and rounds[:1] != [0]):
        raise ValueError(f"its snapshots must be of ascending rounds, the first of round 0, got {rounds}")
    return [snapshot for snapshot in snapshots if snapshot["round"] < n_rounds]


_LAYOUT = {"round": ("int64", 0), "tiles": ("uint8", 3), "paths": ("uint8", 3), "regret": ("float64", 1)}
"""Name -> data type and number of dimensions of an array of a snapshot."""


def _check_snapshot(snapshot: Snapshot, population: LevelPopulation) -> None:
    for name, (dtype, ndim) in _LAYOUT.items():
        array = snapshot[name]
        if array.dtype != dtype or array.ndim != ndim:
            raise ValueError(f"{name} must be {dtype} of {ndim} dimensions, got {array.dtype} of {array.ndim}")
    tiles, paths, regret = (snapshot[name] for name in ("tiles", "paths", "regret"))
    n = min(N_SHOWN, len(population))
    if tiles.shape != (n, *population.tiles.shape[1:]) or paths.shape != tiles.shape or len(regret) != n:
        shapes = f"tiles {tiles.shape}, paths {paths.shape}, regret {regret.shape}"
        raise ValueError(f"a snapshot must have {n} of the levels of its population, got {shapes}")
    if not np.isfinite(regret).all():
        raise ValueError("regret is not finite")
    population.fresh(tiles)  # raises ValueError where levels are unsolvable, or of another task
