"""Policies paired with sets of levels: all pairs are checked first, then measured one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import most_levels
from maze_nca_gym.mazes.levels import LevelSet, has_border

from ..policies.environments import border_warning
from ..policies.policy import Policy
from ..rollouts.scores import Batch, label
from ..rollouts.solving import default_steps, try_out
from ..runs import ProgressBar
from .metrics import Evaluation, Metrics, measure
from .records import row_in_words
from .stability import Stability, measure_stability, stability_effort
from .statistics import Estimate

DISTURBED = 32
"""Stability is measured on at most 1 / DISTURBED of the levels of a complete test set, because it takes many times the
number of iterations."""


class Cell(NamedTuple):
    """A policy and a set of levels for one measurement.

    Attributes:
        name: the policy's name.
        policy: the policy.
        levels: the set; its `config` contains the name, family and size.
        labelled: the same levels with their solutions.
        n_steps: number of iterations on each level.
        enough: number of iterations that is enough for an exact policy on all levels, or None for other policies.
    """

    name: str
    policy: Policy
    levels: LevelSet
    labelled: Batch
    n_steps: int
    enough: int | None


@dataclass(frozen=True)
class Result:
    """The measurements of a policy on a set of levels.

    Attributes:
        policy: the policy's label.
        family, size: family and inner size of the levels.
        evaluation: the metrics.
        stability: the stability, or None if stability was not measured.
        enough: number of iterations that is enough for an exact policy on all levels, or None for other policies.
        levels: the description of the set.
    """

    policy: str
    family: str
    size: int
    evaluation: Evaluation
    stability: Stability | None = None
    enough: int | None = None
    levels: Mapping[str, Any] = field(default_factory=dict)
    __repr__ = row_in_words

    @property
    def metrics(self) -> Metrics:
        """The metrics after the last iteration."""
        return self.evaluation.final

    @property
    def cells(self) -> dict[str, Estimate]:
        """The metrics after the last iteration, by name."""
        usual = ("complete", "optimal", "accuracy", "paper_accuracy")
        return {**{name: getattr(self.metrics, name) for name in usual}, **self.evaluation.named}

    @property
    def texts(self) -> dict[str, str]:
        """The cells of a table before the numbers, by heading.

        They are the policy, the levels, the number of levels, and the number of iterations after which no level
        changed.
        """
        n, used = self.evaluation.n_levels, self.evaluation.curve[-1].step
        named = {"policy": self.policy, "levels": f"{self.family}-{self.size}"}
        return {**named, "n": f"{n:,}", "iterations": f"{used:,}"}

    @property
    def facts(self) -> dict[str, Any]:
        """The policy, the family and size, and the numbers of levels and iterations, by name."""
        numbers = {"n_levels": self.evaluation.n_levels, "n_steps": self.evaluation.n_steps}
        named = {"policy": self.policy, "levels": self.levels["name"]}
        return {**named, "family": self.family, "size": self.size, **numbers}

    @property
    def details(self) -> dict[str, Any]:
        """The description of the set and all other measurements, by name."""
        return {
            "set": dict(self.levels),
            "curve": [asdict(point) for point in self.evaluation.curve],
            "agreement": self.evaluation.agreement,
            "stability": None if self.stability is None else asdict(self.stability),
        }

    @property
    def n_wrong(self) -> int:
        """The number of levels that are not solved after the last iteration."""
        return round((1 - self.metrics.optimal.value) * self.evaluation.n_levels)


def prepare(
    policies: Mapping[str, Policy], sets: Sequence[LevelSet], steps: int | None, may_be_empty: Collection[str] = ()
) -> list[Cell]:
    """Return every policy paired with every set, policy by policy, after trying each pair for one iteration.

    A pair that cannot run therefore fails before any measurement. Each set is solved once for all policies that break
    ties in the same order of directions. A policy that needs a border, paired with a set that has levels without a
    border, causes a warning, which points to the caller of the caller.

    Args:
        policies: policies of one task, in any orders of directions, by name.
        sets: levels of this task, with a name in their `config`.
        steps: number of iterations on a level, by default the policy's usual number.
        may_be_empty: names of sets with levels that may have no solution; the target of such a level is empty.

    Raises:
        ValueError: an unsolvable level in another set, or a policy that cannot run on a set or for that number of
            iterations.
    """
    cells, solved = [], dict[tuple[int, str], NDArray[np.bool_]]()
    for name, policy in policies.items():
        for i, levels in enumerate(sets):
            known = solved.get((i, policy.task))
            if known is None and levels.config["name"] in may_be_empty:
                known = policy.problem.solve(levels.tiles)
            labelled = label(policy, levels, known)
            solved[i, policy.task] = labelled.target  # the same for all policies of a task, whatever they are to draw
            usual = default_steps(policy, labelled.target)
            n_steps, enough = usual if steps is None else steps, usual if policy.guarantees.exact else None
            cells.append(Cell(name, policy, levels, labelled, n_steps, enough))
            try_out(policy, levels.tiles, n_steps, f"{name} on {levels.config['name']}")
            if policy.guarantees.needs_border and not has_border(levels.tiles).all():
                warnings.warn(border_warning(name), stacklevel=3)
    return cells


def measure_cell(cell: Cell, position: str, stability: bool, batch: int | None, metrics: Sequence[str]) -> Result:
    """Measure one policy on one set, with a progress bar; return the result.

    Stability requires more iterations than an episode has. If the policy has no weights for these iterations, a warning
    replaces the measurement.

    Args:
        cell: the policy and the set.
        position: the number of the cell for the progress bar, such as "1/4".
        stability: whether to measure stability too.
        batch: the number of levels that run at once, or None for a number that keeps the state small.
        metrics: names of further metrics.
    """
    title, config = f"{position} {cell.name}, {cell.levels.config['name']}", cell.levels.config
    with ProgressBar(f"{title}, iterations", len(cell.levels) * cell.n_steps) as bar:
        evaluation = measure(cell.policy, cell.labelled, cell.n_steps, batch=batch, metrics=metrics, report=bar.advance)
    disturbed, most = None, cell.policy.max_steps
    if stability and most is not None:
        warnings.warn(f"{cell.name} has weights for {most} iterations and cannot run on: no stability", stacklevel=3)
    elif stability:
        part, n_steps = cell.labelled[: most_levels(config["size"]) // DISTURBED], evaluation.curve[-1].step
        total = len(part) * n_steps * stability_effort(cell.policy.problem)
        with ProgressBar(f"{title}, stability, iterations", total) as bar:
            disturbed = measure_stability(cell.policy, part, n_steps, batch=batch, report=bar.advance)
    return Result(cell.name, config["family"], config["size"], evaluation, disturbed, cell.enough, config)
