"""Proven parts in networks that learn: `python -m experiments.parts`.

Key and door (`examples/19_key_and_door.py`) is learned from answers alone: from random weights; from the compiled
weights of an automaton that floods the maze from the key and from the target, and leaves in each tile which neighbours
the water came from; and beside these, frozen. What is left to learn is to follow both floods back.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial, reduce
from importlib import import_module
from itertools import product
from operator import or_
from pathlib import Path
from typing import Any

from experiments.kept import Record, kept
from maze_nca_gym.agents import compile_automaton, evaluate, load, train
from maze_nca_gym.agents.automata import Automaton
from maze_nca_gym.agents.training.updates import Diverged
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS

example = import_module("examples.19_key_and_door")
LEGS = {"KEY": (example.KEY, (Tile.WALL, example.DOOR)), "TARGET": (Tile.TARGET, (Tile.WALL,))}
"""Where a flood begins, and what stops it."""
SIGNALS = ("FLOOD", *(f"NEAR_{towards}" for towards in DIRECTIONS))
NAMES = ("TO_KEY", "TO_TARGET", *(f"{leg}_{signal}" for leg in LEGS for signal in SIGNALS))
Signal = IntEnum("Signal", NAMES, start=0)  # type: ignore[misc]


def _comes(leg: str, name: str, see: Any) -> Any:
    """Return whether a signal of a leg is on next, where it may be: all stay on."""
    flood, signal = Signal[f"{leg}_FLOOD"], Signal[f"{leg}_{name}"]
    from_where = DIRECTIONS if name == "FLOOD" else (name[-1],)
    comes = reduce(or_, (see(flood, tap) for tap in from_where))
    free = ~reduce(or_, map(see.tile, LEGS[leg][1]))
    if name == "FLOOD":
        return see.tile(LEGS[leg][0]) | ((see(signal) | comes) & free)
    return (see(signal) | (comes & ~see(flood))) & free


FLOODS = Automaton(
    name="key-and-door-floods",
    task="key-and-door",
    signals=Signal,
    rules={
        **{Signal[f"TO_{leg}"]: partial(lambda leg, see: see(Signal[f"{leg}_FLOOD"]), leg) for leg in LEGS},
        **{Signal[f"{leg}_{name}"]: partial(_comes, leg, name) for leg in LEGS for name in SIGNALS},
    },
    parts=tuple(tuple(s for s in Signal if s.name.removeprefix("TO_").startswith(leg)) for leg in LEGS),
)
WAYS = ("random start", "floods as a start", "floods frozen", "floods frozen, 32 beside", "random start, 54 channels")


def learned(way: str, seed: int, n_updates: int, out: str) -> Record:
    """Train in one of `WAYS`, and return the % of test levels that it solves."""
    part = Path(out) / "floods"
    given: dict[str, Any] = {"n_channels": 32, "n_iterations": 40, "sizes": (8,), "long_fraction": 0.0, "seed": seed}
    given |= {"task": "key-and-door", "optimiser": "soap", "learning_rate": 6e-3, "n_updates": n_updates}
    given |= {"batch_size": 32}
    if way == WAYS[4]:
        given["n_channels"] = 54
    elif way != WAYS[0]:
        file = part / "model.safetensors"
        if not file.exists():
            _, certificate = compile_automaton(FLOODS, out=part, overwrite=True)
            assert certificate.holds
        given["start_from"] = str(file)
        if way in WAYS[2:]:
            given["n_frozen"] = load(str(file)).n_channels
        if way == WAYS[3]:
            given["n_channels"] += given["n_frozen"]
    folder = Path(out) / f"{way} {seed}"
    try:
        model = train("fast", out=folder, threads=1, overwrite=True, validate_every=n_updates, **given)
    except Diverged as error:
        return {"right": 0.0, "weights": str(error)}
    (row,) = evaluate({way: model}, families="random", sizes=8, n=500, steps=40)
    return {"right": round(100 * row.metrics.optimal.value, 1), "weights": model.n_weights}


def main(out: Path = Path("runs/parts"), ways: tuple[str, ...] = WAYS, seeds: int = 3, n_updates: int = 400) -> None:
    """Measure what is not measured yet.

    Args:
        out: folder of the results.
        ways: which of `WAYS`.
        seeds: number of seeds.
        n_updates: updates of each training.
    """
    for seed, way in product(range(seeds), ways):
        found = kept(out / f"{way} {seed}.json", learned, way, seed, n_updates, str(out))
        print(f"{way}, seed {seed}: {found['right']} %, weights: {found['weights']}", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
