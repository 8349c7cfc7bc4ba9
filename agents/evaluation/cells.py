"""What an evaluation measures: each policy on each set of levels, prepared before the first is waited for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.families import most_levels
from maze_nca_gym.levels import LevelSet, Tiles, has_border
from maze_nca_gym.loading import load_levels
from maze_nca_gym.tasks import find_task

from ..environments import border_warning
from ..policy import Policy
from ..rollouts import LabelledLevels, check_steps, default_steps, encode, label, rollout
from ..runs import progress_bar
from .figures import Result
from .metrics import measure
from .stability import Stability, effort, measure_stability

DISTURBED = 32
"""Share of a whole set's levels on which stability, which takes many times the iterations, is measured: one in this
many."""


class Cell(NamedTuple):
    """A result to be: a policy, by its name, and a set of levels.

    Attributes:
        labelled: the same levels with their solutions.
        n_steps: iterations on each level.
        enough: iterations with which an exact policy finishes on all of them; None if nothing is guaranteed.
    """

    name: str
    policy: Policy
    levels: LevelSet
    labelled: LabelledLevels
    n_steps: int
    enough: int | None


def own_levels(levels: str | Path | LevelSet | Tiles, task: str, n: int | None) -> LevelSet:
    """Return the first `n` levels as the task has them, described like a test set.

    Raises:
        ValueError: no such levels, or fewer than `n`.
    """
    name = str(levels) if isinstance(levels, str | Path) else "levels"
    given = load_levels(levels)
    if n is not None and n > len(given):
        raise ValueError(f"--n must be at most {len(given)}, the number of levels, got {n}")
    tiles = find_task(task).prepare(given.tiles[:n])
    size = max(tiles.shape[1:]) - (2 if has_border(tiles).all() else 0)
    known = {} if "family" in given.config else {"name": name, "family": name, "size": size}
    return LevelSet(tiles, {**given.config, **known})


def prepare(policies: Mapping[str, Policy], sets: Sequence[LevelSet], steps: int | None) -> list[Cell]:
    """Return all cells, each tried for an iteration: what cannot work fails before the first result is waited for."""
    cells = []
    targets: dict[int, NDArray[np.bool_]] = {}  # policies are all of one task, so that each set is solved once
    for name, policy in policies.items():
        for levels in sets:
            labelled = label(policy, levels, targets.get(id(levels)))
            targets[id(levels)] = labelled.targets
            usual = default_steps(policy, labelled.targets)
            n_steps = usual if steps is None else steps
            _try(name, policy, levels, n_steps)
            if policy.needs_border and not has_border(levels.tiles).all():
                warnings.warn(border_warning(name), stacklevel=3)
            cells.append(Cell(name, policy, levels, labelled, n_steps, usual if policy.exact else None))
    return cells


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


def measure_cell(cell: Cell, position: str, stability: bool, batch: int | None) -> Result:
    """Return the measurements of one policy on one set; show a progress bar meanwhile."""
    label, n, config = f"{position} {cell.name}, {cell.levels.config['name']}", len(cell.levels), cell.levels.config
    with progress_bar(label, n * cell.n_steps) as advance:
        found = measure(cell.policy, cell.labelled, cell.n_steps, batch=batch, report=advance)
    disturbed = _run_stability(cell, found.curve[-1].step, label, batch) if stability else None
    return Result(cell.name, config["family"], config["size"], found, disturbed, cell.enough)


def _run_stability(cell: Cell, n_steps: int, label: str, batch: int | None) -> Stability | None:
    """Measure stability; None where weights are not shared, so that there are no further iterations."""
    if cell.policy.most_iterations is not None:
        most = cell.policy.most_iterations
        warnings.warn(f"{cell.name} has weights for {most} iterations and cannot run on: no stability", stacklevel=4)
        return None
    part = cell.labelled.part(slice(most_levels(cell.levels.config["size"]) // DISTURBED))
    total = len(part.tiles) * n_steps * effort(find_task(cell.policy.task))
    with progress_bar(f"{label}, stability", total) as advance:
        return measure_stability(cell.policy, part, n_steps, batch=batch, report=advance)
