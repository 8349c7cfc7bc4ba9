"""The rows of the leaderboard, measured and published, and their form on pages and in pictures."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Annotated, Any

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS, BenchmarkSet
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.support.options import Between, OneOf, Option, check, check_known, check_options, options_of

from ..records import row_in_words
from ..statistics import Estimate, deviation
from .answers import CANONICAL, EXACT, FIRST_MOVE, FOLLOWED, OPTIMAL, SCORES

RESTARTED, REUSED = "restarted", "reused"
"""Scores of the mazes of edit streams: the policy starts each maze from a state of zeros, or from its state on the maze
before."""
WHOLE = {way: f"{way} whole" for way in (RESTARTED, REUSED)}
"""Names of the scores of whole streams, by the score of their mazes; a stream counts if all its mazes are solved."""

MAIN = (EXACT, FIRST_MOVE, FOLLOWED, OPTIMAL, *WHOLE, *WHOLE.values())
"""The scores that tables show, in the order of their columns."""
UNSTATED = "not stated"
SUPERVISIONS = {
    "answers": "solutions alone",
    "answers and their moves": "solutions, and the first move at each tile of a solution",
    "guidance": "solutions, and the first move at every tile",
    "rule": "an automaton, its rules or its steps",
    "rewards": "rewards alone, by reinforcement learning",
    "by hand": "no training: the weights are written by hand",
    UNSTATED: "unknown here",
}
"""Kinds of supervision, the source of a policy's weights, and their explanations."""
OTHER_TIES = "‡"
"""Mark at the score "exact label" of solvers that break ties in another order than the labels."""
SEED = " #"
"""Text between the name of a training and the number of its seed in a row's name, as in "mine #2"."""


class Printable:
    """Constraint on an option that is printed in tables: a text, or names of a mapping, without control characters."""

    names: Collection[str] = ()

    def broken_by(self, option: Option, value: Any) -> str | None:
        """Check a value; return an error message if the value is not allowed, otherwise None."""
        texts = value if isinstance(value, Mapping) else [value]
        return None if all(text.isprintable() for text in texts) else f"{option.name} must be printable, got {value!r}"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The fields that measured and published rows share.

    Attributes:
        set: name of the benchmark set.
        name: name of the policy, the file or the model.
        weights: number of weights, or None if unknown.
        supervision: the source of the weights, one of `SUPERVISIONS`.
        trained_on: the number of training mazes, and their source.
        search: the search at inference, in words; empty if an answer is a single run, "not stated" if unknown.
    """

    set: Annotated[str, Printable()]
    name: Annotated[str, Printable()]
    weights: Annotated[int | None, Between(0)]
    supervision: Annotated[str, OneOf(SUPERVISIONS, "supervision")]
    trained_on: Annotated[str, Printable()]
    search: Annotated[str, Printable()]

    @property
    def searches(self) -> bool:
        """Whether the entrant is known to search."""
        return self.search not in ("", UNSTATED)

    @property
    def learns_from(self) -> str:
        """The supervision, followed by ", search" if the entrant searches: the entry of the column "learns from"."""
        return self.supervision + (", search" if self.searches else "")


@dataclass(frozen=True, kw_only=True)
class Measured(Entry):
    """The scores of a policy, or of a file of predictions, on a set.

    Rows with the names NAME #0, NAME #1 … are seeds of one training; pages and pictures show their mean.

    Attributes:
        n: number of mazes, or of streams.
        scores: score -> fraction of correct mazes or streams, with its 95 % interval.
        n_steps: number of iterations on each maze, or None for predictions.
        seconds: time that the policy took, or None for predictions.
    """

    n: Annotated[int, Between(0)]
    scores: Annotated[Mapping[str, Estimate], Printable()]
    n_steps: Annotated[int | None, Between(0)]
    seconds: Annotated[float | None, Between(0)]
    __repr__ = row_in_words

    @property
    def training(self) -> str:
        """The name of the row's training: `name` without the number of a seed."""
        return self.name.partition(SEED)[0]

    @property
    def cells(self) -> Mapping[str, Estimate]:
        """The scores by name."""
        return self.scores

    @property
    def texts(self) -> dict[str, str]:
        """The set, the name and the number of mazes, as texts by heading."""
        return {"set": self.set, "policy": self.name, "mazes": f"{self.n:,}"}

    @property
    def facts(self) -> dict[str, Any]:
        """All fields except the scores, by name."""
        return {name: value for name, value in vars(self).items() if name != "scores"}

    @property
    def details(self) -> dict[str, Any]:
        """An empty mapping, because all facts stand before the numbers."""
        return {}

    @classmethod
    def from_json(cls, content: Any) -> Measured:
        """Return a row of `leaderboard.json`.

        Raises:
            ValueError: the content is not a row; the message names the place.
            KeyError: a value is missing.
        """
        check(isinstance(content, Mapping), f"a row must have names and values, got {content!r:.60}")
        options, parts, fraction = options_of(cls), ("value", "low", "high"), (Between(0, 1),)
        options["measures"] = replace(options.pop("scores"), name="measures")
        check_known(content, options, "a row")
        values = {name: option.check(content[name]) for name, option in options.items()}
        check(bool(values["measures"]), "a row must have a score")
        scores = {}
        for score, ends in values.pop("measures").items():
            about = f"the score {score!r}"
            check(isinstance(ends, Mapping), f"{about} must have {', '.join(parts)}, got {ends!r:.60}")
            check_known(ends, parts, about)
            scores[score] = Estimate(*(Option(f"{n} of {about}", float, fraction).check(ends[n]) for n in parts))
        return cls(**values, scores=scores)


