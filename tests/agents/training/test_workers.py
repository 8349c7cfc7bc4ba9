"""Several processes that train together, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shared_runs
import torch
from training_runs import ALONE, CPU, loaded, make_updates

from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.runs import CHECKPOINT, DESCRIPTION
from maze_nca_gym.agents.training import LEVELS, MODEL, TrainingState, Workers

pytest.importorskip("lightning_fabric")
CONFIGS = shared_runs.CONFIGS
FINISHED = ["fresh", "pools", "tried again", "fixed", "evolving", "ACCEL"]


@pytest.fixture(scope="module")
def runs(once: Callable[[str, Callable[[Path], Any]], Path]) -> Path:
    """The folder in which two processes have trained."""
    return once("shared-runs", train_together)


def train_together(folder: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    folder.mkdir()
    program = [str(Path(shared_runs.__file__)), str(folder)]
    run = subprocess.run([*launch, *program], env=environment, capture_output=True, text=True, timeout=180)
    assert run.returncode == 0, run.stderr
    (folder / "stderr").write_text(run.stderr)


def seen(runs: Path, name: str) -> list[dict]:
    return [json.loads((runs / name / rank / "seen.json").read_text()) for rank in "01"]


def contents(runs: Path, name: str) -> list[bytes]:
    return [(runs / name / rank / "content" / CHECKPOINT).read_bytes() for rank in "01"]


@pytest.mark.parametrize("name", CONFIGS)
def test_all_processes_end_with_the_same_state_to_the_bit(runs, name):
    one, other = contents(runs, name)
    assert one == other
    ends = seen(runs, name)
    assert ends[0]["end"] == ends[1]["end"]
    assert ends[0]["update"] == ends[1]["update"]


@pytest.mark.parametrize("name", FINISHED)
def test_two_processes_make_the_updates_of_one(runs, name):
    alone = TrainingState.start(CONFIGS[name], CPU)
    start = [parameter.detach().clone() for parameter in alone.model.parameters()]
    make_updates(alone, 12)
    shared = loaded(runs / name / "0", CONFIGS[name])
    assert shared.update == 12
    for module, other in ((shared.model, alone.model), (shared.best_model, alone.best_model)):
        for mine, plain in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, plain, rtol=1e-3, atol=1e-4)
    moved = [float((one - now.detach()).abs().max()) for one, now in zip(start, alone.model.parameters(), strict=True)]
    assert min(moved) > 0.01, "so little happened that all would be close"
    if alone.evolution is not None:
        mine, plain = shared.evolution.population, alone.evolution.population
        assert mine.n_replacements == plain.n_replacements > 0
        assert np.array_equal(mine.tiles, plain.tiles)
        np.testing.assert_allclose(mine.members["fitness"], plain.members["fitness"], rtol=1e-2)
    assert shared.pools.keys() == alone.pools.keys()
    for size, pool in alone.pools.items():
        assert torch.equal(pool.levels.tiles, shared.pools[size].levels.tiles)
        torch.testing.assert_close(pool.states, shared.pools[size].states, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", [*FINISHED, "stopped", "exploding"])
def test_only_the_first_process_writes_and_reports(runs, name):
    first, second = seen(runs, name)
    assert set(first["files"]) == {CHECKPOINT, MODEL, DESCRIPTION} | ({LEVELS} if CONFIGS[name].evolve else set())
    assert first["lines"] == list(range(1, first["update"] + 1))
    assert second["files"] == second["lines"] == []


def test_a_signal_to_one_process_stops_all_after_the_same_update(runs):
    for one in seen(runs, "stopped"):
        assert one["end"] == "KeyboardInterrupt interrupted; the same command goes on"
        assert one["update"] == shared_runs.STOPPED_AT


def test_what_was_stopped_goes_on_as_if_it_had_not_been(runs):
    assert contents(runs, "stopped") == contents(runs, "fresh")


def test_all_processes_notice_divergence(runs):
    for one in seen(runs, "exploding"):
        assert one["end"].startswith("Diverged before update ")
    checkpoint = loaded(runs / "exploding" / "0", CONFIGS["exploding"])
    assert 0 < checkpoint.update == seen(runs, "exploding")[0]["update"] < 12
    load_model(runs / "exploding" / "0" / MODEL)


def test_a_batch_that_cannot_be_shared_is_refused_before_anything_is_written(runs):
    for one in seen(runs, "indivisible"):
        assert one["end"] == "ValueError batch_size 9 must be a multiple of the 2 workers"
        assert set(one["files"]) <= {DESCRIPTION}


def test_nothing_warns(runs):
    text = (runs / "stderr").read_text()
    assert "Starting with 2 processes" in text
    assert "deprecated" not in text
    assert "Warning" not in text


def test_one_process_needs_nobody():
    tensor = torch.ones(3)
    alone = Workers(CPU)
    alone.average([tensor])
    assert alone.gather(tensor) is tensor
    assert tensor.tolist() == [1, 1, 1]
    assert alone.any(True)
    assert not alone.any(False)
    assert (ALONE.rank, ALONE.size) == (0, 1)


def test_without_lightning_fabric_the_message_says_what_to_install():
    program = (
        "import sys; sys.modules['lightning_fabric'] = None\n"
        "from maze_nca_gym.agents.training import find_workers\n"
        "try: find_workers('cpu')\n"
        "except ValueError as error: print(error)"
    )
    environment = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == 'training in several processes needs lightning-fabric: pip install "maze-nca-gym[train]"\n'
