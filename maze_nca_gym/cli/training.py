"""The work of `maze-nca-gym train`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from maze_nca_gym.agents.runs import versions, write_json
from maze_nca_gym.agents.training import (
    CHECKPOINT,
    LEVELS,
    MODEL,
    Diverged,
    Report,
    Rhythm,
    Silence,
    TrainingConfig,
    TrainingState,
    Workers,
    find_workers,
)
from maze_nca_gym.agents.training import train as make_updates
from maze_nca_gym.agents.training.metrics_file import read_metrics
from maze_nca_gym.agents.training.pictures import CURVES, ROLLOUTS
from maze_nca_gym.agents.training.progress_line import duration
from maze_nca_gym.agents.training.run_report import EVENTS, METRICS, RunReport
from maze_nca_gym.agents.training.stopping import asked_to_stop
from maze_nca_gym.agents.training.tensorboard_events import find_tensorboard
from maze_nca_gym.cli.configured import ConfiguredTrain, command_line
from maze_nca_gym.cli.output import JobError, complain, percent, print_facts
from maze_nca_gym.files import remove_partial

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

DESCRIPTION = "config.json"
FAILED, INTERRUPTED = 1, 130


def train(command: ConfiguredTrain, config: TrainingConfig) -> int:
    """Train from the folder's checkpoint or from the beginning, and tell how it went; returns the exit code."""
    try:
        return _train(command, config)
    except ImportError as error:
        raise JobError(str(error)) from error
    except torch.OutOfMemoryError as error:
        raise JobError(f"--batch-size {config.batch_size} is too much for {command.device}: {error}") from error


def _train(command: ConfiguredTrain, config: TrainingConfig) -> int:
    workers = find_workers(command.device)
    torch.set_num_threads(command.threads or _cores())
    code = 0
    with asked_to_stop():  # from here on, so that Ctrl-C does not make a checkpoint seem unreadable
        state = _begin(command, config, workers)
        if state.update < config.n_updates:
            code = _make_updates(command, state, workers)
        elif not workers.rank:
            print(f"{command.folder} is finished; --overwrite starts anew")
    if not code and not workers.rank:
        _summarise(command.folder, state)
    return code


def _cores() -> int:
    """Those that this process may use, shared with its siblings."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _begin(command: ConfiguredTrain, config: TrainingConfig, workers: Workers) -> TrainingState:
    """The state from which the run goes on; nothing is touched before it is clear that there is one."""
    fresh = TrainingState.start(config, workers.device)
    if command.tensorboard:
        find_tensorboard()  # before an older run is overwritten
    if not workers.rank:
        _make_folder(command.folder, command.overwrite)
    workers.any(False)  # the others wait until the folder is ready
    state = _find_checkpoint(command.folder, config, workers) or fresh
    if not workers.rank:
        write_json(command.folder / DESCRIPTION, _describe(command, config, workers))
    return state


def _make_folder(folder: Path, overwrite: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = (CHECKPOINT, MODEL, LEVELS, METRICS, CURVES, ROLLOUTS, DESCRIPTION)
        for name in names:
            remove_partial(folder / name)
        if overwrite:
            for path in [*(folder / name for name in names), *(folder / EVENTS).glob("events.out.tfevents.*")]:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise JobError(f"cannot write in {folder}: {error}") from error


def _find_checkpoint(folder: Path, config: TrainingConfig, workers: Workers) -> TrainingState | None:
    """What the folder has of a run of this configuration, or None if it has no run.

    Raises:
        ValueError: it has another run, or one that cannot be read.
    """
    ways_out = "choose another --out, or lose that run with --overwrite"
    if not (folder / CHECKPOINT).exists():
        if (folder / MODEL).exists():
            raise ValueError(f"{folder} has a model but no checkpoint to go on from; {ways_out}")
        return None
    try:
        state = TrainingState.load(folder / CHECKPOINT, workers.device)
    except ValueError as error:
        raise ValueError(f"{error}; {ways_out}") from error
    differences = _differences(state.config, config)
    if differences:
        raise ValueError(f"{folder} has a run of another configuration ({differences}); {ways_out}")
    return state


def _differences(there: TrainingConfig, here: TrainingConfig) -> str:
    pairs = [(f.name, getattr(there, f.name), getattr(here, f.name)) for f in fields(TrainingConfig)]
    return ", ".join(f"{name} {old} there, {new} here" for name, old, new in pairs if old != new)


def _describe(command: ConfiguredTrain, config: TrainingConfig, workers: Workers) -> Mapping[str, object]:
    return {
        "command": command_line(command.preset, config),
        "preset": command.preset,
        "configuration": config.to_json(),
        "device": str(workers.device),
        "processes": workers.size,
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def _make_updates(command: ConfiguredTrain, state: TrainingState, workers: Workers) -> int:
    """Train, behind the report of the first worker; returns the exit code."""
    folder, checkpoint = command.folder, command.folder / CHECKPOINT
    rhythm = Rhythm(command.log_every, command.validate_every, command.save_every)
    _announce(folder, state, workers)
    try:
        with _report(command, state, workers) as report:
            make_updates(state, folder, workers, report, rhythm)
    except KeyboardInterrupt:
        _complain(workers, f"interrupted; the same command goes on from {checkpoint}")
        return INTERRUPTED
    except Diverged as error:
        advice = "try a lower --learning-rate, with another --out"
        _complain(workers, f"error: training diverged: {error}; {checkpoint} is from before; {advice}")
        return FAILED
    except OSError as error:
        raise JobError(f"{error}; {checkpoint} is intact, and the same command goes on from it") from error
    return 0


def _report(command: ConfiguredTrain, state: TrainingState, workers: Workers) -> AbstractContextManager[Report]:
    if workers.rank:
        return nullcontext(Silence())
    return RunReport(command.folder, state.config, state.update, tensorboard=command.tensorboard)


def _announce(folder: Path, state: TrainingState, workers: Workers) -> None:
    if workers.rank:
        return
    config, n = state.config, state.config.n_updates
    print(
        f"{folder}: {config.model} of {state.model.n_weights:,} weights, {n:,} updates of {config.batch_size} levels "
        f"on {workers.device}; Ctrl-C saves and ends"
    )
    if state.update:
        print(f"going on after update {state.update:,} and {duration(state.seconds)} of training")


def _complain(workers: Workers, message: str) -> None:
    if not workers.rank:
        complain(message)


def _summarise(folder: Path, state: TrainingState) -> None:
    """What came out, and where it is."""
    config = state.config
    last = next((line for line in reversed(read_metrics(folder / METRICS)) if "complete" in line), None)
    facts = {
        "policy": f"{config.model}, {config.task}, {state.model.n_weights:,} weights",
        "training": f"{state.update:,} updates, {duration(state.seconds)}",
    }
    if last is not None:
        facts |= {
            f"validation, {config.sizes[0]}x{config.sizes[0]}": f"accuracy {last['accuracy']:.4f}, complete "
            f"{percent(last['complete'])}, optimal {percent(last['optimal'])}"
        }
    print_facts(facts)
    for label, names in (
        ("metrics", [METRICS]),
        ("pictures", [CURVES, ROLLOUTS]),
        ("levels", [LEVELS]),
        ("model", [MODEL]),
    ):
        paths = [str(folder / name) for name in names if (folder / name).exists()]
        if paths:
            print(f"{label}: {', '.join(paths)}")
