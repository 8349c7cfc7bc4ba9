"""What every test shares: a headless display, one thread, an interpreter in place of a GPU, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"  # before anything imports pygame
os.environ["OMP_NUM_THREADS"] = "1"  # before anything imports torch: mazes are too small for more threads to pay, and
# those of several workers would wait for one another

import pytest
import torch
from hypothesis import HealthCheck, settings

from maze_nca_gym._kernels import compiling

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _compiled_kernels() -> None:
    compiling.compile_all()


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Tests of commands and of threads choose other numbers."""
    torch.set_num_threads(1)


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder and a wide terminal for commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
