"""The common form of results: rows with their numbers, as tables, records and files.

The numbers of an evaluation or a benchmark have intervals over levels (`Estimate`). The numbers of a sweep have
intervals over seeds (`Pooled`). A sweep also has effects, which are differences between rows. A sweep that repeats the
paper's experiments shows the published numbers next to our numbers. Every JSON file contains `versions` and `rows`.
Each row contains facts and `measures`, which maps the name of a measurement to `value`, `low`, `high` ...
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

import numpy as np

from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.options import in_words
from maze_nca_gym.support.tables import Table, Tabular, as_latex, as_markdown, names_in

from ..runs import RESULTS, versions
from .statistics import deviation, standard_error, student

PAGE, LATEX, CSV = "results.md", "results.tex", "results.csv"
NOTHING = "-"
WEIGHTS = "weights"
COUNTS = ("n", "mazes", "iterations", WEIGHTS, "runs")
"""Headings of columns with numbers as texts, which tables align like numbers."""
SIGNED = ("accuracy", "paper_accuracy")
"""Endings of the names of measurements that may be negative; all other measurements are fractions of levels."""
BESIDE = (
    " In square brackets: the published difference, in how many pairs ours has the same sign, and whether the effect "
    "appears, differs in sign, or is unclear, which is less than two standard errors from zero."
)
"""Explanation of tables with our effects beside published effects."""
IN_TILES = ("length",)
"""Endings of the names of measurements that are numbers of tiles instead of percentages."""


class Number(Protocol):
    """Protocol of a number with its spread: an `Estimate` over levels, or a `Pooled` mean over seeds."""

    def text(self, digits: int = 2, factor: float = 100) -> str:
        """Return the cell of a table: the number times a factor, with `digits` decimals, and its spread."""

    def parts(self) -> dict[str, Any]:
        """Return the parts of the number by name, JSON-serialisable.

        They are `value`, its spread and, for a mean over seeds, `values` by seed.
        """


class ResultRow(Protocol):
    """Protocol of a row of results: its description, as texts and as values, and its numbers by measurement."""

    @property
    def texts(self) -> Mapping[str, str]:
        """The cells of a table before the numbers, by heading."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The fields of a JSON record before its numbers, by name; options are a mapping."""

    @property
    def cells(self) -> Mapping[str, Number]:
        """The numbers by measurement, as fractions or numbers of tiles."""

    @property
    def details(self) -> Mapping[str, Any]:
        """Further facts by name, which only the JSON file contains, after the numbers."""


def row_in_words(row: ResultRow) -> str:
    """Return the texts and the numbers of a row, in one line."""
    numbers = {name: " ".join(number.text(factor=factor_of(name)).split()) for name, number in row.cells.items()}
    return f"{type(row).__name__}({', '.join(f'{name} {text}' for name, text in {**row.texts, **numbers}.items())})"


R = TypeVar("R", bound=ResultRow)


