"""Learn tasks of one rule from answers alone, by selection, and prove the result: `python -m experiments.worlds`.

The network is the network of `experiments.booleans`. The proof has no hints: `prove` must infer the meaning of the best
network's channels, and must prove that the first channel is the answer on every maze.
"""

from __future__ import annotations

import time
from functools import partial, reduce
from operator import and_, or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.booleans import HEAT, LARGEST, N_CHAINS, Floats, Levels, errors, levels_of, n_wrong, network_of
from maze_nca_gym.agents.automata import StepBound, automaton_of, fixpoint, prove
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, generate, register_task
from maze_nca_gym.mazes.neighbours import DIRECTIONS

TAPS = ("C", *DIRECTIONS)
BOUND = StepBound(constant=4, per_tile=2)
N_TOGETHER, N_LEVELS, N_ROUNDS, N_GENERATIONS, N_STEPS = 8, 16, 20, 150, 40
"""Number of chains in a group, whose worse half is replaced in each round; of levels in a round; of rounds; of
generations in a round; and of iterations before the answer is compared."""
N_TRIED, N_ALIKE = 2048, 8
"""Number of tiny levels on which the best network is tried, and of levels with the same size and mixture of kinds."""
PRICE, SPLITS = 4e-4, 0.1
"""The cost of a weight, for the four directions together, in units of the error; the fraction of networks to split."""
WATER, ARROWS = 4, {towards: 4 + i for i, towards in enumerate(DIRECTIONS)}


def _any(see: Any, name: str) -> Any:
    return reduce(or_, (see(name, tap) for tap in DIRECTIONS))


def _on_map(see: Any, tap: str, n_kinds: int = len(KINDS)) -> Any:
    return reduce(or_, (see.tile(kind, tap) for kind in range(n_kinds)))


def _free(see: Any) -> Any:
    return _on_map(see, "C") & ~see.tile(Tile.WALL)


def _reaches(see: Any) -> Any:
    ways = (
        see("ON", to) & reduce(and_, (~see.tile(kind) for way, kind in ARROWS.items() if way != to)) for to in ARROWS
    )
    return see.tile(Tile.TARGET) | (reduce(or_, ways) & ~see.tile(Tile.WALL) & _on_map(see, "C", 8))


def _mark(kinds: tuple[int, ...], share: float, rng: np.random.Generator, tiles: Any) -> Any:
    marked = (tiles == Tile.EMPTY) & (rng.random(tiles.shape) < share)
    return np.where(marked, rng.choice(kinds, size=tiles.shape).astype(np.uint8), tiles)


WORLDS: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    "reachable": ({"ON": lambda see: see.tile(Tile.SOURCE) | (_any(see, "ON") & _free(see))}, {}, 1, 2),
    "parity": (
        {
            "EVEN": lambda see: see.tile(Tile.SOURCE) | (_any(see, "ODD") & _free(see)),
            "ODD": lambda see: _any(see, "EVEN") & _free(see),
        },
        {},
        2,
        2,
    ),
    "core": (
        {
            "CORE": lambda see: reduce(and_, (see("CLEAR", tap) | ~_on_map(see, tap) for tap in TAPS)),
            "CLEAR": lambda see: reduce(and_, (~see.tile(Tile.WALL, tap) for tap in TAPS)) & _free(see),
        },
        {"may_be_empty": True},
        3,
        2,
    ),
    "wildfire": (
        {"ON": lambda see: see.tile(Tile.SOURCE) | (_any(see, "ON") & _free(see))},
        {"kinds": (*KINDS, Kind("water", "w", "#56b4e9")), "mark": partial(_mark, (WATER,), 0.2)},
        1,
        2,
    ),
    "one-way": (
        {"ON": _reaches},
        {
            "kinds": (*KINDS, *(Kind(f"arrow_{to.lower()}", to.lower(), "#999999") for to in ARROWS)),
            "mark": partial(_mark, tuple(ARROWS.values()), 0.4),
        },
        5,
        5,
    ),
}
"""Name of a task -> rules by signal, further arguments of `Task`, and the network's numbers of channels and taps."""


