"""The output of `maze-nca-gym bench`: its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maze_nca_gym.agents import bench
from maze_nca_gym.cli.output import tell
from maze_nca_gym.support.tables import Table


def run(
    *, out: Path = Path("runs/bench"), plot: bool = False, format: str = "png", details: bool = False, **options: Any
) -> int:
    """Print a table for each set, measured and published, narrow enough for a terminal of 80 columns.

    Args:
        details: also print, below each table, how every row was trained and measured, and its source.
    """
    from maze_nca_gym.agents.evaluation.leaderboard.board import BOARD, PAGE, PICTURE, SOURCES
    from maze_nca_gym.agents.evaluation.leaderboard.rows import lines_of, notes_of, published_beside, scores_of

    board = bench(out=out, plot=plot, format=format, **options)
    for name, rows in board.by_set().items():
        others = published_beside(name)
        scores, lines, cells = scores_of(rows, others), lines_of(rows, others), []
        for line in lines:
            texts = (f"{value}\n{spread.strip()}" if value else "" for value, spread in map(line.text, scores))
            title = line.name if line.is_ours else f"{line.name} (published)"
            cells.append((title, line.entry.learns_from.replace(", ", ",\n"), *texts))
        columns = ["solver", "learns from", *(score.replace(" ", "\n") for score in scores)]
        Table(columns, cells, columns[2:], f"{name}: % of instances").print()
        if details:
            tell(notes_of(rows, others))
        for line in lines if details else ():
            known = "" if line.entry.weights is None else f"{line.entry.weights:,} weights, "
            tell(f"{line.name}: {known}{line.details}")
    if not details:
        print("--details shows how each row was trained and measured, and where it comes from")
    for path in filter(Path.exists, (out / name for name in (BOARD, PAGE, SOURCES, *[f"{PICTURE}.{format}"] * plot))):
        tell(str(path))
    return 0
