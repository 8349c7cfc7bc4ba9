"""Training: updates, validation, checkpoints, until the last update or Ctrl-C."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maze_nca_gym.files import remove_partial
from maze_nca_gym.scoring import score
from maze_nca_gym.tasks import find_task

from ..policy import Policy
from ..precision import tf32
from ..rollouts import default_steps, find_paths
from ..runs import Line, asked_to_stop
from ..weights import save_model
from .data import Batch, LevelStream, made_ahead, validation_batch
from .processes import Workers
from .state import TrainingState
from .updates import read_losses, update

CHECKPOINT, MODEL, LEVELS = "checkpoint.safetensors", "model.safetensors", "population.npz"
"""Files of a run: what it goes on from, what it is for, and the levels that it has ended with if they evolve."""

COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")
"""Names of the metrics of a validation."""


class Report(Protocol):
    """A receiver of all events of a run; it changes nothing of the run."""

    def log(self, line: Line) -> None:
        """Take the metrics at an update, in the order of updates.

        They are `update`, `seconds` (of training), `loss` (mean since the last line), `learning_rate` and
        `levels_per_second`. After a validation also `valid_loss`, `accuracy`, `complete` and `optimal` on held-out
        levels. Where levels evolve also those of `LevelPopulation.statistics`, such as `mean_solution_length`, with
        `n_rounds` of offspring so far and `evolution_seconds`, their part of `seconds`.
        """

    def on_validation(self, policy: Policy) -> None:
        """Take a look at the policy as it is after a validation."""


class NullReport:
    """A report that does nothing."""

    def log(self, line: Line) -> None:
        """Ignore it."""

    def on_validation(self, policy: Policy) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class Intervals:
    """How often a run stops to look around.

    Attributes:
        log: updates from line to line.
        validate: updates from validation to validation, a multiple of `log`.
        save: seconds from checkpoint to checkpoint, at the least.

    Raises:
        ValueError: `log` below 1, `validate` that is no multiple of it, or `save` below 0.
    """

    log: int = 25
    validate: int = 250
    save: float = 60.0

    def __post_init__(self) -> None:
        if self.log < 1 or self.validate < 1 or self.validate % self.log:
            raise ValueError(f"validate must be a multiple of log, both at least 1, got {self.validate} and {self.log}")
        if not self.save >= 0:
            raise ValueError(f"save must be at least 0 seconds, got {self.save}")


def run_updates(state: TrainingState, folder: Path, workers: Workers, report: Report, intervals: Intervals) -> None:
    """Make all updates that are left.

    Args:
        state: a fresh or a loaded state, which is changed.
        folder: receives `checkpoint.safetensors` and `model.safetensors`, and at the end `population.npz` of levels
            that evolve.
        workers: the workers that share the work.
        report: receives all events.
        intervals: the intervals between events.

    Raises:
        ValueError: a batch that the workers cannot share equally, or nearly all levels of a size are held out.
        Diverged: the loss is not finite or has exploded; the last checkpoint is from before.
        KeyboardInterrupt: after Ctrl-C, when the state has been saved.
        OSError: a file could not be written; the last checkpoint is intact.
    """
    if state.config.batch_size % workers.size:
        raise ValueError(f"batch_size {state.config.batch_size} must be a multiple of the {workers.size} workers")
    with asked_to_stop() as stop, tf32(state.config.precision == "tf32"):
        run = _Run(state, folder, workers, report, intervals)
        run.tidy()
        run.save()
        with made_ahead(run.stream, state.update) as batches:
            for batch in batches:
                run.step(batch)
                if run.asked_to_end(stop.is_set()):
                    break
        run.save_levels()  # first, so that a run whose last checkpoint there is has them
        run.save()
    if state.update < state.config.n_updates:
        raise KeyboardInterrupt


class _Run:
    """The loop's body, with what it counts from line to line and from checkpoint to checkpoint."""

    def __init__(
        self, state: TrainingState, folder: Path, workers: Workers, report: Report, intervals: Intervals
    ) -> None:
        self.state, self.folder, self.workers, self.report, self.intervals = state, folder, workers, report, intervals
        self.stream = LevelStream(state.config)
        if state.update < state.config.n_updates:
            self.stream.batch(state.update)  # raises where there are no such levels, before anything is written
        self.held_out = validation_batch(state.config)
        self.saved_at = time.monotonic()

    def step(self, batch: Batch) -> None:
        """Make one update, and do what is due after it."""
        state, began = self.state, time.perf_counter()
        update(state, batch, self.stream, self.workers)
        last = state.update == state.config.n_updates
        due = last or state.update % self.intervals.log == 0
        if due:
            read_losses(state)  # a GPU has made its updates only now
        seconds = time.perf_counter() - began
        state.seconds, state.line_seconds = state.seconds + seconds, state.line_seconds + seconds
        if due:
            self.log(last or state.update % self.intervals.validate == 0)
            if time.monotonic() - self.saved_at > self.intervals.save:
                self.save()

    def asked_to_end(self, asked: bool) -> bool:
        """Return whether any worker was asked to. Several with GPUs, which would wait, agree after lines of metrics."""
        workers = self.workers
        waits = workers.size > 1 and workers.device.type != "cpu"
        return workers.any(asked) if not waits or self.state.update % self.intervals.log == 0 else False

    def log(self, with_validation: bool) -> None:
        """Send a line to the report."""
        if not self.workers.rank:
            self.report.log(self.measure(with_validation))
            if with_validation:
                self.report.on_validation(self.state.best_model)
        self.state.losses, self.state.line_seconds = [], 0.0

    def measure(self, with_validation: bool) -> Line:
        """Return a line of metrics."""
        state = self.state
        n_levels = len(state.losses) * state.config.batch_size
        line = {
            "update": state.update,
            "seconds": state.seconds,
            "loss": sum(state.losses) / len(state.losses),
            "learning_rate": state.optimiser.param_groups[0]["lr"],
            "levels_per_second": n_levels / max(state.line_seconds, 1e-9),
        }
        if state.evolution is not None:
            line |= state.evolution.line()
        return line | validate(state.best_model, self.held_out) if with_validation else line

    def tidy(self) -> None:
        """Remove what runs that were killed have left half written."""
        if not self.workers.rank:
            for name in (CHECKPOINT, MODEL, LEVELS):
                remove_partial(self.folder / name)

    def save_levels(self) -> None:
        """Write the population, after the last update alone."""
        state = self.state
        if state.evolution is not None and state.update == state.config.n_updates and not self.workers.rank:
            state.evolution.population.save(self.folder / LEVELS)

    def save(self) -> None:
        """Write the checkpoint and the model."""
        read_losses(self.state)
        if self.workers.rank:
            return
        self.state.save(self.folder / CHECKPOINT)
        save_model(self.state.best_model, self.folder / MODEL)
        self.saved_at = time.monotonic()


def validate(policy: Policy, batch: Batch) -> dict[str, float]:
    """Return the means of `valid_loss`, `accuracy`, `complete` and `optimal` after `default_steps` iterations.

    Args:
        policy: a policy of the task of the levels.
        batch: (N, H, W) levels of any N.
    """
    path = find_paths(policy, batch.tiles, default_steps(policy, batch.target))
    table = score(batch.tiles, path, batch.target, find_task(policy.task).judge).table
    return dict(zip(COLUMNS, table.mean(axis=0).tolist(), strict=True))
