"""`train`: a whole training run in one call, in Python and as the command `maze-nca-gym train`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from maze_nca_gym.support.keywords import TrainOptions, Unpack
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import Between, Further, OneOf, Shown, check, checked, current_call, differences

from ..runs import (
    CHECKPOINT,
    Line,
    RunFolder,
    alone_in,
    asked_to_stop,
    check_folder,
    duration,
    naming_memory,
    number_in_environment,
    recorded,
)
from .config import TrainingConfig, changed, options_of_run
from .presets import PRESETS

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from .processes import Workers
    from .state import TrainingState

FOLDER = Path("runs/train")
"""Default folder, in which each run has a folder with the name of its preset."""


def folder_of(preset: str | TrainingConfig, out: str | Path | None) -> Path:
    """Return the folder of a run: `out`, or by default `runs/train/NAME`, where NAME is the preset, or `own` for a
    configuration."""
    return FOLDER / (preset if isinstance(preset, str) else "own") if out is None else Path(out)


@Further(options_of_run, named_by=("preset", "model"))
@checked
def train(
    preset: Annotated[str | TrainingConfig, OneOf(PRESETS), Shown("PRESET", positional=True)] = "fast",
    *,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    device: str = "auto",
    threads: Annotated[int | None, Between(1)] = None,
    log_every: Annotated[int, Between(1)] = 25,
    validate_every: Annotated[int, Between(1)] = 250,
    save_every: Annotated[float, Between(0)] = 60.0,
    tensorboard: bool = False,
    overwrite: bool = False,
    on_update: Annotated[Callable[[Line], object], Shown(python_only=True)] = lambda line: None,
    **options: Unpack[TrainOptions],
) -> Policy:
    """Train a policy on the exact solutions of mazes, or continue a run that was stopped.

    Ctrl-C saves and ends the run; the same command or call without overwrite continues it, or reads the policy of a
    finished run. With a larger n_updates, a finished run goes on from its weights, with a fresh optimiser and the
    schedule from its start. The folder receives model.safetensors, which can be used wherever a policy is named,
    metrics.jsonl, curves.png once there are two lines of metrics, rollouts.png, config.json and, until the run is
    finished, checkpoint.safetensors. If the levels evolve, it also receives population.npz, a set of levels, at the
    end. Processes that `torchrun` starts share the work.

    The preset `fast` takes 45 minutes on one core, the paper's presets take days, and --n-updates 1000 some minutes.
    --tensorboard and `torchrun` need an extra: pip install "maze-nca-gym[train]".

    >>> policy = train("fast", out="runs/mine", n_updates=1000)

    Args:
        preset: preset whose values apply where no option is given; `train PRESET --help` shows them. In Python also a
            configuration.
        out: folder of the run, by default runs/train/ and the preset's name, or `own` for a configuration.
        device: device: auto (a GPU if there is one), cpu, cuda, cuda:1 ...
        threads: number of CPU threads, by default one per core.
        log_every: number of updates between two lines of metrics.
        validate_every: number of updates between two validations, a multiple of --log-every.
        save_every: seconds between two checkpoints.
        tensorboard: also write events for TensorBoard, into the folder tb of the run.
        overwrite: delete the run in the folder, if there is one, and start a new one.
        on_update: receives each line of metrics (`loop.Report`), for a tracker of your own. Of several processes, only
            the first calls it.
        options: options of the configuration (`TrainingConfig`) that replace those of the preset.

    Returns:
        The trained policy, on the CPU.

    Raises:
        ValueError: a bad option or combination, a folder with another run, or TensorBoard or Lightning Fabric is needed
            and missing.
        KeyboardInterrupt: after Ctrl-C, when the state has been saved.
        Diverged: the loss is not finite or has exploded; the last checkpoint is from before.
        MemoryError: the device has too little memory.
        OSError: a file could not be written, or another process works in the folder; the last checkpoint is intact.
    """
    from ..policies.weights import load_model
    from ..rollouts.pytorch import learning_on
    from .compiling import check_compile, compile_if_faster
    from .loop import run_updates
    from .processes import find_workers, usable_cores
    from .reports import FILES, find_tensorboard, reporting
    from .state import MODEL, TrainingState
    from .updates import Diverged

    multiple = f"validate_every must be a multiple of log_every {log_every}, got {validate_every}"
    check(validate_every % log_every == 0, multiple)
    folder = folder_of(preset, out)
    check_folder("--out", folder)
    config = changed(preset, **options)
    workers = find_workers(device, "--pool-retry" if config.pool_retry is not None else "")
    check_compile(config.compile, workers)
    if threads is None:  # all workers on this machine share the usable cores equally
        threads = max(1, usable_cores() // number_in_environment("LOCAL_WORLD_SIZE"))
    batch = f"--batch-size {config.batch_size}"
    # `asked_to_stop` begins here, because a KeyboardInterrupt while the checkpoint is read would look like damage
    with naming_memory(batch, device), learning_on(threads), asked_to_stop(), ExitStack() as lock:
        state = TrainingState.start(config, workers.device)
        # possible errors must be raised before an older run in the folder is overwritten
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
            workers.any(False)  # a barrier: the other workers wait until the folder is ready or has been rejected
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
            wanted = False  # `restore` has compiled the updates in the same way as before
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
            state.save(run)  # before the description, so that after an interruption here the run is still finished
        run.begin(_describe(preset if isinstance(preset, str) else "fast", run, state, workers), state.update)
        checkpoint, every = run.path / CHECKPOINT, (log_every, validate_every, save_every)
        try:
            if run.writes:
                with reporting(run, state.stream, state.update, on_update, tensorboard=tensorboard) as report:
                    run_updates(state, run, workers, *every, report)
            else:
                run_updates(state, run, workers, *every)
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
    import torch

    config, call = state.config, current_call()
    base = name if PRESETS.ships(name) else "fast"  # so that the command does not need the preset's module
    # a run that was continued is the result of several commands in a row
    values, usual = run.configuration | {"compile": state.compiled}, changed(base).to_json()
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