@dataclass(frozen=True, repr=False)
class Results(Tabular, Sequence[R]):
    """Results of a command, row by row.

    Attributes:
        rows: one row for each policy, variant or published result.
    """

    rows: Sequence[R]
    digits: ClassVar[int] = 2
    """Decimals of percentages in the table."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...

    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        return self.rows[index]

    def table(self) -> Table:
        """Return a table with a line for each row, in percent or tiles, with intervals."""
        return table_of([(row.texts, row.cells) for row in self.rows], digits=self.digits)

    def records(self) -> list[dict[str, Any]]:
        """Return a flat record for each row: its facts, and the parts of its numbers as fractions or tiles.

        For example, a record contains complete, complete_low and complete_high. Values of single seeds are left out.
        """
        records = []
        for row in self.rows:
            record: dict[str, Any] = {}
            for name, value in row.facts.items():
                options = isinstance(value, Mapping)
                record |= {option: in_words(it) for option, it in value.items()} if options else {name: value}
            for name, number in row.cells.items():
                parts = {part: value for part, value in number.parts().items() if part != "values"}
                record |= {name if part == "value" else f"{name}_{part}": value for part, value in parts.items()}
            records.append(record)
        return records

    def to_json(self) -> dict[str, Any]:
        """Return the content of the JSON file as a dict. Its numbers are fractions or tiles."""
        measures = [{name: number.parts() for name, number in row.cells.items()} for row in self.rows]
        rows = [{**row.facts, "measures": own, **row.details} for row, own in zip(self.rows, measures, strict=True)]
        return {"versions": versions(), "rows": rows}

    def write(self, folder: Path, texts: Mapping[str, str], name: str = RESULTS) -> list[Path]:
        """Write the JSON file and further text files, all or none, and return the paths.

        A file that would not change is not written.

        Args:
            folder: the folder, which is made if missing.
            texts: name of a further file -> its content.
            name: name of the JSON file.

        Raises:
            OSError: a file could not be written; no file has changed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        texts = {name: json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n", **texts}
        contents = {folder / file: text.encode() for file, text in texts.items()}
        write_all({path: new for path, new in contents.items() if not path.is_file() or path.read_bytes() != new})
        return [*contents]


def table_of(
    lines: Sequence[tuple[Mapping[str, str], Mapping[str, Number | Effect]]], title: str = "", digits: int = 2
) -> Table:
    """Return a table of texts and numbers; a missing value is shown as a dash.

    Args:
        lines: the lines of the table: for each, its texts by heading, and its numbers by measurement.
        title: the table's title.
        digits: decimals of the numbers.
    """
    heads, measures, rows = names_in(texts for texts, _ in lines), names_in(cells for _, cells in lines), []
    for texts, cells in lines:
        shown = (cells[name].text(digits, factor_of(name)) if name in cells else NOTHING for name in measures)
        rows.append((*(texts.get(name, NOTHING) for name in heads), *shown))
    return Table((*heads, *measures), rows, {*measures, *COUNTS}, title)


@dataclass(frozen=True)
class Pooled:
    """The mean of a measurement over the runs of a row.

    Attributes:
        values: seed -> value, for all runs with this measurement.
        value: the mean, or None without a run.
        sd: the sample standard deviation, or None for fewer than two runs.
        low, high: 95 % interval of the mean by Student's t, or None for fewer than three runs.
        published: published mean and standard deviation, or None if there are none.
    """

    values: Mapping[int | str, float]
    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    published: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, measure: str, values: Mapping[int | str, float], published: tuple[float, float] | None = None
    ) -> Pooled:
        """Return the mean, deviation and interval of a measurement; the interval does not exceed the range of possible
        values.

        Args:
            measure: the name of the measurement, which determines the range of its values.
            values: seed -> value.
            published: published mean and standard deviation, or None if there are none.
        """
        numbers = list(values.values())
        least, most = -np.inf if measure.endswith(SIGNED) else 0.0, np.inf if measure.endswith(IN_TILES) else 1.0
        # np.clip keeps a NaN, which Python's max and min would turn into an end of the range
        low, high = (None, None) if (ends := student(numbers)) is None else map(float, np.clip(ends, least, most))
        mean = float(np.mean(numbers)) if numbers else None
        return cls(values, mean, deviation(numbers), low, high, published)

    @property
    def deviation(self) -> float | None:
        """The mean minus the published mean, in published standard deviations.

        None if there is no mean, no published figure, or a published deviation of 0.
        """
        mean, sd = self.published or (0.0, 0.0)
        return None if self.value is None or not sd else (self.value - mean) / sd

    def text(self, digits: int = 2, factor: float = 100) -> str:
        """Return the cell of a table: mean and deviation, then the interval, then the published figure in square
        brackets."""
        shown = NOTHING if self.value is None else f"{factor * self.value:.{digits}f}"
        shown += "" if self.sd is None else f" ± {factor * self.sd:.{digits}f}"
        if self.low is not None and self.high is not None:
            shown += f"\n({factor * self.low:.{digits}f} to {factor * self.high:.{digits}f})"
        if self.published is not None:
            mean, sd = (factor * part for part in self.published)
            apart = "" if self.deviation is None else f"; {self.deviation:+.1f} sd"
            shown += f"\n[{mean:.{digits}f} ± {sd:.{digits}f}{apart}]"
        return shown

    def parts(self) -> dict[str, Any]:
        """Return the parts for JSON by name: mean, deviation, interval, values by seed and, if any, the published
        figure."""
        parts = {name: getattr(self, name) for name in ("value", "sd", "low", "high", "values")}
        if self.published is None:
            return parts
        mean, sd = self.published
        return {**parts, "published": mean, "published_sd": sd, "deviation": self.deviation}


class Failure(NamedTuple):
    """A run that was given up.

    Attributes:
        run: a short description of the run.
        error: its error.
        log: the file with its output, relative to the sweep's folder.
    """

    run: str
    error: str
    log: str


