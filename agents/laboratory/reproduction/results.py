"""Results of a reproduction: for each row our values next to the published ones, and the runs that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maze_nca_gym.support.tables import Table

from ...evaluation.statistics import deviation
from ..sweeps import results
from ..sweeps.jobs import Job
from ..sweeps.specification import Sweep
from .columns import IN_TILES
from .rows import Row, configurations, run_name
from .scales import Scale


@dataclass(frozen=True)
class Cell:
    """A value of a row, in percent or tiles.

    Attributes:
        mean: mean of our runs; None if there is none.
        sd: sample standard deviation of our runs; None if there are fewer than two.
        published: mean and standard deviation in the paper.
    """

    mean: float | None
    sd: float | None
    published: tuple[float, float]

    @property
    def deviation(self) -> float | None:
        """Our mean minus the published one, in published standard deviations; None without a run, or if those are 0."""
        mean, sd = self.published
        return None if self.mean is None or not sd else (self.mean - mean) / sd


@dataclass(frozen=True)
class RowResult:
    """The results of a row.

    Attributes:
        row: the row.
        n_weights: number of weights at this scale, the mean if the row pools several; None without a run.
        n_finished, n_runs: number of runs that are measured, and of all runs.
        cells: cells by column.
        failures: run that was given up -> its error.
    """

    row: Row
    n_weights: float | None
    n_finished: int
    n_runs: int
    cells: Mapping[str, Cell]
    failures: Mapping[Job, str]


@dataclass(frozen=True)
class Results:
    """All rows of a reproduction.

    Attributes:
        scale: the size of the runs.
        trials: number of runs of each configuration.
        rows: results in the order of the tables.
    """

    scale: Scale
    trials: int
    rows: Sequence[RowResult]

    def of_table(self, number: int) -> list[RowResult]:
        """Return the rows of a table."""
        return [result for result in self.rows if result.row.table == number]

    def _repr_html_(self) -> str:
        """Return one table for each table of the paper: our mean in each column, and the published one in brackets."""
        return "".join(self._table(number).html() for number in self.table_numbers)

    def _table(self, number: int) -> Table:
        rows = self.of_table(number)

        def text(cell: Cell) -> str:
            return f"{'-' if cell.mean is None else f'{cell.mean:.2f}'} ({cell.published[0]:.2f})"

        cells = [(row.row.label, f"{row.n_finished} of {row.n_runs}", *map(text, row.cells.values())) for row in rows]
        columns = ("row", "runs", *(name.replace("_", " ") for name in rows[0].cells))
        return Table(columns, cells, numbers=columns[1:], title=f"Table {number}")

    @property
    def table_numbers(self) -> list[int]:
        """Numbers of the tables that have rows here."""
        return sorted({result.row.table for result in self.rows})


def collect(rows: Sequence[Row], sweep: Sweep, jobs: Sequence[Job], scale: Scale) -> Results:
    """Collect the results of all runs that are finished or given up so far.

    Raises:
        ValueError: a file cannot be read.
    """
    by_name = {result.name: result for result in results.collect(sweep, jobs)}
    return Results(scale, len(sweep.seeds), [_of_row(row, by_name) for row in rows])


def _of_row(row: Row, by_name: Mapping[str, results.RowResult]) -> RowResult:
    """Return the results of a row, from those of each configuration that it pools."""
    own = [by_name[run_name(config)] for config in configurations(row)]
    found = [result for each in own for result in each.found.values()]
    cells = {
        column: _cell([result["figures"][column] for result in found], column, published)
        for column, published in row.published.items()
    }
    failures = {job: error for each in own for job, error in each.failures.items()}
    n_weights = float(np.mean([result["n_weights"] for result in found])) if found else None
    return RowResult(row, n_weights, len(found), sum(each.n_runs for each in own), cells, failures)


def _cell(values: Sequence[float], column: str, published: tuple[float, float]) -> Cell:
    """Return the cell for the values of some runs, which are fractions or tiles."""
    shown = np.asarray(values) * (1 if column == IN_TILES else 100)
    mean = float(shown.mean()) if len(shown) else None
    return Cell(mean, deviation(shown), published)
