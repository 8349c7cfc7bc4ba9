"""`maze-nca-gym train`: the options of how to run. `configured` has those of what to train and loads torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_at_least, check_folder
from maze_nca_gym.cli.options import INTEGER, NUMBER, ImportOption

_OUT = arg(metavar="FOLDER", help_behavior_hint="(default: runs/train/PRESET)")
_THREADS = arg(help_behavior_hint="(default: one per core)")


@dataclass(frozen=True)
class Train(ImportOption):
    """Train a policy on the exact solutions of mazes, or continue a run that was stopped.

    Ctrl-C saves and ends the run; the same command continues it. The run's folder receives model.safetensors, which the
    other commands accept as a policy, metrics.jsonl, curves.png, rollouts.png, config.json and checkpoint.safetensors.
    If its levels evolve, it ends with population.npz, which the other commands accept as --levels.
    """

    preset: Annotated[Positional[str], arg(metavar="[PRESET]")] = "fast"
    """Preset whose values apply unless given; `train PRESET --help` shows them."""
    out: Annotated[Path | None, _OUT] = None
    """Folder of the run."""
    device: str = "auto"
    """Device: auto (a GPU if there is one), cpu, cuda, cuda:1 …"""
    threads: Annotated[int | None, INTEGER, _THREADS] = None
    """Number of CPU threads."""
    log_every: Annotated[int, INTEGER] = 25
    """Number of updates between two lines of metrics."""
    validate_every: Annotated[int, INTEGER] = 250
    """Number of updates between two validations, a multiple of --log-every."""
    save_every: Annotated[float, NUMBER] = 60.0
    """Seconds between two checkpoints."""
    tensorboard: bool = False
    """Also write events for TensorBoard, into the folder tb of the run."""
    overwrite: bool = False
    """Delete the run in the folder, if there is one, and start a new one."""

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return Path("runs/train") / self.preset if self.out is None else self.out

    def check(self) -> None:
        """Check the options before the work begins.

        Raises:
            ValueError: what is wrong and what is allowed.
        """
        for name in ("threads", "log_every", "validate_every"):
            check_at_least("--" + name.replace("_", "-"), getattr(self, name), 1)
        check_at_least("--save-every", self.save_every, 0)
        if self.validate_every % self.log_every:
            raise ValueError(
                f"--validate-every must be a multiple of --log-every {self.log_every}, got {self.validate_every}"
            )
        check_folder("--out", self.folder)
