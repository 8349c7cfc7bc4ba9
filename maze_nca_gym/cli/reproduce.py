"""`maze-nca-gym reproduce`: its options, and the table of its progress."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.options import Between, OneOf, Shown, check_options
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.reproduction.series import Progress

PLAIN_EVERY = 30.0
"""Seconds from line to line where there is no terminal."""


@dataclass(frozen=True)
class Reproduce:
    """Re-run the result tables of the paper, and write ours beside the published figures.

    Every row and trial is a run in the folder; rows with equal options share theirs. Killed at any moment, the same
    command goes on, and what is finished is not done again. The folder receives results.md, results.tex, results.json,
    published.png and figures of behaviour.
    """

    tables: Annotated[tuple[str, ...], Shown("TABLE …", "all", positional=True)] = ()
    """Tables 1 to 11, or rows such as 3.2 for the second row of table 3; all means all tables."""
    trials: Annotated[int, Between(1)] = 5
    """Number of runs of each row, with different seeds."""
    scale: Annotated[str, Shown("{full,small,tiny}")] = "full"
    """Size of the runs: full is the paper; small and tiny have narrower networks, smaller mazes and fewer updates."""
    out: Annotated[Path, Shown("FOLDER")] = Path("runs/paper")
    """Folder of the runs and results; one for each scale."""
    launcher: Annotated[str, OneOf(("local", "submitit", "slurm"))] = "local"
    """Place of the runs: processes of this machine, the same as jobs of submitit, or job arrays of a SLURM cluster."""
    workers: Annotated[int | None, Between(1), Shown(default="one per core or GPU, 256 on a cluster")] = None
    """Largest number of runs at once."""
    submit: Annotated[tuple[str, ...], Shown("NAME=VALUE …", "none")] = ()
    """Parameters for submitit, such as timeout_min=600 gpus_per_node=1 slurm_partition=long."""
    device: str = "auto"
    """Device of each run: auto (a GPU if there is one), cpu, cuda, cuda:1 …"""

    def __post_init__(self) -> None:
        check_options(self)

    def launcher_options(self) -> dict[str, int | str]:
        """Return the parameters for submitit by name.

        Raises:
            ValueError: a word that is no NAME=VALUE.
        """
        found: dict[str, int | str] = {}
        for word in self.submit:
            match = re.fullmatch(r"([a-z_]+)=(.+)", word)
            if match is None:
                raise ValueError(f"--submit takes words such as timeout_min=600, got {word!r}")
            found[match[1]] = int(match[2]) if re.fullmatch(r"\d+", match[2]) else match[2]
        return found

    def run(self) -> int:
        """Run what is missing, and write the results; returns the exit code, 1 if runs have failed.

        Raises:
            ValueError: a bad option, or a folder of another scale or version.
            OSError: a file could not be written, or no disk space is left.
        """
        options = self.launcher_options()
        from maze_nca_gym.agents import reproduce

        with _Watch() as watch:
            results = reproduce(
                self.tables or ("all",),
                trials=self.trials,
                scale=self.scale,
                out=self.out,
                launcher=self.launcher,
                workers=self.workers,
                device=self.device,
                launcher_options=options,
                on_change=watch.show,
            )
        print(f"results: {self.out / 'results.md'}")
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
        """Show how far it is."""
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
    """Return the progress as a table, a row a kind of run."""
    sets = (progress.jobs, progress.finished, progress.running, progress.failed)
    counts = [Counter(job.kind for job in jobs) for jobs in sets]
    rows = [(kind, *(str(count[kind]) for count in counts)) for kind in counts[0]]
    columns = ("runs", "all", "finished", "running", "failed")
    return Table(columns, rows, numbers=columns[1:], title=describe(progress))
