"""The runs of a reproduction: which there are, what one does, and what it leaves.

The folder is the only memory: `runs/NAME/trial-N` has a run's checkpoint while it trains, and `result.json` once it is
measured. A run that is killed at any moment goes on from there.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maze_nca_gym import __version__
from maze_nca_gym.families import most_levels, test_levels
from maze_nca_gym.files import validated_read
from maze_nca_gym.levels import Tiles
from maze_nca_gym.tasks import find_task

from ..runs import RunFolder, versions, write_json
from .rows import Row, configurations, of_trial, run_name
from .scales import Scale, shrink

if TYPE_CHECKING:
    from ..policy import Policy
    from ..training.config import TrainingConfig

RESULT, FAILURE, LOG = "result.json", "failure.json", "log.txt"


@dataclass(frozen=True, eq=False)
class Job:
    """One run: a configuration of a row at a scale, with the seed of a trial.

    Attributes:
        name: of the configuration, equal for all trials.
        trial: its number, from 1.
        config: what to train.
        scale: where to measure.
        folder: of the run.
        device: where to train and measure.
    """

    name: str
    trial: int
    config: TrainingConfig
    scale: Scale
    folder: Path
    device: str = "cpu"

    @property
    def label(self) -> str:
        """The run in a few words."""
        return f"{self.name}, trial {self.trial}"

    @property
    def kind(self) -> str:
        """The group of runs to which it belongs: task and class of the network."""
        return f"{self.config.task}, {self.config.model.model}{', evolved levels' if self.config.evolve else ''}"

    @property
    def is_finished(self) -> bool:
        """Whether it has been measured."""
        return (self.folder / RESULT).exists()


def plan(rows: Sequence[Row], trials: int, scale: Scale, out: Path, device: str = "cpu") -> list[Job]:
    """Return the runs that rows need, those of equal configurations once: first the first trial of all, then the next.

    Args:
        rows: the rows of tables to fill.
        trials: the number of trials of each, at least 1.
        scale: how large the runs are.
        out: the folder of the reproduction.
        device: cpu, cuda, cuda:1 ... or auto.

    Raises:
        ValueError: fewer trials than 1.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    configs = {run_name(config): shrink(config, scale) for row in rows for config in configurations(row)}
    return [
        Job(name, trial, of_trial(config, trial), scale, run_folder(out, name, trial), device)
        for trial in range(1, trials + 1)
        for name, config in configs.items()
    ]


def run_folder(out: Path, name: str, trial: int) -> Path:
    """Return the folder of a run."""
    return out / "runs" / name / f"trial-{trial}"


def open_folder(out: Path, scale: Scale) -> RunFolder:
    """Make the folder of a reproduction, or check that it has one of this scale and version; `begin` writes into it.

    Raises:
        ValueError: it belongs to another scale or version, or holds something else.
        OSError: it cannot be written.
    """
    return RunFolder.open(out, {"scale": scale.name, "version": __version__}, ("*",), may_overwrite=False)


