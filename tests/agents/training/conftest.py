"""Fixtures with the runs of other processes, for the tests of several files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("interrupted_run.py")


def make(folder: Path) -> None:
    folder.mkdir()
    # with one thread, forks are safe
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), str(folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    (folder / "stdout").write_text(run.stdout)
    (folder / "stderr").write_text(run.stderr)


@pytest.fixture(scope="session")
def forked_runs(once: Callable[[str, Callable[[Path], Any]], Path]) -> Path:
    """The folder that `interrupted_run.py` has filled, once for all workers."""
    return once("forked-runs", make)