def draw_levels(task: Task, rng: np.random.Generator, n: int, size: int) -> Levels:
    """Return n levels of a task with their answers. Heights and widths are 3 to `size`, and half have a border."""
    parts = []
    for border in (True, False) * 2:
        options = ({}, {"wall_probability": 0.05}, {"generator": "perfect"}, {"generator": "loops"})[rng.integers(4)]
        tiles = generate(rng, n // 4, rng.integers(3, size + 1, size=2).tolist(), border=border, **options)
        parts.append(tiles if task.mark is None else task.mark(rng, tiles))
    return levels_of([(tiles, task.solve(tiles)) for tiles in parts], size + 2)


def draw_tiny_levels(task: Task, rng: np.random.Generator, n: int) -> Levels:
    """Return n levels of a task with their answers. Heights and widths are 1 to 3, and each tile has a random kind."""
    parts = []
    for _ in range(n // N_ALIKE):
        shares = rng.dirichlet(np.ones(task.n_tiles))
        parts.append(rng.choice(task.n_tiles, (N_ALIKE, *rng.integers(1, 4, size=2)), p=shares).astype(np.uint8))
    return levels_of([(tiles, task.solve(tiles)) for tiles in parts], 3)


def joined(*levels: Levels) -> Levels:
    """Return several arrays of levels of the same width as one array."""
    kinds, answers = np.concatenate([part.kinds for part in levels]), np.concatenate([part.answer for part in levels])
    return Levels(kinds, answers, levels[0].width)


def turning(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return for each weight of a network the index of the weight with the same role after a quarter turn.

    Args:
        shape: shape of the network's weights, (C, taps, T + C + 1).

    Returns:
        Indices into the flat weights. Networks with five taps have a weight for each direction, and their kinds of tile
        after the usual kinds and their channels after the first belong to directions too. In networks with two taps,
        one weight serves all neighbours, so every index is its own.
    """
    n_channels, n_taps, n_inputs = shape
    channels, taps, inputs = np.arange(n_channels), np.arange(n_taps), np.arange(n_inputs)
    if n_taps == 5:
        channels, taps = np.array([0, 2, 3, 4, 1]), np.array([0, 2, 4, 1, 3])  # the tile, up, left, right, down
        inputs[4:8], inputs[8:13] = (5, 6, 7, 4), 8 + channels
    places = np.arange(n_channels * n_taps * n_inputs).reshape(shape)
    return places[np.ix_(channels, taps, inputs)].reshape(-1)


def mutated(rng: np.random.Generator, weights: Floats, turn: NDArray[np.int64]) -> Floats:
    """Return the networks with one to three random weights of each replaced, alike in all directions."""
    changed, rows = weights.reshape(len(weights), -1).copy(), np.arange(len(weights))
    n_changes = rng.choice([1, 1, 2, 3], size=len(rows))
    for i in range(3):
        at = rng.integers(changed.shape[1], size=len(rows))
        before = changed[rows, at]
        nearby = np.clip(before + rng.choice([-1, 1], size=len(rows)), -LARGEST, LARGEST)
        anything = rng.integers(-LARGEST, LARGEST + 1, size=len(rows))
        after = np.choose(rng.integers(3, size=len(rows)), (np.where(before, 0, anything), nearby, anything))
        for _ in range(4):
            changed[rows, at] = np.where(i < n_changes, after, before)
            at = turn[at]
    mutants = changed.reshape(weights.shape)
    mutants[..., 1:, -1] = 0  # a neighbour has no bias
    return mutants


def split(rng: np.random.Generator, weights: Floats, turn: NDArray[np.int64]) -> Floats:
    """Return the networks with a connection to the answer's channel replaced by one through another channel.

    The other channel then reads nothing else. The output of the network therefore stays the same or nearly the same,
    but comes later. The replacement is the same in all directions.
    """
    changed = weights.copy()
    n_channels, n_taps, n_inputs = weights.shape[1:]
    for network in changed:
        tap, read = rng.permutation(np.argwhere(network[0])).tolist()[0] if network[0].any() else (0, n_inputs - 1)
        channel = int(rng.integers(1, n_channels))
        to, onward = rng.permutation([0, 0 if read == n_inputs - 1 else tap]).tolist()
        weight, network[channel if n_taps == 2 else slice(1, None)] = network[0, tap, read], 0
        places = [(0, tap, read), (channel, to, read), (0, onward, n_inputs - 1 - n_channels + channel)]
        at = np.ravel_multi_index(np.transpose(places), network.shape)
        for values in ((0, 0, 0), (0, 1, weight)):
            for _ in range(4):
                network.reshape(-1)[at] = values
                at = turn[at]
    return changed


def evolve(rng: np.random.Generator, task: Task, n_channels: int, n_taps: int) -> Floats:
    """Return the best weights of each group of chains of simulated annealing, the best group first.

    Before each round, the better half of each group replaces the worse half. After each round, the best network is
    tried on many tiny levels. The levels with its most errors stay in the training set.

    Args:
        rng: source of random numbers.
        task: the task.
        n_channels: number of channels of the networks.
        n_taps: 2 or 5, see `booleans.Floats`.
    """
    weights = np.zeros((N_CHAINS, n_channels, n_taps, task.n_tiles + n_channels + 1), np.float32)
    turn, refuting = turning(weights.shape[1:]), list[Levels]()

    def cost_of(weights: Floats, limits: NDArray[np.float64] | float = 1.0) -> NDArray[np.float64]:
        costs = price * (weights != 0).sum(axis=(1, 2, 3))
        for levels in lessons:
            costs = costs + errors(weights, levels, N_STEPS, 2 * (limits - costs), at_any_time=True) / 2
        return np.asarray(costs)

    for round_number in range(N_ROUNDS):
        lessons = draw_levels(task, rng, N_LEVELS, 5), joined(draw_tiny_levels(task, rng, 4 * N_LEVELS), *refuting)
        price = PRICE / (1 if n_taps == 2 else 4) * (1 if 3 * round_number < 2 * N_ROUNDS else 4)
        cost, heat = cost_of(weights), HEAT * (1 - round_number / N_ROUNDS) ** 2
        groups = np.argsort(cost.reshape(-1, N_TOGETHER))[:, : N_TOGETHER // 2].repeat(2, axis=1)
        best = (groups + np.arange(0, N_CHAINS, N_TOGETHER)[:, None]).reshape(-1)
        weights, cost = weights[best], cost[best]
        for _ in range(N_GENERATIONS):
            candidates = mutated(rng, weights, turn)
            if n_channels > 1:
                splitting = rng.random(N_CHAINS) < SPLITS
                candidates[splitting] = split(rng, weights[splitting], turn)
            limits = cost - heat * np.log(rng.random(N_CHAINS))
            new_cost = cost_of(candidates, limits)
            accepted = new_cost <= limits
            weights[accepted], cost = candidates[accepted], np.where(accepted, new_cost, cost)
        tiny, best = draw_tiny_levels(task, rng, N_TRIED), weights[cost.argmin()][None]
        wrong = n_wrong(best, tiny, N_STEPS, np.array([np.inf]), at_any_time=True, n_parts=N_TRIED)[0]
        if wrong.any():
            worst = np.argsort(-wrong, kind="stable")[:N_LEVELS]
            places = np.arange(len(tiny.kinds)).reshape(N_TRIED, -1)[worst].reshape(-1)
            refuting.append(Levels(tiny.kinds[places], tiny.answer[places], tiny.width))
    lessons = draw_levels(task, rng, 16 * N_LEVELS, 7), joined(draw_tiny_levels(task, rng, N_TRIED), *refuting)
    cost = cost_of(weights).reshape(-1, N_TOGETHER)
    best = cost.argmin(axis=1) + np.arange(0, N_CHAINS, N_TOGETHER)
    return weights[best[np.argsort(cost.min(axis=1))]]


def world_task(world: str) -> Task:
    """Register the task of an entry of `WORLDS`, and return the task."""
    rules, options, *_ = WORLDS[world]
    return register_task(Task(name=f"{world}-world", solve=fixpoint(**rules), **options))


def readable(weights: Floats, kinds: tuple[str, ...]) -> str:
    """Return the rule of each channel of a network in words.

    Args:
        weights: the weights of one network.
        kinds: names of the kinds of tile.
    """
    names = [*kinds, *(f"C_{i}" for i in range(len(weights)))]
    taps = ("", "near ") if weights.shape[1] == 2 else ("", "U ", "L ", "R ", "D ")
    rules = []
    for i, channel_weights in enumerate(weights.astype(int)):
        terms = [
            f"{channel_weights[tap, k]:+d} {taps[tap]}{names[k]}" for tap, k in np.argwhere(channel_weights[:, :-1])
        ]
        rules.append(f"C_{i} is on where {channel_weights[0, -1]:d} {' '.join(terms)} is 1 or more")
    return "\n".join(rules)


def main(worlds: tuple[str, ...] = tuple(WORLDS), seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Learn tasks from answers, and print the learned rules, the best first, until one network is proven correct.

    Args:
        worlds: names of `WORLDS`.
        seeds: seeds of the searches.
    """
    for world in worlds:
        task, (_, _, n_channels, n_taps) = world_task(world), WORLDS[world]
        for seed in seeds:
            began, rng = time.process_time(), np.random.default_rng(seed)
            networks = evolve(rng, task, n_channels, n_taps)
            learned = time.process_time()
            levels = draw_levels(task, rng, 256, 11)
            for rank, (weights, wrong) in enumerate(
                zip(networks, errors(networks, levels, 130, at_any_time=True), strict=True), 1
            ):
                if rank > 1 and wrong:
                    continue
                print(readable(weights, tuple(kind.name for kind in task.kinds)), flush=True)
                proof = prove(automaton_of(network_of(weights, task.name), bound=BOUND))
                print(f"{world}, seed {seed}, best {rank}: {wrong:.2%} of tiles wrong, {proof.words}", flush=True)
                if proof.verdict == "correct":
                    break
            print(f"{learned - began:.0f} s to learn, {time.process_time() - learned:.0f} s to prove\n", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
