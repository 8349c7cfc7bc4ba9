"""A run of a series: a network that is trained and measured in its own folder.

The folder contains the whole state of the run: a checkpoint during the training, and `result.json` after the
measurement. A run that is killed at any moment therefore resumes from its folder. This module does not depend on the
options that a series compares.
"""

from __future__ import annotations

import json
import math
import os
import time
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from maze_nca_gym.support.files import validated_read
from maze_nca_gym.support.options import check

from ..policies.registry import import_own
from ..runs import CHECKPOINT, METRICS, Line, Pause, RunFolder, read_metrics, write_json
from ..runs.listing import MEASURED

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from ..training.config import TrainingConfig

FAILURE, LOG = "failure.json", "log.txt"
TAIL = 4096
"""Number of bytes at the end of a file of metrics in which the latest metrics are searched."""

IN_RUN: ContextVar[bool] = ContextVar("IN_RUN", default=False)
"""Whether a run is importing its modules. A module may be a script that starts a sweep, which must fail in a run."""


class Measure(Protocol):
    """Protocol for a picklable function that measures a trained network."""

    @property
    def about(self) -> str:
        """A sentence for readers of the results that describes the measurements."""

    def __call__(self, policy: Policy, config: TrainingConfig, folder: Path) -> Mapping[str, float]:
        """Return the measurements of the trained network of a run by name.

        Args:
            policy: the network.
            config: the configuration of the run.
            folder: the folder of the run.
        """

    def to_json(self) -> dict[str, Any]:
        """Return everything that determines the measurements, JSON-serialisable. If this value changes, finished runs
        are measured again."""


class Error(NamedTuple):
    """The reason why an attempt at a run ended early.

    Attributes:
        text: the reason in words.
        is_final: whether another attempt would end in the same way.
        is_failure: whether the attempt counts as a failure.
    """

    text: str
    is_final: bool = False
    is_failure: bool = True


@dataclass(frozen=True, eq=False)
class Job:
    """A run: a configuration with its seed, and the measurements to make.

    Attributes:
        name: name of the configuration, which is the same for all seeds.
        config: the configuration of the training.
        measure: the function that measures the trained network.
        folder: the folder of the run.
        device: the device on which to train and measure.
        tensorboard: whether to write events for TensorBoard.
        modules: names of modules to import before the run, because they register names.
        until: the number of updates before a pause: the run pauses at the next validation from there on. None means
            that the run does not pause.
    """

    name: str
    config: TrainingConfig
    measure: Measure
    folder: Path
    device: str = "cpu"
    tensorboard: bool = False
    modules: tuple[str, ...] = ()
    until: int | None = None

    @property
    def label(self) -> str:
        """A short name of the run for messages: the name of its configuration, and its seed."""
        return f"{self.name}, seed {self.config.seed}"

    @property
    def log(self) -> Path:
        """File with everything that the run has printed in all attempts."""
        return self.folder / LOG

    @property
    def is_finished(self) -> bool:
        """Whether the run has the measurements of this job, or has reached the update at which it pauses.

        Raises:
            ValueError: the files of the run cannot be read.
        """
        return self.result() is not None or (self.until is not None and self.validation(self.until) is not None)

    def result(self) -> Mapping[str, Any] | None:
        """Return the content of `result.json`, or None if the run has not been measured, or was measured differently.

        The keys are `n_weights`, `figures` (measurements by name), `seconds`, and `measure`, the value of
        `Measure.to_json`.

        Raises:
            ValueError: the file cannot be read.
        """
        path = self.folder / MEASURED
        if not path.exists():
            return None
        with validated_read(path, "is not a result of a run"):
            result: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            is_whole = all(map(math.isfinite, result["figures"].values())) and "measure" in result
            check(is_whole, "it needs figures that are finite numbers, and how they were measured")
        return result if result["measure"] == self.measure.to_json() else None

    def latest_metrics(self) -> Line | None:
        """Return the latest value of each metric of the run, including the last validation, or None if the run has no
        line of metrics yet."""
        latest: dict[str, float] = {}
        with suppress(FileNotFoundError), (self.folder / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            for text in file.read().splitlines():
                with suppress(ValueError):  # the first line may be cut off, and the last line may be incomplete yet
                    latest |= json.loads(text)
        return latest or None

    def validation(self, update: int) -> Line | None:
        """Return the first line of metrics with a validation at or after an update, or None if there is no such line.

        Raises:
            ValueError: the metrics cannot be read.
        """
        lines = read_metrics(self.folder / METRICS)
        return next((line for line in lines if line["update"] >= update and "complete" in line), None)

    def saved_update(self) -> int | None:
        """Return the number of updates in the checkpoint, or None if there is no checkpoint or it cannot be read."""
        with suppress(ValueError, OSError):
            run = RunFolder.open(self.folder, self.config.to_json(), overwrite=None, writes=False)
            checkpoint = run.load(CHECKPOINT)
            return None if checkpoint is None else int(checkpoint[0]["update"])
        return None

    def failure(self) -> str | None:
        """Return the reason why the run was given up, or None if it was not given up.

        Raises:
            ValueError: the record of the failure cannot be read.
        """
        path = self.folder / FAILURE
        if self.is_finished or not path.exists():
            return None
        with validated_read(path, "is not a record of a failure"):
            return str(json.loads(path.read_text(encoding="utf-8"))["error"])


def attempt(job: Job) -> Error | None:
    """Make an attempt at a run, and return the reason if the attempt ended early, or None if it succeeded.

    Everything that the run prints is appended to its log.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
    """
    from ..training.updates import Diverged

    saved = os.dup(1), os.dup(2)
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        with job.log.open("a", buffering=1, encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)  # compilers and drivers bypass sys.stdout and write to the descriptors
            os.dup2(file.fileno(), 2)
            try:
                run_job(job)
            except Exception:
                traceback.print_exc()
                raise
    except Exception as error:  # any error ends only this run: other runs go on, and the tables list the error
        return Error(f"{type(error).__name__}: {error}", isinstance(error, (Diverged, ValueError)))
    finally:
        for number, before in zip((1, 2), saved, strict=True):
            os.dup2(before, number)
            os.close(before)
    return None


def run_job(job: Job) -> None:
    """Train or resume a run and, unless it pauses, measure its network. `result.json` is written last.

    Raises:
        ValueError: the folder has a run of another configuration.
        Diverged: the loss is not finite or has exploded.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
        OSError: a file could not be written.
    """
    from ..training.processes import find_workers
    from ..training.run import train

    in_run = IN_RUN.set(True)
    try:
        for module in job.modules:
            import_own(module, "the sweep")
    finally:
        IN_RUN.reset(in_run)
    began, n_updates = time.perf_counter(), job.config.n_updates
    every = min(25, max(1, n_updates // 20))

    def pause(line: Line) -> None:
        if job.until is not None and line["update"] >= job.until and "complete" in line:
            raise Pause

    try:
        policy = train(
            job.config,
            out=job.folder,
            device=job.device,
            threads=1,
            log_every=every,
            validate_every=every * min(10, max(1, n_updates // (10 * every))),
            tensorboard=job.tensorboard,
            on_update=pause,
        )
    except KeyboardInterrupt:
        if not job.is_finished:
            raise
        return
    figures = job.measure(policy.to(find_workers(job.device).device), job.config, job.folder)
    result = {"n_weights": policy.n_weights, "figures": figures, "seconds": time.perf_counter() - began}
    # last, because this file marks the run as finished
    write_json(job.folder / MEASURED, {**result, "measure": job.measure.to_json()})
