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

from ...policies.registry import list_policies
from ..figure_options import FigureFormat, FigureWidth
from ..records import Results
from .answers import CANONICAL, EXACT
from .rows import (
    SUPERVISIONS,
    UNSTATED,
    Measured,
    Standing,
    lines_of,
    main_score,
    notes_of,
    published,
    published_beside,
    scores_of,
)

BOARD, PAGE, SOURCES, PICTURE = "leaderboard.json", "leaderboard.md", "leaderboard-sources.md", "leaderboard"
_HEAD = f"""# Leaderboard

The percentage of mazes that each solver answers correctly, made by `maze-nca-gym bench`. [Sources]({SOURCES}) says of
each row how it was trained and measured.
"""
_SUMMARY = """\
## The best of each kind

Compare within a row only, because sets and scores differ. A network that learned from *answers* saw solutions alone;
from *guidance*, also the first move at every tile; from a *rule*, an automaton. Published networks learned from
answers unless the cell says otherwise. Training mazes differ within a row too, as the sources say. † marks figures on
other mazes of the same kind; *peak* is the moment of a training at which the test mazes were solved best.
"""
_SOURCES = f"""# Leaderboard: sources

How each row of the [leaderboard]({PAGE}) was trained and measured, set by set. Made by `maze-nca-gym bench`.
"""
_PICTURE = f"""\
![Percent solved against weights, a panel for each set and score]({PICTURE}.png)

The picture shows the sets of which results on the same mazes were published; the tables below show all sets. The axis
is stretched towards 100 %, so that equal steps up halve the failures. Rings are solvers that search.
"""
_EXPLANATION = f"""
## How to read the tables

Figures with a range in brackets were measured here, and the range is their 95 % interval (Wilson's). Other figures are
published, or means of several seeds; ± is a standard deviation. Names in `code font` are policies of this package.
Other measured rows are networks or files that the package does not include. † marks published figures on other mazes
of the same kind. Compare rows that **learn from** the same:

{chr(10).join(f"- *{name}*: {how}" for name, how in SUPERVISIONS.items())}

*Search* marks solvers that run several times on a maze, and choose one answer without knowing the solution. *Peak*
marks results from the moment of a training at which the test mazes were solved best. The scores are:

- **exact label**: every tile equals the set's one label. Where shortest paths tie, another shortest path counts as
  wrong, so this score is at most *valid and optimal*. The labels of Maze-Hard are breadth-first paths from the start,
  with ties in the order down, left, right, up.
- **canonical**: the one shortest path that this package trains on, in the policy's order of directions.
- **valid**: one line of free tiles from start to goal. **valid and optimal**: this line is as short as possible.
- **first move**, **moves followed**, where a maze is solved from every tile: the paths whose first move comes nearer to
  the goal, and the tiles from which a walk that always takes this first move is a shortest path.
- **restarted**, **reused**: on edit streams, the mazes that are solved, each by some shortest path, or by an empty
  path if there is no route. The policy begins from zeros on each maze, or continues from the state of the previous
  maze; in both cases it runs on each maze for the number of iterations that its source says. **whole**: the streams of
  which all mazes are solved.

The mazes of a stream are alike, and so are the tiles of a maze. Intervals are therefore computed for as many
independent cases as there are streams or mazes, as if each were solved as a whole or not at all.
"""


def _shown(line: Standing, name: str) -> str:
    """Return a line's name on the page of a set: in code font if it can be loaded, marked if its mazes are others."""
    if line.is_ours:
        is_included = line.name.removeprefix("symmetrised:") in list_policies(all=True)
        return f"`{line.name}`" if is_included else line.name
    return line.name + " †" * (line.entry.set != name or getattr(line.entry, "mazes", "same") != "same")


