"""A whole training run in one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runs import check_folder, naming_memory
from .config import TrainingConfig, changed
from .config import preset as find_preset

if TYPE_CHECKING:
    from ..policy import Policy

FOLDER = Path("runs/train")
"""Default folder of runs, each in a folder with the name of its preset."""


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
    from .loop import Intervals
    from .session import run_session

    name = preset if isinstance(preset, str) else "fast"
    start = find_preset(preset) if isinstance(preset, str) else preset
    config, intervals = changed(start, **configuration), Intervals(log_every, validate_every, save_every)
    folder = FOLDER / (preset if isinstance(preset, str) else "own") if out is None else Path(out)
    check_folder("--out", folder)
    with naming_memory(f"--batch-size {config.batch_size}", device):
        return run_session(
            folder,
            name,
            config,
            intervals,
            device=device,
            threads=threads,
            tensorboard=tensorboard,
            overwrite=overwrite,
        )
