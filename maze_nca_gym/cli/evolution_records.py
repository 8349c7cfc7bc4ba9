"""What an evolution leaves in its folder: the population, its statistics by round, and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.atomic import remove_partial, replacing
from maze_nca_gym.levels import UNREADABLE, Tiles
from maze_nca_gym.population import LevelPopulation

POPULATION, STATISTICS, SNAPSHOTS, CURVES, HARDEST = (
    "population.npz",
    "statistics.jsonl",
    "snapshots.npz",
    "curves.png",
    "hardest.gif",
)
N_SHOWN = 9
"""Levels of a snapshot, or fewer of a small population."""

Line: TypeAlias = dict[str, Any]
"""Statistics after a round."""
Snapshot: TypeAlias = dict[str, NDArray[Any]]
"""The hardest levels after a round: `round` (), `tiles` (n, H, W), `paths` (n, H, W) uint8 from 0 to 255, and
`regret` (n,)."""


class Records:
    """A population with its past, in a folder.

    The population is saved last, and its clock tells how much of the rest belongs to it.

    Attributes:
        folder: where all of it is.
        population: as it is now.
        lines: its statistics after every round, those of round 0 first.
        snapshots: some of the rounds.
    """

    def __init__(self, folder: Path, population: LevelPopulation, lines: list[Line], snapshots: list[Snapshot]) -> None:
        self.folder, self.population, self.lines, self.snapshots = folder, population, lines, snapshots

    @classmethod
    def start(cls, folder: Path, population: LevelPopulation) -> Records:
        """Records of a new population; those of an older one are removed."""
        for name in (POPULATION, STATISTICS, SNAPSHOTS, CURVES, HARDEST):
            remove_partial(folder / name)
            (folder / name).unlink(missing_ok=True)
        return cls(folder, population, [], [])

    @classmethod
    def load(cls, folder: Path) -> Records:
        """Those that `save` wrote.

        Raises:
            ValueError: a file is damaged.
        """
        population = LevelPopulation.load(folder / POPULATION)
        lines = _read_lines(folder / STATISTICS)
        snapshots = _read_snapshots(folder / SNAPSHOTS)
        return cls(
            folder,
            population,
            [line for line in lines if line["round"] <= population.clock],
            [snapshot for snapshot in snapshots if snapshot["round"] <= population.clock],
        )

    def note(self, picture_every: int, paths: Callable[[Tiles], NDArray[np.float32]]) -> None:
        """Note the round that the population's clock tells, unless it is noted already.

        Args:
            picture_every: rounds from snapshot to snapshot.
            paths: (n, H, W) tiles -> what a policy makes of them, (n, H, W); not called for most rounds.
        """
        clock = self.population.clock
        if clock % picture_every == 0 and not any(snapshot["round"] == clock for snapshot in self.snapshots):
            self.snapshots.append(self._snapshot(paths))
        if not self.lines or self.lines[-1]["round"] < clock:
            complete = float(self.population.complete_rate.mean())
            self.lines.append({"round": clock, **self.population.statistics(), "complete": complete})

    def hardest(self, n: int) -> NDArray[np.int64]:
        """(n,) indices of the levels of most regret, those of long solutions first among equals."""
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
        arrays: dict[str, Any] = {
            f"{k}_{i}": v for i, snapshot in enumerate(self.snapshots) for k, v in snapshot.items()
        }
        with replacing(self.folder / SNAPSHOTS) as file:
            np.savez_compressed(file, **arrays)
        self.population.save(self.folder / POPULATION)

    def draw(self, title: str, n_rounds: int) -> dict[str, Path]:
        """Draw both pictures; returns what is where."""
        from maze_nca_gym.cli.evolution_pictures import draw_curves, draw_hardest

        return {
            "levels": self.folder / POPULATION,
            "statistics": self.folder / STATISTICS,
            "curves": draw_curves(self.lines, title, self.folder / CURVES),
            "hardest levels": draw_hardest(self.snapshots, self.lines, self.folder / HARDEST),
        }


def _read_lines(path: Path) -> list[Line]:
    try:
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        if not all(isinstance(line, dict) and isinstance(line["round"], int) for line in lines):
            raise ValueError("a line names no round")
    except UNREADABLE as error:
        raise ValueError(f"{path} is not readable: {error}") from error
    return lines


def _read_snapshots(path: Path) -> list[Snapshot]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return [
                {name: archive[f"{name}_{i}"] for name in ("round", "tiles", "paths", "regret")}
                for i in range(len(archive.files) // 4)
            ]
    except UNREADABLE as error:
        raise ValueError(f"{path} is not readable: {error}") from error
