"""Training runs that take less than a second."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from maze_nca_gym.agents.rollouts.scores import Batch
from maze_nca_gym.agents.runs import CHECKPOINT, RunFolder
from maze_nca_gym.agents.training import TrainingConfig, TrainingState, Workers, changed, run_updates
from maze_nca_gym.agents.training.device_batch import DeviceBatch
from maze_nca_gym.agents.training.pool import Patience, StatePool
from maze_nca_gym.agents.training.reports import FILES
from maze_nca_gym.agents.training.updates import update

CPU = torch.device("cpu")
ALONE = Workers(CPU)
POOL = {
    "n_iterations": None,
    "sizes": (6, 7),
    "pool_size": 10,
    "pool_steps": (2, 5),
    "state_noise": 0.01,
    "pool_edited": 0.25,
}
"""Options for a run with a pool."""
EVOLVING = {"evolve": True, "capacity": 24, "evolve_every": 3, "evolve_below": 100.0, "n_offspring": 9}
"""Options for a run whose levels evolve at any performance of the model."""
ACCEL = {
    **EVOLVING,
    "replay_probability": 0.75,
    "n_levels": 16,
    "parents": "replay",
    "mutation": "edits",
    "n_edits": 3,
    "prioritisation": "rank",
    "staleness_weight": 0.3,
    "eviction": "replay-weight",
    "score": "learnability",
}
"""Options with another value of every option."""


def tiny(**changes: object) -> TrainingConfig:
    values = {
        "n_channels": 5,
        "n_iterations": 6,
        "sizes": (6,),
        "batch_size": 8,
        "n_updates": 12,
        "learning_rate": 0.01,
    }
    return changed(TrainingConfig(), **{**values, **changes})


def started(**changes: object) -> TrainingState:
    return TrainingState.start(tiny(**changes), CPU)


def make_updates(state: TrainingState, n: int) -> list[float]:
    """Return the losses of updates."""
    return [float(update(state, state.stream.batch(state.update), ALONE)) for _ in range(n)]


def opened(folder: Path, config: TrainingConfig, **options: Any) -> RunFolder:
    """Return the folder of a run that begins or resumes."""
    run = RunFolder.open(folder, config.to_json(), FILES, **options)
    run.begin({}, math.inf)
    return run


def train_in(folder: Path, state: TrainingState, **options: Any) -> TrainingState:
    """Make all remaining updates of a run."""
    run_updates(state, opened(folder, state.config), ALONE, **options)
    return state


def loaded(folder: Path, config: TrainingConfig, device: torch.device = CPU) -> TrainingState:
    """Return the state in a run's checkpoint."""
    state = TrainingState.start(config, device)
    assert state.restore(RunFolder.open(folder, config.to_json(), writes=False), device)
    return state


def pool_of(batch: Batch, n_channels: int, patience: Patience | None = None) -> StatePool:
    """Return a fresh pool of levels."""
    return StatePool.fresh(device_batch(batch), n_channels, patience)


def device_batch(batch: Batch) -> DeviceBatch:
    """Return levels on the CPU, without guidance."""
    return DeviceBatch.of(batch, CPU)


def content(state: TrainingState, folder: Path) -> bytes:
    """Return the content of a state's checkpoint, without the duration of the evolution, which differs in each run."""
    if state.evolution is not None:
        state.evolution.seconds = 0.0
    state.save(opened(folder / "content", state.config, overwrite=True))
    return (folder / "content" / CHECKPOINT).read_bytes()
