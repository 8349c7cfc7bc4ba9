"""Learn a network of booleans on perfect mazes from solutions alone, and prove it: `python -m experiments.booleans`.

The architecture is the usual symmetric one, but weights are whole numbers and states are clipped to 0 and 1. Sums of
whole numbers are exact, so every state is 0 or 1, and a channel is on where its sum is at least 1. Thus the network is
an automaton by construction. Gradient descent failed to train such networks. Instead, weights mutate, and weights
with better predictions stay. The command prints the learned rules. z3 proves them for mazes without loops of any size
(`THEOREM`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents.automata import automaton_of
from maze_nca_gym.agents.automata.proving.proof import prove
from maze_nca_gym.agents.automata.theorem import Domain, Theorem
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tile, Tiles, distances, generate, shortest_path
from maze_nca_gym.mazes._kernels.compiling import jit
from maze_nca_gym.mazes.arrays import shifted
from maze_nca_gym.mazes.facts import Picture, at_least, implies, moved
from maze_nca_gym.mazes.neighbours import DIRECTIONS

N_CHAINS, N_LEVELS, LARGEST = 64, 24, 4
COST, HEAT = 1e-4, 0.004
"""The cost of a weight of 1 in units of the error, and the initial temperature, which falls to 0."""
SCHEDULE = ((5, 30, 500), (7, 45, 100))
"""Inner size of the levels, number of iterations before the answer is compared, and number of generations."""
BEYOND, N_PARTS = 99, 4
"""The kind of tiles beyond the edge; and the number of parts in which levels are counted one after another, a divisor
of the number of levels."""
Floats = NDArray[np.float32]
"""Weights are (..., C, 2, T + C + 1): for each channel the weights of the tile, with the bias, and of its neighbours.

