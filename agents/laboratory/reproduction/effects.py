"""Effects of design choices, such as shared weights, in the paper's results and in ours.

An effect is the mean difference over all pairs of rows of one table that differ in this choice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...evaluation.statistics import standard_error
from ..sweeps.effects import pairs
from .results import RowResult

EFFECTS: dict[str, tuple[str, Any, Any]] = {
    "shared weights": ("shared_weights", True, False),
    "cut corners": ("cut_corners", True, False),
    "kernel of 3, not 5": ("kernel_size", 3, 5),
    "max-pooling": ("max_pool", True, False),
    "evolved levels": ("evolve", True, False),
    "traversable edges only": ("traversable_edges_only", True, False),
    "edge features": ("edge_features", True, False),
    "NCA, not GCN": ("model", "NCA", "GCN"),
    "GCN, not MLP": ("model", "GCN", "MLP"),
    "GCN, not GAT": ("model", "GCN", "GAT"),
}
"""Name of an effect -> the option, its value with the effect, and without."""
MEASURED = ("test_16_accuracy", "test_32_accuracy")
"""Columns in which effects are measured; all tables have them."""


@dataclass(frozen=True)
class Effect:
    """An effect in one task and column.

    Attributes:
        name: one of `EFFECTS`.
        task: name of the task.
        column: one of `MEASURED`.
        n_pairs: number of pairs of rows that we have measured.
        published, ours: mean differences in percentage points.
        error: standard error of `ours` over the pairs; None with one pair.
        n_agreeing: number of pairs whose published difference and ours have the same sign.
    """

    name: str
    task: str
    column: str
    n_pairs: int
    published: float
    ours: float
    error: float | None
    n_agreeing: int

    @property
    def appears(self) -> bool:
        """Whether both mean differences have the same sign."""
        return self.published * self.ours > 0

    @property
    def is_clear(self) -> bool:
        """Whether our mean difference is more than two standard errors from zero."""
        return self.error is not None and abs(self.ours) > 2 * self.error


def find_effects(results: Sequence[RowResult]) -> list[Effect]:
    """Return the effects for which there are pairs of rows that we have measured."""
    tasks = list(dict.fromkeys(result.row.options["task"] for result in results))
    found = [_effect(results, *place) for place in product(EFFECTS, tasks, MEASURED)]
    return [effect for effect in found if effect is not None]


def _effect(results: Sequence[RowResult], name: str, task: str, column: str) -> Effect | None:
    option, with_it, without = EFFECTS[name]
    measured = [r for r in results if r.row.options["task"] == task and r.cells[column].mean is not None]
    tables = dict.fromkeys(r.row.table for r in measured)
    of_tables = [[r for r in measured if r.row.table == table] for table in tables]
    found = [pair for rows in of_tables for pair in pairs(rows, lambda r: r.row.options, option, with_it, without)]
    cells = [(a.cells[column], b.cells[column]) for a, b in found]
    if not cells:
        return None
    published = np.array([a.published[0] - b.published[0] for a, b in cells])
    ours = np.array([(a.mean or 0.0) - (b.mean or 0.0) for a, b in cells])
    n_agreeing = int((published * ours > 0).sum())
    means = float(published.mean()), float(ours.mean())
    return Effect(name, task, column, len(cells), *means, standard_error(ours), n_agreeing)
