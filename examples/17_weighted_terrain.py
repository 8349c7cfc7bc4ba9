"""Add a task with new kinds of tile: the cheapest path over terrain, by Dijkstra's algorithm, by an automaton, and by a
network."""

import heapq
import sys
from enum import IntEnum
from functools import partial

import numpy as np

from maze_nca_gym import register_environment
from maze_nca_gym.agents.automata import Automaton, CanonicalPath, StepBound, around, canonical_path, distance
from maze_nca_gym.mazes import KINDS, STEPS, USUAL_ORDER, Guidance, Kind, Task, Tile, of_each, register_task

SAND, SWAMP = len(KINDS), len(KINDS) + 1
COSTS = np.array([1, 0, 1, 1, 3, 9])  # costs of entering a tile of each kind; a wall is never entered
OFFSETS = np.array(list(STEPS.values()))


def mark(rng, tiles):
    """Make a third of the empty tiles sand, and a quarter swamp."""
    kinds = rng.choice([Tile.EMPTY, SAND, SWAMP], size=tiles.shape, p=[5 / 12, 1 / 3, 1 / 4]).astype(np.uint8)
    return np.where(tiles == Tile.EMPTY, kinds, tiles)


@of_each
def search(level, order=USUAL_ORDER):
    """Return costs, next moves (0 to 3, or -1) and numbers of moves to the target, (3, H, W); Dijkstra's algorithm."""
    (height, width), kinds, ranks = level.shape, level.tolist(), [order.index(towards) for towards in USUAL_ORDER]
    costs, moves, hops = np.full(level.shape, np.inf), np.full(level.shape, -1), np.zeros(level.shape)
    queue = [(0, *np.argwhere(level == Tile.TARGET)[0].tolist())]
    costs[queue[0][1:]] = 0
    while queue:
        cost, row, col = heapq.heappop(queue)
        for move, (down, right) in enumerate(STEPS.values()):
            previous = up, left = row - down, col - right  # the move leads from there to this tile
            if not (0 <= up < height and 0 <= left < width) or kinds[up][left] == Tile.WALL:
                continue
            new_cost, old_cost = cost + COSTS[kinds[row][col]], costs[previous]
            if new_cost < old_cost or (new_cost == old_cost and ranks[move] < ranks[moves[previous]]):
                if new_cost < old_cost:
                    heapq.heappush(queue, (new_cost, *previous))
                costs[previous], moves[previous], hops[previous] = new_cost, move, hops[row, col] + 1
    return np.stack([costs, moves, hops])


def solve(tiles, order=USUAL_ORDER):
    """Return the canonical cheapest paths, (N, H, W) bool."""
    paths, moves = np.zeros(tiles.shape, bool), search(tiles, order=order)[:, 1].astype(int)
    for path, move, at in zip(paths, moves, np.argwhere(tiles == Tile.SOURCE)[:, 1:], strict=True):
        while not path[tuple(at)]:
            path[tuple(at)] = True
            at = at + OFFSETS[move[tuple(at)]] * (move[tuple(at)] >= 0)
    return paths & (search(tiles, order=order)[:, 0][tiles == Tile.SOURCE] < np.inf)[:, None, None]


def is_optimal(tiles, paths):
    """Return whether each path joins source and target at the least cost, without a tile that is not necessary."""
    source, inside = tiles == Tile.SOURCE, np.where(paths | (tiles == Tile.TARGET), tiles, np.uint8(Tile.WALL))
    least, cost_within = search(tiles)[:, 0][source], search(inside)[:, 0][source]
    path_cost = (COSTS[tiles] * paths).sum(axis=(1, 2)) - 1  # the source is not entered
    through_walls = (paths & (tiles == Tile.WALL)).any(axis=(1, 2))
    return paths[source] & paths[tiles == Tile.TARGET] & (path_cost == least) & (cost_within == least) & ~through_walls


def guidance(tiles, order=USUAL_ORDER):
    """Return the next move at every tile. It counts after as many iterations as the number of moves to the target."""
    _, moves, hops = np.moveaxis(search(tiles, order=order), 1, 0)
    return Guidance(moves[:, None] == np.arange(4)[:, None, None], hops.astype(np.int32))