@dataclass(frozen=True, kw_only=True)
class Published(Entry):
    """A published result of another solver.

    Attributes:
        score: name of the score.
        value: percentage.
        deviation: standard deviation of the percentage over seeds, in percentage points, or None if not stated.
        seeds: number of trainings with `value` as their mean, or None if not stated.
        reported: the moment of training: "last", "validated" for the best moment on mazes that are not for tests,
            "peak" for the best moment on the test mazes, or "not stated".
        mazes: "same" for the mazes of the set, "own" for other mazes of the same kind.
        source: the publication.
        read: the part of the source with the result, or the text that was read instead of the source.
    """

    score: Annotated[str, Printable()]
    value: Annotated[float, Between(0, 100)]
    deviation: Annotated[float | None, Between(0)]
    seeds: Annotated[int | None, Between(1)]
    reported: Annotated[str, OneOf(("last", "validated", "peak", UNSTATED))]
    mazes: Annotated[str, OneOf(("same", "own"))]
    source: Annotated[str, Printable()]
    read: Annotated[str, Printable()]

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def learns_from(self) -> str:
        """The entry of the column "learns from"; it ends with ", peak" for the best moment on the test mazes."""
        return super().learns_from + (", peak" if self.reported == "peak" else "")


@cache
def published() -> tuple[Published, ...]:
    """Return all published results."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath("published.json").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in json.loads(text))


def published_beside(name: str) -> list[Published]:
    """Return the published results for the table of a set.

    They are results on the set itself or, for a redrawn set, on the original set.
    """
    theirs = BENCHMARK_SETS[name].redraws or name
    return [result for result in published() if result.set == theirs]


@dataclass(frozen=True)
class Standing:
    """A line of pages and pictures: one policy, the mean of all seeds of a training, or one published solver.

    Attributes:
        entry: the row of the line, or the first of its rows.
        name: the solver's name, without the number of a seed.
        values: score -> percentage.
        spreads: score -> interval or deviation as a text, which may be empty.
        details: the training and the measurement, in words.
    """

    entry: Entry
    name: str
    values: Mapping[str, float]
    spreads: Mapping[str, str]
    details: str

    @property
    def is_ours(self) -> bool:
        """Whether this package measured the line's scores."""
        return isinstance(self.entry, Measured)

    @property
    def has_other_ties(self) -> bool:
        """Whether the solver breaks ties in another order than the labels.

        This is assumed if more of its paths equal the canonical solutions in its own order than equal the labels.
        """
        return self.values.get(CANONICAL, 0) > self.values.get(EXACT, 100)

    def text(self, score: str) -> tuple[str, str]:
        """Return the percentage and the spread of a score, as texts; both are empty if the line lacks the score."""
        digits = ".1f" if self.is_ours else "g"
        return (f"{self.values[score]:{digits}}", self.spreads[score]) if score in self.values else ("", "")


