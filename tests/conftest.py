"""Common settings of all tests: a headless display, one thread, an interpreter instead of a GPU, compiled kernels."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

os.environ["SDL_VIDEODRIVER"] = "dummy"  # before any import of pygame
os.environ["OMP_NUM_THREADS"] = "1"  # before any import of torch. Mazes are too small to profit from more
# threads, and threads of several workers would wait for each other.

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells ignore SIGINT in background jobs
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks, experiments and tools are not in the package

with suppress(ImportError):
    import z3  # noqa: F401 - before a window: SDL may load LLVM and with it another z3, and then this one ends the process

import gymnasium as gym
import numpy as np
import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings

from maze_nca_gym import ENVIRONMENTS
from maze_nca_gym.agents.rollouts.fused.function import compiled
from maze_nca_gym.mazes._kernels.compiling import entries, kernels
from maze_nca_gym.support.names import Registry

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a GPU on machines without a GPU."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA GPU")


@pytest.fixture(autouse=True, scope="session")
def _compiled_kernels(worker_id: str) -> None:
    """Compile or load every kernel. Each worker begins at another kernel, so workers share a fresh compilation."""
    names = entries()
    number = 0 if worker_id == "master" else int(worker_id.removeprefix("gw"))
    begin = number * len(names) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    works: list[Callable[[], Any]] = [partial(getattr, kernels, name) for name in names[begin:] + names[:begin]]
    if worker_id != "master":  # worker 0 begins with rollouts, because they take as long as everything else
        works.insert(0 if number == 0 else len(works), compiled)
    for work in works:
        work()


@pytest.fixture(autouse=True, scope="session")
def _no_fsync() -> Iterator[None]:
    """Test files need not survive a power cut, and waiting for the disk would take a thirtieth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _few_are_validated() -> Iterator[None]:
    """Runs of a few updates validate on few levels, because validation would take half of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maze_nca_gym.agents.training.data.MOST_VALIDATED", 64)
        yield


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str, Callable[[Path], Any]], Path]:
    """`once(name, make)` is a folder that one of the workers has filled by `make`, for all workers."""
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":  # the folder of a worker is in the folder of the session
        shared = shared.parent

    def made(name: str, make: Callable[[Path], Any]) -> Path:
        folder, ready = shared / name, shared / f"{name}.ready"
        with FileLock(shared / f"{name}.lock"):
            if not ready.exists():
                make(folder)
                ready.touch()
        return folder

    return made


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Tests of commands and of threads choose other numbers of threads."""
    torch.set_num_threads(1)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Registrations of a test end with the test. A module that registers is imported again by the next test."""
    tables: list[dict[str, Any]] = [ENVIRONMENTS, gym.registry]
    before = {id(table): set(table) for table in (*Registry._all, *tables)}
    modules = set(sys.modules)
    yield
    for name in set(Registry.modules()) - modules:
        sys.modules.pop(name, None)
    for table in (*Registry._all, *tables):
        for name in set(table) - before.get(id(table), set()):
            if not isinstance(table, Registry):
                table.pop(name)
            elif not table.ships(name):  # included entries exist only since the first import of their module
                table.remove(name)


@pytest.fixture
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the package's own names are registered, because a recorded command names registrations of other tests."""
    for table in Registry._all:
        shipped = {name: entry for name, entry in table.items() if table.ships(name)}
        monkeypatch.setattr(table, "_entries", shipped)
        monkeypatch.setattr(table, "_modules", {})


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder and a wide terminal for commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`plays(n)` is a user of `play` who requests the next level after each level, and closes the window after n."""
    import pygame

    def user(n: int) -> None:
        lines: list[str] = []

        def read(line: str, flush: bool) -> None:
            print(line, flush=flush)
            lines.append(line)
            letter = "n" if len(lines) < n else "q"
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=ord(letter), unicode=letter, mod=0))

        monkeypatch.setattr("maze_nca_gym.agents.rollouts.window.print", read, raising=False)

    return user


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no pictures, because pictures are slow and have their own tests."""
    for name in ("training.figures.draw_rollouts", "training.curves.draw_curves"):
        monkeypatch.setattr(f"maze_nca_gym.agents.{name}", lambda *_: None)
    monkeypatch.setattr("maze_nca_gym.agents.evolution.figures.draw_evolution", lambda *_: None)


@pytest.fixture
def few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings validate on few levels and hold no levels out, because both are slow and have their own tests."""
    training = "maze_nca_gym.agents.training"
    monkeypatch.setattr(f"{training}.data.MOST_VALIDATED", 16)
    for module in ("data", "evolving_levels"):
        monkeypatch.setattr(f"{training}.{module}.held_out", lambda *_, **__: np.empty(0, np.uint64))
