"""Runs that are killed, interrupted, or that diverge."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import interrupted_run
import pytest
from training_runs import ALONE, CPU, content, started

from maze_nca_gym.agents.runs import RunFolder, asked_to_stop
from maze_nca_gym.agents.training import (
    CHECKPOINT,
    LEVELS,
    MODEL,
    Diverged,
    Intervals,
    NullReport,
    RunReport,
    TrainingState,
    loop,
    run_updates,
)
from maze_nca_gym.agents.weights import load_model

PROGRAM = [sys.executable, str(Path(interrupted_run.__file__))]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # nothing that a fork could break
EVERY_UPDATE, NEVER = "0", "3600"


def interrupt(folder: Path, config: str, save: str, seed: int, names: list[str]) -> list[dict]:
    """Run to the end without and with these signals; what became of each that got one."""
    command = [*PROGRAM, str(folder), config, save, str(seed), *names]
    run = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=120)
    found = json.loads(run.stdout)
    assert found["codes"] == [0, 0], run.stderr
    return found["interrupted"]


def assert_same_ends(folder: Path) -> None:
    """Both runs ended with the same weights, moments, average, pool and population, and left nothing else."""
    whole, pieces = folder / "whole", folder / "pieces"
    assert (whole / MODEL).read_bytes() == (pieces / MODEL).read_bytes()
    states = [TrainingState.load(run / CHECKPOINT, CPU) for run in (whole, pieces)]
    for state in states:
        state.seconds = 0.0
    assert content(states[0], folder) == content(states[1], folder)
    levels = {LEVELS} if states[0].config.evolve else set()
    assert {path.name for path in pieces.iterdir()} == {CHECKPOINT, MODEL} | levels
    for name in levels:
        assert (whole / name).read_bytes() == (pieces / name).read_bytes()


@pytest.mark.parametrize(("config", "n"), [("pool", 8), pytest.param("long", 20, marks=pytest.mark.slow)])
def test_killed_many_times_a_run_ends_with_the_same_weights(config, n, tmp_path):
    killed = interrupt(tmp_path, config, EVERY_UPDATE, 1, ["SIGKILL"] * n)
    assert [piece["code"] for piece in killed] == [-signal.SIGKILL] * n
    updates = [piece["update"] for piece in killed]
    assert updates == sorted(updates), "a checkpoint got lost"
    assert len(set(updates)) >= n // 2
    assert any(piece["partial"] for piece in killed), "no kill met a file half written"
    assert max(len(piece["partial"]) for piece in killed) <= 2, "partial files pile up"
    assert_same_ends(tmp_path)


def test_killed_while_its_levels_evolve_a_run_ends_with_the_same_levels(tmp_path):
    killed = interrupt(tmp_path, "evolving", EVERY_UPDATE, 3, ["SIGKILL"] * 4)
    assert [piece["code"] for piece in killed] == [-signal.SIGKILL] * 4
    assert len({piece["update"] for piece in killed}) >= 3
    assert_same_ends(tmp_path)
    end = TrainingState.load(tmp_path / "pieces" / CHECKPOINT, CPU).evolution
    assert end.n_rounds == 20
    assert end.population.n_replacements > 20


def test_asked_to_stop_a_run_saves_and_ends(tmp_path):
    """No checkpoint is due while it runs, so what is not saved at the end is lost."""
    stopped = interrupt(tmp_path, "pool", NEVER, 2, ["SIGINT", "SIGTERM"] * 4)
    assert {piece["code"] for piece in stopped} == {interrupted_run.INTERRUPTED}
    updates = [piece["update"] for piece in stopped]
    assert updates == sorted(updates)
    assert len(set(updates)) >= 4
    assert updates[-1] >= 15
    assert not any(piece["partial"] for piece in stopped)
    assert_same_ends(tmp_path)


@pytest.mark.slow
def test_true_processes_killed_twenty_times(tmp_path):
    rng, pieces = random.Random(3), tmp_path / "pieces"
    for folder in (tmp_path / "whole", pieces):
        folder.mkdir()
    subprocess.run(
        [*PROGRAM, str(tmp_path / "whole"), "long", EVERY_UPDATE], check=True, capture_output=True, timeout=120
    )
    for number in range(20):
        run = subprocess.Popen([*PROGRAM, str(pieces), "long", EVERY_UPDATE], stdout=subprocess.PIPE, text=True)
        with run, run.stdout as lines:
            for _ in range(0 if number % 4 == 0 else 1 + rng.randint(0, interrupted_run.MOST)):
                lines.readline()
            time.sleep(rng.uniform(0, 3 if number % 4 == 0 else interrupted_run.MOMENT))
            run.kill()
        assert run.returncode == -signal.SIGKILL
    assert 20 <= TrainingState.load(pieces / CHECKPOINT, CPU).update < interrupted_run.CONFIGS["long"].n_updates
    subprocess.run([*PROGRAM, str(pieces), "long", EVERY_UPDATE], check=True, capture_output=True, timeout=120)
    assert_same_ends(tmp_path)


def test_only_the_runs_own_leftovers_are_removed(tmp_path):
    names = {
        f".{CHECKPOINT}.abc_1234",
        f".{MODEL}.x7000000",
        f".{MODEL}.backup.of.mine",
        ".other.safetensors.x",
        "model.safetensors.bak",
    }
    for name in names:
        (tmp_path / name).touch()
    run_updates(started(n_updates=1), tmp_path, ALONE, NullReport(), Intervals())
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f".{MODEL}.backup.of.mine", ".other.safetensors.x", "model.safetensors.bak", CHECKPOINT, MODEL}


class StopsAt(NullReport):
    """Sends this process a signal at an update."""

    def __init__(self, update: int, number: int) -> None:
        self.update, self.number = update, number

    def log(self, line: dict[str, float]) -> None:
        if line["update"] == self.update:
            signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_update_that_is_being_made_is_finished_and_saved(number, tmp_path):
    state, handlers = started(), [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt):
        run_updates(state, tmp_path, ALONE, StopsAt(5, number), Intervals(log=1, validate=100, save=3600))
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert state.update == TrainingState.load(tmp_path / CHECKPOINT, CPU).update == 5
    model = load_model(tmp_path / MODEL)
    assert all(map(lambda one, other: bool((one == other).all()), model.parameters(), state.model.parameters()))


def test_asked_to_stop_after_the_last_update_a_run_is_finished(tmp_path):
    state = started()
    run_updates(state, tmp_path, ALONE, StopsAt(12, signal.SIGINT), Intervals(log=1, validate=100))
    assert TrainingState.load(tmp_path / CHECKPOINT, CPU).update == 12
    run_updates(state, tmp_path, ALONE, NullReport(), Intervals())


def test_a_second_ctrl_c_interrupts_at_once_and_a_second_sigterm_does_not():
    with asked_to_stop() as asked:
        assert not asked.is_set()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


STORM = """
import signal, sys
from maze_nca_gym.agents.runs import RunFolder, asked_to_stop

