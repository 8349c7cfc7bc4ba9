"""Records of the levels in a population, and the candidates that may enter it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.scoring import IsOptimal, Scores, score
from maze_nca_gym.support.arrays import as_array

MEMBER = np.dtype(
    [
        ("id", np.int64),  # its number, counted up over the life of the population
        ("parent", np.int64),  # its parent's id, -1: fresh
        ("generation", np.int64),  # 0: fresh, else its parent's + 1
        ("seed", np.int64),  # of its mutation, -1: fresh
        ("born", np.int64),  # tick at which it entered
        ("last_seen", np.int64),  # tick at which it was last measured
        ("n_seen", np.int64),  # how often it was measured
        ("completed", np.float64),  # sum of `complete` over those measurements
        ("fitness", np.float64),  # regret at the last of them
        ("length", np.int64),  # tiles on its solution
        ("n_free", np.int64),  # tiles that are not walls
        ("hash", np.uint64),  # `level_hashes`
    ]
)
"""Fields of a member's record. Its tiles and its solution are stored separately."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """N solvable levels that may enter a population.

    Attributes:
        tiles: (N, H, W) uint8.
        targets: (N, H, W) bool, their canonical solutions.
        parents: (N,) int64, the ids of their parents, or -1 for fresh levels.
        generations: (N,) int64, 0 for fresh levels, and otherwise the parent's generation + 1.
        seeds: (N,) int64, the seeds of their mutations, or -1 for fresh levels.
        edits: N arrays (k, 3) int16, row, col and new tile: the differences from their parents.
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
        """Return the candidates at these (K,) indices, in that order."""
        which = as_array(indices, "indices", np.int64)
        names = ("tiles", "targets", "parents", "generations", "seeds")
        taken: dict[str, Any] = {name: getattr(self, name)[which] for name in names}
        return Candidates(**taken, edits=tuple(self.edits[i] for i in which.tolist()))


class Measurements(NamedTuple):
    """Measurements of an agent on N levels.

    Attributes:
        regret: (N,) float64, finite: the agent's regret, or another measure of `config.MEASURES`.
        complete: (N,) float64 in [0, 1]: whether the agent completed each level, or the fraction of attempts in which
            it did.
    """

    regret: NDArray[np.float64]
    complete: NDArray[np.float64]


def measure_levels(
    name: str,
    tiles: Tiles,
    path: NDArray[np.float32],
    target: NDArray[np.bool_],
    is_optimal: IsOptimal | None = None,
    scores: Scores | None = None,
) -> Measurements:
    """Return how far paths are from the exact solutions, and whether they are solutions.

    Args:
        name: the measure: "regret", the loss against the nearest optimal path; "loss", the loss against the canonical
            solution; or "accuracy", 1 - accuracy against the nearest optimal path.
        tiles: (N, H, W) uint8.
        path: (N, H, W) float32, the predictions.
        target: (N, H, W) bool, the canonical solutions.
        is_optimal: `tasks.Task.judge` of the levels' task.
        scores: the result of `scoring.score` for these arguments, if it is known already, or None.

    Raises:
        ValueError: the same errors as from `scoring.score`.
    """
    if scores is None or name == "loss":
        scores = score(tiles, path, target, is_optimal, canonical=name == "loss")
    lacking = 1.0 - scores.accuracy if name == "accuracy" else scores.loss
    return Measurements(lacking, scores.optimal.astype(np.float64))


def as_measurements(fitness: ArrayLike, complete: ArrayLike, n: int) -> Measurements:
    """Return the measurements of n levels after checking their shapes and values.

    Args:
        fitness: (n,) floats, finite.
        complete: (n,) floats or bools in [0, 1].
        n: the number of levels.

    Raises:
        ValueError: another length, or values out of range.
    """
    regret, completed = as_array(fitness, "fitness", np.float64), as_array(complete, "complete", np.float64)
    if regret.shape != (n,) or completed.shape != (n,):
        raise ValueError(f"fitness and complete must have shape {(n,)}, got {regret.shape} and {completed.shape}")
    if not np.isfinite(regret).all():
        raise ValueError(f"fitness must be finite, got {regret[~np.isfinite(regret)][0]}")
    if not ((completed >= 0) & (completed <= 1)).all():
        raise ValueError(f"complete must lie in [0, 1], got {completed.min()} to {completed.max()}")
    return Measurements(regret, completed)


def learnability(completed: NDArray[np.float64], n_seen: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Return p (1 - p) of each level, (N,) float64 in (0, 1/4]: high for levels that are completed sometimes, low for
    levels that are completed always or never.

    The probability p is estimated as (completed + 1) / (n_seen + 2), Laplace's rule of succession. So a level that was
    measured once does not count as certain.

    Args:
        completed: (N,) float64, how often each level was completed.
        n_seen: (N,) int64, how often each level was measured, or one number for all.
    """
    p = (completed + 1) / (n_seen + 2)
    return p * (1 - p)


def statistics(table: NDArray[Any], clock: int) -> dict[str, float]:
    """Return figures of a population by name, for a log: the number of members, their largest fitness, and means.

    All figures are 0 if there are no members. `regret_learnability_correlation` is Pearson's correlation coefficient,
    or 0 if regret or learnability is the same for all levels.

    Args:
        table: (n,) records of dtype `MEMBER`.
        clock: the population's clock, in ticks.
    """
    learnabilities = learnability(table["completed"], table["n_seen"])
    a, b, correlation = table["fitness"], learnabilities, 0.0
    if len(a) > 1 and a.min() < a.max() and b.min() < b.max():
        a, b = a / np.abs(a).max(), b / np.abs(b).max()  # scaled, since squares of extreme values overflow or vanish
        a, b = a - a.mean(), b - b.mean()
        norm = np.sqrt((a * a).sum() * (b * b).sum())
        correlation = float((a * b).sum() / norm) if norm > 0 else 0.0
    values = {
        "fitness": table["fitness"],
        "learnability": learnabilities,
        "solution_length": table["length"],
        "n_free": table["n_free"],
        "age": clock - table["born"],
        "generation": table["generation"],
    }
    return {
        "n": float(len(table)),
        "max_fitness": float(table["fitness"].max()) if len(table) else 0.0,
        **{f"mean_{name}": float(array.mean()) if len(table) else 0.0 for name, array in values.items()},
        "regret_learnability_correlation": correlation,
    }
