"""The leaderboard: measured rows next to published ones, as tables, a page and a file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from maze_nca_gym.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.files import validated_read, write_all
from maze_nca_gym.options import Between, Option, check, check_known, options_of
from maze_nca_gym.tables import Table

from ..runs import versions
from ..statistics import Estimate
from .answers import SCORES

BOARD, PAGE = "leaderboard.json", "leaderboard.md"
RESTARTED, REUSED = "restarted", "reused"
"""Scores of edit streams, where all mazes of a stream must be right: each from a fresh state, or from the last one."""

_INTRODUCTION = """# Leaderboard

Made by `maze-nca-gym bench`. Scores are percentages, with 95 % intervals (Wilson's) where they were measured here.
Rows without an interval are published ones: they were measured by others, on their own mazes unless the set says that
it is the same, and with the training that the row states. Compare rows of one supervision.

- **exact label**: every tile is that of the set's one label. Where shortest paths tie, a right answer can be wrong
  here. The label of `maze-hard-30` is the path of a deterministic A* search. It expands open tiles by moves plus
  Manhattan distance to the goal, equal ones in the order in which they were found. Neighbours are found up, left,
  right, down. The labels of `maze-hard-original-30` are those of its authors' files: breadth-first paths from the
  start, ties in the order down, left, right, up.
- **canonical**: the one shortest path that this package trains on, in the policy's order of directions. On Maze-Hard
  the label is mostly another one.
- **valid**: one line of free tiles from start to goal. **valid and optimal**: that line is as short as can be.
- **restarted**, **reused**: on edit streams, all 129 mazes of the stream are solved, each by some shortest path. The
  policy begins from zeros on each maze, or goes on from the state of the one before.

Seconds are those of running the policy on all mazes of the row. They depend on the machine, and on what else it did.
"""


class Printable:
    """Constraint on an option that is printed in tables: a text, or names of a mapping, without control characters."""

    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""
        texts = value if isinstance(value, Mapping) else [value]
        return None if all(text.isprintable() for text in texts) else f"{option.name} must be printable, got {value!r}"


@dataclass(frozen=True)
class Row:
    """The scores of a policy, or of a file of predictions, on a set.

    Attributes:
        set: name of the benchmark set.
        name: name of the policy or the file.
        n: number of mazes, or streams, on which it was measured.
        scores: score -> fraction of these that are right, with its 95 % interval.
        weights: number of weights; None if unknown.
        trained_on: what the policy learned from.
        n_steps: iterations on each maze; None for predictions.
        seconds: time that the policy took; None for predictions.
    """

    set: Annotated[str, Printable()]
    name: Annotated[str, Printable()]
    n: Annotated[int, Between(0)]
    scores: Annotated[Mapping[str, Estimate], Printable()]
    weights: Annotated[int | None, Between(0)]
    trained_on: Annotated[str, Printable()]
    n_steps: Annotated[int | None, Between(0)]
    seconds: Annotated[float | None, Between(0)]

    @classmethod
    def from_json(cls, content: Any) -> Row:
        """Read a row of `leaderboard.json`.

        Raises:
            ValueError: it is no row; the message says where.
            KeyError: a value is missing.
        """
        check(isinstance(content, Mapping), f"a row must have names and values, got {content!r:.60}")
        options = options_of(cls)
        check_known(content, options, "a row")
        values = {name: option.check(content[name]) for name, option in options.items()}
        return cls(**{**values, "scores": {score: _estimate(score, ends) for score, ends in values["scores"].items()}})


def _estimate(score: str, ends: Any) -> Estimate:
    names = ("value", "low", "high")
    check(isinstance(ends, Mapping), f"the score {score!r} must have {', '.join(names)}, got {ends!r:.60}")
    check_known(ends, names, f"the score {score!r}")
    fraction = (Between(0, 1),)
    return Estimate(*(Option(f"{name} of the score {score!r}", float, fraction).check(ends[name]) for name in names))


@dataclass(frozen=True)
class Published:
    """A result that others published. If its set is drawn here, they measured on other mazes of the same kind.

    Attributes:
        set: name of the benchmark set that is theirs, or that is like theirs.
        name: their name of the model.
        weights: number of weights; None if unknown.
        score: name of the score.
        value: percentage.
        trained_on: what the model learned from.
        source: the publication.
    """

    set: str
    name: str
    weights: int | None
    score: str
    value: float
    trained_on: str
    source: str


@cache
def published() -> tuple[Published, ...]:
    """Return all published results."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("published.json").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in json.loads(text))


def published_beside(name: str) -> list[Published]:
    """Return the published results to compare with on a set: its own, or those of the set that it redraws."""
    theirs = BENCHMARK_SETS[name].redraws or name
    return [each for each in published() if each.set == theirs]


@dataclass(frozen=True)
class Board:
    """The results of a benchmark.

    Attributes:
        rows: one row for each set and each policy or file, set by set.
    """

    rows: tuple[Row, ...]

    def table(self) -> Table:
        """Return a table of the measured rows, in percent with 95 % intervals."""
        scores = scores_of(self.rows, ())
        rows = [
            (row.set, row.name, f"{row.n:,}", *(row.scores[s].percent(1) if s in row.scores else "" for s in scores))
            for row in self.rows
        ]
        return Table(("set", "policy", "mazes", *scores), rows, numbers=("mazes", *scores))

    def _repr_html_(self) -> str:
        return self.table().html()

    def markdown(self) -> str:
        """Return a page with a table for each set that has a row, published results included."""
        names = [name for name in BENCHMARK_SETS if any(row.set == name for row in self.rows)]
        return "\n".join([_INTRODUCTION, *(_section(name, [r for r in self.rows if r.set == name]) for name in names)])

    def save(self, folder: str | Path) -> list[Path]:
        """Write `leaderboard.json` and `leaderboard.md`; the folder's rows of other sets or names are kept.

        Returns:
            The two files.

        Raises:
            ValueError: the folder's `leaderboard.json` is no leaderboard.
            OSError: a file could not be written; both are unchanged.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        board = Board(tuple({(row.set, row.name): row for row in (*old, *self.rows)}.values()))
        content = {"versions": versions(), "rows": [asdict(row) for row in board.rows]}
        texts = {folder / BOARD: json.dumps(content, indent=2) + "\n", folder / PAGE: board.markdown()}
        write_all({path: text.encode() for path, text in texts.items()})
        return list(texts)

    @classmethod
    def load(cls, folder: str | Path) -> Board:
        """Read what `save` wrote.

        Raises:
            ValueError: `leaderboard.json` is no leaderboard.
            OSError: it is missing or cannot be read.
        """
        path = Path(folder) / BOARD
        with validated_read(path, "is no leaderboard"):
            return cls(tuple(Row.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]))


def scores_of(rows: Sequence[Row], others: Sequence[Published]) -> list[str]:
    """Return the scores that some row has, in the usual order."""
    known = {score for row in rows for score in row.scores} | {each.score for each in others}
    return [score for score in (*SCORES, RESTARTED, REUSED) if score in known]


def _section(name: str, rows: Sequence[Row]) -> str:
    benchmark = BENCHMARK_SETS[name]
    others = published_beside(name)
    scores = scores_of(rows, others)
    columns = ("policy", "weights", *scores, "trained on", "mazes, iterations, seconds; or source")
    best = sorted(rows, key=lambda row: [-row.scores[s].value if s in row.scores else 1.0 for s in scores[::-1]])
    table = Table(columns, [*(_cells(row, scores) for row in best), *(_published_cells(e, scores) for e in others)])
    about = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles. From: {benchmark.source}."
    return "\n".join([f"## {name}", "", about[0].upper() + about[1:], "", table.markdown(), ""])


def _cells(row: Row, scores: Sequence[str]) -> list[str]:
    measured = (percentages(row.scores.get(score)) for score in scores)
    cells = [f"`{row.name}`", _count(row.weights), *(f"{value} ({ends})" if value else "" for value, ends in measured)]
    how = f"{row.n:,}" if row.n_steps is None else f"{row.n:,}; {row.n_steps:,}; {row.seconds:,.0f}"
    return [*cells, row.trained_on, how]


def _published_cells(each: Published, scores: Sequence[str]) -> list[str]:
    values = [f"{each.value:g}" if score == each.score else "" for score in scores]
    return [each.name, _count(each.weights), *values, each.trained_on, each.source]


def _count(weights: int | None) -> str:
    return "" if weights is None else f"{weights:,}"


def percentages(found: Estimate | None) -> tuple[str, str]:
    """Return a percentage and its interval as texts, both empty for None."""
    if found is None:
        return "", ""
    low, high = (f"{100 * end:.1f}".removesuffix(".0") for end in (found.low, found.high))
    return f"{100 * found.value:.1f}", f"{low} to {high}"
