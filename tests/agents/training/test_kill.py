"""Runs that are killed, are interrupted, or diverge."""

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
from typing import Any

import interrupted_run
import pytest
from training_runs import ALONE, content, loaded, opened, started, train_in

from maze_nca_gym.agents.policies.weights import load_model
from maze_nca_gym.agents.runs import CHECKPOINT, DESCRIPTION, Line, asked_to_stop, stopping
from maze_nca_gym.agents.training import LEVELS, MODEL, Diverged, Report, TrainingState, loop, run_updates
from maze_nca_gym.agents.training.reports import reporting

PROGRAM = [sys.executable, str(Path(interrupted_run.__file__))]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # with one thread, forks are safe
EVERY_UPDATE = "0"


def seen(runs: Path, name: str) -> list[dict[str, Any]]:
    """Return the record of a child process that received a signal."""
    record = json.loads((runs / name / "seen.json").read_text())
    assert record["codes"] == [0, 0], (runs / "stderr").read_text()
    return record["interrupted"]


def assert_same_ends(folder: Path, config: str) -> None:
    """Check that two runs ended with equal weights, moments, averages, pools and populations, and left nothing else."""
    uninterrupted, pieces = folder / "whole", folder / "pieces"
    assert (uninterrupted / MODEL).read_bytes() == (pieces / MODEL).read_bytes()
    states = [loaded(run, interrupted_run.CONFIGS[config]) for run in (uninterrupted, pieces)]
    for state in states:
        state.seconds = 0.0
    assert content(states[0], folder) == content(states[1], folder)
    levels = {LEVELS} if states[0].config.evolve else set()
    assert {path.name for path in pieces.iterdir()} == {DESCRIPTION, CHECKPOINT, MODEL} | levels
    for name in levels:
        assert (uninterrupted / name).read_bytes() == (pieces / name).read_bytes()


def test_killed_again_and_again_a_run_ends_with_the_same_weights(forked_runs):
    killed = seen(forked_runs, "killed")
    assert [piece["code"] for piece in killed] == [-signal.SIGKILL] * 3
    updates = [piece["update"] for piece in killed]
    assert updates == sorted(updates), "a checkpoint got lost"
    assert len(set(updates)) >= 2
    assert max(len(piece["partial"]) for piece in killed) <= 2, "partial files pile up"
    assert_same_ends(forked_runs / "killed", "pool")


def test_a_stopped_run_with_evolving_levels_saves_and_ends(forked_runs):
    """No checkpoint is due during the run, so only the last checkpoint can contain its updates."""
    stopped = seen(forked_runs, "stopped")
    assert {piece["code"] for piece in stopped} == {interrupted_run.INTERRUPTED}
    updates = [piece["update"] for piece in stopped]
    assert updates == sorted(updates)
    assert updates[-1] >= 6
    assert not any(piece["partial"] for piece in stopped)
    assert_same_ends(forked_runs / "stopped", "evolving")
    end = loaded(forked_runs / "stopped" / "pieces", interrupted_run.CONFIGS["evolving"]).evolution
    assert end.n_rounds == 16
    assert end.population.n_replacements > 16


@pytest.mark.slow
def test_real_processes_killed_twenty_times(tmp_path):
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
    assert 20 <= loaded(pieces, interrupted_run.CONFIGS["long"]).update < interrupted_run.CONFIGS["long"].n_updates
    subprocess.run([*PROGRAM, str(pieces), "long", EVERY_UPDATE], check=True, capture_output=True, timeout=120)
    assert_same_ends(tmp_path, "long")


def stops_at(update: int, number: int) -> Report:
    """A report that sends this process a signal at an update."""

    def report(line: Line, policy: object) -> None:
        if line["update"] == update:
            signal.raise_signal(number)

    return report


@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_the_current_update_is_finished_and_saved(number, tmp_path):
    state, handlers = started(), [signal.getsignal(one) for one in stopping.SIGNALS]
    with pytest.raises(KeyboardInterrupt):
        train_in(tmp_path, state, log_every=1, validate_every=100, save_every=3600, report=stops_at(5, number))
    assert [signal.getsignal(one) for one in stopping.SIGNALS] == handlers
    assert state.update == loaded(tmp_path, state.config).update == 5
    model = load_model(tmp_path / MODEL)
    assert all(map(lambda one, other: bool((one == other).all()), model.parameters(), state.model.parameters()))


