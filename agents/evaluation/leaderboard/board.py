"""The leaderboard: measured rows next to published ones, as tables, a page, a picture and a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.support.files import user_path, validated_read
from maze_nca_gym.support.options import check
from maze_nca_gym.support.pictures import any_backend, beside_results
from maze_nca_gym.support.tables import Table

from ..figure_options import FigureFormat, FigureWidth
from ..records import Results
from .answers import CANONICAL, EXACT
from .rows import (
    SUPERVISIONS,
    Measured,
    Standing,
    lines_of,
    main_score,
    notes_of,
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

The axis is stretched towards 100 %, so that equal steps up halve the failures. Rings are solvers that search.
"""
_EXPLANATION = f"""
Figures with a range in brackets were measured here, and the range is their 95 % interval (Wilson's). The others are
published; ± is a standard deviation. Compare rows that **learn from** the same:

{chr(10).join(f"- *{name}*: {how}" for name, how in SUPERVISIONS.items())}

*Search* marks solvers that run several times on a maze, and choose one answer without knowing the solution. *Peak*
marks results from the moment of a training at which the test mazes were solved best. The scores are:

- **exact label**: every tile is that of the set's one label. Where shortest paths tie, a right answer can be wrong
  here. The labels of Maze-Hard are breadth-first paths from the start, ties in the order down, left, right, up.
- **canonical**: the one shortest path that this package trains on, in the policy's order of directions.
- **valid**: one line of free tiles from start to goal. **valid and optimal**: that line is as short as can be.
- **first move**, **moves followed**, where a maze is solved from every tile: the paths whose first move comes nearer to
  the goal, and the tiles from which a walk that always takes this first move is a shortest path.
- **restarted**, **reused**: on edit streams, the mazes that are solved, each by some shortest path, or by an empty
  path if there is no route. The policy begins from zeros on each maze, or goes on from the state of the one before; in
  both cases it runs for as many iterations on each maze as its line below says. **whole**: the streams of which all
  mazes are solved.

The mazes of a stream are alike, and so are the tiles of a maze. So intervals are those of as many independent cases
as there are streams or mazes, as if each were all right or all wrong.

Seconds are those of running the policy on all mazes of the row. They depend on the machine and its load.
"""


@dataclass(frozen=True, repr=False)
class Board(Results[Measured]):
    """The results of a benchmark.

    Attributes:
        rows: one row for each set and each policy or file, set by set.
    """

    digits = 1

    def markdown(self, picture: bool = False) -> str:
        """Return a page with a table for each set that has a row, published results included.

        Sets without published results are folded away at the end, unless there are no others.

        Args:
            picture: whether it shows the file that `draw` writes.
        """
        compared: list[str] = []
        alone: list[str] = []
        for name, rows in self.by_set().items():
            benchmark, others = BENCHMARK_SETS[name], published_beside(name)
            scores, cells, folded = scores_of(rows, others), [], []
            for line in lines_of(rows, others):
                shown = f"`{line.name}`" if line.is_ours else line.name
                weights = "" if line.entry.weights is None else f"{line.entry.weights:,}"
                found = ("".join(line.text(score)) for score in scores)
                cells.append((shown, weights, line.entry.learns_from, *found))
                folded.append(f"- {shown}: {escape(line.details, quote=False)}")
            mazes = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles. From: {benchmark.source}."
            table = Table(("solver", "weights", "learns from", *scores), cells, ("weights", *scores))
            page = compared if others else alone
            page += [f"## {name}", "", mazes[0].upper() + mazes[1:], "", notes_of(rows, others), ""]
            page += [table.markdown(), ""]
            page += ['<details markdown="1">', "<summary>How each was trained and measured</summary>", "", *folded, ""]
            page += ["</details>", ""]
        if compared and alone:
            alone = ['<details markdown="1">', "<summary>Sets without published results</summary>", "", *alone]
            alone += ["</details>", ""]
        return "\n".join([_HEAD + _PICTURE * picture + _EXPLANATION, *compared, *alone])

    def by_set(self) -> dict[str, list[Measured]]:
        """Return the rows by the name of their set, in the order of the sets; a set without rows is left out."""
        found = {name: [row for row in self.rows if row.set == name] for name in BENCHMARK_SETS}
        return {name: rows for name, rows in found.items() if rows}

    def draw(self, path: str | Path, width: FigureWidth = None) -> Path:
        """Write a picture of weights against percent, and return its path; it has a panel for each set and score.

        It has panels for the sets with published results on the same mazes, or for all sets if there are no such
        results. A policy that breaks ties in another order than the set is left out of the panel of exact labels.

        Raises:
            ValueError: there is no row, or another suffix than png, pdf and svg.
            OSError: the file could not be written.
        """
        with any_backend():
            from .figures import draw_board

        check(bool(self.rows), "there is nothing to draw: the leaderboard has no rows")
        same = [each for each in published() if each.mazes == "same"]
        fair = {name: (rows, [each for each in same if each.set == name]) for name, rows in self.by_set().items()}
        panels: dict[str, list[tuple[Standing, float]]] = {}
        for name, (rows, others) in ({name: sides for name, sides in fair.items() if sides[1]} or fair).items():
            lines = lines_of(rows, others)
            for score in dict.fromkeys(each.score for each in others) or [main_score(rows, others)]:
                shown = [(line, line.values[score]) for line in lines if score in line.values]
                aims = [(line, value) for line, value in shown if value >= line.values.get(CANONICAL, 0)]
                panels[f"{name}: {score}"] = aims if score == EXACT else shown
        return draw_board(panels, user_path(path), width)

    def save(
        self, folder: str | Path, plot: bool = False, format: FigureFormat = "png", width: FigureWidth = None
    ) -> list[Path]:
        """Write `leaderboard.json` and `leaderboard.md`; the folder's rows of other sets or names are kept, except
        other seeds of a training that has several seeds on this board.

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
        folder = user_path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        n_seeds = Counter((row.set, row.training) for row in self.rows)
        kept = [row for row in old if n_seeds[row.set, row.training] < 2]
        board = Board(tuple({(row.set, row.name): row for row in (*kept, *self.rows)}.values()))
        drawn = list[Path]()
        if plot:
            with beside_results():
                drawn.append(board.draw(folder / f"{PICTURE}.{format}", width))
        return [*board.write(folder, {PAGE: board.markdown((folder / f"{PICTURE}.png").exists())}, BOARD), *drawn]

    @classmethod
    def load(cls, folder: str | Path) -> Board:
        """Return the board that `save` wrote.

        Raises:
            ValueError: `leaderboard.json` is no leaderboard.
            OSError: it is missing or cannot be read.
        """
        path = user_path(folder) / BOARD
        with validated_read(path, "is no leaderboard"):
            return cls(tuple(Measured.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]))
