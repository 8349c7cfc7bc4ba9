"""Learn the original Maze-Hard from its 1,000 answers alone: `python -m experiments.maze_hard --help`.

The network learns parts of answers. A part of a canonical path is the canonical path between its own ends. An answer
therefore contains thousands of shorter answers, and no solver is necessary. With `--turn`, mazes are also rotated and
mirrored with their answers. The choice among several shortest paths is then rotated too, so the kind of the free tiles
encodes the orientation of the maze.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.agents import evaluate, train
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import KINDS, Kind, LevelSet, Task, Tile, Tiles, register_task
from maze_nca_gym.mazes.benchmark_sets.hard import ORDER
from maze_nca_gym.mazes.benchmark_sets.original import read_original
from maze_nca_gym.mazes.levels import orientations
from maze_nca_gym.mazes.solvers import distances, is_optimal, shortest_path
from maze_nca_gym.mazes.tasks import SHORTEST_PATH

N_VALIDATED = 100
"""Number of mazes at the end of the training set that are held out for validation."""
N_ITERATIONS = 411
"""Number of iterations after which a path is measured."""
BACK = np.array([0, 3, 2, 1, 4, 5, 6, 7])
"""Index of an orientation in `orientations` -> index of the inverse orientation."""


def turned(maps: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    """Return (N, H, H) maps, each in an orientation of its own.

    Args:
        maps: (N, H, H) maps.
        places: (N,) int64 from 0 to 7, the orientation of each map by its index in `orientations`.
    """
    return orientations(maps).reshape(8, *maps.shape)[places, np.arange(len(maps))]


def plain(tiles: Tiles) -> Tiles:
    """Return the levels with EMPTY instead of the kinds of tile that encode an orientation."""
    return np.where(tiles < len(KINDS), tiles, np.uint8(Tile.EMPTY))


def turned_answers(tiles: Tiles) -> NDArray[np.bool_]:
    """Return the answers of (N, H, H) levels in any orientation: the answers of the original levels, oriented alike."""
    places = np.maximum(tiles.max(axis=(1, 2)).astype(np.int64) - len(KINDS) + 1, 0)
    return turned(shortest_path(turned(plain(tiles), BACK[places]), order=ORDER), places)


TURNED = Task(
    name="turned-maze-hard",
    kinds=(*KINDS, *(Kind(f"empty_{i}", str(i), "#ffffff") for i in range(1, 8))),
    solve=turned_answers,
    is_optimal=lambda tiles, paths: is_optimal(plain(tiles), paths),
    usual_length=115,
    default_steps=N_ITERATIONS,
)


def cut_answers(
    rng: np.random.Generator, tiles: Tiles, labels: NDArray[np.bool_], n: int, whole: float, least: float
) -> Tiles:
    """Return n copies of each of N levels, (n N, H, W), in which the ends are two tiles of the level's label.

    Args:
        rng: draws the ends.
        tiles: the levels.
        labels: (N, H, W) bool, their canonical paths.
        n: number of copies of each level.
        whole: fraction of the copies that keep both ends, 0 to 1.
        least: smallest part of a label that the other copies keep, 0 to 1. Parts are uniform between `least` and 1.
    """
    levels = np.repeat(tiles, n, axis=0)
    for level, label in zip(levels, np.repeat(labels, n, axis=0), strict=True):
        if rng.random() < whole:
            continue
        away = distances(np.where(label, level, Tile.WALL), np.argwhere(level == Tile.TARGET)[0])
        path = np.argwhere(label)[np.argsort(away[label])]
        n_kept = max(2, round(len(path) * rng.uniform(least, 1)))
        first = int(rng.integers(len(path) - n_kept + 1))
        level[level != Tile.WALL] = Tile.EMPTY
        level[tuple(path[first])], level[tuple(path[first + n_kept - 1])] = Tile.TARGET, Tile.SOURCE
    return levels


def main(
    data: Path,
    out: Path = Path("runs/maze-hard"),
    turn: bool = False,
    n_updates: int = 16_000,
    seed: int = 0,
    n: int = 32,
    whole: float = 0.5,
    least: float = 0.0,
    n_channels: int = 48,
    compile: bool | Literal["auto", "graphs"] = False,
) -> None:
    """Train on parts of 900 answers, and measure on the 100 mazes that are held out for validation.

    Args:
        data: folder with the files of Maze-Hard, as for `bench --data`.
        out: folder for the levels and the run. The same command continues a run.
        turn: whether each level is in a random orientation.
        n_updates: number of updates.
        seed: seed of the draws.
        n: number of levels to make from each maze.
        whole: fraction of these levels that are the maze itself, 0 to 1.
        least: smallest part of an answer, 0 to 1.
        n_channels: number of the network's channels.
        compile: the option of `train`; use graphs on a CUDA GPU.
    """
    tiles, labels = read_original("train", data)
    training, rng = slice(len(tiles) - N_VALIDATED), np.random.default_rng(seed)
    levels, answers = (
        cut_answers(rng, tiles[training], labels[training], n, whole, least),
        np.repeat(labels[training], n, axis=0),
    )
    assert (shortest_path(levels, order=ORDER) <= answers).all(), "canonical paths of the parts are the parts"
    task = SHORTEST_PATH.ordered(ORDER).name
    if turn:
        places, task = rng.integers(8, size=len(levels)), register_task(TURNED).name
        levels = turned(levels, places)
        marks = np.where(places, places + len(KINDS) - 1, Tile.EMPTY).astype(np.uint8)
        levels = np.where(levels == Tile.EMPTY, marks[:, None, None], levels)
        assert (turned_answers(levels) <= turned(answers, places)).all(), "answers are turned like their levels"
    out.mkdir(parents=True, exist_ok=True)
    LevelSet(levels, {"task": task}).save(out / "levels.npz")
    LevelSet(tiles[training.stop :], {"task": task}).save(out / "validation.npz")
    model = train(
        "extrapolate",
        out=out / "run",
        task=task,
        level_set=str(out / "levels.npz"),
        validation_set=str(out / "validation.npz"),
        n_channels=n_channels,
        sizes=(28,),
        batch_size=24,
        pool_size=512,
        pool_edited=0.0,
        precision="bfloat16",
        compile=compile,
        n_updates=n_updates,
        seed=seed,
        threads=1,
    )
    (row,) = evaluate({"network": model}, levels=out / "validation.npz", steps=N_ITERATIONS)
    print(f"exact: {row.metrics.complete.value:.1%}, valid and optimal: {row.metrics.optimal.value:.1%}")


if __name__ == "__main__":
    run_script(main, __doc__)