Or they are (..., C, 5, T + C + 1), for the tile and the neighbours above, to the left, to the right and below.
"""


class Signal(IntEnum):
    """The signals of the automaton: PATH copies the first channel, and the others are the channels of the network."""

    PATH = 0
    DRAWN = 1
    HIDDEN = 2


CHANNELS = (Signal.DRAWN, Signal.HIDDEN)


class Levels(NamedTuple):
    """The (N,) tiles of framed levels, row by row: their kinds, their answers, and the width of a level with its frame.

    The tiles of the frame have the kind `BEYOND`.
    """

    kinds: NDArray[np.int16]
    answer: NDArray[np.bool_]
    width: int


def levels_of(parts: list[tuple[Tiles, NDArray[np.bool_]]], size: int) -> Levels:
    """Return levels in one array.

    Args:
        parts: batches of (N, H, W) levels with their (N, H, W) answers. Batches may have different heights and widths.
        size: largest height and width.
    """
    tiles, answers = [], []
    for part, answer in parts:
        frame = [(0, 0), *((1, size + 1 - length) for length in part.shape[1:])]
        tiles.append(np.pad(part.astype(np.int16), frame, constant_values=BEYOND))
        answers.append(np.pad(answer, frame))
    return Levels(np.concatenate(tiles).reshape(-1), np.concatenate(answers).reshape(-1), size + 2)


def draw(rng: np.random.Generator, n: int, size: int) -> Levels:
    """Return n perfect mazes, half of them without a border, with their solutions."""
    mazes = [generate(rng, n // 2, size, "perfect", border=border) for border in (True, False)]
    return levels_of([(part, shortest_path(part)) for part in mazes], size + 2)


def errors(
    weights: Floats, levels: Levels, n_steps: int, most: NDArray[np.float64] | float = 1.0, at_any_time: bool = False
) -> NDArray[np.float64]:
    """Return the fraction of tiles that are wrong in the last two iterations of P networks, (P,).

    Args:
        weights: the weights of P networks.
        levels: the levels.
        n_steps: number of iterations.
        most: error above which the count stops, one number or (P,). The result of such a network is an error on the
            levels counted so far, which already exceeds `most`.
        at_any_time: whether a tile that is wrongly on in any iteration counts as wrong in both last iterations.
    """
    n = 2 * (levels.kinds != BEYOND).sum()
    limits = np.broadcast_to(np.asarray(most * n), len(weights))
    return np.asarray(n_wrong(weights, levels, n_steps, limits, at_any_time).sum(axis=1) / n)


def n_wrong(
    weights: Floats, levels: Levels, n_steps: int, limits: Any, at_any_time: bool, n_parts: int = N_PARTS
) -> NDArray[np.int64]:
    """Return the number of wrong tiles in the last two iterations together, for each part of the levels, (P, n_parts).

    Arguments are those of `errors`, but `limits` are numbers of tiles, (P,). Parts after the part in which a network
    exceeds its limit are not counted.
    """
    n_kinds = weights.shape[3] - weights.shape[1] - 1
    return np.asarray(_n_wrong(weights.astype(np.int16), *levels, n_kinds, n_steps, limits, at_any_time, n_parts))


@jit
def _add(total: Any, states: Any, weight: int) -> None:
    """Add weighted states to sums. As a function of slices it has no negative index, so numba vectorises the loop."""
    for i in range(len(total)):
        total[i] += weight * states[i]


@jit
def _n_wrong(
    weights: Any,
    kinds: Any,
    answer: Any,
    width: int,
    n_kinds: int,
    n_steps: int,
    limits: Any,
    at_any_time: bool,
    n_parts: int,
) -> NDArray[np.int64]:
    n_networks, n_channels, n_taps, _ = weights.shape
    n, near, inner = len(kinds) // n_parts, (-width, -1, 1, width), slice(width, -width)
    counts, states = np.zeros((n_networks, n_parts), np.int64), np.zeros((2, n_channels, n), np.int16)
    maze, total, ever_on = np.full((n_channels, n), -30_000, np.int16), np.empty(n, np.int16), np.empty(n, np.int16)
    for network in range(n_networks):
        network_weights = weights[network]
        for part in range(n_parts):
            kinds_of_part, expected = kinds[part * n : (part + 1) * n], answer[part * n : (part + 1) * n]
            for channel in range(n_channels):
                for i in range(width, n - width):
                    if kinds_of_part[i] == BEYOND:
                        maze[channel, i] = -30_000  # never on
                        continue
                    fixed_sum = network_weights[channel, 0, -1] + network_weights[channel, 0, kinds_of_part[i]]
                    for way in range(4):
                        kind = kinds_of_part[i + near[way]]
                        if kind != BEYOND:
                            fixed_sum += network_weights[channel, 1 if n_taps == 2 else 1 + way, kind]
                    maze[channel, i] = fixed_sum
            current, previous = 0, 1
            states[:], ever_on[:] = 0, 0
            for _ in range(n_steps):
                changes = np.int16(0)
                for channel in range(n_channels):
                    total[:] = maze[channel]
                    for read in range(n_channels):
                        states_read, own_weight = states[current, read], network_weights[channel, 0, n_kinds + read]
                        if own_weight:
                            _add(total[inner], states_read[inner], own_weight)
                        for way in range(4):
                            weight, step = (
                                network_weights[channel, 1 if n_taps == 2 else 1 + way, n_kinds + read],
                                near[way],
                            )
                            if weight:
                                _add(total[inner], states_read[width + step : n - width + step], weight)
                    buffer = states[previous, channel]
                    for i in range(n):
                        on = np.int16(total[i] >= 1)
                        changes |= on ^ buffer[i]
                        buffer[i] = on
                current, previous = previous, current
                for i in range(n):
                    ever_on[i] |= states[current, 0, i]
                if not changes:  # the states rest, or alternate between two states
                    break
            for i in range(n):
                if at_any_time and not expected[i]:
                    counts[network, part] += 2 * ever_on[i]
                else:
                    counts[network, part] += abs(states[previous, 0, i] - expected[i]) + abs(
                        states[current, 0, i] - expected[i]
                    )
            if counts[network].sum() > limits[network]:
                break
    return counts


def mutated(rng: np.random.Generator, weights: Floats) -> Floats:
    """Return the networks with one to three random weights of each replaced."""
    changed = weights.copy()
    for network in changed:
        for _ in range(rng.choice([1, 1, 2, 3])):
            at = tuple(rng.integers(length) for length in network.shape)
            nearby = np.clip(network[at] + rng.choice([-1, 1]), -LARGEST, LARGEST)
            network[at] = (0, nearby, rng.integers(-LARGEST, LARGEST + 1))[rng.integers(3)]
    changed[..., 1:, -1] = 0  # a neighbour has no bias
    return changed


def evolve(rng: np.random.Generator) -> Floats:
    """Return the best weights of several chains of simulated annealing.

    Every 100 generations new levels are drawn, and the better half of the chains replaces the worse half.
    """
    weights = np.zeros((N_CHAINS, len(CHANNELS), 2, len(Tile) + len(CHANNELS) + 1), np.float32)
    generations = [(size, n_steps, place) for size, n_steps, n in SCHEDULE for place in range(n)]
    for generation, (size, n_steps, place) in enumerate(generations):
        if place % 100 == 0:
            levels = draw(rng, N_LEVELS, size)
            cost = errors(weights, levels, n_steps) + COST * np.abs(weights).sum(axis=(1, 2, 3))
            best = np.argsort(cost)[: N_CHAINS // 2].repeat(2)
            weights, cost = weights[best], cost[best]
            print(f"generation {generation}: {errors(weights[:1], levels, n_steps)[0]:.2%} of tiles wrong", flush=True)
        candidates = mutated(rng, weights)
        new_cost = errors(candidates, levels, n_steps) + COST * np.abs(candidates).sum(axis=(1, 2, 3))
        heat = HEAT * (1 - generation / len(generations))
        accepted = rng.random(N_CHAINS) < np.exp(np.clip((cost - new_cost) / heat, -50, 0))
        weights[accepted], cost = candidates[accepted], np.where(accepted, new_cost, cost)
    return np.asarray(weights[cost.argmin()])


def network_of(weights: Floats, task: str = "shortest-path") -> NCA:
    """Return a network of a task with the weights of one network, in the form of `Floats`."""
    n_channels, n_taps, n_kinds = len(weights), weights.shape[1], weights.shape[2] - len(weights) - 1
    shape: dict[str, Any] = {"cut_corners": True, "symmetric": n_taps == 2, "state_limit": 1.0, "n_iterations": None}
    model = NCA(n_kinds, n_channels, task=task, **shape)
    in_order = [0, 1] if n_taps == 2 else [1, 2, 0, 3, 4]
    with torch.no_grad():
        model.weights[0].copy_(torch.from_numpy(weights[:, in_order, :-1]).movedim(1, 2))
        model.biases[0].copy_(torch.from_numpy(weights[:, 0, -1]))
    return model


ON, HEIGHT = "on", "height"


def _axioms(picture: Picture, at: str, t: Any) -> dict[str, Any]:
    empty, wall = picture.tile(Tile.EMPTY, at), picture.tile(Tile.WALL, at)
    on, height = picture.true(ON, at), picture.number(HEIGHT, at)
    near = [moved(at, tap) for tap in DIRECTIONS]
    free = [picture.inside(q) & ~picture.tile(Tile.WALL, q) for q in near]
    above = [picture.true(ON, q) | (picture.number(HEIGHT, q) > height) for q in near]
    below = [~picture.true(ON, q) & (picture.number(HEIGHT, q) < height) for q in near]
    next_below = [f & b & (picture.number(HEIGHT, q) == height - 1) for f, b, q in zip(free, below, near, strict=True)]
    onward = [f & a for f, a in zip(free, above, strict=True)]
    either = reduce(and_, [implies(f, a | b) for f, a, b in zip(free, above, below, strict=True)])
    off = empty & ~on
    return {
        "the source and the target are on the path, walls are not": implies(picture.inside(at) & ~empty, on == ~wall),
        "empty tiles on it have two neighbours on it": implies(
            on & empty, at_least(2, [picture.true(ON, q) for q in near])
        ),
        "others have one neighbour towards it": implies(off, either & at_least(1, onward) & ~at_least(2, onward)),
        "and one behind that is lower by 1, if not of height 1": implies(off & (height > 1), at_least(1, next_below)),
        "heights begin at 1": implies(off, height >= 1),
        "no wall has four free neighbours": implies(wall, ~at_least(4, free)),
    }


def _signals(picture: Picture, at: str, t: Any) -> Mapping[IntEnum, Any]:
    def drawn(t: Any) -> Any:
        free = picture.inside(at) & ~picture.tile(Tile.WALL, at)
        return (t >= 1) & free & (picture.true(ON, at) | (picture.number(HEIGHT, at) >= t))

    began = picture.inside(at) & ((t >= 2) | ((t == 1) & ~picture.tile(Tile.SOURCE, at)))
    return {Signal.PATH: drawn(t - 1), Signal.DRAWN: drawn(t), Signal.HIDDEN: began}


def _ghosts(tiles: Tiles) -> Mapping[str, Any]:
    on, remaining, height = shortest_path(tiles), tiles != Tile.WALL, np.zeros(tiles.shape, np.int64)
    for number in range(1, tiles[0].size):
        n_remaining = sum(shifted(remaining, tap).astype(np.int64) for tap in DIRECTIONS)
        ends = remaining & ~on & (n_remaining < 2)
        height[ends], remaining = number, remaining & ~ends
    return {ON: on, HEIGHT: height}


def _is_tree(tiles: Tiles) -> NDArray[np.bool_]:
    """Return which (N, H, W) mazes are connected, without loops, and have no wall with four free neighbours."""
    free = tiles != Tile.WALL
    n_joined = (free[:, 1:] & free[:, :-1]).sum(axis=(1, 2)) + (free[:, :, 1:] & free[:, :, :-1]).sum(axis=(1, 2))
    n_near = sum(shifted(free, tap).astype(np.int64) for tap in DIRECTIONS)
    reached = ((distances(tiles) >= 0) == free).all(axis=(1, 2))
    return reached & (n_joined == free.sum(axis=(1, 2)) - 1) & ~(~free & (n_near == 4)).any(axis=(1, 2))


THEOREM = Theorem(
    _axioms,
    _ghosts,
    signals=_signals,
    shown="the path, and where a way of t - 1 tiles or more leads away from it",
    domain=Domain("connected mazes without loops, without walls that have four free neighbours", _is_tree),
)
"""The theorem of the network of seed 3, for connected mazes without loops in which no wall has four free neighbours.

