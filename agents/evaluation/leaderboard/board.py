"""The leaderboard: measured rows next to published rows, as tables, a page, a picture and a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, BenchmarkSet
from maze_nca_gym.support.files import user_path, validated_read
from maze_nca_gym.support.options import check
from maze_nca_gym.support.pictures import any_backend, beside_results
from maze_nca_gym.support.tables import Table

from ...policies.registry import list_policies
from ..figure_options import FigureFormat, FigureWidth
from ..records import Results
from .answers import EXACT, OPTIMAL
from .rows import (
    OTHER_TIES,
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
_HARD, _ALONE, _WITH_MOVES = "maze-hard-30", "answers-DLRU", "moves-DLRU"
"""A set, and the names of two trainings on the answers of its training mazes."""
_HEAD = f"""# Leaderboard

This page compares published networks with the policies of this package: the percentage of mazes that each solver
answers correctly. `maze-nca-gym bench` made the page and a second page with the [sources]({SOURCES}), which lists the
training and the measurement behind each row.
"""
_SUMMARY = f"""\
## The best of each kind

Two figures are comparable if they share three things:

1. The set and the score: the figures stand in the same row of this table.
2. The supervision: the columns of this table, or the entry *learns from* in the tables below.
3. The training mazes. They often differ within a row, and the [sources]({SOURCES}) list them. For example, on Maze-Hard
   `nca-shortest-path` learned from generated mazes, and the published networks from 1,000 mazes of Maze-Hard.
"""
_COLUMNS = """
The columns differ in training:

- **published** and **published, search**: networks of other publications. They learned from solutions alone, unless the
  cell names something else. A solver that *searches* runs several times on a maze and chooses an answer without knowing
  the solution.
- **answers**: networks that learned from solutions alone.
- **answers and their moves**: networks that learned from solutions and from the first move at each tile of a solution.
- **guidance**: networks that learned from solutions and from the first move at every tile.
- **rule, by hand**: networks that learned from an automaton, and weights that were written from rules or by hand.

† marks figures on other mazes of the same kind. *Peak* means that the checkpoint was selected on the test mazes, so the
figure flatters the solver.
"""
_SOURCES = f"""# Leaderboard: sources

How each row of the [leaderboard]({PAGE}) was trained and measured, set by set. Made by `maze-nca-gym bench`.
"""
_PICTURE = f"""\
![Percent solved against weights, a panel for each set and score]({PICTURE}.png)

The picture contains the sets with published results on the same mazes. The tables below contain all sets. The vertical
axis is stretched towards 100 %: each equal step up halves the failures. Rings are solvers that search.
"""
_EXPLANATION = f"""
## How to read the tables