def again(frame, event, argument):
    signal.raise_signal(signal.SIGTERM)

with asked_to_stop() as asked:
    sys.setprofile(again)  # another signal at every call and return within the handler
    signal.raise_signal(signal.SIGTERM)
    sys.setprofile(None)
    print(asked.is_set())
"""


def test_signals_that_interrupt_each_other_do_not_hang():
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert done.stdout == "True\n", done.stderr


def opened(path: Path, state: TrainingState) -> RunReport:
    folder = RunFolder.open(path, state.config.to_json())
    folder.begin({}, state.update)
    return RunReport(folder, state.config, state.update)


def test_an_interrupted_run_draws_the_same_curves(tmp_path, monkeypatch):
    """To the byte where updates take as long, though Ctrl-C came between two lines of metrics."""
    monkeypatch.setattr(
        loop, "time", SimpleNamespace(monotonic=time.monotonic, perf_counter=itertools.count().__next__)
    )
    plain, intervals = loop.update, Intervals(log=5, validate=10, save=3600)

    def interrupted(state: TrainingState, *arguments) -> float:
        if state.update == 7:
            signal.raise_signal(signal.SIGINT)
        return plain(state, *arguments)

    for name in ("whole", "pieces"):
        folder = tmp_path / name
        folder.mkdir()
        state = started()
        if name == "pieces":
            monkeypatch.setattr(loop, "update", interrupted)
            with pytest.raises(KeyboardInterrupt), opened(folder, state) as report:
                run_updates(state, folder, ALONE, report, intervals)
            monkeypatch.setattr(loop, "update", plain)
            state = TrainingState.load(folder / CHECKPOINT, CPU)
            assert state.update == 8
        with opened(folder, state) as report:
            run_updates(state, folder, ALONE, report, intervals)
    for name in ("metrics.jsonl", "curves.png"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "pieces" / name).read_bytes()


def test_asked_before_a_run_begins_it_ends_after_one_update(tmp_path):
    state, before = started(), signal.getsignal(signal.SIGINT)
    with asked_to_stop() as outer:
        signal.raise_signal(signal.SIGINT)
        with asked_to_stop() as inner:
            assert inner is outer
        with pytest.raises(KeyboardInterrupt):
            run_updates(state, tmp_path, ALONE, NullReport(), Intervals())
        assert signal.getsignal(signal.SIGINT) != before
    assert TrainingState.load(tmp_path / CHECKPOINT, CPU).update == 1
    assert signal.getsignal(signal.SIGINT) == before
    with asked_to_stop() as later:
        assert not later.is_set()


def test_training_in_another_thread(tmp_path):
    """Where there are no signals to wait for."""
    state, errors = started(), []

    def work() -> None:
        try:
            run_updates(state, tmp_path, ALONE, NullReport(), Intervals())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors
    assert state.update == 12


@pytest.mark.parametrize("save", [0.0, 3600.0])
def test_a_run_that_explodes_leaves_the_checkpoint_before(save, tmp_path):
    state = started(learning_rate=10.0, ema_decay=0.9)
    with pytest.raises(Diverged, match=r"before update [0-9]+ the loss was [0-9.e+]+, the norm of its gradient "):
        run_updates(state, tmp_path, ALONE, NullReport(), Intervals(log=1, validate=100, save=save))
    left = TrainingState.load(tmp_path / CHECKPOINT, CPU)
    assert left.update == (state.update if save == 0 else 0)
    assert 0 < state.update < 12
    load_model(tmp_path / MODEL)
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT, MODEL}
    with pytest.raises(Diverged):
        run_updates(left, tmp_path, ALONE, NullReport(), Intervals(log=1, validate=100, save=save))
