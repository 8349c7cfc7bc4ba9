"""Training on a simulated GPU, with tests that `test_on_a_real_gpu.py` does not repeat on a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_runs import OPTIONS, assert_alike, check_that_it_goes_on, flat, run, small
from simulated_gpu import GPU, SimulatedGpu, tf32_allowed
from simulated_gpu import gpu as gpu
from training_runs import CPU, loaded, opened, tiny

from maze_nca_gym.agents import train as train_by_name
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.rollouts import pytorch
from maze_nca_gym.agents.runs import Line
from maze_nca_gym.agents.training import Diverged, TrainingState, Workers, loop
from maze_nca_gym.agents.training.loop import run_updates
from maze_nca_gym.agents.training.optimisers import SOAP

FEW = ("pools in bfloat16", "soap", "evolving")
"""Options that every test run tries; the other options are slow."""


def run_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rollouts on the CPU run in PyTorch, as on a GPU. Configurations are made before."""
    monkeypatch.setattr(NCA, "program", lambda self: None)


@pytest.mark.parametrize(
    "options",
    [pytest.param(some, id=name, marks=() if name in FEW else pytest.mark.slow) for name, some in OPTIONS.items()],
)
def test_every_option_works_as_on_the_cpu(
    options: dict[str, object], gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(**options)
    run_in_pytorch(monkeypatch)
    on_gpu = run(config, GPU)
    assert_alike(on_gpu, run(config, CPU), 3e-2 if config.precision == "bfloat16" else 1e-3)


@pytest.mark.parametrize("name", ["healing", "paper-diameter-evolved"])
def test_a_run_goes_on_from_its_checkpoint(name: str, gpu: SimulatedGpu, tmp_path: Path) -> None:
    check_that_it_goes_on(small(name), tmp_path, GPU, 0.0)


def test_the_loop_waits_only_for_lines_and_checkpoints(gpu: SimulatedGpu, tmp_path: Path) -> None:
    state = TrainingState.start(small("fast"), GPU)
    n_tensors = len(flat(state)) + len(state.best_model.state_dict())
    lines: list[int] = []

    def report(line: Line, policy: object) -> None:
        lines.append(int(line["update"]))
        assert line["loss"] > 0

    run_updates(state, opened(tmp_path, state.config), Workers(GPU), report=report, log_every=3, validate_every=6)
    assert lines == [3, 6]
    n_adam = 2 * len(list(state.model.parameters()))
    n_checks = gpu.n_reads - len(lines) - 2 * n_tensors - n_adam
    assert 0 <= n_checks <= 60, "a validation looks now and then, and a save reads each tensor"


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_only_products_of_the_network_are_in_tf32(
    precision: str, gpu: SimulatedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, set[bool]] = {}
    before = tf32_allowed()

    def watch(where: Any, name: str) -> None:
        plain = getattr(where, name)

        def watched(*args: Any, **more: Any) -> Any:
            settings[name] = settings.get(name, set()) | tf32_allowed()
            return plain(*args, **more)

        monkeypatch.setattr(where, name, watched)

    for where, name in ((pytorch.PyTorch, "__call__"), (torch.Tensor, "backward"), (SOAP, "step"), (loop, "validate")):
        watch(where, name)
    config = tiny(precision=precision, optimiser="soap", n_updates=1)
    run_updates(TrainingState.start(config, GPU), opened(tmp_path, config), Workers(GPU), log_every=1, validate_every=1)
    learns = {precision == "tf32"}
    assert settings == {"__call__": learns | {False}, "backward": learns, "step": {False}, "validate": {False}}
    assert tf32_allowed() == before


def test_a_run_that_diverges_ends_at_the_next_line(gpu: SimulatedGpu, tmp_path: Path) -> None:
    state = TrainingState.start(small("fast"), GPU)
    with torch.no_grad():
        state.model.biases[0][0] = 1e9
    with pytest.raises(Diverged, match="before update 1 the loss was"):
        run_updates(state, opened(tmp_path, state.config), Workers(GPU), log_every=3, validate_every=6)
    assert state.update == 3
    assert loaded(tmp_path, state.config).update == 0


def test_the_command_trains_on_the_gpu(gpu: SimulatedGpu, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run with pictures, whose end on the CPU waits for the GPU."""
    options = {"n_channels": 6, "n_iterations": 4, "sizes": [6], "batch_size": 8, "n_updates": 4}
    policy = train_by_name("fast", out=tmp_path, device="cuda", log_every=2, validate_every=4, **options)
    assert "on cuda; Ctrl-C saves" in capsys.readouterr().out
    assert policy.device == CPU
    assert {path.name for path in tmp_path.iterdir()} >= {"model.safetensors", "curves.png", "rollouts.png"}


def test_several_gpus_agree_on_an_end_only_at_lines(gpu: SimulatedGpu, tmp_path: Path) -> None:
    updates: list[int] = []

    class Pair(Workers):
        size = 2

        def any(self, flag: bool) -> bool:
            updates.append(state.update)
            return flag

        def gather(self, share: torch.Tensor) -> torch.Tensor:
            return torch.cat([share, share])

    state = TrainingState.start(small("fast"), GPU)
    run_updates(state, opened(tmp_path, state.config), Pair(GPU), log_every=2, validate_every=6)
    assert updates == [2, 4]