The height of a tile off the path is the number of tiles, with itself, on the longest way from this tile that leads away
from the path. Therefore only the path remains after as many iterations as the maze has free tiles.
"""


def main(seed: int = 3, out: Path = Path("runs/booleans")) -> None:
    """Learn a network of booleans from answers, save it, and try to prove it.

    Args:
        seed: seed of the search.
        out: folder that receives model.safetensors.
    """
    rng = np.random.default_rng(seed)
    weights = evolve(rng)
    out.mkdir(parents=True, exist_ok=True)
    save_model(network_of(weights), out / "model.safetensors")
    print(f"on 256 fresh mazes of 11 x 11: {errors(weights[None], draw(rng, 256, 11), 130)[0]:.2%} of tiles wrong")
    names = [*(kind.name for kind in Tile), *(signal.name for signal in CHANNELS)]
    for signal, row in zip(CHANNELS, weights.astype(int), strict=True):
        terms = [f"{row[i, j]:+d} {('', 'each neighbour ')[i]}{names[j]}" for i, j in np.argwhere(row[:, :-1])]
        print(f"{signal.name} is on where {row[0, -1]} {' '.join(terms)} is 1 or more")
    for lemma in prove(automaton_of(network_of(weights), theorem=THEOREM)).lemmas:
        print("proven:" if lemma.holds else f"refused:\n{lemma.counterexample}\n", lemma.claim)


if __name__ == "__main__":
    run_script(main, __doc__)
