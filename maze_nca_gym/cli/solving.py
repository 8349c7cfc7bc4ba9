"""The work of `maze-nca-gym solve`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.agents import Policy, load
from maze_nca_gym.agents.drawings import DRAWINGS
from maze_nca_gym.agents.iterations import check_steps
from maze_nca_gym.agents.rollouts import SolveResult, run_until_solved, step_limit
from maze_nca_gym.agents.runs import progress_bar, versions, write_json
from maze_nca_gym.cli.batches import warn_without_border
from maze_nca_gym.cli.output import JobError, complain, percent, print_facts
from maze_nca_gym.cli.picture import draw_episode
from maze_nca_gym.cli.solve import DEFAULT_N, PICTURES
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.levels import LevelSet
from maze_nca_gym.tasks import Task, find_task

if TYPE_CHECKING:
    from maze_nca_gym.cli.solve import Solve


LONG = 10**11
"""Numbers to compute, iterations times channels times tiles, above which a job is announced."""


class _Job(NamedTuple):
    """The job: the policy, on its device; levels as its task has them; where to stop; what to draw."""

    policy: Policy
    task: Task
    levels: LevelSet
    n_steps: int
    shown: int


def solve(command: Solve) -> int:
    """Run the policy on the levels, print and save how it did; returns the exit code."""
    job = _prepare(command)
    begin = time.perf_counter()
    outcome = _run(command, job)
    results = _results(command, job, outcome, time.perf_counter() - begin)
    _print(command, job, results)
    _save(command, results)
    _draw(command, job, outcome)
    return _verdict(command, job, outcome)


def _prepare(command: Solve) -> _Job:
    policy = load(command.policy).to(find_device(command.device))
    task = find_task(policy.task)
    levels = command.source.load_or_generate(command.n, DEFAULT_N, command.seed, task.has_endpoints)
    levels = LevelSet(task.prepare(levels.tiles), levels.config)
    targets = task.solve_all(levels.tiles)
    n_steps = step_limit(policy, targets) if command.steps is None else command.steps
    check_steps(policy, n_steps)
    warn_without_border(policy, command.policy, levels.tiles)
    return _Job(policy, task, levels, n_steps, _shown_level(command.picture_level, targets))


def _shown_level(index: int | None, targets: NDArray[np.bool_]) -> int:
    """Return the place of the level in the picture; by default the first of those with the longest solution."""
    if index is None:
        return int(targets.sum(axis=(1, 2)).argmax())
    if index >= len(targets):
        raise ValueError(f"--picture-level must be at most {len(targets) - 1}, got {index}")
    return index


def _run(command: Solve, job: _Job) -> SolveResult:
    """Return the policy's episodes, behind a progress bar; work of more than a minute or so is announced."""
    n_levels, height, width = job.levels.tiles.shape
    if job.n_steps * job.levels.tiles.size * job.policy.n_channels > LONG:
        complain(
            f"up to {job.n_steps:,} iterations on {n_levels:,} levels of {height} x {width} tiles: this takes long"
        )
    with progress_bar(command.policy, len(job.levels)) as advance:
        try:
            return run_until_solved(job.policy, job.levels, job.n_steps, batch=command.batch, report=advance)
        except torch.OutOfMemoryError as error:
            raise JobError(f"--batch {command.batch} is too much for {command.device}: {error}") from error


def _results(command: Solve, job: _Job, outcome: SolveResult, seconds: float) -> dict[str, Any]:
    """Return the content of results.json; only `timing` varies from run to run."""
    source = {} if command.source.levels is None else {"levels": command.source.levels}
    return {
        "configuration": {
            "policy": command.policy,
            "levels": {**source, **job.levels.config},
            "batch": command.batch,
            "device": command.device,
            "steps": job.n_steps,
        },
        "versions": versions(),
        "metrics": _metrics(outcome),
        "timing": {"seconds": seconds, "levels_per_second": len(job.levels) / seconds},
    }


def _metrics(outcome: SolveResult) -> dict[str, Any]:
    """Return the results on all levels; the steps are those of solved levels, None where there are none."""
    steps = outcome.steps[outcome.solved]
    return {
        "n_levels": len(outcome.steps),
        "solved": float(outcome.solved.mean()),
        "stopped_at_limit": int(outcome.limited.sum()),
        "finished_unsolved": int((~outcome.solved & ~outcome.limited).sum()),
        "mean_steps": float(steps.mean()) if len(steps) else None,
        "max_steps": int(steps.max()) if len(steps) else None,
    }


def _print(command: Solve, job: _Job, results: dict[str, Any]) -> None:
    metrics, timing = results["metrics"], results["timing"]
    steps = f"{metrics['mean_steps']:.1f} on average, {metrics['max_steps']} at most" if metrics["max_steps"] else "-"
    limited, unsolved = metrics["stopped_at_limit"], metrics["finished_unsolved"]
    note = {"drawing": DRAWINGS[job.policy.draws].note} if job.policy.draws in DRAWINGS else {}
    print_facts(
        {
            "policy": command.policy,
            **note,
            "levels": command.source.describe(job.levels),
            "number of levels": f"{metrics['n_levels']:,}",
            f"solved within {job.n_steps:,} iterations": percent(metrics["solved"]),
            "iterations until solved": steps,
            **({"stopped at the limit": f"{limited:,} levels, after {job.n_steps:,} iterations"} if limited else {}),
            **({"finished without a solution": f"{unsolved:,} levels"} if unsolved else {}),
            "speed": f"{timing['levels_per_second']:,.0f} levels/s ({timing['seconds']:.1f} s on {command.device})",
        }
    )


def _save(command: Solve, results: dict[str, Any]) -> None:
    """Write the results; a picture of earlier ones would mislead."""
    command.out.mkdir(parents=True, exist_ok=True)
    for suffix in PICTURES:
        (command.out / f"episode.{suffix}").unlink(missing_ok=True)
    write_json(command.out / "results.json", results)
    print(f"results: {command.out / 'results.json'}")


def _draw(command: Solve, job: _Job, outcome: SolveResult) -> None:
    if command.picture == "none":
        return
    path, title = command.out / f"episode.{command.picture}", f"{command.policy}, {command.source.describe(job.levels)}"
    n_steps = int(outcome.steps[job.shown])
    draw_episode(path, job.policy, job.task, job.levels[job.shown], n_steps, title)
    print(f"picture: {path}")


def _verdict(command: Solve, job: _Job, outcome: SolveResult) -> int:
    """Return 1 if an exact policy finished without a solution, else 0."""
    if not job.policy.exact or outcome.solved.all():
        return 0
    n_levels = len(outcome.steps)
    if outcome.limited.any():
        enough = step_limit(job.policy, job.task.solve_all(job.levels.tiles))
        complain(
            f"{outcome.limited.sum():,} of {n_levels:,} levels stopped at the limit of {job.n_steps:,} iterations "
            f"(--steps); {command.policy} solves all of them within {enough:,}"
        )
    wrong = int((~outcome.solved & ~outcome.limited).sum())
    if not wrong:
        return 0
    complain(f"{command.policy} is exact, yet finished without a solution on {wrong:,} of {n_levels:,} levels")
    return 1
