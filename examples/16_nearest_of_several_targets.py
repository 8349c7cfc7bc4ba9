"""A task of one's own: the shortest path to the nearest of several targets, solved by the package's searches."""

import sys

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.mazes import Task, Tile, of_each, register_task, solvers


def mark(rng, tiles):
    """Put up to three more targets on empty tiles of generated levels, which have one."""
    for level in tiles:
        empty = np.argwhere(level == Tile.EMPTY)
        for place in rng.permutation(empty)[: rng.integers(1, 4)]:
            level[tuple(place)] = Tile.TARGET
    return tiles


@of_each
def solve(level, order="ULDR"):
    """The canonical path to the nearest target, (H, W) bool; of targets at one distance, to the first row by row."""
    paths = solvers.shortest_paths_from(level, np.argwhere(level == Tile.TARGET), order=order)
    lengths = paths.sum(axis=(1, 2))
    return paths[np.where(lengths, lengths, level.size + 1).argmin()]


@of_each
def is_optimal(level, path):
    """Whether a path is a shortest one to some target that is as near as any."""
    reached = level.copy()
    reached[(level == Tile.TARGET) & ~path] = Tile.EMPTY
    one = (reached == Tile.TARGET).sum() == 1
    return bool(one and solvers.is_optimal(reached, path) and path.sum() == solve(level[None]).sum())


register_task(
    Task(
        name="nearest-target",
        mark=mark,
        n_channels=8,
        solve=solve,
        is_optimal=is_optimal,
        usual_length=24,
        default_steps=48,
    )
)
register_environment("MazeNearestTarget-v0", "nearest-target", max_episode_steps=512)

if __name__ == "__main__":
    from maze_nca_gym.agents import evaluate, train

    size = {"n_channels": 16, "n_iterations": 24, "sizes": (8,), "n_updates": int((sys.argv[1:] or ["500"])[0])}
    train("fast", out="runs/nearest-target", task="nearest-target", **size, optimiser="soap", learning_rate=6e-3)
    (row,) = evaluate("runs/nearest-target/model.safetensors", families="random", sizes=8, n=500)
    print(f"{row.metrics.optimal.value:.1%} of 500 test levels optimal")
