"""Add a task with two answers, the path to a key and from there through a door to the target: by search, by an
automaton, and by a network."""

import sys
from enum import IntEnum

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents.automata import Automaton, CanonicalPath, StepBound, both_of, canonical_path, is_free
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
LEGS = np.array(  # empty, wall, source, target, key and door on each leg; the door is a wall without the key
    [
        [Tile.EMPTY, Tile.WALL, Tile.SOURCE, Tile.EMPTY, Tile.TARGET, Tile.WALL],
        [Tile.EMPTY, Tile.WALL, Tile.EMPTY, Tile.TARGET, Tile.SOURCE, Tile.EMPTY],
    ],
    np.uint8,
)


def mark(rng, tiles):
    """Put a door on the way to the target, unless the way is too short, and a key on the source's side of the door."""
    for level, path, far in zip(tiles, solvers.shortest_path(tiles), solvers.distances(tiles), strict=True):
        way = np.argwhere(path & (far > 1) & (level == Tile.EMPTY))
        if len(way):
            level[tuple(rng.choice(way))] = DOOR
        elif (far >= 0).sum() == 2:  # no room for a key: an open room instead of a maze
            level[1:-1, 1:-1][level[1:-1, 1:-1] == Tile.WALL] = Tile.EMPTY
        shut = np.where(level == DOOR, np.uint8(Tile.WALL), level)
        level[tuple(rng.choice(np.argwhere((solvers.distances(shut) > 0) & (level == Tile.EMPTY))))] = KEY
    return tiles


def solve(tiles, order=USUAL_ORDER):
    """Return the canonical shortest paths of both legs by breadth-first search, (N, 2, H, W) bool."""
    paths, solvable = np.zeros((len(tiles), 2, *tiles.shape[1:]), bool), (tiles == KEY).sum(axis=(1, 2)) == 1
    paths[solvable] = np.stack([solvers.shortest_path(leg, order) for leg in LEGS[:, tiles[solvable]]], axis=1)
    return paths & paths.any(axis=(2, 3)).all(axis=1)[:, None, None, None]


def is_optimal(tiles, paths):
    """Return whether both paths are shortest paths, (N,) bool."""
    return np.all([solvers.is_optimal(leg, paths[:, i]) for i, leg in enumerate(LEGS[:, tiles])], axis=0)


def guidance(tiles, order=USUAL_ORDER):
    """Return the next move at every tile, on each leg."""
    to_key, to_target = (first_steps(leg, order) for leg in LEGS[:, tiles])
    channels = np.concatenate([to_key.channels, to_target.channels], axis=1)
    return Guidance(channels, np.maximum(to_key.after, to_target.after))


def specification(order=USUAL_ORDER):
    """Return the claim of a proof: the answers are the shortest paths to the key, past no door, and on from there."""

    def free(picture, at):
        return is_free(picture, at) & ~picture.tile(DOOR, at)

    return both_of(
        canonical_path(order, end=KEY, free=free, name="to key"), canonical_path(order, start=KEY, name="to target")
    )


register_task(
    Task(
        name="key-and-door",
        kinds=(*KINDS, Kind("key", "k", "#e6c229"), Kind("door", "d", "#8c6d46")),
        answers=("to_key", "to_target"),
        mark=mark,
        n_channels=16,
        solve=solve,
        is_optimal=is_optimal,
        specification=specification,
        guidance=guidance,
        guided=tuple(f"{step}_{leg}" for leg in ("to_key", "to_target") for step in STEPS),
        usual_length=80,
        default_steps=96,
    )
)
register_environment("MazeKeyAndDoor-v0", "key-and-door", max_episode_steps=512)

LEG = ("FLOOD", *(f"{signal}_{towards}" for signal in ("NEAR", "ENTER") for towards in USUAL_ORDER))
NAMES = ("TO_KEY", "TO_TARGET", *(f"KEY_{name}" for name in LEG), *(f"TARGET_{name}" for name in LEG))
Signal = IntEnum("Signal", NAMES, start=0)
TO_KEY, TO_TARGET = (
    CanonicalPath(
        Signal,
        start=lambda see, tap, kind=start: see.tile(kind, tap),
        end=lambda see, tap, kind=end: see.tile(kind, tap),
        walls=walls,
        prefix=prefix,
    )
    for start, end, walls, prefix in (
        (Tile.SOURCE, KEY, (Tile.WALL, DOOR), "KEY_"),
        (KEY, Tile.TARGET, (Tile.WALL,), "TARGET_"),
    )
)
BOTH_LEGS = Automaton(
    name="key-and-door",
    task="key-and-door",
    signals=Signal,
    rules={
        Signal.TO_KEY: lambda see: see(TO_KEY.flood) & TO_KEY.on_path(see),
        Signal.TO_TARGET: lambda see: see(TO_TARGET.flood) & TO_TARGET.on_path(see),
        **TO_KEY.rules,
        **TO_TARGET.rules,
    },
    # the signals of one leg do not constrain the signals of the other
    parts=tuple(tuple(s for s in Signal if s.name.removeprefix("TO_").startswith(leg)) for leg in ("KEY", "TARGET")),
    bound=StepBound(constant=2, per_move=2),
    invariant=lambda see: TO_KEY.invariant(see) & TO_TARGET.invariant(see),
)

if __name__ == "__main__":
    from maze_nca_gym.agents import compile_automaton, evaluate, train

    size = {"n_channels": 48, "n_iterations": 24, "sizes": (8,), "n_updates": int((sys.argv[1:] or ["600"])[0])}
    fast = {"optimiser": "soap", "learning_rate": 6e-3, "guidance": 1.0, "long_fraction": 0.0}
    model = train("fast", out="runs/key-and-door", task="key-and-door", **size, **fast)
    proven, certificate = compile_automaton(BOTH_LEGS)
    for name, (policy, steps) in {"learned": (model, 24), "compiled": (proven, None)}.items():
        (row,) = evaluate({name: policy}, families="random", sizes=8, n=500, steps=steps)
        print(f"{name}: {row.metrics.optimal.value:.1%} of 500 test levels optimal")
    print(f"{proven.n_weights:,} weights follow the automaton, proven: {certificate.holds}")
