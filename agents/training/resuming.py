"""What a training run goes on from, what it says of itself, and what ends its updates early."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from maze_nca_gym.options import differences
from maze_nca_gym.tasks import find_task

from ..registry import load
from ..runs import RunFolder, command_line, duration, import_option
from ..weights import model_class
from . import loop
from .config import SHIPPED_PRESETS, TrainingConfig, preset_values
from .data import LevelStream, validation_batch
from .loop import CHECKPOINT, LEVELS, MODEL, Intervals, NullReport, Report
from .processes import Workers
from .reports import CURVES, EVENT_FILES, EVENTS, ROLLOUTS, RunReport, find_tensorboard
from .state import TrainingState
from .updates import Diverged

FILES = (CHECKPOINT, MODEL, LEVELS, CURVES, ROLLOUTS, f"{EVENTS}/{EVENT_FILES}")


def changes(name: str, config: TrainingConfig) -> dict[str, Any]:
    """Return the fields in which a configuration differs from a preset, with its values."""
    return differences(config.flat(), preset_values(name))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let torch compute on `n` threads within the block.

    Raises:
        ValueError: fewer than 1.
    """
    if n < 1:
        raise ValueError(f"threads must be at least 1, got {n}")
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cores() -> int:
    """Return the number of cores that this process may use, shared with its siblings."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def begin(
    run: RunFolder, config: TrainingConfig, workers: Workers, tensorboard: bool, overwrite: bool
) -> TrainingState | None:
    """Return the state from which the run goes on, or None if it is finished.

    Nothing is touched before it is clear that there is one.
    """
    fresh = TrainingState.start(config, workers.device)
    LevelStream(config)  # raises where its level set cannot be trained on
    validation_batch(config)  # or its validation set not be used
    if tensorboard:
        find_tensorboard()  # before an older run is overwritten
    if not workers.rank:
        run.prepare(overwrite)
    workers.any(False)  # the others wait until the folder is ready
    run.find()
    if run.is_finished:
        return None
    checkpoint = run.path / CHECKPOINT
    if not checkpoint.exists():
        if (run.path / MODEL).exists():
            raise ValueError(f"{run.path} has a model but no checkpoint to go on from; {run.ways_out}")
        return fresh
    try:
        return TrainingState.load(checkpoint, workers.device)
    except ValueError as error:
        raise ValueError(f"{error}; {run.ways_out}") from error


def describe(name: str, config: TrainingConfig, workers: Workers) -> Mapping[str, object]:
    """Return what a run's folder says of it beside its configuration."""
    base = name if name in SHIPPED_PRESETS else "fast"  # so that the command needs no module that registers a preset
    return {
        "command": command_line(["train", base], {**_own_modules(config), **changes(base, config)}),
        "preset": name,
        "data": _data(config),
        "device": str(workers.device),
        "processes": workers.size,
        "threads": torch.get_num_threads(),
    }


def _data(config: TrainingConfig) -> str:
    """Return what a run learns from, in words."""
    levels, start = config.levels, config.to_json()["start_from"]
    hints = ", with the first move at every tile" if config.loss.guidance else ""
    hints += "" if start is None else f", from the weights of {start}"
    if levels.level_set is not None:
        return f"the levels of {levels.level_set} alone{', turned and mirrored' if levels.dihedral else ''}{hints}"
    kind = "fresh at every update" if levels.n_levels is None else f"{levels.n_levels:,} fixed ones"
    kind = "the first of a population that evolves" if config.evolve else kind
    sizes = ", ".join(f"{size}x{size}" for size in levels.sizes)
    return f"{', '.join(levels.families)} levels at {sizes}, {kind}, none of any test or validation set{hints}"


def _own_modules(config: TrainingConfig) -> dict[str, str]:
    """Return the option that imports the model's class and the task, if they are not of this package."""
    start = [] if config.model.start_from is None else [type(load(config.model.start_from))]
    return import_option([model_class(config.model.model), find_task(config.task).solve, *start])


def announce(folder: Path, state: TrainingState, workers: Workers) -> None:
    """Print what is about to be trained."""
    if workers.rank:
        return
    config, n = state.config, state.config.n_updates
    print(
        f"{folder}: {type(state.model).__name__} of {state.model.n_weights:,} weights, {n:,} updates of "
        f"{config.batch_size} levels on {workers.device}; Ctrl-C saves and ends"
    )
    if config.compile and workers.device.type == "cpu":
        print("compile is for GPUs: on a CPU it makes updates slower, some three times")
    if state.update:
        print(f"going on after update {state.update:,} and {duration(state.seconds)} of training")


def report(run: RunFolder, state: TrainingState, workers: Workers, tensorboard: bool) -> AbstractContextManager[Report]:
    """Return the report of the first of the workers; the others have none."""
    if workers.rank:
        return nullcontext(NullReport())
    return RunReport(run, state.config, state.update, tensorboard=tensorboard)


def make_updates(
    state: TrainingState, folder: Path, workers: Workers, opening: AbstractContextManager[Report], intervals: Intervals
) -> None:
    """Make all updates that are left; what ends them early says how to go on."""
    checkpoint = folder / CHECKPOINT
    try:
        with opening as report:
            loop.run_updates(state, folder, workers, report, intervals)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command goes on from {checkpoint}") from None
    except Diverged as error:
        advice = "try a lower --learning-rate, with another --out"
        raise Diverged(f"training diverged: {error}; {checkpoint} is from before; {advice}") from error
    except OSError as error:
        raise OSError(f"{error}; {checkpoint} is intact, and the same command goes on from it") from error
