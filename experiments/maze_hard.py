"""The original Maze-Hard, learned from its 1,000 answers alone: `python -m experiments.maze_hard --help`.

This writes level sets of parts of answers. A part of a canonical path is the canonical path between its own ends, so an
answer holds thousands of shorter ones, and no solver is asked. Trainings are `maze-nca-gym train`, and `maze-nca-gym
evaluate --levels` measures on the mazes that are kept for validation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import LevelSet, Tile, Tiles
from maze_nca_gym.mazes.benchmark_sets.hard import ORDER
from maze_nca_gym.mazes.benchmark_sets.original import read_original
from maze_nca_gym.mazes.solvers import distances, shortest_path

N_VALIDATED = 100
"""The last of the training mazes are not trained on."""


def cut_answers(
    rng: np.random.Generator, tiles: Tiles, labels: NDArray[np.bool_], n: int, whole: float, least: float
) -> Tiles:
    """Return n levels of each of (N, H, W) levels, (n N, H, W), whose ends are any two tiles of its label.

    Args:
        rng: draws the ends.
        tiles: the levels.
        labels: (N, H, W) bool, their canonical paths.
        n: number of levels to make of each.
        whole: fraction of these that keep both ends, 0 to 1.
        least: smallest part of a label that the others keep, 0 to 1; parts are uniform from there to 1.
    """
    found = np.repeat(tiles, n, axis=0)
    for level, label in zip(found, np.repeat(labels, n, axis=0), strict=True):
        if rng.random() < whole:
            continue
        away = distances(np.where(label, level, Tile.WALL), np.argwhere(level == Tile.TARGET)[0])
        path = np.argwhere(label)[np.argsort(away[label])]
        n_kept = max(2, round(len(path) * rng.uniform(least, 1)))
        first = int(rng.integers(len(path) - n_kept + 1))
        level[level != Tile.WALL] = Tile.EMPTY
        level[tuple(path[first])], level[tuple(path[first + n_kept - 1])] = Tile.TARGET, Tile.SOURCE
    return found


def cut(
    data: Path, out: Path = Path("runs/maze-hard"), n: int = 32, whole: float = 0.5, least: float = 0.0, seed: int = 0
) -> None:
    """Write a level set of parts of answers, and that of the mazes to validate on, which are not among them.

    Args:
        data: folder with the files of Maze-Hard, as of `bench --data`.
        out: folder for cut-WHOLE-LEAST.npz and validation.npz.
        n: number of levels to make of each maze.
        whole: fraction of these that are the maze itself, 0 to 1.
        least: smallest part of an answer, 0 to 1.
        seed: seed of the draws.
    """
    tiles, labels = read_original("train", data)
    kept = slice(len(tiles) - N_VALIDATED)
    levels = cut_answers(np.random.default_rng(seed), tiles[kept], labels[kept], n, whole, least)
    solved = shortest_path(levels, order=ORDER)
    assert (solved <= np.repeat(labels[kept], n, axis=0)).all(), "canonical paths of the parts are the parts"
    out.mkdir(parents=True, exist_ok=True)
    print(LevelSet(levels).save(out / f"cut-{whole:g}-{least:g}.npz"))
    print(LevelSet(tiles[kept.stop :]).save(out / "validation.npz"))


if __name__ == "__main__":
    run_script(cut, __doc__)