register_task(
    Task(
        name="weighted-terrain",
        kinds=(*KINDS, Kind("sand", "s", "#ecd9a8"), Kind("swamp", "w", "#9fbf9a")),
        mark=mark,
        n_channels=16,
        solve=solve,
        is_optimal=is_optimal,
        specification=partial(canonical_path, weights={SAND: 3, SWAMP: 9}),  # the claim of a proof
        guidance=guidance,
        guided=tuple(STEPS),
        usual_length=48,
        default_steps=96,
    )
)
register_environment("MazeWeightedTerrain-v0", "weighted-terrain", max_episode_steps=512)

# OUT: the flood may leave the tile. On most tiles OUT comes on with the flood, on sand two iterations later, and on
# swamp eight, through AGE_1 to AGE_7. So the flood comes to a tile after as many iterations as its cheapest path costs
WAY = [f"{signal}_{towards}" for signal in ("NEAR", "ENTER") for towards in USUAL_ORDER]
AGES = [f"AGE_{age}" for age in range(1, 8)]
Signal = IntEnum("Signal", ["PATH", "FLOOD", *WAY, *AGES, "OUT"], start=0)
Flood = IntEnum("Flood", ["PATH", "FLOOD", *AGES, "OUT"], start=0)
CHEAPEST = CanonicalPath(
    Signal,
    start=lambda see, tap: see.tile(Tile.SOURCE, tap),
    end=lambda see, tap: see.tile(Tile.TARGET, tap),
    passes=lambda see, tap: see(Signal.OUT, tap),
)


def goes_out(signals, see):
    """Return whether the flood may leave a tile in the next iteration."""
    comes = see.tile(Tile.TARGET) | see(signals.OUT, "U") | see(signals.OUT, "L") | see(signals.OUT, "D")
    comes = (comes | see(signals.OUT, "R")) & ~see.tile(Tile.WALL) & ~see.tile(SAND) & ~see.tile(SWAMP)
    return see(signals.OUT) | see(signals.AGE_7) | comes


def delays(signals):
    """Return the rules by which a flood waits on tiles that cost more than 1."""
    return {
        **{signals[age]: partial(lambda last, see: see(last), signals[AGES[i]]) for i, age in enumerate(AGES[1:])},
        signals.AGE_1: lambda see: see(signals.FLOOD) & see.tile(SWAMP),
        signals.AGE_7: lambda see: see(signals.AGE_6) | (see(signals.FLOOD) & see.tile(SAND)),
        signals.OUT: partial(goes_out, signals),
    }


TERRAIN = Automaton(
    name="weighted-terrain",
    task="weighted-terrain",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.FLOOD) & CHEAPEST.on_path(see),
        **CHEAPEST.rules,
        **delays(Signal),
    },
    bound=StepBound(per_move=10),  # a move costs 9 iterations of the flood at most, and one of the path
    invariant=lambda see: CHEAPEST.invariant(see) & (~see(Signal.PATH) | CHEAPEST.on_path(see)),
)
# only the flood: after t iterations PATH marks the tiles from which the target is reached at a cost of at most t - 2
REACHING = Automaton(
    name="flooded-terrain",
    task="weighted-terrain",
    signals=Flood,
    rules={
        Flood.PATH: lambda see: see(Flood.FLOOD),
        Flood.FLOOD: lambda see: see.tile(Tile.TARGET) | (around(see, Flood.OUT) & ~see.tile(Tile.WALL)),
        **delays(Flood),
    },
    theorem=distance(Tile.TARGET, weights={SAND: 3, SWAMP: 9}),
)

if __name__ == "__main__":
    from maze_nca_gym.agents import compile_automaton, evaluate, train

    size = {"n_channels": 24, "n_iterations": 24, "sizes": (8,), "n_updates": int((sys.argv[1:] or ["500"])[0])}
    fast = {"optimiser": "soap", "learning_rate": 6e-3, "guidance": 1.0, "long_fraction": 0.0}
    model = train("fast", out="runs/weighted-terrain", task="weighted-terrain", **size, **fast)
    proven, certificate = compile_automaton(TERRAIN)
    for name, (policy, steps) in {"learned": (model, 24), "compiled": (proven, None)}.items():
        (row,) = evaluate({name: policy}, families="random", sizes=8, n=500, steps=steps)
        print(f"{name}: {row.metrics.optimal.value:.1%} of 500 test levels optimal")
    print(f"{proven.n_weights:,} weights follow the automaton, proven: {certificate.holds}")
