"""`maze-nca-gym bench`: the tables that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maze_nca_gym.agents import bench
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents.leaderboard.board import Row


def run(*, out: Path = Path("runs/bench"), **options: Any) -> int:
    """Print a table for each set."""
    from maze_nca_gym.agents.leaderboard.board import BOARD, PAGE

    board = bench(out=out, **options)
    for name in dict.fromkeys(row.set for row in board.rows):
        _print_set(name, [row for row in board.rows if row.set == name])
    for name in (BOARD, PAGE):
        print(out / name)
    return 0


def _print_set(name: str, rows: Sequence[Row]) -> None:
    """Print a table of one set, measured and published, narrow enough for a terminal of 80 columns."""
    from maze_nca_gym.agents.leaderboard.board import percentages, published_beside, scores_of

    others = published_beside(name)
    scores = scores_of(rows, others)
    columns = ["policy", *(score.replace(" ", "\n") for score in scores)]
    cells = [
        (row.name, *("\n".join(percentages(row.scores.get(score))).replace(" to ", "-") for score in scores))
        for row in rows
    ]
    cells += [
        (f"{each.name} (published)", *(f"{each.value:g}" if score == each.score else "" for score in scores))
        for each in others
    ]
    Table(columns, cells, columns[1:], f"{name}: % of instances").print()
    for row in rows:
        known = "" if row.weights is None else f"{row.weights:,} weights, "
        how = "" if row.n_steps is None else f", {row.n_steps:,} iterations, {row.seconds:,.0f} s"
        print(f"{row.name}: {known}{row.n:,} instances{how}; trained on: {row.trained_on}")
    for source in dict.fromkeys(f"{each.name}: {each.source}; trained on: {each.trained_on}" for each in others):
        print(source)
