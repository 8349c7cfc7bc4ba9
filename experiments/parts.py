"""Train networks of which a part is a proven automaton: `python -m experiments.parts`.

Networks learn tasks of the examples from answers alone. Some start from random weights. Others start from the compiled
weights of an automaton, or keep these weights frozen next to weights that learn. The automaton floods the maze from the
end of the path, and stores in each tile from which neighbours the flood came. The rest of the network then only learns
to follow the flood back; the task of key and door has two floods.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import partial, reduce
from importlib import import_module
from itertools import product
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

from experiments.cache import Record, cached
from maze_nca_gym.agents import Policy, compile_automaton, evaluate, load, train
from maze_nca_gym.agents.automata import Automaton
from maze_nca_gym.agents.training.updates import Diverged
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS

KEY, DOOR, SAND, SWAMP = 4, 5, 4, 5
AGES = tuple(f"AGE_{age}" for age in range(1, 8))


class Part(NamedTuple):
    """The proven part for a task, and the network that learns the task.

    Attributes:
        example: the module that registers the task.
        legs: answer -> the kind of tile at which its flood begins, and the kinds of tile that stop the flood.
        passes: the signal that spreads the flood, or None if the flood's own signal spreads.
        n_channels: number of channels that learn.
        n_iterations: number of iterations.
    """

    example: str
    legs: Mapping[str, tuple[int, tuple[int, ...]]]
    passes: str | None
    n_channels: int
    n_iterations: int


PARTS = {
    "key-and-door": Part(
        "19_key_and_door", {"TO_KEY": (KEY, (Tile.WALL, DOOR)), "TO_TARGET": (Tile.TARGET, (Tile.WALL,))}, None, 32, 40
    ),
    "nearest-target": Part("16_nearest_of_several_targets", {"PATH": (Tile.TARGET, (Tile.WALL,))}, None, 16, 32),
    "weighted-terrain": Part("17_weighted_terrain", {"PATH": (Tile.TARGET, (Tile.WALL,))}, "OUT", 24, 40),
}
"""Name of a task -> its part."""


def flooding(task: str) -> Automaton:
    """Return the automaton of a task's floods, with the task's answers as its first signals."""
    part = PARTS[task]
    names = [f"{leg}_{signal}" for leg in part.legs for signal in ("FLOOD", *(f"NEAR_{to}" for to in DIRECTIONS))]
    terrain = (*AGES, "OUT") if part.passes else ()
    signals: Any = IntEnum("Signal", [*part.legs, *names, *terrain], start=0)  # type: ignore[misc]

    def passes(leg: str, to: str, see: Any) -> Any:
        return see(signals[part.passes or f"{leg}_FLOOD"], to)

    def floods(leg: str, see: Any) -> Any:
        start, walls = part.legs[leg]
        comes = reduce(or_, (passes(leg, to, see) for to in DIRECTIONS), see(signals[f"{leg}_FLOOD"]))
        return see.tile(start) | (comes & ~reduce(or_, map(see.tile, walls)))

    def is_near(leg: str, to: str, see: Any) -> Any:
        came = see(signals[f"{leg}_NEAR_{to}"]) | (passes(leg, to, see) & ~see(signals[f"{leg}_FLOOD"]))
        return came & ~reduce(or_, map(see.tile, part.legs[leg][1]))

    def goes_out(see: Any) -> Any:
        comes = reduce(or_, (see(signals["OUT"], to) for to in DIRECTIONS), see.tile(Tile.TARGET))
        return (
            see(signals["OUT"])
            | see(signals["AGE_7"])
            | (comes & ~reduce(or_, map(see.tile, (Tile.WALL, SAND, SWAMP))))
        )

    rules: dict[str, Any] = {}
    for leg in part.legs:
        rules |= {
            leg: partial(lambda leg, see: see(signals[f"{leg}_FLOOD"]), leg),
            f"{leg}_FLOOD": partial(floods, leg),
        }
        rules |= {f"{leg}_NEAR_{to}": partial(is_near, leg, to) for to in DIRECTIONS}
    if part.passes:  # a tile of sand passes the flood on after two more iterations, one of swamp after eight
        flood = signals["PATH_FLOOD"]
        rules |= {age: partial(lambda last, see: see(signals[last]), AGES[i]) for i, age in enumerate(AGES[1:])}
        rules |= {
            "AGE_1": lambda see: see(flood) & see.tile(SWAMP),
            "AGE_7": lambda see: see(signals["AGE_6"]) | (see(flood) & see.tile(SAND)),
            "OUT": goes_out,
        }
    groups = tuple(tuple(s for s in signals if s.name.startswith(leg)) for leg in part.legs)
    return Automaton(f"{task}-floods", task, signals, rules, parts=groups if len(groups) > 1 else ())


WAYS = ("random start", "floods as a start", "floods frozen", "floods frozen, as many beside", "random start, as many")
"""Initial weights. Networks of the first three have `n_channels` channels. The last two have the channels of the floods
in addition."""


def correct(model: Policy, part: Part) -> Record:
    """Return the percentage of test levels that a network solves, by size. The training levels are 8x8."""
    percents: Record = {}
    for size, n in {8: 500, 16: 500, 32: 200}.items():
        steps = part.n_iterations * size // 8
        (row,) = evaluate({"network": model}, families="random", sizes=size, n=n, steps=steps)
        percents[f"{size}x{size}"] = round(100 * row.metrics.optimal.value, 1)
    return percents


def learned(task: str, way: str, seed: int, n_updates: int, out: str) -> Record:
    """Train a network for a task with one of `WAYS`, and measure it.

    Returns:
        Percentages by size, see `correct`, and the numbers of channels and weights; or only the error, if the training
        diverged.
    """
    part = PARTS[task]
    import_module(f"examples.{part.example}")
    file = Path(out) / task / "floods" / "model.safetensors"
    if not file.exists():
        _, certificate = compile_automaton(flooding(task), out=file.parent, overwrite=True)
        assert certificate.holds
    n_frozen = load(str(file)).n_channels
    options: dict[str, Any] = {"n_channels": part.n_channels + n_frozen * (way in WAYS[3:]), "seed": seed, "task": task}
    options |= {"n_iterations": part.n_iterations, "sizes": (8,), "long_fraction": 0.0, "n_updates": n_updates}
    options |= {"optimiser": "soap", "learning_rate": 6e-3, "batch_size": 32}
    if way in WAYS[1:4]:
        options |= {"start_from": str(file), "n_frozen": n_frozen * (way != WAYS[1])}
    folder = Path(out) / task / f"{way} {seed}"
    try:
        model = train("fast", out=folder, threads=1, overwrite=True, validate_every=n_updates, **options)
    except Diverged as error:
        return {"diverged": str(error)}
    return correct(model, part) | {"channels": model.n_channels, "weights": model.n_weights}


def main(
    out: Path = Path("runs/parts"),
    tasks: tuple[str, ...] = tuple(PARTS),
    ways: tuple[str, ...] = WAYS,
    seeds: int = 3,
    n_updates: int = 1200,
) -> None:
    """Train and measure the networks whose results are missing.

    Args:
        out: folder of the results.
        tasks: names of `PARTS`.
        ways: some of `WAYS`.
        seeds: number of seeds.
        n_updates: updates of each training.
    """
    for seed, task, way in product(range(seeds), tasks, ways):
        file = out / task / f"{way} {seed}.json"
        record = cached(file, learned, task, way, seed, n_updates, str(out))
        print(f"{task}, {way}, seed {seed}: {record}", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