def test_a_run_stopped_after_its_last_update_is_finished(tmp_path):
    state = started()
    train_in(tmp_path, state, log_every=1, validate_every=100, report=stops_at(12, signal.SIGINT))
    assert loaded(tmp_path, state.config).update == 12


def test_a_second_ctrl_c_interrupts_at_once_and_a_second_sigterm_does_not():
    with asked_to_stop() as is_asked:
        assert not is_asked()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert is_asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ignored_signals_stay_ignored():
    """Shell scripts ignore Ctrl-C in background processes."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asked_to_stop() as is_asked:
            signal.raise_signal(signal.SIGINT)
            assert not is_asked()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_a_schedulers_handler_runs_after_the_checkpoint(tmp_path, number):
    """A handler like submitit's handler, which queues the job again and ends the process."""
    state, updates = started(), []

    def queue_again(got, frame):
        updates.append((got, loaded(tmp_path, state.config).update))
        raise SystemExit

    before = signal.signal(number, queue_again)
    try:
        with pytest.raises(SystemExit):
            train_in(tmp_path, state, log_every=1, validate_every=100, save_every=3600, report=stops_at(5, number))
        assert signal.getsignal(number) == queue_again
    finally:
        signal.signal(number, before)
    assert updates == [(number, 5)]


STORM = """
import signal, sys
from maze_nca_gym.agents.runs import asked_to_stop

def again(frame, event, argument):
    signal.raise_signal(signal.SIGTERM)

with asked_to_stop() as asked:
    sys.setprofile(again)  # another signal at every call and return within the handler
    signal.raise_signal(signal.SIGTERM)
    sys.setprofile(None)
    print(asked())
"""


def test_signals_that_interrupt_each_other_do_not_hang():
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert done.stdout == "True\n", done.stderr


def test_an_interrupted_run_has_the_same_metrics(tmp_path, monkeypatch, without_pictures):
    """If updates take equally long, the files are equal to the byte, although Ctrl-C came between two lines."""
    monkeypatch.setattr(
        loop, "time", SimpleNamespace(monotonic=time.monotonic, perf_counter=itertools.count().__next__)
    )
    plain, intervals = loop.update, {"log_every": 5, "validate_every": 10, "save_every": 3600}

    def interrupted(state: TrainingState, *arguments) -> float:
        if state.update == 7:
            signal.raise_signal(signal.SIGINT)
        return plain(state, *arguments)

    def go_on(folder: Path, state: TrainingState) -> None:
        run = opened(folder, state.config)
        with reporting(run, state.stream, state.update) as report:
            run_updates(state, run, ALONE, report=report, **intervals)

    for name in ("whole", "pieces"):
        folder, state = tmp_path / name, started()
        if name == "pieces":
            with monkeypatch.context() as patch:
                patch.setattr(loop, "update", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    go_on(folder, state)
            state = loaded(folder, state.config)
            assert state.update == 8
        go_on(folder, state)
    uninterrupted, pieces = ((tmp_path / name / "metrics.jsonl").read_bytes() for name in ("whole", "pieces"))
    assert uninterrupted == pieces


def test_a_run_stopped_before_it_begins_ends_after_one_update(tmp_path):
    state, before = started(), signal.getsignal(signal.SIGINT)
    with asked_to_stop() as outer:
        signal.raise_signal(signal.SIGINT)
        with asked_to_stop() as inner:
            assert inner is outer
        with pytest.raises(KeyboardInterrupt):
            train_in(tmp_path, state)
        assert signal.getsignal(signal.SIGINT) != before
    assert loaded(tmp_path, state.config).update == 1
    assert signal.getsignal(signal.SIGINT) == before
    with asked_to_stop() as later:
        assert not later()


def test_training_in_another_thread(tmp_path):
    """A system without signals."""
    state, errors = started(), []

    def work() -> None:
        try:
            train_in(tmp_path, state)
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
        train_in(tmp_path, state, log_every=1, validate_every=100, save_every=save)
    checkpoint = loaded(tmp_path, state.config)
    assert checkpoint.update == (state.update if save == 0 else 0)
    assert 0 < state.update < 12
    load_model(tmp_path / MODEL)
    assert {path.name for path in tmp_path.iterdir()} == {DESCRIPTION, CHECKPOINT, MODEL}
    with pytest.raises(Diverged):
        train_in(tmp_path, checkpoint, log_every=1, validate_every=100, save_every=save)
