"""The training loop: updates, validation and checkpoints, until the last update or Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from maze_nca_gym.mazes.scoring import score
from maze_nca_gym.support.options import check

from ..policies.policy import Policy
from ..policies.precision import tf32
from ..policies.weights import save_model
from ..rollouts.scores import Batch
from ..rollouts.solving import default_steps, find_paths
from ..runs import Line, Pause, RunFolder
from .data import made_ahead
from .processes import Workers
from .state import MODEL, TrainingState
from .updates import read_losses, update

LEVELS = "population.npz"
"""File of a run whose levels evolve: its last population."""

COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")
"""Names of the metrics of a validation."""

Report: TypeAlias = Callable[[Line, Policy | None], object]
"""Function that receives a line of metrics, in the order of updates, and after a validation also the policy, else None.

The metrics are:

- in every line: `update`, `seconds` of training so far, `loss` (the mean since the line before), `learning_rate` and
  `levels_per_second`
- after a validation: `valid_loss`, `accuracy`, `complete` and `optimal` on held-out levels
- if levels evolve: `n_rounds` of offspring so far, `evolution_seconds`, the part of `seconds` spent on the population,
  and the metrics of `LevelPopulation.statistics`, such as `mean_solution_length`
"""


def run_updates(
    state: TrainingState,
    run: RunFolder,
    workers: Workers,
    log_every: int = 25,
    validate_every: int = 250,
    save_every: float = 60.0,
    report: Report = lambda line, policy: None,
) -> None:
    """Make all updates from the state of a run to its last update.

    Args:
        state: a fresh or a loaded state, which is changed.
        run: the folder of the run, which receives the checkpoint and `model.safetensors`. If levels evolve, it also
            receives `population.npz` at the end.
        workers: the workers that share the batches.
        log_every: number of updates between two lines of metrics.
        validate_every: number of updates between two validations, a multiple of `log_every`.
        save_every: least number of seconds between two checkpoints.
        report: function that receives the metrics, in the process that writes.

    Raises:
        ValueError: the batch size is not a multiple of the number of workers, or nearly all levels of a size are held
            out.
        Diverged: the loss is not finite or has exploded. The last checkpoint was saved before.
        KeyboardInterrupt: after Ctrl-C, when the state has been saved.
        OSError: a file could not be written. The last checkpoint is intact.
    """
    config, evolution, stream, held_out = state.config, state.evolution, state.stream, state.stream.validation
    is_shared = config.batch_size % workers.size == 0
    check(is_shared, f"batch_size {config.batch_size} must be a multiple of the {workers.size} workers")
    if state.update < config.n_updates:
        stream.batch(state.update)  # raises ValueError if there are no such levels, before a file is written
    # Several workers must agree on whether to stop, and this waits for their GPUs. Workers with GPUs therefore check
    # only after a line of metrics.
    asks_always = workers.size == 1 or workers.device.type == "cpu"

    def save() -> None:
        read_losses(state)
        if run.writes:
            if evolution is not None and state.update == config.n_updates:
                evolution.population.save(run.path / LEVELS)  # before the checkpoint, which then implies this file
            state.save(run)
            save_model(state.best_model, run.path / MODEL)

    with (
        run.loop(save, save_every, workers.any) as between,
        tf32(False, workers.device),  # except for the rollouts in `updates.compute_gradients`
        made_ahead(stream, state.update) as batches,
    ):
        for batch in batches:
            # an update
            began = time.perf_counter()
            update(state, batch, workers)
            is_last = state.update == config.n_updates
            is_due, pauses = is_last or state.update % log_every == 0, False
            if is_due:
                read_losses(state)  # waits for the GPU, so that the time below includes all of its work
            seconds = time.perf_counter() - began
            state.seconds, state.line_seconds = state.seconds + seconds, state.line_seconds + seconds
            # a line of metrics, perhaps with a validation
            if is_due and run.writes:
                line: dict[str, float] = {
                    "update": state.update,
                    "seconds": state.seconds,
                    "loss": sum(state.losses) / len(state.losses),
                    "learning_rate": state.optimiser.param_groups[0]["lr"],
                    "levels_per_second": len(state.losses) * config.batch_size / max(state.line_seconds, 1e-9),
                }
                if evolution is not None:
                    line |= {"evolution_seconds": evolution.seconds, "n_rounds": float(evolution.n_rounds)}
                    line |= evolution.population.statistics()
                policy = state.best_model if is_last or state.update % validate_every == 0 else None
                try:
                    report(line if policy is None else line | validate(policy, held_out), policy)
                except Pause:
                    pauses = True
            if is_due:
                state.losses, state.line_seconds = [], 0.0
            if not is_last and (is_due or asks_always):
                between(is_due, pauses)  # saves after a line of metrics


def validate(policy: Policy, batch: Batch) -> dict[str, float]:
    """Run a policy for `default_steps` iterations, and return the means of `valid_loss`, `accuracy`, `complete` and
    `optimal` over the levels.

    Args:
        policy: a policy for the task of the levels.
        batch: (N, H, W) levels with their solutions, of any number N.
    """
    path = find_paths(policy, batch.tiles, default_steps(policy, batch.target))
    table = score(batch.tiles, path, batch.target, policy.problem.judge).table
    return dict(zip(COLUMNS, table.mean(axis=0).tolist(), strict=True))
