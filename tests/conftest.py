"""What every test shares: a headless display, reproducible properties, and kernels that are compiled."""

from __future__ import annotations

import os

os.environ["SDL_VIDEODRIVER"] = "dummy"  # before anything imports pygame

import pytest
from hypothesis import HealthCheck, settings

from maze_nca_gym._kernels import compiling

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _compiled_kernels() -> None:
    compiling.wait()
