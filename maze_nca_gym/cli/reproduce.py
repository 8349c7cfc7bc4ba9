"""`maze-nca-gym reproduce`: the table of its progress."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import reproduce
from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.sweeps.series import Progress

PLAIN_EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


def run(*, out: Path = Path("runs/paper"), **options: Any) -> int:
    """Exit with 1 if runs have failed."""
    with _Watch() as watch:
        results = reproduce(out=out, on_change=watch.show, **options)
    print(f"results: {out / 'results.md'}")
    failures = {job: error for row in results.rows for job, error in row.failures.items()}
    for job, error in failures.items():
        complain(f"failed: {job.label}: {error} (log: {job.log})")
    return FAILED if failures else 0


class _Watch:
    """A table of progress on a terminal; elsewhere a line now and then."""

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
            self._live.update(_table(progress), refresh=True)
            return
        text, now = describe(progress), time.monotonic()
        if text != self._said and (not progress.left or now - self._said_at >= PLAIN_EVERY):
            self._console.print(text, soft_wrap=True)
            self._said, self._said_at = text, now


def describe(progress: Progress) -> str:
    """Return the progress as a line."""
    parts = [f"{len(progress.finished)} of {len(progress.jobs)} runs finished"]
    if progress.failed:
        parts.append(f"{len(progress.failed)} failed")
    if progress.left:
        parts.append(f"{_left(progress)} left")
    return ", ".join(parts)


def _left(progress: Progress) -> str:
    from maze_nca_gym.agents.runs import duration

    seconds = progress.seconds_left()
    return "unknown time" if seconds is None else duration(seconds)


def _table(progress: Progress) -> Table:
    """Return the progress as a table, one row per kind of run."""
    sets = (progress.jobs, progress.finished, progress.running, progress.failed)
    counts = [Counter(job.kind for job in jobs) for jobs in sets]
    rows = [(kind, *(str(count[kind]) for count in counts)) for kind in counts[0]]
    columns = ("runs", "all", "finished", "running", "failed")
    return Table(columns, rows, numbers=columns[1:], title=describe(progress))
