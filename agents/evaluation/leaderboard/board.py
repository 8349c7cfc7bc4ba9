"""The leaderboard: measured rows next to published rows, as tables, a page, a picture and a file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
from .answers import CANONICAL, EXACT, FIRST_MOVE, FOLLOWED, OPTIMAL, VALID
from .rows import (
    OTHER_TIES,
    RESTARTED,
    REUSED,
    SUPERVISIONS,
    UNSTATED,
    WHOLE,
    Measured,
    Published,
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
_KINDS = {
    "answers": ("answers",),
    "answers and first moves": ("answers and their moves", "guidance"),
    "rule or by hand": ("rule", "by hand"),
}
"""Column of the table of the best solvers -> the supervisions of its solvers."""
_HEAD = """\
# Leaderboard

Which networks solve the mazes of published benchmarks? This page compares published networks with the policies of this
package. `maze-nca-gym bench` made it.
"""
_EXPLANATION = f"""\
## How to read the tables

The entry *learns from* names the supervision of a network:

| learns from | training |
|---|---|
{chr(10).join(f"| *{name}* | {how} |" for name, how in SUPERVISIONS.items())}

| mark | meaning |
|---|---|
| *search* | the solver runs several times on a maze and chooses an answer without knowing the solution |
| *peak* | the checkpoint was selected on the test mazes, so that the figure flatters the solver |
| † | a published figure on other mazes of the same kind |
| {OTHER_TIES} | the solver breaks ties in another order than the labels: optimal paths can score 0 % *exact label* |
| 99.7 (99.1 to 99.9) | measured here, with the 95 % interval (Wilson's) |
| 98 ± 1.8 | mean and standard deviation of several seeds |
| `name` | a policy of this package; other measured rows are networks or files that the package does not include |
"""
_BEST = """\
## The best on each set

Each cell shows a percentage of solved mazes and the solver that reaches it. *Published* is the best published solver
without search, which learned from *answers* unless the cell names something else. The other columns are the best
solvers of this package by supervision, where *first moves* includes *answers and their moves* and *guidance*. The
tables of the sets also contain published solvers with search.
"""
_FAIR = f"""
† on other mazes of the same kind; *peak*: the checkpoint was selected on the test mazes.

**Figures in a row share the score and, except for †, the mazes, but not always the training mazes.** For example, on
Maze-Hard `nca-shortest-path` learned from generated mazes, and the published networks learned from 1,000 mazes of
Maze-Hard. A second page lists the [sources]({SOURCES}): the training and the measurement behind each row.
"""
_PICTURE = f"""\
The picture shows the sets with published results on the same mazes. The vertical axis is stretched towards 100 %: each
equal step up halves the failures. Rings are solvers that search.

![Percent solved against weights, a panel for each set and score]({PICTURE}.png)
"""
_COUNTS = {
    EXACT: "mazes in which every tile equals the set's single label. If shortest paths tie, another shortest path "
    "counts as wrong, so that this score is at most *valid and optimal*. The labels of Maze-Hard are breadth-first "
    "paths from the start, with ties in the order down, left, right, up",
    CANONICAL: "mazes with the one shortest path that this package trains on, in the policy's order of directions",
    VALID: "mazes with one line of free tiles from start to goal",
    OPTIMAL: "mazes with one line of free tiles from start to goal that is as short as possible",
    FIRST_MOVE: "if a maze is solved from every tile: the paths with a first move that comes nearer to the goal",
    FOLLOWED: "the tiles from which a walk that always takes the first move is a shortest path. The interval treats a "
    "maze as one case, because its tiles are alike",
    RESTARTED: "on edit streams: the mazes that are solved if the policy starts each maze from zeros, for the number "
    "of iterations in the sources. Any shortest path counts, and an empty path if there is no route. The interval "
    "treats a stream as one case that is solved completely or not at all, because its mazes are alike",
    REUSED: "the same, if the policy starts each maze from its last state on the previous maze",
    WHOLE[RESTARTED]: "the streams in which all mazes are solved, starting from zeros",
    WHOLE[REUSED]: "the streams in which all mazes are solved, starting from the last state",
}
"""Score -> what it counts."""
_FURTHER = """\
## Further sets

No results are published on these sets. Cells are percentages of the score *{score}*, with the 95 % interval of each
percentage below 100. An empty cell was not measured.
"""
_SOURCES = f"""\
# Leaderboard: sources

Use this page to check where a figure of the [leaderboard]({PAGE}) comes from, or to measure it again: search the page
for the name of the solver. `maze-nca-gym bench` made the page.

- **[Solvers measured here](#solvers-measured-here)** lists the training of each solver that this package measured.
- **The section of a set** first lists these measurements: percentages, iterations on each maze, and seconds for all
  mazes. Then it lists published results: their *source*, and the texts that were *read*. *As quoted* means that another
  text quotes the figure.

Facts about most published results of a set stand above their table, and the column *exceptions* lists deviations. These
words have a special meaning:

| fact | meaning |
| --- | --- |
| *checkpoint* | *last*: at the end; *validated*: the best on mazes that are not for tests; *best on the test mazes* |
| *trainings* | the number of trainings whose mean is the figure |
| *learns from* | the supervision, as on the leaderboard |
| *search* | the search for an answer on each maze; *none* if an answer is a single run |
"""
_CHECKPOINTS = {"peak": "best on the test mazes"}
"""The values of `Published.reported` that the page of sources words in another way."""


def _meanings(scores: Iterable[str]) -> str:
    """Return a table in Markdown of what scores count."""
    rows = [(f"*{score}*", counts) for score, counts in _COUNTS.items() if score in scores]
    return Table(("score", "counts"), rows).markdown()


def _shown(line: Standing, name: str) -> str:
    """Return a solver's name on the page of a set: in code font if `load` knows it, with a link if it was published,
    and with † if it was measured on other mazes."""
    if not isinstance(line.entry, Published):
        is_included = line.name.removeprefix("symmetrised:") in list_policies(all=True)
        return f"`{line.name}`" if is_included else line.name
    paper = re.search(r"arXiv ([\d.v]+)", line.entry.source)
    linked = f"[{line.name}](https://arxiv.org/abs/{paper[1]})" if paper else line.name
    return linked + " †" * (line.entry.set != name or line.entry.mazes != "same")


def _weights(line: Standing) -> str:
    """Return the number of weights of a line, or an empty text if it is unknown."""
    return "" if line.entry.weights is None else f"{line.entry.weights:,}"


def _percentage(line: Standing, score: str) -> str:
    """Return the percentage of a line with its spread, and a mark if its ties have another order than the labels."""
    percentage, spread = line.text(score)
    return percentage + f" {OTHER_TIES}" * (score == EXACT and line.has_other_ties) + spread


def _instances(benchmark: BenchmarkSet) -> str:
    """Return the plural of the instances of a set."""
    return "mazes" if benchmark.stream == 1 else "streams"


def _measured_on(benchmark: BenchmarkSet, rows: Iterable[Measured]) -> str:
    """Return in words on how many instances of a set its rows were measured here; rows may have different numbers."""
    ns = {row.n for row in rows}
    kind = _instances(benchmark) + f" of {benchmark.stream} mazes" * (benchmark.stream > 1)
    if ns == {benchmark.n}:
        return f"measured here on all {benchmark.n:,} {kind}"
    n = " to ".join(f"{number:,}" for number in sorted({min(ns), max(ns)}))
    return f"measured here on the first {n} of {benchmark.n:,} {kind}"


def _cell(line: Standing, score: str, name: str) -> str:
    """Return the percentage of a line with its name, and with what its column and its set do not state."""
    facts, entry, benchmark = [_shown(line, name)], line.entry, BENCHMARK_SETS[name]
    if isinstance(entry, Measured):
        facts += [f"on {entry.n:,} {_instances(benchmark)}"] * (entry.n < benchmark.n)
    else:
        facts += [f"from {entry.supervision}"] * (entry.supervision != "answers")
        facts += ["*peak*"] * (entry.learns_from.endswith(", peak"))
    return f"{line.text(score)[0]}: {', '.join(facts)}"


def _percentages(line: Standing) -> str:
    """Return all percentages of a line with their spreads, with the names of scores that share a percentage."""
    scores_by_text: dict[str, list[str]] = {}
    for score in line.values:
        scores_by_text.setdefault("".join(line.text(score)), []).append(score)
    if len(scores_by_text) == 1 < len(line.values):
        return f"all scores {next(iter(scores_by_text))}"
    return "; ".join(f"{', '.join(scores)} {text}" for text, scores in scores_by_text.items())


def _measurements(name: str, rows: Sequence[Measured]) -> list[str]:
    """Return the paragraphs about the rows of a set that were measured here."""
    lines, cells, ns = lines_of(rows, ()), [], {row.n for row in rows}
    for line in lines:
        seeds = [row for row in rows if row.training == line.name]
        first, seconds = seeds[0], sum(row.seconds or 0 for row in seeds) / len(seeds)
        solver = _shown(line, name) + f", mean of {len(seeds)} seeds" * (len(seeds) > 1)
        solver += f", on {first.n:,} {_instances(BENCHMARK_SETS[name])}" * (len(ns) > 1)
        cost = ("", "") if first.n_steps is None else (f"{first.n_steps:,}", f"{seconds:,.0f}")
        cells.append((solver, _percentages(line), *cost))
    about = f"{_measured_on(BENCHMARK_SETS[name], rows).capitalize()}. Scores: {', '.join(lines[0].values)}."
    return [about, Table(("solver", "percent", "iterations", "seconds"), cells, ("iterations", "seconds")).markdown()]


def _publications(name: str, others: Sequence[Published]) -> list[str]:
    """Return the paragraphs about the published results of a set."""
    lines, facts = lines_of((), others), []
    for line in lines:
        entry = line.entry
        assert isinstance(entry, Published)
        facts.append(
            {
                "mazes": f"those of {entry.set}" if entry.mazes == "same" else "other mazes of the same kind",
                "checkpoint": _CHECKPOINTS.get(entry.reported, entry.reported),
                "trainings": str(entry.seeds or UNSTATED),
                "learns from": entry.supervision,
                "training mazes": entry.trained_on,
                "search": entry.search or "none",
                "source": entry.source,
                "read": entry.read,
            }
        )
    common = {fact: Counter(of[fact] for of in facts).most_common(1)[0] for fact in facts[0]}
    shared = {fact: text for fact, (text, count) in common.items() if 2 * count > len(lines)}
    columns, cells = [fact for fact in facts[0] if fact not in shared], []
    for line, of in zip(lines, facts, strict=True):
        exceptions = "; ".join(f"*{fact}*: {of[fact]}" for fact, text in shared.items() if of[fact] != text)
        cells.append((_shown(line, name), _percentages(line), *(of[fact] for fact in columns), exceptions))
    table = Table(("solver", "percent", *columns, "exceptions"), cells)
    return [
        "Published results. These facts hold, except where the table lists others:",
        "\n".join(f"- *{fact}*: {escape(text, quote=False)}" for fact, text in shared.items()),
        table.markdown(),
    ]


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

        Sets without published results share a short table at the end, unless there are no others.

        Args:
            picture: whether the page shows the file that `draw` writes.
        """
        by_set = self.by_set()
        others = {
            name: [result for result in published_beside(name) if result.set == name or result.set not in by_set]
            for name in by_set
        }
        full = [name for name in by_set if others[name]] or list(by_set)
        sections, shown = list[str](), set[str]()
        for name in full:
            benchmark, rows = BENCHMARK_SETS[name], by_set[name]
            scores, cells = scores_of(rows, others[name]), []
            for line in lines_of(rows, others[name]):
                percentages = (_percentage(line, score) for score in scores)
                cells.append((_shown(line, name), _weights(line), line.entry.learns_from, *percentages))
            tiles = f"{benchmark.stands_for}; {benchmark.side} x {benchmark.side} tiles"
            facts = [f"- **Mazes**: {tiles}", f"- **Source**: {benchmark.source}; {_measured_on(benchmark, rows)}"]
            table = Table(("solver", "weights", "learns from", *scores), cells, ("weights", *scores))
            sections += [f"## {name}", "", *facts, "", notes_of(rows, others[name]), "", table.markdown(), ""]
            shown |= {*scores}
        if further := [name for name in by_set if name not in full]:
            main = list(dict.fromkeys(main_score(by_set[name], ()) for name in further))
            sections += [_FURTHER.format(score="* or *".join(main)), self._further(further).markdown(), ""]
            shown |= {*main}
        best = self.best()
        summary = [_BEST, best.markdown(), _FAIR] if best.rows else []
        scores_explained = ["## Scores", "", _meanings(shown), ""]
        head = [_HEAD, *self._from_the_same_answers(), _EXPLANATION, *scores_explained]
        return "\n".join([*head, *summary, _PICTURE * picture, *sections])

    def _further(self, names: Sequence[str]) -> Table:
        """Return a table of sets with a row for each set, and a column for each solver that was measured on at least a
        third of the sets."""
        lines_of_sets = {}
        for name in names:
            score = main_score(self.by_set()[name], ())
            lines = [line for line in lines_of(self.by_set()[name], ()) if score in line.values]
            lines_of_sets[name] = {
                _shown(line, name): "100" if line.values[score] == 100 else "".join(line.text(score)) for line in lines
            }
        counts = Counter(solver for percentages in lines_of_sets.values() for solver in percentages)
        columns = [solver for solver, count in counts.most_common() if 3 * count >= len(names)]
        rows = []
        for name, percentages in lines_of_sets.items():
            benchmark, ns = BENCHMARK_SETS[name], {row.n for row in self.by_set()[name]}
            others = ", ".join(f"{solver} {text}" for solver, text in percentages.items() if solver not in columns)
            n = " to ".join(f"{n:,}" for n in sorted({min(ns), max(ns)}))
            n += f" of {benchmark.n:,}" * (ns != {benchmark.n})
            shown = (percentages.get(solver, "") for solver in columns)
            rows.append((f"`{name}`", benchmark.stands_for, n, *shown, others))
        return Table(("set", "mazes", "measured on", *columns, "other solvers"), rows)

    def best(self) -> Table:
        """Return a table of the sets with published results: for each set, its main score, the best published solver
        without search, and the best measured solver of each kind of supervision."""
        cells = []
        for name, rows in self.by_set().items():
            others = [result for result in published() if result.set == name]
            if not others:
                continue
            main = main_score(rows, others)
            lines = [line for line in lines_of(rows, others) if main in line.values]  # the best first
            ours = [line for line in lines if line.is_ours]
            sides = [[line for line in lines if not line.is_ours and not line.entry.searches]]
            sides += [[line for line in ours if line.entry.supervision in kinds] for kinds in _KINDS.values()]
            best_cells = (_cell(side[0], main, name) if side else "" for side in sides)
            cells.append((f"[{name}](#{name}), {main}", *best_cells))
        return Table(("set and score", "published", *_KINDS), cells)

    def _from_the_same_answers(self) -> list[str]:
        """Return a summary of networks that learned from the answers of Maze-Hard, alone and with the moves in them.

        The list is empty if the board lacks the rows of either.
        """
        lines = lines_of(self.by_set().get(_HARD, []), published_beside(_HARD))
        ours = {line.name: line for line in lines if line.is_ours}
        if not {_ALONE, _WITH_MOVES} <= ours.keys():
            return []
        theirs = [line for line in lines if not line.is_ours and OPTIMAL in line.values]  # the best first
        searching, best = (next(line for line in theirs if line.entry.searches == search) for search in (True, False))
        alone, moves, published_best = (line.text(OPTIMAL)[0] for line in (ours[_ALONE], ours[_WITH_MOVES], best))
        rows = [
            (_shown(line, _HARD), _weights(line), line.entry.learns_from, "".join(line.text(OPTIMAL)))
            for line in (searching, ours[_WITH_MOVES], best, ours[_ALONE])
        ]
        return [
            f"**On Maze-Hard, networks of this package solve {moves} % of the mazes if they learn from the answers\n"
            "and from the moves that these answers contain. From the answers alone they solve\n"
            f"{alone} %, and the best published network without search solves {published_best} %.** A maze is solved\n"
            f"if the path is valid and optimal. {self._other_sets()}\n",
            Table(("solver", "weights", "learns from", OPTIMAL), rows, ("weights", OPTIMAL)).markdown(),
            "\n*DLRU*: the network breaks ties as the labels of Maze-Hard do, in the order down, left, right, up.\n"
            "[Maze-Hard](maze-hard.md) explains the networks of this package and the fairness of the comparison.\n",
        ]

    def _other_sets(self) -> str:
        """Return a sentence about the sets with published results, except Maze-Hard."""
        others = [cells for cells in self.best().rows if cells[1] and not cells[0].startswith(f"[{_HARD}]")]
        figures = [[float(cell.split(":")[0]) for cell in cells[1:] if cell] for cells in others]
        n_reached = sum(published <= max(ours, default=0) for published, *ours in figures)
        n = f"all {n_reached}" if n_reached == len(others) else f"{n_reached} of the {len(others)}"
        n_similar = sum("†" in cells[1] for cells in others)
        return (
            f"On {n} other sets with published\nresults, a solver of this package reaches the best published "
            f"percentage, if any supervision counts.\nOn {n_similar} of these sets, the published figures are of other "
            "mazes of the same kind (†)."
        )

    def sources(self) -> str:
        """Return a Markdown page with the training and the measurement of each row, published results included."""
        scores, by_set = {score for row in self.rows for score in row.scores}, self.by_set()
        page = [_SOURCES, _meanings(scores), "## Solvers measured here", self._trainings().markdown()]
        for name, rows in by_set.items():
            page += [f"## {name}", *_measurements(name, rows)]
            original = BENCHMARK_SETS[name].redraws
            if others := published_beside(name):
                is_above = original in by_set
                page += (
                    [f"Published results: see [{original}](#{original})."] if is_above else _publications(name, others)
                )
        return "\n\n".join(text.rstrip("\n") for text in page) + "\n"

    def _trainings(self) -> Table:
        """Return a table with the training of each measured solver, and its sets if rows of one solver differ."""
        sets_of: dict[str, dict[tuple[str, str], dict[str, None]]] = {}
        for row in self.rows:
            search = f"; search: {row.search}" * bool(row.search)
            texts = (row.learns_from, row.trained_on + search)
            sets_of.setdefault(row.training, {}).setdefault(texts, {})[row.set] = None
        shown = {row.training: _shown(line, row.set) for row in self.rows for line in lines_of([row], ())}
        cells = []
        for name, trainings in sets_of.items():
            for texts, sets in trainings.items():
                cells.append((shown[name] + f", on {', '.join(sets)}" * (len(trainings) > 1), *texts))
        return Table(("solver", "learns from", "training mazes"), cells)

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
        with validated_read(path, "is not a leaderboard"):
            return cls(tuple(Measured.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]))
