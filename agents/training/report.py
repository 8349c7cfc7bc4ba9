"""Who is told how a run goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ..policy import Policy

Line: TypeAlias = Mapping[str, float]
"""What is measured at an update: `update`, `seconds` (of training), `loss` (mean since the last line),
`learning_rate` and `levels_per_second`; after a validation also `valid_loss`, `accuracy`, `complete` and `optimal` on
levels held out. Where levels evolve also what `LevelPopulation.statistics` gives, such as `mean_solution_length`, with
`n_rounds` of offspring so far and `evolution_seconds`, their part of `seconds`."""

COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")
"""What a validation measures."""


class Report(Protocol):
    """Is told of everything, and changes nothing of the run."""

    def log(self, line: Line) -> None:
        """Take a line, in the order of updates."""

    def on_validation(self, policy: Policy) -> None:
        """Take a look at the policy as it is after a validation."""


class NullReport:
    """A report that nobody reads."""

    def log(self, line: Line) -> None:
        """Ignore it."""

    def on_validation(self, policy: Policy) -> None:
        """Ignore it."""
