"""A whole training run in one call: its folder, what it goes on from, its report, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from maze_nca_gym.files import remove_partial

from ..policy import Policy
from ..runs import DESCRIPTION, check_folder, command_line, naming_memory, versions, write_json
from ..weights import model_class
from . import loop
from .config import TrainingConfig, changed, preset_values
from .config import preset as find_preset
from .data import LevelStream, validation_batch
from .loop import CHECKPOINT, LEVELS, MODEL, Intervals, NullReport, Report
from .processes import Workers, asked_to_stop, find_workers
from .reports import CURVES, EVENTS, METRICS, ROLLOUTS, RunReport, duration, find_tensorboard
from .state import TrainingState
from .updates import Diverged

FOLDER = Path("runs/train")
"""Default folder of runs, each in a folder with the name of its preset."""
_WAYS_OUT = "choose another --out, or lose that run with --overwrite"


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
    continues the run. Started by `torchrun`, the processes share the work.

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
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in configuration.items()}
    config, intervals = changed(start, **values), Intervals(log_every, validate_every, save_every)
    folder = FOLDER / (preset if isinstance(preset, str) else "own") if out is None else Path(out)
    check_folder("--out", folder)
    with naming_memory(f"--batch-size {config.batch_size}", device):
        workers = find_workers(device)
        # asked_to_stop from here on, so that Ctrl-C does not make a checkpoint seem unreadable
        with _threads(_cores() if threads is None else threads), asked_to_stop():
            state = _begin(folder, name, config, workers, tensorboard, overwrite)
            if state.update < config.n_updates:
                _announce(folder, state, workers)
                _make_updates(state, folder, workers, _report(folder, state, workers, tensorboard), intervals)
            elif not workers.rank:
                print(f"{folder} is finished; --overwrite starts a new one")
    return state.best_model.eval().cpu()


def changes(name: str, config: TrainingConfig) -> dict[str, Any]:
    """Return the fields in which a configuration differs from a preset, with its values."""
    usual = preset_values(name)
    return {key: value for key, value in config.flat().items() if key not in usual or value != usual[key]}


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
    folder: Path, name: str, config: TrainingConfig, workers: Workers, tensorboard: bool, overwrite: bool
) -> TrainingState:
    """Return the state from which the run goes on; nothing is touched before it is clear that there is one."""
    fresh = TrainingState.start(config, workers.device)
    LevelStream(config)  # raises where its level set cannot be trained on
    validation_batch(config)  # or its validation set not be used
    if tensorboard:
        find_tensorboard()  # before an older run is overwritten
    if not workers.rank:
        _make_folder(folder, overwrite)
    workers.any(False)  # the others wait until the folder is ready
    state = _find_checkpoint(folder, config, workers) or fresh
    if not workers.rank:
        write_json(folder / DESCRIPTION, _describe(name, config, workers))
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
        raise OSError(f"cannot write in {folder}: {error}") from error


def _find_checkpoint(folder: Path, config: TrainingConfig, workers: Workers) -> TrainingState | None:
    """Return what the folder has of a run of this configuration, or None if it has no run.

    Raises:
        ValueError: it has another run, or one that cannot be read.
    """
    if not (folder / CHECKPOINT).exists():
        if (folder / MODEL).exists():
            raise ValueError(f"{folder} has a model but no checkpoint to go on from; {_WAYS_OUT}")
        return None
    try:
        state = TrainingState.load(folder / CHECKPOINT, workers.device)
    except ValueError as error:
        raise ValueError(f"{error}; {_WAYS_OUT}") from error
    there, here = state.config.to_json(), config.to_json()
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    differences = ", ".join(f"{name} {there.get(name)} there, {here.get(name)} here" for name in names)
    if differences:
        raise ValueError(f"{folder} has a run of another configuration ({differences}); {_WAYS_OUT}")
    return state


def _describe(name: str, config: TrainingConfig, workers: Workers) -> Mapping[str, object]:
    return {
        "command": command_line(["train", name], {**_own_module(config), **changes(name, config)}),
        "preset": name,
        "data": _data(config),
        "configuration": config.to_json(),
        "device": str(workers.device),
        "processes": workers.size,
        "threads": torch.get_num_threads(),
        "versions": versions(),
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


def _own_module(config: TrainingConfig) -> dict[str, str]:
    """Return the option that imports the model's class, if that is not of this package."""
    module = model_class(config.to_json()["model"]).__module__
    return {} if module.partition(".")[0] == __name__.partition(".")[0] else {"import": module}


def _announce(folder: Path, state: TrainingState, workers: Workers) -> None:
    if workers.rank:
        return
    config, n = state.config, state.config.n_updates
    print(
        f"{folder}: {type(state.model).__name__} of {state.model.n_weights:,} weights, {n:,} updates of "
        f"{config.batch_size} levels on {workers.device}; Ctrl-C saves and ends"
    )
    if state.update:
        print(f"going on after update {state.update:,} and {duration(state.seconds)} of training")


def _report(folder: Path, state: TrainingState, workers: Workers, tensorboard: bool) -> AbstractContextManager[Report]:
    if workers.rank:
        return nullcontext(NullReport())
    return RunReport(folder, state.config, state.update, tensorboard=tensorboard)


def _make_updates(
    state: TrainingState, folder: Path, workers: Workers, opening: AbstractContextManager[Report], intervals: Intervals
) -> None:
    """Make all updates that are left; what ends them early says how to go on."""
    checkpoint = folder / CHECKPOINT
    try:
        with opening as report:
            loop.train(state, folder, workers, report, intervals)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command goes on from {checkpoint}") from None
    except Diverged as error:
        advice = "try a lower --learning-rate, with another --out"
        raise Diverged(f"training diverged: {error}; {checkpoint} is from before; {advice}") from error
    except OSError as error:
        raise OSError(f"{error}; {checkpoint} is intact, and the same command goes on from it") from error