def attempt(job: Job) -> str | None:
    """Make one attempt at a run, whose output is appended to its log; return what went wrong, in words, or None.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
    """
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        with _output_to(job.folder / LOG):
            return _run(job)
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def _run(job: Job) -> str | None:
    """Run a job, and print the traceback of what went wrong."""
    try:
        run_job(job)
    except Exception as error:  # whatever it is: the others go on, and the table names it
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Append to a file, within the block, all that this process prints, native code included."""
    before = os.dup(1), os.dup(2)
    try:
        with path.open("a", buffering=1, encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for number, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, number)
            os.close(saved)


def run_job(job: Job) -> None:
    """Train a run, or go on where it was stopped, and measure it; `result.json` is written last.

    Raises:
        ValueError: the folder has a run of another configuration.
        Diverged: the loss is not finite or has exploded.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the state has been saved.
        OSError: a file could not be written.
    """
    from ..training.run import train

    began = time.perf_counter()
    every = min(25, max(1, job.config.n_updates // 20))
    policy = train(job.config, out=job.folder, device=job.device, threads=1, log_every=every, validate_every=10 * every)
    figures = measure(policy, job)
    content = {
        "name": job.name,
        "trial": job.trial,
        "configuration": job.config.to_json(),
        "n_weights": policy.n_weights,
        "figures": figures,
        "seconds": time.perf_counter() - began,
        "versions": versions(),
    }
    write_json(job.folder / RESULT, content)


def measure(policy: Policy, job: Job) -> dict[str, float]:
    """Return the figures of all columns, as fractions and tiles: those of `rows.COLUMNS`.

    Accuracies are the paper's. An MLP, which is built for one size, has a 0 on the larger mazes, as in the paper.

    Args:
        policy: the trained network, on any device.
        job: its run, whose folder has the population if the levels evolved.
    """
    from ..evaluation.metrics import Metrics, measure
    from ..training.processes import find_workers

    policy = policy.to(find_workers(job.device).device)
    config, n_steps = job.config, n_steps_on(policy, job.config, is_large=False)

    def metrics(tiles: Tiles, n_steps: int) -> Metrics:
        return measure(policy, tiles, n_steps, steps=(n_steps,)).final

    def tested(size: int) -> Tiles:
        return test_levels("random", size, config.task, min(job.scale.n_tested, most_levels(size))).tiles

    small, large = job.scale.sizes
    trained_on = training_levels(config, job.folder)
    on_training, on_small = metrics(trained_on[: job.scale.n_tested], n_steps), metrics(tested(small), n_steps)
    on_large = 0.0
    if config.model.model != "MLP":
        on_large = metrics(tested(large), n_steps_on(policy, config, is_large=True)).paper_accuracy.value
    return {
        "train_solution_length": float(find_task(config.task).solve(trained_on).sum() / len(trained_on)),
        "train_accuracy": on_training.paper_accuracy.value,
        "train_complete": on_training.complete.value,
        "test_16_accuracy": on_small.paper_accuracy.value,
        "test_16_complete": on_small.complete.value,
        "test_32_accuracy": on_large,
    }


def n_steps_on(policy: Policy, config: TrainingConfig, *, is_large: bool) -> int:
    """Return the iterations on the mazes of a test set: on the larger ones twice as many, where weights are shared."""
    n_steps = config.model.n_iterations
    assert n_steps is not None, "the presets of the paper state the iterations"
    return 2 * n_steps if is_large and policy.most_iterations is None else n_steps


def training_levels(config: TrainingConfig, folder: Path) -> Tiles:
    """Return (N, H, W) levels that a run has trained on: its fixed set, or the last population if it evolved."""
    from maze_nca_gym.population import LevelPopulation

    from ..training.data import LevelStream
    from ..training.loop import LEVELS

    if config.evolve:
        return LevelPopulation.load(folder / LEVELS).tiles
    return LevelStream(config).fixed.tiles


def check_result(job: Job) -> None:
    """Check that a run, if it is finished, is of the configuration that is asked for.

    Raises:
        ValueError: it is of another one, or its result cannot be read.
    """
    if not job.is_finished:
        return
    there, here = load_result(job)["configuration"], job.config.to_json()
    differing = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    if differing:
        raise ValueError(f"{job.folder} was run with another {', '.join(differing)}: choose another --out")


def load_result(job: Job) -> Mapping[str, Any]:
    """Return what `result.json` of a finished run holds.

    Raises:
        ValueError: it cannot be read.
    """
    path = job.folder / RESULT
    with validated_read(path, "is no result of a run"):
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not all(np.isfinite(value) for value in found["figures"].values()):
            raise ValueError("its figures must be finite numbers")
        if not isinstance(found["configuration"], dict):
            raise ValueError("its configuration must be an object")
    return found


def load_failure(job: Job) -> str | None:
    """Return why a run was given up, or None if it was not.

    Raises:
        ValueError: the file that says it cannot be read.
    """
    path = job.folder / FAILURE
    if job.is_finished or not path.exists():
        return None
    with validated_read(path, "is no record of a failure"):
        return str(json.loads(path.read_text(encoding="utf-8"))["error"])
