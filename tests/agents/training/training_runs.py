"""Training runs that take a moment."""

from __future__ import annotations

from pathlib import Path

import torch

from maze_nca_gym.agents.training import TrainingConfig, TrainingState, Workers
from maze_nca_gym.agents.training.data import LevelStream
from maze_nca_gym.agents.training.updates import update

CPU = torch.device("cpu")
ALONE = Workers(CPU)
POOL = {"n_layers": None, "sizes": (6, 7), "pool_size": 10, "pool_steps": (2, 5), "state_noise": 0.01}
"""Makes a configuration one with pools."""


def tiny(**changes: object) -> TrainingConfig:
    values = {"n_channels": 5, "n_layers": 6, "sizes": (6,), "batch_size": 8, "n_updates": 12, "learning_rate": 0.01}
    return TrainingConfig(**{**values, **changes})


def started(**changes: object) -> TrainingState:
    return TrainingState.start(tiny(**changes), CPU)


def make_updates(state: TrainingState, n: int) -> list[float]:
    """Their losses."""
    stream = LevelStream(state.config)
    return [update(state, stream.batch(state.update), stream, ALONE) for _ in range(n)]


def content(state: TrainingState, folder: Path) -> bytes:
    """All of a state: weights, average, moments, pools and the update, as its checkpoint has them."""
    path = folder / "content.safetensors"
    state.save(path)
    return path.read_bytes()