def lines_of(rows: Sequence[Measured], others: Sequence[Published]) -> list[Standing]:
    """Return a line for each policy, training and published solver of one set.

    Lines are sorted by the set's main score, the best first. Lines without this score come last.
    """

    def training(entry: Entry) -> str:
        search = f"search: {entry.search}" if entry.search else "no search"
        return f"from {entry.supervision}: {entry.trained_on}; {search}".replace("from by hand", "by hand")

    lines, trainings = [], dict[str, list[Measured]]()
    for row in rows:
        trainings.setdefault(row.training, []).append(row)
    for name, seeds in trainings.items():
        first, n, values, spreads = seeds[0], len(seeds), dict[str, float](), dict[str, str]()
        for score, estimate in first.scores.items():
            percentages = [100 * row.scores[score].value for row in seeds if score in row.scores]
            ends = " to ".join(f"{100 * end:.1f}".removesuffix(".0") for end in (estimate.low, estimate.high))
            values[score] = sum(percentages) / len(percentages)
            spreads[score] = f" ± {deviation(percentages):.2f}" if len(percentages) > 1 else f" ({ends})"
        scores = ", ".join(f"{score} {values[score]:.1f}{spreads[score]}" for score in values)
        about = f"mean and deviation of {n} seeds; " if n > 1 else ""
        seconds = sum(row.seconds or 0 for row in seeds) / n
        steps = "" if first.n_steps is None else f", {first.n_steps:,} iterations, {seconds:,.0f} s"
        details = f"{scores}; {about}{first.n:,} instances{steps}; {training(first)}."
        lines.append(Standing(first, name, values, spreads, details))
    solvers = dict[Published, list[Published]]()
    for entry in others:
        solvers.setdefault(replace(entry, score="", value=0, deviation=None), []).append(entry)
    for entry, results in solvers.items():
        values = {result.score: result.value for result in results}
        spreads = {of.score: "" if of.deviation is None else f" ± {of.deviation:g}" for of in results}
        scores = ", ".join(f"{score} {values[score]:g}{spreads[score]}" for score in values)
        about = {None: "seeds not stated", 1: "one training"}.get(entry.seeds, f"mean of {entry.seeds} trainings")
        moments = {"peak": "best moment on the test mazes", UNSTATED: "moment not stated"}
        moment = moments.get(entry.reported, entry.reported)
        mazes = f"the mazes of {entry.set}" if entry.mazes == "same" else "mazes of its own"
        details = f"{scores}; {moment}; {about}; {mazes}; {training(entry)}. From {entry.source}; read: {entry.read}."
        lines.append(Standing(entry, entry.name, values, spreads, details))
    main = main_score(rows, others)

    def place(line: Standing) -> tuple[bool, float, int]:
        return main not in line.values, -line.values.get(main, max(line.values.values())), line.entry.weights or 0

    return sorted(lines, key=place)


def scores_on(benchmark: BenchmarkSet, endless: bool) -> tuple[str, ...]:
    """Return the names of a policy's scores on a set.

    Args:
        benchmark: the set.
        endless: whether the policy has weights for any number of iterations, so that it can reuse its state on the
            mazes of a stream.
    """
    if benchmark.stream > 1:
        ways = (RESTARTED, REUSED)[: 1 + endless]
        return (*ways, *(WHOLE[way] for way in ways))
    return (FIRST_MOVE, FOLLOWED, OPTIMAL) if benchmark.every_tile else SCORES


def scores_of(rows: Sequence[Measured], others: Sequence[Published]) -> list[str]:
    """Return the names of the scores in a set's table, in the order of its columns.

    Further metrics come first, then the scores in `MAIN` that occur in a measured row or in a published result.
    """
    known = {score for row in rows for score in row.scores} | {result.score for result in others}
    return sorted(known - {*MAIN, *SCORES}) + [score for score in MAIN if score in known]


def main_score(rows: Sequence[Measured], others: Sequence[Published]) -> str:
    """Return the score by which a set's table is sorted: the only score of its published rows, or else the last
    column."""
    stated = {result.score for result in others}
    return stated.pop() if len(stated) == 1 else scores_of(rows, others)[-1]


def notes_of(rows: Sequence[Measured], others: Sequence[Published]) -> str:
    """Return the note above a set's table.

    The note states the order of the rows, the numbers of instances if they differ between rows, and the best possible
    score of a solver that draws a path on every maze if some mazes have no route. It explains the mark of solvers that
    break ties in another order than the labels.
    """
    benchmark, ns = BENCHMARK_SETS[rows[0].set], sorted({row.n for row in rows})
    note = f"Rows are in order of *{main_score(rows, others)}*. Solvers without this score come last."
    if len(ns) > 1:
        note += f" Rows are of the first {ns[0]:,} to {ns[-1]:,} instances. Compare rows with the same number."
    if any(line.has_other_ties for line in lines_of(rows, ())):
        note += f" {OTHER_TIES} marks solvers that break ties in another order than the labels."
    if benchmark.may_be_empty:
        routes = shortest_path(benchmark.levels(ns[-1]).tiles).any(axis=(1, 2)).reshape(ns[-1], -1)
        mazes, streams = (f"{100 * of.mean():.1f} %" for of in (routes, routes.all(axis=1)))
        note += (
            f" In the first {ns[-1]:,} streams, {mazes} of the mazes have a route, and {streams} of the streams have "
            f"a route throughout. A solver that draws a path on every maze scores at most {mazes} of the mazes and "
            f"{streams} of the streams."
        )
    return note