@dataclass(frozen=True)
class SweepRow:
    """A row of a sweep's table: the runs that it shows, and their measurements.

    Attributes:
        name: name of the row.
        options: the options that differ between rows.
        runs: names of the configurations that the row pools; most rows have a single configuration.
        section: title of the table with the row, if there are several tables.
        published: measurement -> published mean and standard deviation.
        n_runs: number of runs.
        found: seed -> `n_weights`, `figures` by name and `seconds` of a finished run.
        failures: the runs that were given up.
        ended: the update at which successive halving (`halve`) ended all runs of the row, or 0.
    """

    name: str
    options: Mapping[str, Any]
    runs: tuple[str, ...] = ()
    section: str = ""
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    n_runs: int = 0
    found: Mapping[int | str, Mapping[str, Any]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    ended: int = 0
    __repr__ = row_in_words

    @property
    def n_weights(self) -> float | None:
        """Number of weights, or the mean if the row pools networks of different sizes. None without a finished run."""
        counts: list[int] = [result["n_weights"] for result in self.found.values()]
        return None if not counts else counts[0] if len({*counts}) == 1 else float(np.mean(counts))

    @property
    def state(self) -> str:
        """The number of finished runs, and the errors of the other runs, such as "2 of 3, Diverged"."""
        kinds = dict.fromkeys(failure.error.partition(":")[0] for failure in self.failures)
        early = [f"ended at update {self.ended:,}"] * bool(self.ended)
        return ", ".join([f"{len(self.found)} of {self.n_runs}", *early, *kinds])

    @property
    def measures(self) -> list[str]:
        """Names of the published measurements or, if none was published, of all measurements."""
        measured = dict.fromkeys(name for result in self.found.values() for name in result["figures"])
        return [name for name in self.published or measured if name != WEIGHTS]

    def cell(self, measure: str) -> Pooled:
        """Return a measurement, by its name, pooled over the finished runs."""
        values = {seed: r["figures"][measure] for seed, r in self.found.items() if measure in r["figures"]}
        return Pooled.of(measure, values, self.published.get(measure))

    @property
    def cells(self) -> dict[str, Pooled]:
        """All measurements, pooled over seeds, by name."""
        return {name: self.cell(name) for name in self.measures}

    @property
    def texts(self) -> dict[str, str]:
        """The cells of a table before the numbers, by heading.

        They are the name, the options, our number of weights and the published number, and the state.
        """
        options = {name: in_words(value) for name, value in self.options.items()}
        count = NOTHING if self.n_weights is None else f"{self.n_weights:,.0f}"
        published = f"{self.published[WEIGHTS][0]:,.0f}" if WEIGHTS in self.published else count
        weights = count if count == published else f"{count} [{published}]"
        return {"row": self.name, **options, WEIGHTS: weights, "runs": self.state}

    @property
    def facts(self) -> dict[str, Any]:
        """The name, the options, and the numbers of weights and runs, by name."""
        numbers = {"n_weights": self.n_weights, "n_finished": len(self.found), "n_runs": self.n_runs}
        return {"row": self.name, "options": self.options, **numbers}

    @property
    def details(self) -> dict[str, Any]:
        """The section, the published number of weights, the time of each run, and the runs that were given up."""
        published = {"n_weights_published": self.published[WEIGHTS][0]} if WEIGHTS in self.published else {}
        return {
            "section": self.section,
            **published,
            "seconds": {seed: result["seconds"] for seed, result in self.found.items()},
            "failures": [failure._asdict() for failure in self.failures],
        }


@dataclass(frozen=True)
class Effect:
    """The mean difference in a measurement between two values of an option.

    Attributes:
        option: name of the option.
        value, base: the value, and the value with which it is compared.
        measure: name of the measurement.
        n_pairs: number of pairs of rows that differ in the option alone.
        difference: mean over seeds and pairs.
        error: standard error of the difference: over seeds or, if figures were published, over pairs. None for fewer
            than two.
        published: the published difference, or None if no figure was published.
        n_agreeing: number of pairs in which the published difference and our difference have the same sign.
        where: other options that all rows share, such as a task, in words.
    """

    option: str
    value: Any
    base: Any
    measure: str
    n_pairs: int
    difference: float
    error: float | None
    published: float | None = None
    n_agreeing: int = 0
    where: str = ""

    @property
    def name(self) -> str:
        """The comparison in words, such as "n_channels 16, not 8"."""
        return f"{self.option} {in_words(self.value)}, not {in_words(self.base)}" + f", {self.where}" * bool(self.where)

    @property
    def verdict(self) -> str:
        """Whether the published effect appears in our results, in one word.

        - "appears": our effect has the same sign;
        - "differs": our effect has the other sign;
        - "unclear": our effect is within two standard errors of zero, or no effect was published.
        """
        if self.published is None or self.error is None or abs(self.difference) <= 2 * self.error:
            return "unclear"
        return "appears" if self.published * self.difference > 0 else "differs"

    def text(self, digits: int = 2, factor: float = 100) -> str:
        """Return the cell of a table: the difference with its error, and in square brackets the published difference
        and the verdict."""
        error = "" if self.error is None else f" ± {factor * self.error:.{digits}f}"
        shown = f"{factor * self.difference:+.{digits}f}{error}"
        if self.published is None:
            return shown
        agree = f"{self.n_agreeing} of {self.n_pairs} pairs agree"
        return f"{shown}\n[{factor * self.published:+.{digits}f}; {agree}: {self.verdict}]"


def find_effects(
    rows: Sequence[SweepRow], comparisons: Sequence[tuple[str, Any, Any]] | None = None, where: str = ""
) -> list[Effect]:
    """Return the effect of each option, from pairs of rows in one section that differ in this option alone.

    Args:
        rows: the rows.
        comparisons: option, value, and the value with which it is compared; by default each value of an option is
            compared with the first value.
        where: the options that all rows share, in words.
    """
    if comparisons is None:
        comparisons = []
        for option in dict.fromkeys(name for row in rows for name in row.options):
            having = [row.options[option] for row in rows if option in row.options]
            values = [value for i, value in enumerate(having) if value not in having[:i]]  # lists have no hashes
            comparisons += [(option, value, values[0]) for value in values[1:]]
    effects, measures = [], list(dict.fromkeys(name for row in rows for name in row.measures))
    for option, value, base in comparisons:
        some, others = ([row for row in rows if row.options.get(option, ...) == wanted] for wanted in (value, base))
        pairs = [
            (a, b)
            for a, b in product(some, others)
            if a.section == b.section
            and all(a.options[name] == b.options[name] for name in a.options.keys() & b.options.keys() - {option})
        ]
        for measure in measures:
            # runs of a seed share levels, other seeds do not; published figures exist for whole rows alone
            samples, theirs, n_pairs = dict[int | str, list[float]](), list[float](), 0
            for i, (cell, base_cell) in enumerate((a.cell(measure), b.cell(measure)) for a, b in pairs):
                if cell.published is None or base_cell.published is None:
                    seeds = cell.values.keys() & base_cell.values.keys()
                    n_pairs += bool(seeds)
                    for seed in seeds:
                        samples.setdefault(seed, []).append(cell.values[seed] - base_cell.values[seed])
                elif cell.value is not None and base_cell.value is not None:
                    samples[i] = [cell.value - base_cell.value]
                    theirs.append(cell.published[0] - base_cell.published[0])
                    n_pairs += 1
            if samples:
                ours = np.array([np.mean(samples[key]) for key in sorted(samples)])
                published = float(np.mean(theirs)) if theirs else None
                agreeing = sum(bool(a * b > 0) for a, b in zip(ours, theirs, strict=False))
                difference, error = float(ours.mean()), standard_error(ours)
                about = (measure, n_pairs, difference, error, published, agreeing, where)
                effects.append(Effect(option, value, base, *about))
    return effects


def factor_of(measure: str) -> float:
    """Return the factor by which tables multiply a measurement: 100 for percent, 1 for numbers of tiles."""
    return 1 if measure.endswith(IN_TILES) else 100


@dataclass(frozen=True, repr=False)
class SweepResults(Results[SweepRow]):
    """The results of a sweep, or of the paper's tables.

    Attributes:
        rows: the rows.
        effects: differences between rows that differ in one option alone.
        out: the folder of the sweep.
        title: a title in a few words.
        about: a sentence on the content of the tables.
        facts: further facts about the sweep, JSON-serialisable.
        always: options that every table shows; a table shows other options only if its rows differ in them.
        refit: the best row, trained with further seeds and measured on test sets, or None unless the sweep has `refit`.
    """

    effects: Sequence[Effect]
    out: Path
    title: str
    about: str
    facts: Mapping[str, Any]
    always: Collection[str]
    refit: SweepResults | None = None

    @property
    def measures(self) -> list[str]:
        """Names of all measurements that occur in a row: published measurements or, if none was published, measurements
        of runs."""
        return names_in(row.cells for row in self.rows)

    @property
    def failures(self) -> list[Failure]:
        """All runs that were given up."""
        return list(dict.fromkeys(failure for row in self.rows for failure in row.failures))

    def table(self) -> Table:
        """Return a table of all rows and measurements, in percent or tiles."""
        return replace(super().table(), title=self.about)

    def tables(self) -> list[Table]:
        """Return a table for each section, with its title; without sections, one table of all rows and no title."""
        tables = []
        for section in dict.fromkeys(row.section for row in self.rows):
            rows = [row for row in self.rows if row.section == section]
            values = {(name, in_words(value)) for row in rows for name, value in row.options.items()}
            differ = {name for name, n in Counter(name for name, _ in values).items() if n > 1 or name in self.always}
            hidden = {name for row in rows for name in row.options} - differ
            texts = [{name: text for name, text in row.texts.items() if name not in hidden} for row in rows]
            tables.append(table_of([*zip(texts, (row.cells for row in rows), strict=True)], section))
        return tables

    def effects_table(self, prefix: str = "") -> Table:
        """Return the effects, in percentage points or tiles, on measurements with names that begin with `prefix`."""
        cells: dict[str, dict[str, Effect]] = {}
        for effect in self.effects:
            if effect.measure.startswith(prefix):
                cells.setdefault(effect.name, {})[effect.measure.removeprefix(prefix)] = effect
        over = "pairs of rows" if any(effect.published is not None for effect in self.effects) else "seeds"
        about = (
            f"Differences in percentage points between rows that differ in this alone, ± standard errors over {over}."
        )
        return table_of([({"effect": name}, own) for name, own in cells.items()], about + BESIDE * (over != "seeds"))

    def tables_of_sets(self) -> list[Table]:
        """Return two tables for each set of levels, narrow enough for a terminal: the rows, and the effects."""
        tables = []
        for name in dict.fromkeys(measure.split(" ", 1)[0] for measure in self.measures or [""]):
            own, start = [measure for measure in self.measures if measure.split(" ", 1)[0] == name], f"{name} "
            lines = [
                ({"row": row.name, "runs": row.state}, {key.removeprefix(start): row.cell(key) for key in own})
                for row in self.rows
            ]
            for table in (table_of(lines, name), replace(self.effects_table(start), title=name)):
                rows = [(row[0], *(text.replace("(", "").replace(")", "") for text in row[1:])) for row in table.rows]
                tables += [replace(table, rows=rows)] if rows else []
        return tables

    def to_json(self) -> dict[str, Any]:
        """Return the content of the JSON file as a dict: facts, rows and effects. Its numbers are fractions or
        tiles."""
        return {**self.facts, **super().to_json(), "effects": [asdict(effect) for effect in self.effects]}

    def markdown(self) -> str:
        """Return a Markdown page with the tables and the failed runs."""
        parts = [f"# {self.title}", as_markdown(self.about)]
        for table in self.tables():
            parts += [f"## {table.title}"] * bool(table.title) + [table.markdown()]
        effects = self.effects_table()
        parts += ["## Effects", effects.title, effects.markdown()] if effects.rows else []
        failed = [
            f"- {as_markdown(run)}: {' '.join(as_markdown(error).split())} (`{log}`)"
            for run, error, log in self.failures
        ]
        parts += ["## Failed runs", "\n".join(failed)] if failed else []
        return "\n\n".join(parts) + "\n"

    def latex(self) -> str:
        """Return the tables as LaTeX text, for the packages booktabs and graphicx."""
        captions = (as_latex(f"{table.title}. {self.about}" if table.title else self.about) for table in self.tables())
        return "\n\n".join(map(Table.latex, self.tables(), captions)) + "\n"

    def save(self) -> list[Path]:
        """Write results.json, results.csv, results.md and results.tex into the sweep's folder, and return the paths.

        Raises:
            OSError: a file could not be written.
        """
        return self.write(self.out, {PAGE: self.markdown(), LATEX: self.latex(), CSV: self.csv()})

    def _repr_html_(self) -> str:
        return "".join(replace(table, title=table.title or self.about).html() for table in self.tables())
