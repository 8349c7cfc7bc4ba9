"""Small runs on a simulated or real GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from training_runs import ACCEL, POOL, loaded, opened

from maze_nca_gym.agents.training import TrainingConfig, TrainingState, Workers, changed
from maze_nca_gym.agents.training.updates import read_losses, update

SMALL = {"n_channels": 8, "batch_size": 12, "n_updates": 6}
POOLED = {"sizes": (9, 10), "pool_size": 20, "pool_steps": (2, 5), "pool_fresh": 0.34}

OPTIONS = {
    "bfloat16": {"precision": "bfloat16"},
    "tf32": {"precision": "tf32"},
    "pools": {**POOL, "pool_retry": 0.5, "ema_decay": 0.9},
    "pools in bfloat16": {**POOL, "precision": "bfloat16", "nearest_solution": 0.5},
    "soap": {"optimiser": "soap", "normalise_gradients": True},
    "no two layers alike": {"shared_weights": False, "input_injection": False},
    "max-pools": {"max_pool": True, "pool_before_activation": True, "gradient_growth": 1.0},
    "evolving": ACCEL,
    "graph convolution": {"model": "GCN"},
    "graph attention": {"model": "GAT"},
    "diameters": {"task": "diameter", "symmetric": True, "cut_corners": True, "loss": "cross-entropy"},
}


def small(name: str) -> TrainingConfig:
    """Return a preset with small numbers."""
    if changed(name).pool_size:
        return changed(name, **SMALL, **POOLED)
    evolving = {"capacity": 24, "evolve_every": 4, "n_offspring": 9} if changed(name).evolve else {}
    fixed = {} if changed(name).n_levels is None else {"n_levels": 16}
    return changed(name, **SMALL, **evolving, **fixed, sizes=(9,), n_iterations=5)


def run(config: TrainingConfig, device: torch.device, n: int | None = None) -> TrainingState:
    """Return the state after some updates."""
    state = TrainingState.start(config, device)
    for _ in range(config.n_updates if n is None else n):
        update(state, state.stream.batch(state.update), Workers(device))
    return state


def assert_alike(one: TrainingState, other: TrainingState, tolerance: float = 1e-3) -> None:
    """Check that two runs had equal losses, and have equal weights and levels."""
    for state in (one, other):
        read_losses(state)
    assert one.losses == pytest.approx(other.losses, rel=tolerance)
    mine, theirs = (flat(state) for state in (one, other))
    assert mine.keys() == theirs.keys()
    for size, pool in one.pools.items():  # not from a checkpoint, where rounding decides which numbers are 0
        torch.testing.assert_close(pool.states.cpu(), other.pools[size].states.cpu(), rtol=tolerance, atol=tolerance)
    for name, tensor in mine.items():
        if name.endswith((".held", ".values")):
            continue
        close = tolerance if tensor.is_floating_point() else 0
        torch.testing.assert_close(tensor.cpu(), theirs[name].cpu(), rtol=close, atol=close)


def flat(state: TrainingState) -> dict[str, torch.Tensor]:
    """Return all tensors of a state by part and name."""
    return {f"{part}.{name}": tensor for part, tensors in state.tensors().items() for name, tensor in tensors.items()}


def check_that_it_goes_on(config: TrainingConfig, folder: Path, device: torch.device, tolerance: float) -> None:
    """Check that a run of six updates ends like a run that stops after two updates and resumes from its checkpoint."""
    folders = (folder / "whole", folder / "parts")
    for run_folder, numbers in zip(folders, ([6], [2, 4]), strict=True):
        run_folder.mkdir()
        for n in numbers:
            run, state = opened(run_folder, config), TrainingState.start(config, device)
            state.restore(run, device)
            for _ in range(n):
                update(state, state.stream.batch(state.update), Workers(device))
            assert {parameter.device for parameter in state.model.parameters()} == {device}
            read_losses(state)
            state.save(run)
    assert_alike(*(loaded(run_folder, config) for run_folder in folders), tolerance)
