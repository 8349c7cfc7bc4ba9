"""The leaderboard as a page."""

from __future__ import annotations

from collections.abc import Sequence

from maze_nca_gym.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.tables import Table

from ..statistics import Estimate
from .answers import SCORES
from .rows import RESTARTED, REUSED, Published, Row, published

_INTRODUCTION = """# Leaderboard

Made by `maze-nca-gym bench`. Scores are percentages, with 95 % intervals (Wilson's) where they were measured here.
Rows without an interval are published ones: they were measured by others, on their own mazes unless the set says that
it is the same, and with the training that the row states. Compare rows of one supervision.

- **exact label**: every tile is that of the set's one label. Where shortest paths tie, a right answer can be wrong
  here. The label of `maze-hard-30` is the path of a deterministic A* search. It expands open tiles by moves plus
  Manhattan distance to the goal, equal ones in the order in which they were found. Neighbours are found up, left,
  right, down.
- **canonical**: the one shortest path that this package trains on. On `maze-hard-30` the label is mostly another one.
- **valid**: one line of free tiles from start to goal. **valid and optimal**: that line is as short as can be.
- **restarted**, **reused**: on edit streams, all 129 mazes of the stream are solved, each by some shortest path. The
  policy begins from zeros on each maze, or goes on from the state of the one before.

Seconds are those of running the policy on all mazes of the row. They depend on the machine, and on what else it did.
"""


def markdown(rows: Sequence[Row]) -> str:
    """Return the page: a table for each set that has a row, in the order of the sets."""
    names = [name for name in BENCHMARK_SETS if any(row.set == name for row in rows)]
    return "\n".join([_INTRODUCTION, *(_section(name, [row for row in rows if row.set == name]) for name in names)])


def _section(name: str, rows: Sequence[Row]) -> str:
    benchmark = BENCHMARK_SETS[name]
    others = [each for each in published() if each.set == name]
    scores = scores_of(rows, others)
    columns = ("policy", "weights", *scores, "trained on", "mazes, iterations, seconds; or source")
    best = sorted(rows, key=lambda row: [-row.scores[s].value if s in row.scores else 1.0 for s in scores[::-1]])
    table = Table(columns, [*(_cells(row, scores) for row in best), *(_published_cells(e, scores) for e in others)])
    about = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles. From: {benchmark.source}."
    return "\n".join([f"## {name}", "", about[0].upper() + about[1:], "", table.markdown(), ""])


def scores_of(rows: Sequence[Row], others: Sequence[Published]) -> list[str]:
    """Return the scores that some row has, in the usual order."""
    known = {score for row in rows for score in row.scores} | {each.score for each in others}
    return [score for score in (*SCORES, RESTARTED, REUSED) if score in known]


def _cells(row: Row, scores: Sequence[str]) -> list[str]:
    measured = (estimate(row.scores.get(score)) for score in scores)
    cells = [f"`{row.name}`", count(row.weights), *(f"{value} ({ends})" if value else "" for value, ends in measured)]
    how = f"{row.n:,}" if row.n_steps is None else f"{row.n:,}; {row.n_steps:,}; {row.seconds:,.0f}"
    return [*cells, row.trained_on, how]


def _published_cells(each: Published, scores: Sequence[str]) -> list[str]:
    values = [f"{each.value:g}" if score == each.score else "" for score in scores]
    return [each.name, count(each.weights), *values, each.trained_on, each.source]


def count(weights: int | None) -> str:
    """Return a number of weights, or nothing if it is unknown."""
    return "" if weights is None else f"{weights:,}"


def estimate(found: Estimate | None) -> tuple[str, str]:
    """Return a percentage and its interval; two empty texts for nothing."""
    if found is None:
        return "", ""
    return f"{100 * found.value:.1f}", f"{_short(found.low)} to {_short(found.high)}"


def _short(fraction: float) -> str:
    return f"{100 * fraction:.1f}".removesuffix(".0")
