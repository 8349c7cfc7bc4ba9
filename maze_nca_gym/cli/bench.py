"""`maze-nca-gym bench`: the tables that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import bench
from maze_nca_gym.cli.output import tell
from maze_nca_gym.support.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.evaluation.leaderboard.rows import Row


def run(*, out: Path = Path("runs/bench"), plot: bool = False, format: str = "png", **options: Any) -> int:
    """Print a table for each set."""
    from maze_nca_gym.agents.evaluation.leaderboard.board import BOARD, PAGE, PICTURE

    board = bench(out=out, plot=plot, format=format, **options)
    for name, rows in board.by_set().items():
        _print_set(name, rows)
    for name in (BOARD, PAGE, *[f"{PICTURE}.{format}"] * plot):
        tell(str(out / name))
    return 0


def _print_set(name: str, rows: Sequence[Row]) -> None:
    """Print a table of one set, measured and published, narrow enough for a terminal of 80 columns."""
    from maze_nca_gym.agents.evaluation.leaderboard.rows import lines_of, published_beside, scores_of

    others = published_beside(name)
    scores, lines = scores_of(rows, others), lines_of(rows, others)
    columns = ["solver", "learns from", *(score.replace(" ", "\n") for score in scores)]
    cells = []
    for line in lines:
        digits = ".1f" if line.is_ours else "g"
        found = (f"{line.values[s]:{digits}}\n{line.spreads[s].strip()}" if s in line.values else "" for s in scores)
        title = line.name if line.is_ours else f"{line.name} (published)"
        cells.append((title, line.entry.learns_from.replace(", ", ",\n"), *found))
    Table(columns, cells, columns[2:], f"{name}: % of instances").print()
    for line in lines:
        known = "" if line.entry.weights is None else f"{line.entry.weights:,} weights, "
        tell(f"{line.name}: {known}{line.details}")
