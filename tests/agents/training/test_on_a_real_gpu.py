"""Training on a real GPU: `pytest -m gpu`."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from gpu_runs import assert_alike, check_that_it_goes_on, run, small
from training_runs import CPU, content

from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.training import TrainingState, Workers, changed
from maze_nca_gym.agents.training.updates import read_losses, update

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
PRESETS = ("fast", "guided", "paper-shortest-path")
"""Presets whose updates never wait for the GPU."""


@contextmanager
def no_waiting() -> Iterator[None]:
    """Let PyTorch raise an error when the host would wait for the GPU."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode")  # PyTorch warns that this is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", PRESETS)
def test_updates_wait_for_nothing(name: str) -> None:
    state = run(small(name), GPU, 3)
    workers = Workers(GPU)
    with no_waiting():
        for _ in range(2):
            update(state, state.stream.batch(state.update), workers)
    read_losses(state)
    assert len(state.losses) == 5


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0.01), ("tf32", 0.05), ("bfloat16", 0.1)])
def test_fifty_updates_are_nearly_those_of_the_cpu(name: str, precision: str, tolerance: float) -> None:
    """The first updates are equal; later updates drift apart by rounding."""
    config = changed(small(name), n_updates=50)
    on_gpu, on_cpu = run(changed(config, precision=precision), GPU), run(config, CPU)
    for state in (on_gpu, on_cpu):
        read_losses(state)
    assert on_gpu.losses[:5] == pytest.approx(on_cpu.losses[:5], rel=tolerance)
    assert np.mean(on_gpu.losses[-10:]) == pytest.approx(np.mean(on_cpu.losses[-10:]), rel=0.2)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
@pytest.mark.parametrize("name", ["fast", "extrapolate-diameter"])
def test_updates_as_cuda_graphs_agree_with_other_updates(name: str, precision: str) -> None:
    config = changed(small(name), precision=precision)
    plain, graphs = (TrainingState.start(config, GPU) for _ in range(2))
    graphs.compile("graphs")
    for state in (plain, graphs):
        for _ in range(config.n_updates):
            update(state, state.stream.batch(state.update), Workers(GPU))
    assert_alike(plain, graphs, 0.05 if precision == "bfloat16" else 0.01)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    check_that_it_goes_on(small("guided"), tmp_path, GPU, 0.01)


def test_deterministic_runs_are_equal_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        contents = [content(run(small("guided"), GPU), tmp_path) for _ in range(2)]
    finally:
        torch.use_deterministic_algorithms(before)
    assert contents[0] == contents[1]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two processes with NCCL need two GPUs")
def test_two_processes_make_the_updates_of_one(tmp_path: Path) -> None:
    pytest.importorskip("lightning_fabric")
    launches = {"one": [], "two": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]}
    sizes = ["--n-updates", "12", "--batch-size", "8", "--n-channels", "8", "--n-iterations", "6"]
    for name, launch in launches.items():
        train = ["-m", "maze_nca_gym", "train", "fast", "--device", "cuda", *sizes, "--out", str(tmp_path / name)]
        done = subprocess.run(
            [sys.executable, *launch, *train], env=dict(os.environ), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    one, two = (load_model(tmp_path / name / "model.safetensors") for name in launches)
    for mine, other in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-2, atol=1e-2)
