"""All code for a GPU runs on a fake GPU without numbers: no operation mixes devices, and none waits."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

FEW, ALL = [], pytest.param(["--all"], marks=pytest.mark.slow)
pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or torch.version.cuda is not None or sys.platform != "linux",
    reason="a GPU that is none needs Linux, g++, and a PyTorch that is built for CPUs",
)


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The record of each job by its name."""
    command = [sys.executable, str(Path(__file__).with_name("fake_gpu.py")), *request.param]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {row["job"]: row for line in done.stdout.splitlines() if line.startswith("{") for row in [json.loads(line)]}


@pytest.mark.parametrize("rows", [FEW, ALL], indirect=True)
def test_every_job_runs_and_every_fault_is_detected(rows: dict[str, Any]) -> None:
    errors = {name: row["error"] for name, row in rows.items() if not name.startswith("fault: ")}
    assert len(errors) > 12
    assert errors == dict.fromkeys(errors)
    assert [name for name, row in rows.items() if name.startswith("fault: ") and row["error"] is None] == []


@pytest.mark.parametrize("rows", [FEW], indirect=True)
def test_an_update_puts_the_kernel_together_once(rows: dict[str, Any]) -> None:
    calls = rows["update of fast"]["calls"]
    assert calls["aten.convolution.default"] > 5
    assert calls["aten.index_copy.default"] == 1


@pytest.mark.parametrize("rows", [FEW], indirect=True)
def test_solving_waits_once_for_eight_iterations(rows: dict[str, Any]) -> None:
    row = rows["solve"]
    n_iterations = row["calls"]["aten.convolution.default"]
    assert 0 < row["reads"] < n_iterations / 4
