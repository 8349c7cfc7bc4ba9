"""`maze-nca-gym train`: how to run. What to train is in `configured`, which loads torch; the work is in `training`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.options import INTEGER, NUMBER, check_at_least

_OUT = arg(metavar="FOLDER", help_behavior_hint="(default: runs/train/PRESET)")
_THREADS = arg(help_behavior_hint="(default: one a core)")


@dataclass(frozen=True)
class Train:
    """Train a policy on the exact solutions of mazes, or go on with a run that was stopped.

    Ctrl-C saves and ends; the same command goes on. The run's folder gets model.safetensors, which the other commands
    take for a policy, metrics.jsonl, curves.png, rollouts.png, config.json and checkpoint.safetensors. If its levels
    evolve, it ends with population.npz, which the other commands take for --levels.
    """

    preset: Annotated[Positional[str], arg(metavar="[PRESET]")] = "fast"
    """Where the configuration starts from; `train PRESET --help` shows its values."""
    out: Annotated[Path | None, _OUT] = None
    """Of the run."""
    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda, cuda:1 …"""
    threads: Annotated[int | None, INTEGER, _THREADS] = None
    """Of the CPU."""
    log_every: Annotated[int, INTEGER] = 25
    """Updates from one line of metrics to the next."""
    validate_every: Annotated[int, INTEGER] = 250
    """Updates from validation to validation, a multiple of --log-every."""
    save_every: Annotated[float, NUMBER] = 60.0
    """Seconds from checkpoint to checkpoint."""
    tensorboard: bool = False
    """Write events for TensorBoard into the folder tb as well."""
    overwrite: bool = False
    """Start anew if the folder has a run, which is lost."""

    @property
    def folder(self) -> Path:
        """Of the run."""
        return Path("runs/train") / self.preset if self.out is None else self.out

    def check(self) -> None:
        """Fail before the work begins where the options alone tell that it would be in vain.

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
