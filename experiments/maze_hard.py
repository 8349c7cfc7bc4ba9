"""The original Maze-Hard, learned from its 1,000 answers alone: `python -m experiments.maze_hard --help`.

`cut` writes level sets of parts of answers. A part of a canonical path is the canonical path between its own ends, so
an answer holds thousands of shorter ones, and no solver is asked. `measure` looks at the mazes that were kept for
validation, in all eight orientations. All trainings are `maze-nca-gym train`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from maze_nca_gym.agents import load
from maze_nca_gym.agents.rollouts import batches, encode, rollout
from maze_nca_gym.agents.rollouts.symmetrised import turn
from maze_nca_gym.mazes import LevelSet, Tile, Tiles, load_levels
from maze_nca_gym.mazes.benchmark_sets.hard import ORDER
from maze_nca_gym.mazes.benchmark_sets.original import read_original
from maze_nca_gym.mazes.solvers import distances, is_optimal, shortest_path

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


def measure(
    models: tuple[Path, ...], /, levels: Path = Path("runs/maze-hard/validation.npz"), n_steps: int = 600
) -> None:
    """Print how many of some mazes models solve in one pass, as they are and in all eight orientations, in %.

    Args:
        models: model files.
        levels: the mazes.
        n_steps: iterations on each maze.
    """
    tiles = load_levels(levels).tiles
    turned = np.concatenate([turn(torch.from_numpy(tiles), orientation).numpy() for orientation in range(8)])
    for model in models:
        policy, paths = load(str(model)), []
        for members in batches(turned, 100):
            with torch.no_grad():
                state = rollout(policy, encode(policy, turned[members]), n_steps, n_returned=1)
            paths.append(state[:, 0].numpy() > 0.5)
        drawn = np.concatenate(paths)
        exact = (drawn[: len(tiles)] == shortest_path(tiles, order=ORDER)).all(axis=(1, 2))
        optimal = np.asarray(is_optimal(turned, drawn)).reshape(8, -1)
        found = (exact.mean(), optimal[0].mean(), optimal.mean(), optimal.any(axis=0).mean())
        words = ("exact", "optimal", "optimal, turned", "in some orientation")
        print(model, ", ".join(f"{word} {100 * part:.1f}" for word, part in zip(words, found, strict=True)), flush=True)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"cut": cut, "measure": measure}, description=__doc__)
