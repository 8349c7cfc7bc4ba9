"""The work of `maze-nca-gym evaluate`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from maze_nca_gym.agents import Policy, load, rollout
from maze_nca_gym.agents.drawings import DRAWINGS
from maze_nca_gym.agents.evaluation import (
    Result,
    Stability,
    default_steps,
    draw_iterations,
    draw_sizes,
    draw_stability,
    evaluate,
    measure_stability,
    most_levels,
    test_levels,
)
from maze_nca_gym.agents.evaluation.stability import effort
from maze_nca_gym.agents.handcoded.base import HandcodedNCA
from maze_nca_gym.agents.iterations import check_steps
from maze_nca_gym.agents.policy import common_task
from maze_nca_gym.agents.rollouts import encode, one_thread
from maze_nca_gym.agents.runs import progress_bar, versions, write_json
from maze_nca_gym.cli.batches import warn_without_border
from maze_nca_gym.cli.evaluation_tables import print_results
from maze_nca_gym.cli.output import JobError, complain
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.levels import LevelSet
from maze_nca_gym.tasks import find_task

if TYPE_CHECKING:
    from maze_nca_gym.cli.evaluate import Evaluate

DISTURBED = 32
"""Share of a whole set's levels on which stability, which takes many times the iterations, is measured: one in this
many."""
FIGURES = ("iterations.png", "sizes.png", "stability.png")


class _Cell(NamedTuple):
    """One row of the tables to be: a policy, by its name, and a set of levels.

    Attributes:
        n_steps: iterations on each level.
        enough: iterations with which an exact policy finishes on all of them; None if nothing is promised.
    """

    name: str
    policy: Policy
    levels: LevelSet
    n_steps: int
    enough: int | None


def evaluate_all(command: Evaluate) -> int:
    """Run every policy on every set, print and save how they did; returns the exit code."""
    cells = _prepare(command)
    begin = time.perf_counter()
    results = [_run(command, cell, f"{i}/{len(cells)}") for i, cell in enumerate(cells, 1)]
    print_results(results, _notes(cells))
    _save(command, cells, results, time.perf_counter() - begin)
    _draw(command, results)
    return max(_verdict(cell, result) for cell, result in zip(cells, results, strict=True))


def _prepare(command: Evaluate) -> list[_Cell]:
    """Return all cells, each tried for an iteration: what cannot work fails before the first result is waited for."""
    device = find_device(command.device)
    policies = {name: load(name).to(device) for name in dict.fromkeys(command.policies)}
    task = common_task(policies)
    sets = [
        test_levels(family, size, task, min(command.n or most_levels(size), most_levels(size)))
        for family in command.family_names()
        for size in command.inner_sizes()
    ]
    cells = []
    for levels in sets:
        targets = find_task(task).solve_all(levels.tiles)
        for name, policy in policies.items():
            usual = default_steps(policy, targets)
            n_steps = usual if command.steps is None else command.steps
            _try(name, policy, levels, n_steps)
            warn_without_border(policy, name, levels.tiles)
            cells.append(_Cell(name, policy, levels, n_steps, usual if policy.exact else None))
    return sorted(cells, key=lambda cell: list(policies).index(cell.name))


@torch.no_grad()
def _try(name: str, policy: Policy, levels: LevelSet, n_steps: int) -> None:
    """Run one iteration on one level.

    Raises:
        ValueError: the policy cannot run on such levels, or for that many iterations.
    """
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, levels.tiles[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{name} on {levels.config['name']}: {error}") from error


def _run(command: Evaluate, cell: _Cell, position: str) -> Result:
    """Evaluate one policy on one set, behind a progress bar."""
    label, n, config = f"{position} {cell.name}, {cell.levels.config['name']}", len(cell.levels), cell.levels.config
    threads = one_thread() if isinstance(cell.policy, HandcodedNCA) else nullcontext()
    try:
        with threads:
            with progress_bar(label, n * cell.n_steps) as advance:
                found = evaluate(cell.policy, cell.levels, cell.n_steps, batch=command.batch, report=advance)
            stability = _run_stability(command, cell, found.curve[-1].step, label) if command.stability else None
    except torch.OutOfMemoryError as error:
        raise JobError(f"--batch {command.batch} is too much for {command.device}: {error}") from error
    return Result(cell.name, config["family"], config["size"], found, stability)


def _run_stability(command: Evaluate, cell: _Cell, n_steps: int, label: str) -> Stability | None:
    """Return none where weights are not shared, so that there is no running on."""
    if cell.policy.most_iterations is not None:
        complain(
            f"{cell.name} has weights for {cell.policy.most_iterations} iterations and cannot run on: no stability"
        )
        return None
    tiles = cell.levels.tiles[: most_levels(cell.levels.config["size"]) // DISTURBED]
    total = len(tiles) * n_steps * effort(find_task(cell.policy.task))
    with progress_bar(f"{label}, stability", total) as advance:
        return measure_stability(cell.policy, tiles, n_steps, batch=command.batch, report=advance)


def _save(command: Evaluate, cells: Sequence[_Cell], results: Sequence[Result], seconds: float) -> None:
    """Write the results; figures of earlier ones would mislead."""
    command.out.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        (command.out / figure).unlink(missing_ok=True)
    content = {
        "configuration": {
            "policies": list(dict.fromkeys(command.policies)),
            "families": command.family_names(),
            "sizes": command.inner_sizes(),
            "n": command.n,
            "steps": command.steps,
            "stability": command.stability,
            "device": command.device,
        },
        "versions": versions(),
        "results": [
            {"policy": cell.name, "levels": dict(cell.levels.config), **_content(result)}
            for cell, result in zip(cells, results, strict=True)
        ],
        "timing": {"seconds": seconds},
    }
    write_json(command.out / "results.json", content)
    print(f"results: {command.out / 'results.json'}")


def _content(result: Result) -> dict[str, Any]:
    """Return everything measured; the metrics after the last iteration first."""
    return {
        "metrics": asdict(result.evaluation.final),
        **asdict(result.evaluation),
        "stability": None if result.stability is None else asdict(result.stability),
    }


def _draw(command: Evaluate, results: Sequence[Result]) -> None:
    """Draw the figures that have something to show."""
    several_sizes = len({result.size for result in results}) > 1
    disturbed = any(result.stability is not None for result in results)
    draws = {draw_iterations: True, draw_sizes: several_sizes, draw_stability: disturbed}
    for (draw, wanted), name in zip(draws.items(), FIGURES, strict=True):
        if wanted:
            print(f"figure: {draw(results, command.out / name)}")


def _notes(cells: Sequence[_Cell]) -> list[str]:
    """Return a sentence for each policy that draws something else than a path."""
    drawn = {cell.name: DRAWINGS[cell.policy.draws].note for cell in cells if cell.policy.draws in DRAWINGS}
    return [f"{name} {note}" for name, note in drawn.items()]


def _verdict(cell: _Cell, result: Result) -> int:
    """Return 1 if an exact policy had enough iterations and left a level unsolved, else 0."""
    found = result.evaluation
    n_wrong = round((1 - found.final.optimal.value) * found.n_levels)
    if cell.enough is None or not n_wrong:
        return 0
    where = f"{n_wrong:,} of {found.n_levels:,} levels of {result.family}-{result.size}"
    if cell.n_steps < cell.enough:
        complain(
            f"{where} stopped at the limit of {cell.n_steps:,} iterations (--steps); {cell.name} solves all of them "
            f"within {cell.enough:,}"
        )
        return 0
    complain(f"{cell.name} is exact, yet {where} are not solved")
    return 1
