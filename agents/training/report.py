"""The interface of reports, which receive the events of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ..policy import Policy

Line: TypeAlias = Mapping[str, float]
"""The metrics at an update.

They are `update`, `seconds` (of training), `loss` (mean since the last line), `learning_rate` and `levels_per_second`.
After a validation also `valid_loss`, `accuracy`, `complete` and `optimal` on held-out levels. Where levels evolve also
those of `LevelPopulation.statistics`, such as `mean_solution_length`, with `n_rounds` of offspring so far and
`evolution_seconds`, their part of `seconds`.
"""

COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")
"""Names of the metrics of a validation."""


class Report(Protocol):
    """A receiver of all events of a run; it changes nothing of the run."""

    def log(self, line: Line) -> None:
        """Take a line, in the order of updates."""

    def on_validation(self, policy: Policy) -> None:
        """Take a look at the policy as it is after a validation."""


class NullReport:
    """A report that does nothing."""

    def log(self, line: Line) -> None:
        """Ignore it."""

    def on_validation(self, policy: Policy) -> None:
        """Ignore it."""