- A figure with a range in brackets was measured here. The range is the 95 % interval (Wilson's).
- Other figures are published or are means of several seeds. ± is a standard deviation.
- A name in `code font` is a policy of this package. Other measured rows are networks or files that the package does not
  include.
- † marks published figures on other mazes of the same kind.
- {OTHER_TIES} marks exact labels of solvers that break ties in another order than the labels. Such a solver can have
  0 % *exact label* and 100 % *valid and optimal*.

The column **learns from** names the supervision. Compare rows with the same entry, and look at their training mazes in
the [sources]({SOURCES}):

| learns from | training |
|---|---|
{chr(10).join(f"| *{name}* | {how} |" for name, how in SUPERVISIONS.items())}

*Search* is added for solvers that run several times on a maze and choose an answer without knowing the solution. *Peak*
is added if the checkpoint was selected on the test mazes, so that the figure flatters the solver.

| score | counts |
|---|---|
| **exact label** | mazes in which every tile equals the set's single label. If shortest paths tie, another shortest \
path counts as wrong, so this score is at most *valid and optimal*. The labels of Maze-Hard are breadth-first paths \
from the start, with ties in the order down, left, right, up |
| **canonical** | mazes with the one shortest path that this package trains on, in the policy's order of directions |
| **valid** | mazes with one line of free tiles from start to goal |
| **valid and optimal** | mazes with such a line that is as short as possible |
| **first move** | if a maze is solved from every tile: the paths with a first move that comes nearer to the goal |
| **moves followed** | the tiles from which a walk that always takes the first move is a shortest path |
| **restarted** | on edit streams: the mazes that are solved if the policy starts each maze from zeros, for the \
number of iterations in the sources. Any shortest path counts, and an empty path if there is no route |
| **reused** | on edit streams: the mazes that are solved if the policy starts each maze from its last state on the \
previous maze, for the same number of iterations |
| **restarted whole**, **reused whole** | the streams in which all mazes are solved |

The mazes of a stream are alike, and so are the tiles of a maze. The intervals therefore treat a stream or a maze as one
case that is solved completely or not at all.
"""


def _shown(line: Standing, name: str) -> str:
    """Return a solver's name on the page of a set: in code font if `load` knows it, with † if it was measured on other
    mazes."""
    if line.is_ours:
        is_included = line.name.removeprefix("symmetrised:") in list_policies(all=True)
        return f"`{line.name}`" if is_included else line.name
    return line.name + " †" * (line.entry.set != name or getattr(line.entry, "mazes", "same") != "same")


def _percentage(line: Standing, score: str) -> str:
    """Return the percentage of a line with its spread, and a mark if its ties have another order than the labels."""
    percentage, spread = line.text(score)
    return percentage + f" {OTHER_TIES}" * (score == EXACT and line.has_other_ties) + spread


def _measured_on(benchmark: BenchmarkSet, ns: set[int]) -> str:
    """Return in words on how many instances of a set its rows were measured here; rows may have different numbers."""
    kind = f"streams of {benchmark.stream} mazes" if benchmark.stream > 1 else "mazes"
    if ns == {benchmark.n}:
        return f"measured here on all {benchmark.n:,} {kind}"
    n = " to ".join(f"{number:,}" for number in sorted({min(ns), max(ns)}))
    return f"measured here on the first {n} of {benchmark.n:,} {kind}"


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
        """Return a page: the best solver of each kind, then a table for each set with a row, published results
        included.

        Sets without published results are folded away at the end, unless no set has published results.

        Args:
            picture: whether the page shows the file that `draw` writes.
        """
        compared: list[str] = []
        alone: list[str] = []
        for name, rows in self.by_set().items():
            benchmark, others = BENCHMARK_SETS[name], published_beside(name)
            scores, cells = scores_of(rows, others), []
            for line in lines_of(rows, others):
                weights = "" if line.entry.weights is None else f"{line.entry.weights:,}"
                percentages = (_percentage(line, score) for score in scores)
                cells.append((_shown(line, name), weights, line.entry.learns_from, *percentages))
            tiles = f"{benchmark.side} x {benchmark.side} tiles"
            facts = [*benchmark.stands_for.split("; "), tiles, *f"source: {benchmark.source}".split("; ")]
            facts.append(_measured_on(benchmark, {row.n for row in rows}))
            bullets = [f"- {fact[0].upper()}{fact[1:]}" for fact in facts]
            table = Table(("solver", "weights", "learns from", *scores), cells, ("weights", *scores))
            page = compared if others else alone
            page += [f"## {name}", "", *bullets, "", notes_of(rows, others), "", table.markdown(), ""]
        if compared and alone:
            alone = ['<details markdown="1">', "<summary>Sets without published results</summary>", "", *alone]
            alone += ["</details>", ""]
        best = self.best()
        summary = [_SUMMARY, *self._from_the_same_answers(), best.markdown(), _COLUMNS] if best.rows else []
        return "\n".join([_HEAD.rstrip() + "\n", *summary, _PICTURE * picture + _EXPLANATION, *compared, *alone])

    def best(self) -> Table:
        """Return a table of the sets with published results: for each set, its main score, and the best solver of each
        kind.

        The kinds are published solvers without search, published solvers with search, and the supervisions of measured
        solvers.
        """
        kinds = {name: (name,) for name in SUPERVISIONS if name != UNSTATED} | {"rule, by hand": ("rule", "by hand")}
        del kinds["rule"], kinds["by hand"]
        heads, cells = ("set", "score", "published", "published, search", *kinds), []
        for name, rows in self.by_set().items():
            others = [result for result in published() if result.set == name]
            if not others:
                continue
            main = main_score(rows, others)
            lines = [line for line in lines_of(rows, others) if main in line.values]  # the best first
            theirs, ours = ([line for line in lines if line.is_ours == own] for own in (False, True))
            sides = [[line for line in theirs if line.entry.searches == search] for search in (False, True)]
            sides += [[line for line in ours if line.entry.supervision in kind] for kind in kinds.values()]
            best_cells = (_cell(lines[0], main, name) if lines else "" for lines in sides)
            cells.append((f"[{name}](#{name})", main, *best_cells))
        shown = [i for i in range(len(heads)) if i < 2 or any(row[i] for row in cells)]
        return Table([heads[i] for i in shown], [tuple(row[i] for i in shown) for row in cells])

    def _from_the_same_answers(self) -> list[str]:
        """Return a paragraph about networks that learned from the answers of Maze-Hard, alone and with the moves in
        them.

        The list is empty if the board lacks the rows of either.
        """
        lines = {line.name: line for line in lines_of(self.by_set().get(_HARD, []), published_beside(_HARD))}
        if not {_ALONE, _WITH_MOVES} <= lines.keys():
            return []
        theirs = (line for line in lines.values() if not line.is_ours and not line.entry.searches)
        best = max(theirs, key=lambda line: line.values.get(OPTIMAL, 0))
        first, alone, moves = (line.text(OPTIMAL)[0] for line in (best, lines[_ALONE], lines[_WITH_MOVES]))
        return [
            f"On Maze-Hard, the best published network of one pass is {best.name}: {first} % *valid and optimal*.\n"
            f"Networks of this package reach {alone} % from the same answers alone, and {moves} % if they also learn\n"
            "the moves that these answers contain.\n"
        ]

    def sources(self) -> str:
        """Return a Markdown page with the training and the measurement of each row, published results included."""
        page = [_SOURCES]
        for name, rows in self.by_set().items():
            lines = lines_of(rows, published_beside(name))
            page += [f"## {name}", "", '<details markdown="1">', f"<summary>{len(lines)} rows</summary>", ""]
            page += [f"- {_shown(line, name)}: {escape(line.details, quote=False)}" for line in lines]
            page += ["", "</details>", ""]
        return "\n".join(page)

    def by_set(self) -> dict[str, list[Measured]]:
        """Return the rows by the name of their set, in the order of the sets; a set without rows is left out."""
        rows_of_sets = {name: [row for row in self.rows if row.set == name] for name in BENCHMARK_SETS}
        return {name: rows for name, rows in rows_of_sets.items() if rows}

    def draw(self, path: str | Path, width: FigureWidth = None) -> Path:
        """Write a picture of weights against percent, with a panel for each set and score, and return its path.

        The picture contains the sets with published results on the same mazes, or all sets if there are no such
        results. The panel of exact labels does not contain policies that break ties in another order than the set.

        Raises:
            ValueError: there is no row, or another suffix than png, pdf and svg.
            OSError: the file could not be written.
        """
        with any_backend():
            from .figures import draw_board

        check(bool(self.rows), "there is nothing to draw: the leaderboard has no rows")
        same = [result for result in published() if result.mazes == "same"]
        fair = {name: (rows, [result for result in same if result.set == name]) for name, rows in self.by_set().items()}
        panels: dict[str, list[tuple[Standing, float]]] = {}
        for name, (rows, others) in ({name: sides for name, sides in fair.items() if sides[1]} or fair).items():
            lines = lines_of(rows, others)
            for score in dict.fromkeys(result.score for result in others) or [main_score(rows, others)]:
                shown = [(line, line.values[score]) for line in lines if score in line.values]
                aims = [(line, value) for line, value in shown if not line.has_other_ties]
                panels[f"{name}: {score}"] = aims if score == EXACT else shown
        return draw_board(panels, user_path(path), width)

    def save(
        self, folder: str | Path, plot: bool = False, format: FigureFormat = "png", width: FigureWidth = None
    ) -> list[Path]:
        """Write `leaderboard.json`, `leaderboard.md` and `leaderboard-sources.md`, together with the rows already in
        the folder.

        A row in the folder is replaced if the board has a row of the same set and name. It is dropped if the board has
        several seeds of the same training.

        Args:
            folder: the folder, which is made if missing.
            plot: whether to write a figure, `leaderboard`, too. The page shows `leaderboard.png` if the folder contains
                this file.
            format: file type of the figure.
            width: width of the figure in print, or None for a screen.

        Returns:
            The files.

        Raises:
            ValueError: the folder's `leaderboard.json` is not a leaderboard.
            OSError: a file could not be written; the other files are unchanged.
        """
        folder = user_path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        n_seeds = Counter((row.set, row.training) for row in self.rows)
        remaining = [row for row in old if n_seeds[row.set, row.training] < 2]
        board = Board(tuple({(row.set, row.name): row for row in (*remaining, *self.rows)}.values()))
        pictures = list[Path]()
        if plot:
            with beside_results():
                pictures.append(board.draw(folder / f"{PICTURE}.{format}", width))
        texts = {PAGE: board.markdown((folder / f"{PICTURE}.png").exists()), SOURCES: board.sources()}
        return [*board.write(folder, texts, BOARD), *pictures]

    @classmethod
    def load(cls, folder: str | Path) -> Board:
        """Return the board that `save` wrote to a folder.

        Raises:
            ValueError: `leaderboard.json` is not a leaderboard.
            OSError: the file is missing or cannot be read.
        """
        path = user_path(folder) / BOARD
        with validated_read(path, "is no leaderboard"):
            return cls(tuple(Measured.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]))
