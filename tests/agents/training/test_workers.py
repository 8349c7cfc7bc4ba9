"""Several processes that train together on the CPU."""

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
from tables import for_each, refused
from training_runs import ALONE, CPU, loaded, make_updates

from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.runs import CHECKPOINT, DESCRIPTION
from maze_nca_gym.agents.training import LEVELS, MODEL, TrainingState, Workers, find_workers

pytest.importorskip("lightning_fabric")
CONFIGS = shared_runs.CONFIGS
FINISHED = ["fresh", "pools", "fixed", "evolving"]


@pytest.fixture(scope="module", params=["forked", pytest.param("torchrun", marks=pytest.mark.slow)])
def runs(request: pytest.FixtureRequest, once: Callable[[str, Callable[[Path], Any]], Path]) -> Path:
    """The folder of two processes that trained together: forked processes, or processes of `torchrun`."""
    if request.param == "torchrun":
        return once("shared-runs", train_together) / "together"
    folder = request.getfixturevalue("forked_runs")
    assert (folder / "stdout").read_text() == "[0, 0]\n", (folder / "stderr").read_text()
    return folder / "together"


def train_together(folder: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    folder.mkdir()
    program = [str(Path(shared_runs.__file__)), str(folder / "together")]
    run = subprocess.run([*launch, *program], env=environment, capture_output=True, text=True, timeout=180)
    assert run.returncode == 0, run.stderr
    (folder / "stderr").write_text(run.stderr)


def seen(runs: Path, name: str) -> list[dict]:
    return [json.loads((runs / name / rank / "seen.json").read_text()) for rank in "01"]


def contents(runs: Path, name: str) -> list[bytes]:
    return [(runs / name / rank / "content" / CHECKPOINT).read_bytes() for rank in "01"]


@for_each("name", CONFIGS)
def test_all_processes_end_with_equal_states_and_the_first_writes(runs, name):
    one, other = contents(runs, name)
    assert one == other
    first, second = seen(runs, name)
    assert (first["end"], first["update"]) == (second["end"], second["update"])
    assert first["lines"] == list(range(1, first["update"] + 1))
    assert second["files"] == second["lines"] == []
    if name == "indivisible":
        assert first["end"] == "ValueError batch_size 9 must be a multiple of the 2 workers"
        assert set(first["files"]) <= {DESCRIPTION}, "refused before anything is written"
    else:
        assert set(first["files"]) == {CHECKPOINT, MODEL, DESCRIPTION, *[LEVELS] * CONFIGS[name].evolve}


@for_each("name", FINISHED)
def test_two_processes_make_the_updates_of_one(runs, name):
    alone = TrainingState.start(CONFIGS[name], CPU)
    start = [parameter.detach().clone() for parameter in alone.model.parameters()]
    make_updates(alone, 12)
    shared = loaded(runs / name / "0", CONFIGS[name])
    assert shared.update == 12
    for module, other in ((shared.model, alone.model), (shared.best_model, alone.best_model)):
        for mine, plain in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, plain, rtol=1e-3, atol=1e-4)
    moved = [
        float((untrained - trained.detach()).abs().max())
        for untrained, trained in zip(start, alone.model.parameters(), strict=True)
    ]
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


def test_a_signal_to_one_process_stops_all_after_the_same_update(runs):
    first, _ = seen(runs, "stopped")
    assert first["end"] == "KeyboardInterrupt interrupted; the same command goes on"
    assert first["update"] == shared_runs.STOPPED_AT
    assert contents(runs, "stopped") == contents(runs, "fresh")


def test_all_processes_notice_divergence(runs):
    first, _ = seen(runs, "exploding")
    assert first["end"].startswith("Diverged before update ")
    checkpoint = loaded(runs / "exploding" / "0", CONFIGS["exploding"])
    assert 0 < checkpoint.update == first["update"] < 12
    load_model(runs / "exploding" / "0" / MODEL)


def test_nothing_warns(runs):
    text = (runs.parent / "stderr").read_text()
    assert "Starting with 2 processes" in text
    assert "deprecated" not in text
    assert "Warning" not in text


def test_one_process_does_not_communicate():
    tensor = torch.ones(3)
    alone = Workers(CPU)
    alone.average([tensor])
    assert alone.gather(tensor) is tensor
    assert tensor.tolist() == [1, 1, 1]
    assert alone.any(True)
    assert not alone.any(False)
    assert (ALONE.rank, ALONE.size) == (0, 1)


def test_without_lightning_fabric_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    refused(r'needs lightning-fabric: pip install "maze-nca-gym\[train\]"$', find_workers, "cpu")
