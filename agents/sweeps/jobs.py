"""One run of a series: a network that is trained and measured in a folder of its own.

The folder holds the whole state of a run: its checkpoint while it trains, and `result.json` once it is measured. So a
run that is killed at any moment resumes from there. Nothing here depends on what a series compares.
"""

from __future__ import annotations

import json
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from maze_nca_gym.files import validated_read

from ..runs import RunFolder, write_json

if TYPE_CHECKING:
    from ..policy import Policy
    from ..training.config import TrainingConfig

RESULT, FAILURE, LOG = "result.json", "failure.json", "log.txt"
Measure: TypeAlias = "Callable[[Policy, TrainingConfig, Path], Mapping[str, float]]"
"""A trained network, its configuration and the folder of its run -> measurements by name; it can be pickled."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run: a configuration, with the seed of a trial.

    Attributes:
        name: name of the configuration, the same for all trials.
        trial: number of the trial, from 1.
        config: the configuration of the training.
        measure: measures the trained network.
        folder: the folder of the run.
        device: the device on which to train and measure.
    """

    name: str
    trial: int
    config: TrainingConfig
    measure: Measure
    folder: Path
    device: str = "cpu"

    @property
    def label(self) -> str:
        """The run in a few words."""
        return f"{self.name}, trial {self.trial}"

    @property
    def kind(self) -> str:
        """The group to which the run belongs, by task, class of the network, and whether levels evolve."""
        return f"{self.config.task}, {self.config.model.model}{', evolved levels' if self.config.evolve else ''}"

    @property
    def log(self) -> Path:
        """File with everything that the run has printed."""
        return self.folder / LOG

    @property
    def is_finished(self) -> bool:
        """Whether the run has been measured."""
        return (self.folder / RESULT).exists()

    def check(self) -> None:
        """Check that the folder has no run of another configuration.

        Raises:
            ValueError: it has one, or its description cannot be read.
        """
        RunFolder.open(self.folder, self.config.to_json(), overwrite=None, writes=False)

    def result(self) -> Mapping[str, Any]:
        """Return `n_weights`, `figures` by name and `seconds` of a finished run.

        Raises:
            ValueError: they cannot be read.
        """
        path = self.folder / RESULT
        with validated_read(path, "is no result of a run"):
            found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if not all(map(math.isfinite, found["figures"].values())):
                raise ValueError("its figures must be finite numbers")
        return found

    def failure(self) -> str | None:
        """Return why the run was given up; None if it was not.

        Raises:
            ValueError: the record of the failure cannot be read.
        """
        path = self.folder / FAILURE
        if self.is_finished or not path.exists():
            return None
        with validated_read(path, "is no record of a failure"):
            return str(json.loads(path.read_text(encoding="utf-8"))["error"])


def plan(
    configs: Mapping[str, TrainingConfig], trials: int, measure: Measure, out: Path, device: str = "cpu"
) -> list[Job]:
    """Return the runs of a series: the first trial of every configuration, then the second ones, and so on.

    Args:
        configs: configurations by name. Trials differ in the seed of weights and levels.
        trials: the number of trials of each, at least 1.
        measure: measures a trained network.
        out: the folder of the series.
        device: cpu, cuda, cuda:1 ... or auto.

    Raises:
        ValueError: fewer trials than 1.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    return [
        Job(name, trial, replace(config, seed=trial - 1), measure, out / "runs" / name / f"trial-{trial}", device)
        for trial in range(1, trials + 1)
        for name, config in configs.items()
    ]


def attempt(job: Job) -> str | None:
    """Make one attempt at a run, whose output is appended to its log; return the error as text, or None.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
    """
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        with _output_to(job.log):
            try:
                run_job(job)
            except Exception:
                traceback.print_exc()
                raise
    except Exception as error:  # any error ends this run alone: the others go on, and the tables list it
        return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Append everything that this process prints within the block to a file, output of native code included."""
    before = os.dup(1), os.dup(2)
    try:
        with path.open("a", buffering=1, encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)  # compilers and drivers bypass sys.stdout and write to the descriptors
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for number, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, number)
            os.close(saved)


def run_job(job: Job) -> None:
    """Train a run, or resume it, and measure it; `result.json` is written last.

    Raises:
        ValueError: the folder has a run of another configuration.
        Diverged: the loss is not finite or has exploded.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
        OSError: a file could not be written.
    """
    from ..training.processes import find_workers
    from ..training.run import train

    began = time.perf_counter()
    every = min(25, max(1, job.config.n_updates // 20))
    policy = train(job.config, out=job.folder, device=job.device, threads=1, log_every=every, validate_every=10 * every)
    figures = job.measure(policy.to(find_workers(job.device).device), job.config, job.folder)
    content = {"n_weights": policy.n_weights, "figures": figures, "seconds": time.perf_counter() - began}
    # last, since this file marks the run as finished
    write_json(job.folder / RESULT, content)
