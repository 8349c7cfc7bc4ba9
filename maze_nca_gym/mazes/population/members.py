"""Levels that may enter a population, those in it, and what is known of them, as arrays that grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.levels import Tile, Tiles, level_hashes
from maze_nca_gym.mazes.population.config import MEASURES
from maze_nca_gym.mazes.scoring import IsOptimal, Scores, score
from maze_nca_gym.support.names import unknown_name

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
"""Fields of a member's record, beside its tiles and solution."""


class Members:
    """N levels at indices 0 .. N - 1. All arrays are read-only views; `put` and `update` write.

    Attributes:
        hashes: `level_hashes` of all of them.
    """

    def __init__(self) -> None:
        self.hashes: set[int] = set()
        self._n = 0
        self._tiles: Tiles = np.zeros((0, 0, 0), np.uint8)
        self._targets: NDArray[np.bool_] = np.zeros((0, 0, 0), np.bool_)
        self._table = np.zeros(0, MEMBER)

    def __len__(self) -> int:
        return self._n

    @property
    def tiles(self) -> Tiles:
        """(N, H, W) uint8."""
        return _read_only(self._tiles[: self._n])

    @property
    def targets(self) -> NDArray[np.bool_]:
        """(N, H, W) bool, their canonical solutions."""
        return _read_only(self._targets[: self._n])

    @property
    def table(self) -> NDArray[Any]:
        """(N,) records of type `MEMBER`."""
        return _read_only(self._table[: self._n])

    def find(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the indices of the levels with these (N,) ids, (N,) int64, -1 where there is none."""
        wanted, own = np.asarray(ids, np.int64), self.table["id"]
        order = np.argsort(own)
        at = np.minimum(np.searchsorted(own, wanted, sorter=order), self._n - 1)
        return np.where(own[order[at]] == wanted, order[at], -1) if self._n else np.full(wanted.shape, -1, np.int64)

    def update(self, which: NDArray[np.int64], regret: ArrayLike, complete: ArrayLike, clock: int) -> None:
        """Record measurements, (N,) floats, in their order; an index may be repeated."""
        self._table["fitness"][which] = regret
        self._table["last_seen"][which] = clock
        np.add.at(self._table["n_seen"], which, 1)
        np.add.at(self._table["completed"], which, complete)

    def put(self, which: NDArray[np.int64], tiles: Tiles, targets: NDArray[np.bool_], table: NDArray[Any]) -> None:
        """Write (N, H, W) levels to (N,) indices; those beyond the last member must follow it without a gap.

        The table's `length`, `n_free` and `hash` are computed.
        """
        if not len(which):
            return
        end = max(self._n, int(which.max()) + 1)
        if end > len(self._table):
            room = max(end, 2 * self._n)  # doubling, so that growth copies each level once or twice in all
            self._tiles = _enlarge(self._tiles, (room, *tiles.shape[1:]))
            self._targets = _enlarge(self._targets, (room, *tiles.shape[1:]))
            self._table = _enlarge(self._table, (room,))
        self.hashes.difference_update(self._table["hash"][which[which < self._n]].tolist())
        self._n = end
        self._tiles[which], self._targets[which], self._table[which] = tiles, targets, table
        self._table["length"][which] = np.count_nonzero(targets, axis=(1, 2))
        self._table["n_free"][which] = np.count_nonzero(tiles != Tile.WALL, axis=(1, 2))
        self._table["hash"][which] = hashes = level_hashes(tiles)
        self.hashes.update(hashes.tolist())


@dataclass(frozen=True, eq=False)
class Candidates:
    """N solvable levels that may enter a population.

    Attributes:
        tiles: (N, H, W) uint8.
        targets: (N, H, W) bool, their canonical solutions.
        parents: (N,) int64 ids, -1: fresh.
        generations: (N,) int64, 0 for fresh levels, else their parent's + 1.
        seeds: (N,) int64 of their mutations, -1: fresh.
        edits: N arrays (k, 3) int16, row, col and new tile: the changes from their parents.
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
    """Measurements of an agent on N levels.

    Attributes:
        regret: (N,) float64, finite: the agent's regret, or another of `config.MEASURES`.
        complete: (N,) float64 in [0, 1]: whether the agent completed them, or the fraction of times.
    """

    regret: NDArray[np.float64]
    complete: NDArray[np.float64]


def measure(
    name: str,
    tiles: Tiles,
    path: NDArray[np.float32],
    target: NDArray[np.bool_],
    is_optimal: IsOptimal | None = None,
    scores: Scores | None = None,
) -> Measurements:
    """Return how far paths are from the exact solutions, and whether they are solutions.

    With "regret" and "accuracy" any optimal path counts as a solution, and the nearest one is compared; with "loss",
    only the canonical one.

    Args:
        name: "regret", the loss; "loss", against the canonical solution; or "accuracy", 1 - accuracy.
        tiles: (N, H, W) uint8.
        path: (N, H, W) float32, the predictions.
        target: (N, H, W) bool, the canonical solutions.
        is_optimal: `tasks.Task.judge` of the levels' task.
        scores: what `scoring.score` returns for these arguments, if it is known already.

    Raises:
        ValueError: an unknown name, or the same errors as from `scoring.score`.
    """
    if name not in MEASURES:
        raise ValueError(unknown_name("measure", name, MEASURES))
    if scores is None or name == "loss":
        scores = score(tiles, path, target, is_optimal, canonical=name == "loss")
    lacking = 1.0 - scores.accuracy if name == "accuracy" else scores.loss
    return Measurements(lacking, scores.optimal.astype(np.float64))


def as_measurements(fitness: ArrayLike, complete: ArrayLike, n: int) -> Measurements:
    """Check and convert the measurements of n levels, two arrays of (n,) floats.

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


def learnability(completed: NDArray[np.float64], n_seen: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Return (N,) p (1 - p), in (0, 1/4]: high for levels completed now and then, low for always or never.

    p is estimated as (completed + 1) / (measured + 2), Laplace's rule of succession. So a level measured once does not
    count as certain.
    """
    p = (completed + 1) / (n_seen + 2)
    return p * (1 - p)


def statistics(table: NDArray[Any], clock: int) -> dict[str, float]:
    """Return means over all members of a table, (n,) records, for a log; 0 where there are no members.

    `regret_learnability_correlation` is Pearson's, 0 where either is the same for all levels.
    """
    learnabilities = learnability(table["completed"], table["n_seen"])
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
        **{f"mean_{name}": float(each.mean()) if len(table) else 0.0 for name, each in values.items()},
        "regret_learnability_correlation": _correlation(table["fitness"], learnabilities),
    }


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    if len(a) < 2 or a.min() == a.max() or b.min() == b.max():
        return 0.0
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # scaled, since squares of extreme values overflow or vanish
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / norm) if norm > 0 else 0.0


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _enlarge(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the array at the head of a larger one."""
    larger = np.zeros(shape, array.dtype)
    if len(array):
        larger[: len(array)] = array
    return larger
