"""Levels that may enter a population, and what an agent's measurements of levels look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.levels import Tiles


@dataclass(frozen=True, eq=False)
class Candidates:
    """N solvable levels that may enter a population.

    Attributes:
        tiles: (N, H, W) uint8.
        targets: (N, H, W) bool, their canonical solutions.
        parents: (N,) int64 ids, -1: fresh.
        generations: (N,) int64, 0 for fresh levels, else their parent's + 1.
        seeds: (N,) int64 of their mutations, -1: fresh.
        edits: N arrays (k, 3) int16, row, col and new tile: what makes them of their parents.
    """

    tiles: Tiles
    targets: NDArray[np.bool_]
    parents: NDArray[np.int64]
    generations: NDArray[np.int64]
    seeds: NDArray[np.int64]
    edits: tuple[NDArray[np.int16], ...]

    def __len__(self) -> int:
        return len(self.tiles)

    def take(self, indices: ArrayLike) -> Candidates:
        """Those of these indices, in that order."""
        which = np.asarray(indices, np.int64)
        return Candidates(
            self.tiles[which],
            self.targets[which],
            self.parents[which],
            self.generations[which],
            self.seeds[which],
            tuple(self.edits[i] for i in which.tolist()),
        )


class Measurements(NamedTuple):
    """What N levels induced.

    Attributes:
        regret: (N,) float64, finite: the agent's loss against the exact solution.
        complete: (N,) float64 in [0, 1]: whether the agent completed them, or the share of times.
    """

    regret: NDArray[np.float64]
    complete: NDArray[np.float64]


def as_measurements(fitness: ArrayLike, complete: ArrayLike, n: int) -> Measurements:
    """Check and convert the measurements of n levels.

    Raises:
        ValueError: another length, or values out of range.
    """
    regret, completed = np.asarray(fitness, np.float64), np.asarray(complete, np.float64)
    if regret.shape != (n,) or completed.shape != (n,):
        raise ValueError(f"fitness and complete must have shape {(n,)}, got {regret.shape} and {completed.shape}")
    if not np.isfinite(regret).all():
        raise ValueError(f"fitness must be finite, got {regret[~np.isfinite(regret)][0]}")
    if not ((completed >= 0) & (completed <= 1)).all():
        raise ValueError(f"complete must lie in [0, 1], got {completed.min()} to {completed.max()}")
    return Measurements(regret, completed)
