"""Add a task: the shortest path to the nearest of several targets, by search, by an automaton, and by a network."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents.automata import AUTOMATA, canonical_path
from maze_nca_gym.mazes import STEPS, USUAL_ORDER, Task, Tile, of_each, register_task, solvers

MOVES = dict(zip(USUAL_ORDER, STEPS.values(), strict=True))


def mark(rng, tiles):
    """Put up to three more targets on empty tiles of generated levels, which have one target."""
    for level in tiles:
        empty = np.argwhere(level == Tile.EMPTY)
        for place in rng.permutation(empty)[: rng.integers(1, 4)]:
            level[tuple(place)] = Tile.TARGET
    return tiles


@of_each
def solve(level, order=USUAL_ORDER):
    """Return the path that takes at each tile the first direction to a nearest target, (H, W) bool."""
    targets = np.argwhere(level == Tile.TARGET)
    to_each = solvers.distances(np.repeat(level[None], len(targets), axis=0), targets)
    distance = np.pad(np.where(to_each < 0, level.size, to_each).min(axis=0), 1, constant_values=level.size)
    path, at = np.zeros(distance.shape, bool), tuple(np.argwhere(level == Tile.SOURCE)[0] + 1)
    path[at] = distance[at] < level.size
    while path[at] and distance[at]:
        at = next(to for to in (tuple(np.add(at, MOVES[towards])) for towards in order) if distance[to] < distance[at])
        path[at] = True
    return path[1:-1, 1:-1]


@of_each
def is_optimal(level, path):
    """Return whether a path is a shortest path to a nearest target."""
    reached = level.copy()
    reached[(level == Tile.TARGET) & ~path] = Tile.EMPTY
    has_one_end = (reached == Tile.TARGET).sum() == 1
    return bool(has_one_end and solvers.is_optimal(reached, path) and path.sum() == solve(level[None]).sum())


register_task(
    Task(
        name="nearest-target",
        mark=mark,
        n_channels=8,
        solve=solve,
        is_optimal=is_optimal,
        specification=partial(canonical_path, several=True),  # the claim of a proof
        usual_length=24,
        default_steps=48,
    )
)
register_environment("MazeNearestTarget-v0", "nearest-target", max_episode_steps=512)
# the flood of the shortest path starts at every target, so the automaton needs no change
NEAREST = replace(AUTOMATA["shortest-path"], name="nearest-target", task="nearest-target", in_order=None)

if __name__ == "__main__":
    from maze_nca_gym.agents import compile_automaton, evaluate, train

    size = {"n_channels": 16, "n_iterations": 24, "sizes": (8,), "n_updates": int((sys.argv[1:] or ["500"])[0])}
    fast = {"optimiser": "soap", "learning_rate": 6e-3}
    model = train("fast", out="runs/nearest-target", task="nearest-target", **size, **fast)
    proven, certificate = compile_automaton(NEAREST)
    for name, policy in {"learned": model, "compiled": proven}.items():
        (row,) = evaluate({name: policy}, families="random", sizes=8, n=500)
        print(f"{name}: {row.metrics.optimal.value:.1%} of 500 test levels optimal")
    print(f"{proven.n_weights:,} weights follow the automaton, proven: {certificate.holds}")
