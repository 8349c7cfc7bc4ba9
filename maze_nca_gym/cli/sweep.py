"""The output of `maze-nca-gym sweep`, `reproduce` and `runs list`: progress and results."""

from __future__ import annotations

import time
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import list_runs, reproduce, sweep
from maze_nca_gym.cli.output import FAILED, complain, tell, tell_json
from maze_nca_gym.support.names import printable
from maze_nca_gym.support.options import check
from maze_nca_gym.support.tables import Table, percent

if TYPE_CHECKING:
    from maze_nca_gym.agents.evaluation.records import SweepResults
    from maze_nca_gym.agents.sweeps.series import Progress

PLAIN_EVERY = 30.0
"""Seconds between two lines of progress if the output is not a terminal."""
ROOM = 8
"""Lines of a terminal that do not show runs: headings, rules, and the lines below the table."""
ONE_LINE = 100_000
"""Width at which no row is wrapped, so that each run is a line for `grep`, `head` and `less -S`."""


def run(*, what: str | Path | Mapping[str, Any], **options: Any) -> int:
    """Run a sweep and print its tables. Exit with 1 if runs have failed."""
    with _Watch() as watch:
        results = sweep(what, on_change=watch.show, **options)
    shown = [results] if results.refit is None else [results, results.refit]
    for summary in shown:
        for table in summary.tables_of_sets():
            table.print()
        print(summary.about)
        tell(f"results: {summary.out}")
    return max(map(_verdict, shown))


def run_reproduce(*, out: Path = Path("runs/paper"), **options: Any) -> int:
    """Reproduce the paper's tables and print the path of the results. Exit with 1 if runs have failed."""
    with _Watch() as watch:
        results = reproduce(out=out, on_change=watch.show, **options)
    tell(f"results: {out / 'results.md'}")
    return _verdict(results)


def run_list(*, csv: bool = False, json: bool = False, **options: Any) -> int:
    """Print the table of runs.

    Args:
        csv: print comma-separated values.
        json: print JSON, an array with an object for each run, and no other text.
    """
    check(not (csv and json), "--csv and --json are two forms: choose one")
    table = list_runs(**options)
    if csv:
        print(printable(table.csv()), end="")
    elif json:
        # the first three have no numbers: run, kind and state
        named = (zip(table.columns, [*row[:3], *map(_value, row[3:])], strict=True) for row in table.rows)
        tell_json(map(dict, named))
    else:
        table.print(ONE_LINE)
    return 0


def _value(text: str) -> Any:
    """Return the value of an option or a score that is shown as a text, or None if it is missing."""
    try:
        return literal_eval(text or "None")
    except (ValueError, SyntaxError):
        return text


def _verdict(results: SweepResults) -> int:
    for run, error, log in results.failures:
        complain(f"failed: {run}: {error} (log: {results.out / log})")
    return FAILED if results.failures else 0


class _Watch:
    """Prints the progress of a sweep: on a terminal a line for each run, elsewhere from time to time a line for all
    runs."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._said, self._said_at = "", -PLAIN_EVERY

    def __enter__(self) -> _Watch:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, progress: Progress) -> None:
        """Show the progress."""
        if self._console.is_terminal:
            self._live.update(_table(progress, max(1, self._console.height - ROOM)), refresh=True)
            return
        text, now = describe(progress), time.monotonic()
        if text != self._said and (not progress.left or now - self._said_at >= PLAIN_EVERY):
            self._console.print(text, soft_wrap=True)
            self._said, self._said_at = text, now


def describe(progress: Progress) -> str:
    """Return a line about the progress of a sweep."""
    parts = [f"{len(progress.finished)} of {len(progress.jobs)} runs finished"]
    if progress.failed:
        parts.append(f"{len(progress.failed)} failed")
    if progress.left:
        parts.append(f"{_left(progress.seconds_left())} left")
    return ", ".join(parts)


def _left(seconds: float | None) -> str:
    from maze_nca_gym.agents.runs import duration

    return "unknown time" if seconds is None else duration(seconds)


def _table(progress: Progress, most: int) -> Table:
    """Return a table with a line for each run. If some do not fit, running and failed runs come first."""
    shown = progress.jobs
    if len(shown) > most:
        first = {*progress.running, *progress.failed}
        shown = sorted(shown, key=lambda job: (job not in first, job in progress.finished))[:most]
    rows = []
    for job in shown:
        line, of = progress.latest_metrics(job) or {}, job.config.n_updates
        state = "finished" if job in progress.finished else "failed" if job in progress.failed else "waiting"
        if job in progress.running:
            state = f"{_left(line['seconds'] * (of / line['update'] - 1) if line else None)} left"
        loss = f"{line['loss']:.4f}" if line.get("loss") is not None else ""
        complete = percent(line["complete"], 1) if line.get("complete") is not None else ""
        rows.append((job.label, f"{line.get('update', 0):,} of {of:,}", loss, complete, state))
    columns = ("run", "updates", "loss", "complete", "state")
    return Table(columns, rows, numbers=columns[1:4], title=describe(progress))
