"""What every test shares: a headless display, an interpreter in place of a GPU, properties, compiled kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"  # before anything imports pygame

import pytest
import torch
from hypothesis import HealthCheck, settings

from maze_nca_gym._kernels import compiling

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _compiled_kernels() -> None:
    compiling.wait()


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder and a wide terminal for commands, after which torch has as many threads as before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    n_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(n_threads)
