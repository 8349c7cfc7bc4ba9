"""Compare training on evolving levels with other training levels, at the same budget and with the same seeds.

Each run is trained, tested on four named sets and stored in its own folder, `<out>/<model>-<levels>-<seed>`. If the
folder has a result, the run is not repeated. At the end EVOLUTION.md and a figure for each model show all runs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import machine
from maze_nca_gym.agents import Policy, train
from maze_nca_gym.agents.evaluation.metrics import measure
from maze_nca_gym.agents.runs import METRICS, read_metrics
from maze_nca_gym.agents.training import TrainingConfig, changed
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import test_levels
from maze_nca_gym.support.random_streams import rng_for

from .cache import Record, all_cached
from .evolution_report import write_report

TEST_SETS = {"random": (16, 32), "perfect": (16,), "loops": (16,)}
N_TESTED = 1024
N_PROBED = 2048
"""Number of levels of a stream whose solutions are measured."""
ROUNDS = 250
"""Rounds of offspring in a run, the largest number that the presets `paper-...-evolved` have in 50,000 updates."""

MODELS: dict[str, tuple[TrainingConfig, int]] = {
    "small": (changed("fast", long_fraction=0.0), 2500),
    "paper": (
        changed("fast", n_channels=96, n_iterations=32, batch_size=32, learning_rate=2e-3, long_fraction=0.0),
        1200,
    ),
}
"""Name -> configuration and number of updates.

`small` is our network of 5,760 weights. `paper` is the paper's automaton of 96 channels with cut corners and 48,000
weights, but with half the iterations, half the batch size and our schedules of losses and learning rates. With the
paper's recipe of 50,000 updates of 64 iterations, one run would take days of processor time.
"""

LEVELS: dict[str, dict[str, Any]] = {
    "fixed": {"n_levels": 10_000},
    "evolved": {"n_levels": 10_000, "evolve": True},
    "evolved from the fittest": {"n_levels": 10_000, "evolve": True, "parents": "fittest"},
    "evolved by replay": {
        "n_levels": 4_000,
        "evolve": True,
        "capacity": 4_000,
        "replay_probability": 0.75,
        "parents": "replay",
        "mutation": "edits",
        "prioritisation": "rank",
        "staleness_weight": 0.3,
        "eviction": "replay-weight",
    },
    "fresh": {"n_levels": None},
    "fresh, longest of 4": {"n_levels": None, "long_fraction": 1.0},
    "fresh, mixture": {"n_levels": None, "families": ("random", "perfect", "loops")},
}
"""Name -> options of the training levels.

- `fixed`: a set of 10,000 random mazes, as in the paper.
- `evolved`: this set evolves from random parents, as in the paper's text.
- `evolved from the fittest`: the parents have the highest loss, as in the paper's code.
- `evolved by replay`: a population evolves as in ACCEL.
- `fresh`, `fresh, longest of 4` and `fresh, mixture`: new mazes for every batch.
"""


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    model: str = "small"
    """Model: small or paper."""
    levels: tuple[str, ...] = tuple(LEVELS)
    """Kinds of training levels; by default all."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds. Each kind of levels has a run for each seed."""
    n_updates: int | None = None
    """Updates of a run; by default 2,500 for the model small and 1,200 for the model paper."""
    jobs: int = 1
    """Number of runs at the same time, each on one thread."""
    out: Path = Path("runs/evolution")
    """Folder of all runs."""
    report: Path | None = None
    """Folder for EVOLUTION.md and the figures; by default the folder of the runs."""


def configuration(model: str, levels: str, seed: int, n_updates: int | None) -> TrainingConfig:
    """Return the configuration of a run.

    Args:
        model: one of `MODELS`.
        levels: one of `LEVELS`.
        seed: seed of the training.
        n_updates: number of updates, by default the number of the model.

    Raises:
        ValueError: an unknown model or kind of levels.
    """
    if model not in MODELS or levels not in LEVELS:
        raise ValueError(f"unknown {model!r} or {levels!r}; known: {', '.join(MODELS)}; {', '.join(LEVELS)}")
    base, usual = MODELS[model]
    n_updates = n_updates or usual
    config = changed(base, n_updates=n_updates, seed=seed, **LEVELS[levels])
    rounds = {"evolve_every": max(1, n_updates // ROUNDS), "n_offspring": config.batch_size}
    return changed(config, **rounds) if config.evolve else config


def make_run(model: str, levels: str, seed: int, n_updates: int | None, folder: str) -> Record:
    """Train in a folder, test the policy, and return the measurements that `write_report` reads.

    The first four arguments are the arguments of `configuration`.
    """
    config = configuration(model, levels, seed, n_updates)
    policy = train(config, out=folder, device="cpu", threads=1, validate_every=500)
    lines = read_metrics(Path(folder) / METRICS)
    lengths = [(line["update"], line["mean_solution_length"]) for line in lines if "mean_solution_length" in line]
    stream = LevelStream(config)
    initial = stream.fixed if config.evolve else stream.draw(rng_for(seed, "probe"), N_PROBED, config.sizes[0])
    return {
        "model": model,
        "levels": levels,
        "seed": seed,
        "n_updates": config.n_updates,
        "batch_size": config.batch_size,
        "seconds": lines[-1]["seconds"],
        "evolution_seconds": lines[-1].get("evolution_seconds", 0.0),
        "lengths": [(0, float(initial.target.sum(axis=(1, 2)).mean())), *lengths],
        "tests": {
            f"{family}-{size}": _test(policy, family, size) for family, sizes in TEST_SETS.items() for size in sizes
        },
        "machine": machine.describe(),
    }


def _test(policy: Policy, family: str, size: int) -> dict[str, float]:
    metrics = measure(policy, test_levels(family, size, "shortest-path", N_TESTED)).final
    return {name: metric["value"] for name, metric in asdict(metrics).items()}


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    model, n_updates, out = arguments.model, arguments.n_updates, arguments.out
    calls = {}
    for seed, levels in product(arguments.seeds, arguments.levels):
        configuration(model, levels, seed, n_updates)  # raises errors before hours of training
        folder = out / f"{model}-{levels.replace(',', '').replace(' ', '-')}-{seed}"
        calls[folder / "result.json"] = (model, levels, seed, n_updates, str(folder))
    all_cached("runs", make_run, calls, arguments.jobs)
    print(write_report(out, arguments.report or out, tuple(LEVELS)))


if __name__ == "__main__":
    main()
