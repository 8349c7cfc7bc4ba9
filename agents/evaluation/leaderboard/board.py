"""The leaderboard: measured rows next to published ones, as tables, a page, a picture and a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.support.files import validated_read, write_all
from maze_nca_gym.support.options import check
from maze_nca_gym.support.tables import Table, Tabular

from ...runs import versions
from ..figure_options import FigureFormat, FigureWidth
from ..statistics import as_record
from .answers import CANONICAL, EXACT, SCORES
from .rows import (
    MAIN,
    SUPERVISIONS,
    Line,
    Row,
    lines_of,
    published,
    published_beside,
    scores_of,
)

BOARD, PAGE, PICTURE = "leaderboard.json", "leaderboard.md", "leaderboard"
_HEAD = """# Leaderboard

Made by `maze-nca-gym bench`: the percentage of mazes that each solver has right.
"""
_PICTURE = f"""
![Percent solved against weights, a panel for each set and score]({PICTURE}.png)

The higher, the more is solved: equal steps up halve the failures. Rings stand for solvers that search.
"""
_EXPLANATION = f"""
Figures with a range in brackets were measured here, and the range is their 95 % interval (Wilson's). The others are
published; ± is a standard deviation. Compare rows that **learn from** the same:

{chr(10).join(f"- *{name}*: {how}" for name, how in SUPERVISIONS.items())}

*Search* marks several runs for each maze, of which one answer is chosen without knowing the solution. *Peak* marks the
best moment of a training on the test mazes. The scores are:

- **exact label**: every tile is that of the set's one label. Where shortest paths tie, a right answer can be wrong
  here. The labels of Maze-Hard are breadth-first paths from the start, ties in the order down, left, right, up.
- **canonical**: the one shortest path that this package trains on, in the policy's order of directions.
- **valid**: one line of free tiles from start to goal. **valid and optimal**: that line is as short as can be.
- **first move**, **moves followed**: where a maze is solved from every tile, the drawn paths of which the first move
  comes nearer to the goal, and the tiles from which these first moves, one after the other, are a shortest path.
- **restarted**, **reused**: on edit streams, the mazes that are solved, each by some shortest path, or by an empty
  path if there is no route. The policy begins from zeros on each maze, or goes on from the state of the one before; in
  both cases it runs for as many iterations on each maze as its line below says. **whole**: the streams of which all
  mazes are solved.

Mazes of a stream are alike, and so are tiles of a maze: intervals of single ones are too narrow.

Seconds are those of running the policy on all mazes of the row. They depend on the machine, and on what else it did.
"""


@dataclass(frozen=True)
class Board(Tabular):
    """The results of a benchmark.

    Attributes:
        rows: one row for each set and each policy or file, set by set.
    """

    rows: tuple[Row, ...]

    def table(self) -> Table:
        """Return a table of the measured rows, in percent with 95 % intervals."""
        scores = scores_of(self.rows, (), tuple(dict.fromkeys((*SCORES, *MAIN))))
        rows = [
            (row.set, row.name, f"{row.n:,}", *(row.scores[s].percent(1) if s in row.scores else "" for s in scores))
            for row in self.rows
        ]
        return Table(("set", "policy", "mazes", *scores), rows, numbers=("mazes", *scores))

    def records(self) -> list[dict[str, Any]]:
        """Return the fields of each measured row, each score with the ends of its interval."""
        own = ({name: value for name, value in vars(row).items() if name != "scores"} for row in self.rows)
        return [{**facts, **as_record(row.scores)} for facts, row in zip(own, self.rows, strict=True)]

    def markdown(self, picture: bool = False) -> str:
        """Return a page with a table for each set that has a row, published results included.

        Args:
            picture: whether it shows the file that `draw` writes.
        """
        sections = (_section(name, rows) for name, rows in self.by_set().items())
        return "\n".join([_HEAD + _PICTURE * picture + _EXPLANATION, *sections])

    def by_set(self) -> dict[str, list[Row]]:
        """Return the rows of each set that has some, in the order of the sets."""
        found = {name: [row for row in self.rows if row.set == name] for name in BENCHMARK_SETS}
        return {name: rows for name, rows in found.items() if rows}

    def draw(self, path: str | Path, width: FigureWidth = None) -> Path:
        """Write a picture of weights against percent, and return its path; it has a panel for each set and score.

        The panels are those of sets on which others published results on the same mazes, or of all sets if there is
        none. A policy is not drawn by its exact labels if it breaks ties in another order than the set.

        Raises:
            ValueError: there is no row, or another suffix than png, pdf and svg.
            OSError: the file could not be written.
        """
        from .figures import draw

        check(bool(self.rows), "there is nothing to draw: the leaderboard has no rows")
        same = [each for each in published() if each.mazes == "same"]
        fair = {name: (rows, [each for each in same if each.set == name]) for name, rows in self.by_set().items()}
        found = {name: sides for name, sides in fair.items() if sides[1]} or fair
        return draw(
            {
                f"{name}: {score}": [(line, line.values[score]) for line in lines_of(*sides) if _aims_at(line, score)]
                for name, sides in found.items()
                for score in dict.fromkeys(each.score for each in sides[1]) or scores_of(*sides)[-1:]
            },
            Path(path),
            width,
        )

    def save(
        self, folder: str | Path, plot: bool = False, format: FigureFormat = "png", width: FigureWidth = None
    ) -> list[Path]:
        """Write `leaderboard.json` and `leaderboard.md`; the folder's rows of other sets or names are kept.

        Args:
            folder: where to.
            plot: write a figure, `leaderboard`, too; the page shows the `leaderboard.png` that the folder has.
            format: file type of the figure.
            width: its width in print.

        Returns:
            The files.

        Raises:
            ValueError: the folder's `leaderboard.json` is no leaderboard.
            OSError: a file could not be written; the others are unchanged.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        board = Board(tuple({(row.set, row.name): row for row in (*old, *self.rows)}.values()))
        drawn = [board.draw(folder / f"{PICTURE}.{format}", width)] if plot else []
        content = {"versions": versions(), "rows": [asdict(row) for row in board.rows]}
        page = board.markdown((folder / f"{PICTURE}.png").exists())
        texts = {folder / BOARD: json.dumps(content, indent=2) + "\n", folder / PAGE: page}
        write_all({path: text.encode() for path, text in texts.items()})
        return [*texts, *drawn]

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


def _aims_at(line: Line, score: str) -> bool:
    """Return whether the line has the score, and its policy breaks ties as the set's labels do if that matters."""
    return score in line.values and (score != EXACT or line.values[score] >= line.values.get(CANONICAL, 0))


def _section(name: str, rows: Sequence[Row]) -> str:
    benchmark, others = BENCHMARK_SETS[name], published_beside(name)
    lines, scores = lines_of(rows, others), scores_of(rows, others)
    columns = ("solver", "weights", "learns from", *scores)
    about = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles. From: {benchmark.source}."
    folded = [f"- {_shown(line)}: {escape(line.details, quote=False)}" for line in lines]
    return "\n".join(
        [
            *(f"## {name}", "", about[0].upper() + about[1:], ""),
            *(Table(columns, [_cells(line, scores) for line in lines], ("weights", *scores)).markdown(), ""),
            *('<details markdown="1">', "<summary>How each was trained and measured</summary>", "", *folded, ""),
            *("</details>", ""),
        ]
    )


def _shown(line: Line) -> str:
    return f"`{line.name}`" if line.is_ours else line.name


def _cells(line: Line, scores: Sequence[str]) -> list[str]:
    digits = ".1f" if line.is_ours else "g"
    found = (f"{line.values[s]:{digits}}{line.spreads[s]}" if s in line.values else "" for s in scores)
    return [_shown(line), _count(line.entry.weights), line.entry.learns_from, *found]


def _count(weights: int | None) -> str:
    return "" if weights is None else f"{weights:,}"
