"""`train`: a whole training run in one call, in Python and as the command `maze-nca-gym train`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.support.keywords import TrainOptions, Unpack
from maze_nca_gym.support.options import Between, Further, OneOf, Shown, check, checked

from ..runs import Line, check_folder, naming_memory
from .config import TrainingConfig, changed, options_of_run
from .presets import PRESETS

if TYPE_CHECKING:
    from ..policies.policy import Policy

FOLDER = Path("runs/train")
"""Default folder of runs, each in a folder with the name of its preset."""


def folder_of(preset: str | TrainingConfig, out: str | Path | None) -> Path:
    """Return the folder of a run: `out`, or by default `runs/train/NAME` with the preset's name, `own` without one."""
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
        ValueError: a bad option or combination, or a folder with another run.
        KeyboardInterrupt: after Ctrl-C, when the state has been saved.
        Diverged: the loss is not finite or has exploded; the last checkpoint is from before.
        ImportError: TensorBoard or Lightning Fabric is needed and missing.
        MemoryError: the device has too little memory.
        OSError: a file could not be written, or another process works in the folder; the last checkpoint is intact.
    """
    from .loop import Intervals
    from .session import run_session

    multiple = f"validate_every must be a multiple of log_every {log_every}, got {validate_every}"
    check(validate_every % log_every == 0, multiple)
    name = preset if isinstance(preset, str) else "fast"
    folder, intervals = folder_of(preset, out), Intervals(log_every, validate_every, save_every)
    check_folder("--out", folder)
    config = changed(preset, **options)
    with naming_memory(f"--batch-size {config.batch_size}", device):
        return run_session(folder, name, config, intervals, device, threads, tensorboard, overwrite, on_update)
