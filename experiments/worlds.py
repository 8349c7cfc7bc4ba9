"""Worlds of one rule, learned from answers alone by selection, and a proof: `python -m experiments.worlds`.

The network and its evolution are those of `experiments.booleans`. Nothing is named: `prove` has to find what the
channels of the best network are, and whether they are the answer on every maze.
"""

from __future__ import annotations

import time
from functools import partial, reduce
from itertools import product
from operator import and_, or_
from typing import Any

import numpy as np

from experiments.booleans import BEYOND, Levels, errors, evolve, network_of
from maze_nca_gym.agents.automata import StepBound, automaton_of, fixpoint, prove
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import KINDS, Kind, Task, Tile, generate, register_task
from maze_nca_gym.mazes.neighbours import DIRECTIONS

TAPS = ("C", *DIRECTIONS)
BOUND = StepBound(constant=4, per_tile=1)
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
        2,
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
"""Rules by name, what a task has besides, and the numbers of channels and of taps that learn it."""


def drawn(task: Task, rng: np.random.Generator, n: int, size: int) -> Levels:
    """Return random levels of a task, half of them without a border and half of them smaller, with their answers."""
    tiles, answers = [], []
    for border, inner in product((True, False), (int(rng.integers(2, size)), size)):
        options = ({}, {"wall_probability": 0.05}, {"generator": "perfect"}, {"generator": "loops"})[rng.integers(4)]
        some = task.prepare(_marked(task, rng, generate(rng, n // 4, inner, border=border, **options)))
        frame = [(0, 0), *[(1, size + 3 - some.shape[1])] * 2]
        tiles.append(np.pad(some, frame, constant_values=BEYOND + 90))
        answers.append(np.pad(task.solve(some), frame))
    maps = np.concatenate(tiles)
    kinds = [maps == kind for kind in range(task.n_tiles)]
    arrays = np.stack([*kinds, maps != BEYOND + 90, np.concatenate(answers)])
    *of_kinds, inside, answer = arrays.reshape(len(arrays), -1).astype(np.float32)
    return Levels(np.stack(of_kinds), inside, answer, maps.shape[2])


def _marked(task: Task, rng: np.random.Generator, tiles: Any) -> Any:
    return tiles if task.mark is None else task.mark(rng, tiles)


def main(worlds: tuple[str, ...] = tuple(WORLDS), seeds: int = 3) -> None:
    """Learn worlds from answers, a seed after another until one is proven right, and print what is proven.

    Args:
        worlds: which of `WORLDS`.
        seeds: number of seeds.
    """
    for world in worlds:
        rules, more, n_channels, n_taps = WORLDS[world]
        task = register_task(Task(name=f"{world}-world", solve=fixpoint(**rules), **more))
        for seed in range(seeds):
            began, rng = time.monotonic(), np.random.default_rng(seed)
            weights = evolve(rng, partial(drawn, task), task.n_tiles, n_channels, n_taps)
            wrong = errors(weights[None], drawn(task, rng, 256, 11), 130)[0]
            proof = prove(automaton_of(network_of(weights, task.name), bound=BOUND))
            seconds = time.monotonic() - began
            print(f"{world}, seed {seed}: {wrong:.2%} of tiles wrong, {proof.words}; {seconds:.0f} s", flush=True)
            print(weights.astype(int).tolist(), flush=True)
            if proof.verdict == "right":
                break


if __name__ == "__main__":
    run_script(main, __doc__)
