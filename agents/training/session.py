"""A session of a training run: it starts or resumes the run, describes it in its folder, trains, and ends it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import current_call, differences

from ..policies.policy import Policy
from ..policies.weights import load_model
from ..rollouts.pytorch import learning_on
from ..runs import CHECKPOINT, Line, RunFolder, alone_in, asked_to_stop, duration, number_in_environment, recorded
from .compiling import check_compile, compile_if_faster
from .config import TrainingConfig, preset
from .loop import LEVELS, Intervals, run_updates
from .presets import PRESETS
from .processes import Workers, find_workers, usable_cores
from .reports import CURVES, EVENT_FILES, EVENTS, ROLLOUTS, find_tensorboard, reporting
from .state import MODEL, TrainingState
from .updates import Diverged

FILES = (MODEL, LEVELS, CURVES, ROLLOUTS, f"{EVENTS}/{EVENT_FILES}")


def run_session(
    folder: Path,
    name: str,
    config: TrainingConfig,
    intervals: Intervals,
    device: str,
    threads: int | None,
    tensorboard: bool,
    overwrite: bool,
    on_update: Callable[[Line], object],
) -> Policy:
    """Make the remaining updates of a run, and return its policy on the CPU; the work of `train` after it has checked
    its arguments.

    Args:
        folder: the folder of the run.
        name: the preset that the run's description names.
        config: the configuration of the run.
        intervals: the intervals between events.
        device: see `train`.
        threads: number of CPU threads, by default one per core.
        tensorboard: whether to write events for TensorBoard.
        overwrite: whether to delete the run in the folder.
        on_update: receives each line of metrics.

    Raises:
        ValueError, KeyboardInterrupt, Diverged, ImportError, OSError: see `train`.
    """
    workers = find_workers(device, "--pool-retry" if config.pool_retry is not None else "")
    check_compile(config.compile, workers)
    if threads is None:  # this process's part of the usable cores, which all workers on this machine share
        threads = max(1, usable_cores() // number_in_environment("LOCAL_WORLD_SIZE"))
    # asked_to_stop from here on: a KeyboardInterrupt while the checkpoint is read would make it seem damaged
    with learning_on(threads), asked_to_stop(), ExitStack() as lock:
        state = TrainingState.start(config, workers.device)
        # what can fail must fail before an older run in the folder is overwritten
        _ = state.stream.validation
        if tensorboard:
            find_tensorboard()
        is_first, rules = not workers.rank, {"task": config.problem.digest}
        opened = partial(RunFolder.open, folder, config.to_json(), FILES, rules=rules, grows="n_updates")
        try:
            if is_first:
                lock.enter_context(alone_in(folder))
                run = opened(overwrite=overwrite)
        finally:
            workers.any(False)  # a barrier: the others wait until the folder is ready, or has been rejected
        if not is_first:
            run = opened(writes=False)
        if run.is_finished:
            if run.writes:
                further = "a larger --n-updates continues it, --overwrite starts a new one"
                print(f"{printable(str(folder))} is finished; {further}")
            return load_model(folder / MODEL)
        # the state: of a finished run, of a checkpoint, or a new one
        wanted: bool | Literal["auto", "graphs"] = config.compile
        if run.continues and run.found is not None:
            wanted = run.found["compiled"]
            state.continue_run(load_model(folder / MODEL), run.lines[-1], run.found["continued"])
        elif state.restore(run, workers.device):
            wanted = False  # a checkpoint's updates are compiled as they were
        if run.writes:
            _announce(run, state, workers)
        if wanted == "auto":
            times = compile_if_faster(state, workers)
            if run.writes:
                print(times)
        elif wanted:
            state.compile(wanted)
        # the updates
        if run.continues:
            state.save(run)  # before the description: if it is interrupted here, the finished run is still one
        run.begin(_describe(name, run, state, workers), state.update)
        checkpoint = run.path / CHECKPOINT
        try:
            if run.writes:
                with reporting(run, state.stream, state.update, on_update, tensorboard=tensorboard) as report:
                    run_updates(state, run, workers, intervals, report)
            else:
                run_updates(state, run, workers, intervals)
        except Diverged as error:
            advice = "try a lower --learning-rate, with another --out"
            earlier = f"{checkpoint} is from before; " if checkpoint.exists() else ""
            raise Diverged(f"training diverged: {error}; {earlier}{advice}") from error
        except OSError as error:
            resumes = f"{checkpoint} is intact, and {run.same_command} goes on from it"
            begins = "no checkpoint was saved yet: the same command begins anew"
            raise OSError(f"{error}; {resumes if checkpoint.exists() else begins}") from error
        run.finish()
    return copy.deepcopy(state.best_model).eval().cpu()  # a copy is not compiled: it may run on any size


def _describe(name: str, run: RunFolder, state: TrainingState, workers: Workers) -> Mapping[str, object]:
    config, call = state.config, current_call()
    base = name if PRESETS.ships(name) else "fast"  # so that the command needs no module that registers a preset
    # a run that was continued is made by several commands, one after the other
    values, usual = run.configuration | {"compile": state.compiled}, preset(base).to_json()
    parts = [differences(values | {"n_updates": n}, usual) for n in (*state.continued, config.n_updates)]
    if config.level_set is not None:
        data = f"the levels of {config.level_set} alone{', turned and mirrored' if config.dihedral else ''}"
    else:
        kind = "fresh at every update" if config.n_levels is None else f"{config.n_levels:,} fixed ones"
        kind = "the first of a population that evolves" if config.evolve else kind
        sizes = ", ".join(f"{size}x{size}" for size in config.sizes)
        data = f"{', '.join(config.families)} levels at {sizes}, {kind}, none of any test or validation set"
    hints = ", with guidance at every tile" if config.guidance else ""
    return {
        "command": recorded(*(call._replace(given={"preset": base, **part}) for part in parts)),
        "continued": list(state.continued),
        "compiled": state.compiled,
        "preset": name,
        "data": data + hints + ("" if config.start_from is None else f", from the weights of {config.start_from}"),
        "device": str(workers.device),
        "processes": workers.size,
        "threads": torch.get_num_threads(),
    }


def _announce(run: RunFolder, state: TrainingState, workers: Workers) -> None:
    config = state.config
    print(
        f"{printable(str(run.path))}: {type(state.model).__name__} of {state.model.n_weights:,} weights, "
        f"{config.n_updates:,} updates of {config.batch_size} levels on {workers.device}; Ctrl-C saves and ends"
    )
    if state.update == state.begin > 0:
        schedule = config.schedule
        rate = "a constant learning rate" if schedule == "constant" else f"the schedule {schedule} from its start"
        fresh = " and ".join(["optimiser", *["pool"] * bool(config.pool_size), *["population"] * config.evolve])
        print(
            f"the run was finished after {state.update:,} updates; it goes on from its weights, with a fresh {fresh}, "
            f"and {rate}"
        )
    elif state.update:
        print(f"going on after update {state.update:,} and {duration(state.seconds)} of training")
