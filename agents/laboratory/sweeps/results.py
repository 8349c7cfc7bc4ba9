"""Results of a sweep: for each row what was measured, over seeds, and the runs that failed; as tables and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maze_nca_gym import __version__
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table, Tabular, as_latex, as_markdown

from ...evaluation.statistics import deviation, student
from ...runs import RESULTS, write_json
from .effects import Effect, find_effects
from .jobs import Job
from .specification import Sweep, as_text

PAGE, LATEX, CSV = "results.md", "results.tex", "results.csv"
PARTS = ("mean", "sd", "low", "high")
NOTHING = "-"
SIGNED = ("accuracy", "paper_accuracy")
"""Metrics that may be negative; all others are fractions of levels."""


@dataclass(frozen=True)
class Cell:
    """A measurement over the seeds of a row.

    Attributes:
        values: one for each run that has it.
        mean, sd: mean and sample standard deviation; None for fewer runs than one or two.
        low, high: 95 % interval of the mean by Student's t; None for fewer runs than three.
    """

    values: tuple[float, ...]
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Iterable[float], least: float = 0.0) -> Cell:
        """Return the cell of values from `least` to 1, to which the interval is cut."""
        found = tuple(values)
        low, high = student(found) or (None, None)
        # np.clip keeps a NaN, which Python's max and min would turn into an end of the range
        low, high = (None, None) if low is None or high is None else map(float, np.clip((low, high), least, 1.0))
        return cls(found, float(np.mean(found)) if found else None, deviation(found), low, high)

    def percent(self) -> str:
        """Return mean, deviation and, in a second line, the interval, in percent."""
        if self.mean is None:
            return NOTHING
        shown = f"{100 * self.mean:.2f}" + ("" if self.sd is None else f" ± {100 * self.sd:.2f}")
        if self.low is None or self.high is None:
            return shown
        return f"{shown}\n({100 * self.low:.2f} to {100 * self.high:.2f})"


@dataclass(frozen=True)
class RowResult:
    """The results of a row.

    Attributes:
        name: name of the row.
        options: the options in which rows differ.
        n_runs: number of runs.
        found: seed -> what `Job.result` returns of a finished run.
        failures: run that was given up -> its error.
    """

    name: str
    options: Mapping[str, Any]
    n_runs: int
    found: Mapping[int, Mapping[str, Any]]
    failures: Mapping[Job, str]

    @property
    def n_weights(self) -> int | None:
        """Number of weights; None without a finished run."""
        return next((int(result["n_weights"]) for result in self.found.values()), None)

    @property
    def state(self) -> str:
        """How many runs are finished, and the kinds of errors that ended others: "2 of 3, Diverged"."""
        return ", ".join([f"{len(self.found)} of {self.n_runs}", *kinds_of(self.failures.values())])

    def by_seed(self, measure: str) -> dict[int, float]:
        """Return a measurement by seed, where there is one."""
        return {seed: r["figures"][measure] for seed, r in self.found.items() if measure in r["figures"]}

    def cell(self, measure: str) -> Cell:
        """Return a measurement over seeds."""
        return Cell.of(self.by_seed(measure).values(), -np.inf if measure.endswith(SIGNED) else 0.0)


def kinds_of(errors: Iterable[str]) -> list[str]:
    """Return the kinds of errors, such as Diverged, each once."""
    return list(dict.fromkeys(error.partition(":")[0] for error in errors))


def collect(sweep: Sweep, jobs: Iterable[Job]) -> list[RowResult]:
    """Collect what all runs that are finished or given up so far have found.

    Raises:
        ValueError: a file cannot be read.
    """
    by_name: dict[str, list[Job]] = {name: [] for name in sweep.configs}
    for job in jobs:
        by_name[job.name].append(job)
    return [
        RowResult(
            name,
            sweep.values[name],
            len(own),
            {job.config.seed: found for job in own if (found := job.result()) is not None},
            {job: error for job in own if (error := job.failure()) is not None},
        )
        for name, own in by_name.items()
    ]


def told_failures(failures: Mapping[Job, str], out: Path) -> list[dict[str, str]]:
    """Return `run`, `error` and `log` of the runs that failed; logs are relative to the folder `out`."""
    return [
        {"run": job.label, "error": error, "log": job.log.relative_to(out).as_posix()}
        for job, error in failures.items()
    ]


def list_failures(failures: Mapping[Job, str], out: Path) -> str:
    """Return the runs that failed as a list in Markdown."""
    told = told_failures(failures, out)
    return "\n".join(
        f"- {as_markdown(each['run'])}: {' '.join(as_markdown(each['error']).split())} (`{each['log']}`)"
        for each in told
    )


@dataclass(frozen=True)
class Results(Tabular):
    """The results of a sweep.

    Attributes:
        rows: the rows.
        sweep: what ran.
        out: its folder.
    """

    rows: Sequence[RowResult]
    sweep: Sweep
    out: Path

    @property
    def measures(self) -> list[str]:
        """Names of all that was measured of some row."""
        return list(dict.fromkeys(name for row in self.rows for r in row.found.values() for name in r["figures"]))

    @property
    def options(self) -> list[str]:
        """Names of the options in which rows differ."""
        return list(dict.fromkeys(name for row in self.rows for name in row.options))

    @property
    def failures(self) -> dict[Job, str]:
        """All runs that were given up, with their errors."""
        return {job: error for row in self.rows for job, error in row.failures.items()}

    @property
    def effects(self) -> list[Effect]:
        """Differences between rows that differ in one option alone."""
        return find_effects(self.rows, self.measures)

    @property
    def sets(self) -> list[str]:
        """Names of the sets of levels on which networks were measured."""
        return list(dict.fromkeys(name.split(" ", 1)[0] for name in self.measures))

    def table(self) -> Table:
        """Return a table of all rows and measurements, in percent."""
        columns = ("row", *self.options, "weights", "runs", *self.measures)
        rows = [
            (
                row.name,
                *(as_text(row.options.get(name, NOTHING)) for name in self.options),
                NOTHING if row.n_weights is None else f"{row.n_weights:,}",
                row.state,
                *(row.cell(name).percent() for name in self.measures),
            )
            for row in self.rows
        ]
        return Table(columns, rows, self.measures, self.about)

    def effects_table(self) -> Table:
        """Return a table of all effects, in percentage points with standard errors over seeds."""
        cells: dict[str, dict[str, str]] = {}
        for effect in self.effects:
            error = "" if effect.error is None else f" ± {100 * effect.error:.2f}"
            name = f"{effect.option} {as_text(effect.value)}, not {as_text(effect.base)}"
            cells.setdefault(name, {})[effect.measure] = f"{100 * effect.difference:+.2f}{error}"
        rows = [(name, *(own.get(measure, NOTHING) for measure in self.measures)) for name, own in cells.items()]
        about = "Differences in percentage points between rows that differ in this alone, ± standard errors over seeds."
        return Table(("effect", *self.measures), rows, self.measures, about)

    def tables_of(self, name: str) -> list[Table]:
        """Return rows and effects on one set of levels, narrow enough for a terminal."""
        return [
            _part(whole, [*first, *(measure for measure in self.measures if measure.startswith(f"{name} "))], name)
            for whole, first in ((self.table(), ("row", "runs")), (self.effects_table(), ("effect",)))
            if whole.rows
        ]

    def records(self) -> list[dict[str, Any]]:
        """Return the numbers of each row: fractions, and the ends of their intervals."""
        return [
            {
                "row": row.name,
                **{name: as_text(row.options.get(name, "")) for name in self.options},
                "n_weights": row.n_weights,
                "n_finished": len(row.found),
                "n_runs": row.n_runs,
                **{f"{name} {part}": getattr(row.cell(name), part) for name in self.measures for part in PARTS},
            }
            for row in self.rows
        ]

    @property
    def about(self) -> str:
        """What the figures in the table are."""
        n = len(self.sweep.seeds)
        interval = " (95 % interval of the mean, Student's t)" if n > 2 else ""
        spread = f", ± sample standard deviation{interval}" if n > 1 else ""
        return f"% of levels, mean over {n} seed{'s' * (n > 1)}{spread}. {self.sweep.measure.about}"

    def save(self) -> list[Path]:
        """Write results.json, results.csv, results.md and results.tex into the folder of the sweep; return the paths.

        Raises:
            OSError: a file could not be written.
        """
        write_json(self.out / RESULTS, self.to_json())
        texts = {PAGE: self.markdown(), LATEX: self.latex(), CSV: self.csv()}
        write_all({self.out / name: text.encode() for name, text in texts.items()})
        return [self.out / name for name in (RESULTS, *texts)]

    def to_json(self) -> dict[str, Any]:
        """Return all results, JSON-serialisable: fractions, by seed too."""
        rows = [
            {
                "row": row.name,
                "options": dict(row.options),
                "n_weights": row.n_weights,
                "n_finished": len(row.found),
                "n_runs": row.n_runs,
                "seconds": {seed: result["seconds"] for seed, result in row.found.items()},
                "measures": {name: {**asdict(row.cell(name)), "values": row.by_seed(name)} for name in self.measures},
                "failures": told_failures(row.failures, self.out),
            }
            for row in self.rows
        ]
        measure, effects = self.sweep.measure.to_json(), [asdict(effect) for effect in self.effects]
        return {"version": __version__, "seeds": self.sweep.seeds, "measure": measure, "rows": rows, "effects": effects}

    def markdown(self) -> str:
        """Return the tables and the failed runs as a page."""
        parts = ["# Sweep", as_markdown(self.about), self.table().markdown()]
        effects = self.effects_table()
        parts += ["## Effects", effects.title, effects.markdown()] if effects.rows else []
        parts += ["## Failed runs", list_failures(self.failures, self.out)] if self.failures else []
        return "\n\n".join(parts) + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX, for the packages booktabs and graphicx."""
        return self.table().latex(as_latex(self.about)) + "\n"


def _part(whole: Table, columns: Sequence[str], name: str) -> Table:
    """Return some columns of a table, without the name of the set that they are of, and intervals without brackets."""
    places = [whole.columns.index(column) for column in columns]
    rows = [[row[places[0]], *(row[i].replace("(", "").replace(")", "") for i in places[1:])] for row in whole.rows]
    heads = [column.removeprefix(f"{name} ") for column in columns]
    return Table(heads, rows, heads[1:], name)