def _cell(line: Standing, score: str, name: str) -> str:
    """Return the percentage of a line with its name and weights."""
    weights = "" if line.entry.weights is None else f", {line.entry.weights:,} weights"
    other = "" if line.is_ours or line.entry.supervision == "answers" else f", from {line.entry.supervision}"
    other += ", peak" if line.entry.learns_from.endswith(", peak") else ""
    return f"{line.text(score)[0]}: {_shown(line, name)}{weights}{other}"


@dataclass(frozen=True, repr=False)
class Board(Results[Measured]):
    """The results of a benchmark.

    Attributes:
        rows: one row for each set and each policy or file, set by set.
    """

    digits = 1

    def markdown(self, picture: bool = False) -> str:
        """Return a page: the best of each kind, then a table for each set that has a row, published results included.

        Sets without published results are folded away at the end, unless there are no others.

        Args:
            picture: whether it shows the file that `draw` writes.
        """
        compared: list[str] = []
        alone: list[str] = []
        for name, rows in self.by_set().items():
            benchmark, others = BENCHMARK_SETS[name], published_beside(name)
            scores, cells = scores_of(rows, others), []
            for line in lines_of(rows, others):
                weights = "" if line.entry.weights is None else f"{line.entry.weights:,}"
                found = ("".join(line.text(score)) for score in scores)
                cells.append((_shown(line, name), weights, line.entry.learns_from, *found))
            mazes = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles. From: {benchmark.source}."
            table = Table(("solver", "weights", "learns from", *scores), cells, ("weights", *scores))
            page = compared if others else alone
            page += [f"## {name}", "", mazes[0].upper() + mazes[1:], "", notes_of(rows, others), ""]
            page += [table.markdown(), ""]
        if compared and alone:
            alone = ['<details markdown="1">', "<summary>Sets without published results</summary>", "", *alone]
            alone += ["</details>", ""]
        best = self.best()
        summary = [_SUMMARY, best.markdown(), ""] if best.rows else []
        return "\n".join([_HEAD.rstrip() + "\n", *summary, _PICTURE * picture + _EXPLANATION, *compared, *alone])

    def best(self) -> Table:
        """Return a table with the best solver of each kind, for each set of which others published results."""
        kinds = {name: (name,) for name in SUPERVISIONS if name != UNSTATED} | {"rule, by hand": ("rule", "by hand")}
        del kinds["rule"], kinds["by hand"]
        heads, cells = ("set", "score", "published", "published, search", *kinds), []
        for name, rows in self.by_set().items():
            others = [each for each in published() if each.set == name]
            if not others:
                continue
            main = main_score(rows, others)
            lines = [line for line in lines_of(rows, others) if main in line.values]  # the best first
            theirs, ours = ([line for line in lines if line.is_ours == own] for own in (False, True))
            sides = [[line for line in theirs if line.entry.searches == search] for search in (False, True)]
            sides += [[line for line in ours if line.entry.supervision in kind] for kind in kinds.values()]
            found = (_cell(lines[0], main, name) if lines else "" for lines in sides)
            cells.append((f"[{name}](#{name})", main, *found))
        shown = [i for i in range(len(heads)) if i < 2 or any(row[i] for row in cells)]
        return Table([heads[i] for i in shown], [tuple(row[i] for i in shown) for row in cells])

    def sources(self) -> str:
        """Return a page that says of each row how it was trained and measured, published results included."""
        page = [_SOURCES]
        for name, rows in self.by_set().items():
            lines = lines_of(rows, published_beside(name))
            page += [f"## {name}", "", '<details markdown="1">', f"<summary>{len(lines)} rows</summary>", ""]
            page += [f"- {_shown(line, name)}: {escape(line.details, quote=False)}" for line in lines]
            page += ["", "</details>", ""]
        return "\n".join(page)

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
        """Write `leaderboard.json`, `leaderboard.md` and `leaderboard-sources.md`; the folder's rows of other sets or
        names are kept, except other seeds of a training that has several seeds on this board.

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
        texts = {PAGE: board.markdown((folder / f"{PICTURE}.png").exists()), SOURCES: board.sources()}
        return [*board.write(folder, texts, BOARD), *drawn]

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
