"""A whole training run in one call: its folder, what it goes on from, its report, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from maze_nca_gym.options import differences
from maze_nca_gym.tasks import find_task

from ..policy import Policy
from ..registry import load
from ..runs import RunFolder, asked_to_stop, check_folder, command_line, duration, import_option, naming_memory
from ..weights import load_model, model_class
from . import loop
from .config import SHIPPED_PRESETS, TrainingConfig, changed, preset_values
from .config import preset as find_preset
from .data import LevelStream, validation_batch
from .loop import CHECKPOINT, LEVELS, MODEL, Intervals, NullReport, Report
from .processes import Workers, find_workers
from .reports import CURVES, EVENT_FILES, EVENTS, ROLLOUTS, RunReport, find_tensorboard
from .state import TrainingState
from .updates import Diverged

FOLDER = Path("runs/train")
"""Default folder of runs, each in a folder with the name of its preset."""
_FILES = (CHECKPOINT, MODEL, LEVELS, CURVES, ROLLOUTS, f"{EVENTS}/{EVENT_FILES}")


def train(
    preset: str | TrainingConfig = "fast",
    *,
    out: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    log_every: int = 25,
    validate_every: int = 250,
    save_every: float = 60.0,
    tensorboard: bool = False,
    overwrite: bool = False,
    **configuration: Any,
) -> Policy:
    """Train a policy on the exact solutions of mazes, or continue a run that was stopped.

    This is the command `maze-nca-gym train`, with its options. Ctrl-C saves and raises KeyboardInterrupt; the same call
    continues the run; once it is finished, the checkpoint is gone and the same call returns its policy. Started by
    `torchrun`, the processes share the work.

    >>> policy = train("fast", out="runs/mine", n_updates=1000)

    Args:
        preset: the name of a preset, or a configuration.
        out: the run's folder, by default `runs/train/` and the preset's name, or `own` for a configuration.
        device: auto (a GPU if there is one), cpu, cuda, cuda:1 ...
        threads: number of CPU threads, by default one per core.
        log_every: number of updates between two lines of metrics.
        validate_every: number of updates between two validations, a multiple of `log_every`.
        save_every: seconds between two checkpoints.
        tensorboard: whether to write events for TensorBoard into the folder `tb`.
        overwrite: whether to delete the run in the folder, if there is one, and start a new one.
        configuration: fields of `TrainingConfig` that replace those of the preset.

    Returns:
        The trained policy, on the CPU.

    Raises:
        ValueError: a bad option or combination, or a folder with another run.
        KeyboardInterrupt: after Ctrl-C, when the state has been saved.
        Diverged: the loss is not finite or has exploded; the last checkpoint is from before.
        ImportError: TensorBoard or Lightning Fabric is needed and missing.
        MemoryError: the device has too little memory.
        OSError: a file could not be written; the last checkpoint is intact.
    """
    name = preset if isinstance(preset, str) else "fast"
    start = find_preset(preset) if isinstance(preset, str) else preset
    config, intervals = changed(start, **configuration), Intervals(log_every, validate_every, save_every)
    folder = FOLDER / (preset if isinstance(preset, str) else "own") if out is None else Path(out)
    check_folder("--out", folder)
    with naming_memory(f"--batch-size {config.batch_size}", device):
        workers = find_workers(device)
        # asked_to_stop from here on, so that Ctrl-C does not make a checkpoint seem unreadable
        with _threads(_cores() if threads is None else threads), asked_to_stop():
            run = RunFolder(folder, config.to_json(), _FILES, temporary=(CHECKPOINT,))
            state = _begin(run, config, workers, tensorboard, overwrite)
            if state is None:
                if not workers.rank:
                    print(f"{folder} is finished; --overwrite starts a new one")
                return load_model(folder / MODEL)
            if not workers.rank:
                run.begin(_describe(name, config, workers), state.update)
            _announce(folder, state, workers)
            _make_updates(state, folder, workers, _report(run, state, workers, tensorboard), intervals)
            if not workers.rank:
                run.finish()
    return state.best_model.eval().cpu()


def changes(name: str, config: TrainingConfig) -> dict[str, Any]:
    """Return the fields in which a configuration differs from a preset, with its values."""
    return differences(config.flat(), preset_values(name))


@contextmanager
def _threads(n: int) -> Iterator[None]:
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


def _cores() -> int:
    """Return the number of cores that this process may use, shared with its siblings."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _begin(
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


def _describe(name: str, config: TrainingConfig, workers: Workers) -> Mapping[str, object]:
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


def _announce(folder: Path, state: TrainingState, workers: Workers) -> None:
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


def _report(
    run: RunFolder, state: TrainingState, workers: Workers, tensorboard: bool
) -> AbstractContextManager[Report]:
    if workers.rank:
        return nullcontext(NullReport())
    return RunReport(run, state.config, state.update, tensorboard=tensorboard)


def _make_updates(
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
