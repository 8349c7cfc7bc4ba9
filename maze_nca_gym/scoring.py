"""How good a predicted path is: the paper's metrics (section "Experimental setup"), and one more.

Exact match with the canonical target (`complete`) calls an equally short path wrong; `optimal` does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym._jit import kernels
from maze_nca_gym.levels import Tiles, as_tiles, behaved

LOSS, ACCURACY, COMPLETE, OPTIMAL = range(4)
"""Columns of `Scores.table`."""


class Scores(NamedTuple):
    """Metrics of N levels.

    Attributes:
        table: (N, 4) float64, a row a level: loss, accuracy, complete, optimal (0 or 1).
    """

    table: NDArray[np.float64]

    @property
    def loss(self) -> NDArray[np.float64]:
        """(N,) the mean over all tiles of (clip(path, 0, 1) - target)^2."""
        return self.table[:, LOSS]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """(N,) 1 - loss / (loss of an all-zero path): 1 for perfect, 0 for nothing, may be negative."""
        return self.table[:, ACCURACY]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """(N,) whether the rounded path is the canonical target."""
        return self.table[:, COMPLETE] != 0

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """(N,) whether the rounded path is some optimal path; loss and accuracy are then measured against it."""
        return self.table[:, OPTIMAL] != 0


def score(tiles: ArrayLike, path: ArrayLike, target: ArrayLike) -> Scores:
    """Score predicted paths against the exact solutions.

    Args:
        tiles: (N, H, W) uint8; a level with source and target asks for the shortest path, one without for the diameter.
        path: (N, H, W) floats, the predictions.
        target: (N, H, W) bool, the canonical solutions, at least one tile each.

    Raises:
        ValueError: the shapes differ, a prediction is NaN, or a target is empty.
    """
    levels: Tiles = as_tiles(tiles, ndim=(3,))
    paths, targets = behaved(path, np.float32), behaved(target, np.bool_)
    if not levels.shape == paths.shape == targets.shape:
        raise ValueError(
            f"tiles, path and target must have one shape, got {levels.shape}, {paths.shape}, {targets.shape}"
        )
    if np.isnan(paths).any():
        raise ValueError(f"the path of level {int(np.argmax(np.isnan(paths).any(axis=(1, 2))))} holds NaN")
    empty = ~targets.any(axis=(1, 2))
    if empty.any():
        raise ValueError(f"the target of level {int(np.argmax(empty))} is empty: the level is unsolvable")
    table = np.empty((len(levels), 4))
    if len(levels):
        kernels(levels.size).score_paths(levels, targets, paths, table)
    return Scores(table)
