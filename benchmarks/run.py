"""Run the benchmarks on one core, print their table and write it to a folder.

Rows: A1 shortest path; A2 diameter; A3 diameter of large mazes; A4 shortest paths of large mazes; B solvable levels
with both targets; C1 one step of one environment; C2 one step of 1,024 environments; D1 a training update; D2 a
training update of a large network; D3 a rollout of a large network; D5 one iteration of the hand-coded automaton; E
perfect mazes with both targets; F trying a policy on every small maze.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.progress import Progress

from benchmarks import machine, report
from benchmarks.automata import automaton_jobs
from benchmarks.job import FULL, QUICK, Effort, Job
from benchmarks.making import perfect_level_jobs, random_level_jobs
from benchmarks.paths import diameter_jobs, large_diameter_jobs, large_path_jobs, shortest_path_jobs
from benchmarks.small_mazes import small_maze_jobs
from benchmarks.stepping import single_jobs, vector_jobs
from benchmarks.timing import Result, measure
from benchmarks.training import large_rollout_jobs, large_update_jobs, small_update_jobs
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes._kernels import compiling

Row = Literal["A1", "A2", "A3", "A4", "B", "C1", "C2", "D1", "D2", "D3", "D5", "E", "F"]

ROWS: dict[Row, Callable[[Effort], list[Job]]] = {
    "A1": shortest_path_jobs,
    "A2": diameter_jobs,
    "A3": large_diameter_jobs,
    "A4": large_path_jobs,
    "B": random_level_jobs,
    "C1": single_jobs,
    "C2": vector_jobs,
    "D1": small_update_jobs,
    "D2": large_update_jobs,
    "D3": large_rollout_jobs,
    "D5": automaton_jobs,
    "E": perfect_level_jobs,
    "F": small_maze_jobs,
}


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    rows: tuple[Row, ...] = tuple(ROWS)
    """Rows to run."""
    quick: bool = False
    """Take fewer and shorter samples: a row takes seconds, and spreads are wider."""
    out: Path = Path("runs/benchmarks")
    """Folder for results.json, RESULTS.md and speed.png."""


def run(rows: tuple[Row, ...], effort: Effort) -> list[Result]:
    """Measure every job of the rows, and return the results in the order of the rows."""
    compiling.compile_all()
    results = []
    with Progress(transient=True) as progress:
        for row in progress.track(rows, description="rows"):
            for job in ROWS[row](effort):
                progress.console.print(f"{job.row}  {job.name}")
                results.append(measure(job, effort))
    return results


def main() -> None:
    arguments = run_script(Arguments, __doc__)
    machine.use_one_core()
    description = machine.describe()
    results = run(arguments.rows, QUICK if arguments.quick else FULL)
    report.show(results)
    for path in report.write(results, description, arguments.out):
        print(path)


if __name__ == "__main__":
    main()
