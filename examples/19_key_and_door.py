"""A task whose answer has two channels: the way to a key, and the way from the key through a door to the target."""

import sys

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.mazes import (
    KINDS,
    STEPS,
    USUAL_ORDER,
    Guidance,
    Kind,
    Task,
    Tile,
    first_steps,
    register_task,
    solvers,
)

KEY, DOOR = len(KINDS), len(KINDS) + 1
LEGS = np.array(  # what empty, wall, source, target, key and door are on each leg: the door is a wall without the key
    [
        [Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.EMPTY, Tile.TARGET, Tile.WALL],
        [Tile.EMPTY, Tile.WALL, Tile.EMPTY, Tile.TARGET, Tile.SOURCE, Tile.EMPTY],
    ],
    np.uint8,
)


def mark(rng, tiles):
    """Put a door on the way to the target, unless that is too short, and a key on this side of the door."""
    for level in tiles:
        way = np.argwhere(solvers.shortest_path(level) & (solvers.distances(level) > 1) & (level == Tile.EMPTY))
        if len(way):
            level[tuple(rng.choice(way))] = DOOR
        elif (solvers.distances(level) >= 0).sum() == 2:  # no room for a key: an open room instead of a maze
            level[1:-1, 1:-1][level[1:-1, 1:-1] == Tile.WALL] = Tile.EMPTY
        shut = np.where(level == DOOR, np.uint8(Tile.WALL), level)
        level[tuple(rng.choice(np.argwhere((solvers.distances(shut) > 0) & (level == Tile.EMPTY))))] = KEY
    return tiles


def solve(tiles, order=USUAL_ORDER):
    """The canonical shortest paths of both legs by breadth-first search, (N, 2, H, W) bool."""
    paths, solvable = np.zeros((len(tiles), 2, *tiles.shape[1:]), bool), (tiles == KEY).sum(axis=(1, 2)) == 1
    paths[solvable] = np.stack([solvers.shortest_path(leg, order) for leg in LEGS[:, tiles[solvable]]], axis=1)
    return paths & paths.any(axis=(2, 3)).all(axis=1)[:, None, None, None]


def is_optimal(tiles, paths):
    """Whether both paths are shortest ones, (N,) bool."""
    return np.all([solvers.is_optimal(leg, paths[:, i]) for i, leg in enumerate(LEGS[:, tiles])], axis=0)


def guidance(tiles, order=USUAL_ORDER):
    """The next move at every tile, on either leg."""
    to_key, to_target = (first_steps(leg, order) for leg in LEGS[:, tiles])
    channels = np.concatenate([to_key.channels, to_target.channels], axis=1)
    return Guidance(channels, np.maximum(to_key.after, to_target.after))


register_task(
    Task(
        name="key-and-door",
        kinds=(*KINDS, Kind("key", "k", "#e6c229"), Kind("door", "d", "#8c6d46")),
        answers=("to_key", "to_target"),
        mark=mark,
        n_channels=16,
        solve=solve,
        is_optimal=is_optimal,
        guidance=guidance,
        guided=tuple(f"{step}_{leg}" for leg in ("to_key", "to_target") for step in STEPS),
        usual_length=80,
        default_steps=96,
    )
)
register_environment("MazeKeyAndDoor-v0", "key-and-door", max_episode_steps=512)

if __name__ == "__main__":
    from maze_nca_gym.agents import evaluate, train

    size = {"n_channels": 48, "n_iterations": 24, "sizes": (8,), "n_updates": int((sys.argv[1:] or ["600"])[0])}
    fast = {"optimiser": "soap", "learning_rate": 6e-3, "guidance": 1.0, "long_fraction": 0.0}
    model = train("fast", out="runs/key-and-door", task="key-and-door", **size, **fast)
    (row,) = evaluate({"learned": model}, families="random", sizes=8, n=500, steps=24)
    print(f"{row.metrics.optimal.value:.1%} of 500 test levels optimal; runs/key-and-door has pictures")
