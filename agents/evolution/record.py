"""The files of a run of `evolve`: the population, and the hardest levels after some of the rounds.

The run's metrics.jsonl has a line of statistics of the population after every round, starting with round 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig

from ..runs import METRICS, RunFolder

POPULATION, CURVES, HARDEST = "population.npz", "curves.png", "hardest.gif"
FILES = (POPULATION, CURVES, HARDEST)
"""Names of the files of an evolution, in addition to the files of every run."""
N_SHOWN = 9
"""Number of levels of a snapshot; fewer if the population is smaller."""

Snapshot: TypeAlias = dict[str, NDArray[Any]]
"""The hardest levels after a round: `round` (), `tiles` (n, H, W), `paths` (n, H, W) uint8 from 0 to 255, and
`regret` (n,)."""


def load_record(run: RunFolder, config: PopulationConfig) -> tuple[LevelPopulation, list[Snapshot]]:
    """Return the population and the snapshots of a run. If the run has no checkpoint, the population is empty.

    Raises:
        ValueError: the checkpoint is damaged, or lines of its rounds are missing; nothing has changed.
    """
    checkpoint = run.load(POPULATION)
    if checkpoint is None:
        return LevelPopulation(config), []
    state, parts = checkpoint
    arrays = {part: {name: tensor.numpy() for name, tensor in tensors.items()} for part, tensors in parts.items()}
    population = LevelPopulation.from_arrays(arrays["population"], state)
    rounds = [line["round"] for line in run.lines if line["round"] <= population.clock]
    # the last round of the checkpoint may have no line yet: Ctrl-C can come before `note`
    if rounds != list(range(len(rounds))) or len(rounds) < population.clock:
        wanted = f"it must have a line for every round from 0 to {population.clock}, but has {len(rounds)}"
        raise ValueError(f"{run.path / METRICS} is not readable: {wanted}; {run.ways_out}")
    return population, [arrays[f"snapshot {i}"] for i in range(len(arrays) - 1)]


def note(
    run: RunFolder,
    population: LevelPopulation,
    snapshots: list[Snapshot],
    picture_every: int,
    paths: Callable[[Tiles], NDArray[np.float32]],
) -> None:
    """Record the population's current round, unless it has been recorded before.

    Args:
        run: the folder, which receives a line.
        population: the population, which counts rounds.
        snapshots: receives a snapshot every `picture_every` rounds.
        picture_every: the number of rounds between two snapshots.
        paths: a function of (n, H, W) tiles that returns a policy's paths, (n, H, W); called for snapshots only.
    """
    clock = population.clock
    if clock % picture_every == 0 and not any(snapshot["round"] == clock for snapshot in snapshots):
        which = population.hardest(N_SHOWN)
        tiles = population.tiles[which].copy()
        shown = np.rint(255 * np.clip(paths(tiles), 0, 1)).astype(np.uint8)
        regret = population.members["fitness"][which]
        snapshots.append({"round": np.array(clock), "tiles": tiles, "paths": shown, "regret": regret})
    if not run.lines or run.lines[-1]["round"] < clock:
        complete = float(population.complete_rate.mean())
        run.log({"round": clock, **population.statistics(), "complete": complete})


def save(run: RunFolder, population: LevelPopulation, snapshots: list[Snapshot]) -> None:
    """Write the checkpoint, and the population in a file for other programs. Without a measured level, nothing is
    written.

    Raises:
        OSError: a file could not be written.
    """
    if len(population):
        arrays, state = population.to_arrays()
        parts = {"population": arrays, **{f"snapshot {i}": snapshot for i, snapshot in enumerate(snapshots)}}
        run.save(state, {part: {key: torch.from_numpy(a) for key, a in own.items()} for part, own in parts.items()})
        # the checkpoint first: `RunFolder.load` rejects a folder that has a population without one
        population.save(run.path / POPULATION)
