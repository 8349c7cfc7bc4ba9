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
"""Bytes at the end of a file of metrics that hold its last lines."""

IN_RUN: ContextVar[bool] = ContextVar("IN_RUN", default=False)
"""Whether modules are imported for a run, one of which may be a script that starts sweeps itself."""


class Measure(Protocol):
    """Protocol for a picklable function that measures a trained network."""

    @property
    def about(self) -> str:
        """A sentence that says what is measured."""

    def __call__(self, policy: Policy, config: TrainingConfig, folder: Path) -> Mapping[str, float]:
        """Return measurements by name of the network of a run."""

    def to_json(self) -> dict[str, Any]:
        """Return everything on which the measurements depend, JSON-serialisable; if it changes, runs are measured
        again."""


class Error(NamedTuple):
    """The reason why an attempt ended early: a text, whether another attempt would end in the same way, and whether it
    counts as a failure."""

    text: str
    is_final: bool = False
    is_failure: bool = True


@dataclass(frozen=True, eq=False)
class Job:
    """One run: a configuration with its seed.

    Attributes:
        name: name of the configuration, the same for all seeds.
        config: the configuration of the training.
        measure: the function that measures the trained network.
        folder: the folder of the run.
        device: the device on which to train and measure.
        tensorboard: whether to write events for TensorBoard.
        modules: modules to import first, since they register names.
        until: the update at whose validation, or the next, the run pauses; None lets it run to its end.
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
        """The run in a few words."""
        return f"{self.name}, seed {self.config.seed}"

    @property
    def log(self) -> Path:
        """File with everything that the run has printed."""
        return self.folder / LOG

    @property
    def is_finished(self) -> bool:
        """Whether the run has been measured as this job would, or has reached the update at which it pauses.

        Raises:
            ValueError: its files cannot be read.
        """
        return self.result() is not None or (self.until is not None and self.validation(self.until) is not None)

    def result(self) -> Mapping[str, Any] | None:
        """Return `n_weights`, `figures` by name, `seconds` and `measure` of a run, or None if it has not been measured,
        or not as this job measures.

        Raises:
            ValueError: the file cannot be read.
        """
        path = self.folder / MEASURED
        if not path.exists():
            return None
        with validated_read(path, "is no result of a run"):
            result: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            is_whole = all(map(math.isfinite, result["figures"].values())) and "measure" in result
            check(is_whole, "it needs figures that are finite numbers, and how they were measured")
        return result if result["measure"] == self.measure.to_json() else None

    def latest_metrics(self) -> Line | None:
        """Return the latest metrics of the run, including its last validation's, or None before the first line."""
        latest: dict[str, float] = {}
        with suppress(FileNotFoundError), (self.folder / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            for text in file.read().splitlines():
                with suppress(ValueError):  # the first may be cut off, and the last is perhaps being written
                    latest |= json.loads(text)
        return latest or None

    def validation(self, update: int) -> Line | None:
        """Return the first line of metrics with a validation at or after an update, or None.

        Raises:
            ValueError: the metrics cannot be read.
        """
        lines = read_metrics(self.folder / METRICS)
        return next((line for line in lines if line["update"] >= update and "complete" in line), None)

    def saved_update(self) -> int | None:
        """Return the update of the checkpoint, or None if there is none, or none that can be read."""
        with suppress(ValueError, OSError):
            run = RunFolder.open(self.folder, self.config.to_json(), overwrite=None, writes=False)
            checkpoint = run.load(CHECKPOINT)
            return None if checkpoint is None else int(checkpoint[0]["update"])
        return None

    def failure(self) -> str | None:
        """Return the reason for which the run was given up, or None if it was not given up.

        Raises:
            ValueError: the record of the failure cannot be read.
        """
        path = self.folder / FAILURE
        if self.is_finished or not path.exists():
            return None
        with validated_read(path, "is no record of a failure"):
            return str(json.loads(path.read_text(encoding="utf-8"))["error"])


def attempt(job: Job) -> Error | None:
    """Make one attempt at a run, whose output is appended to its log; return why it ended early, or None if it did not.

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
    except Exception as error:  # any error ends this run alone: the others go on, and the tables list it
        return Error(f"{type(error).__name__}: {error}", isinstance(error, (Diverged, ValueError)))
    finally:
        for number, before in zip((1, 2), saved, strict=True):
            os.dup2(before, number)
            os.close(before)
    return None


def run_job(job: Job) -> None:
    """Train a run, or resume it, and measure it, unless it pauses; `result.json` is written last.

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
    # last, since this file marks the run as finished
    write_json(job.folder / MEASURED, {**result, "measure": job.measure.to_json()})
