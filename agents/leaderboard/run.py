"""The benchmark in one call: policies and predictions on sets, and what is written of it."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.benchmark_sets import BenchmarkSet, find_benchmark_set
from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.files import validated_read, write_all
from maze_nca_gym.levels import Tiles, has_border
from maze_nca_gym.tables import Table
from maze_nca_gym.tasks import SHORTEST_PATH

from ..environments import border_warning
from ..policy import Policy
from ..pretrained import cards
from ..registry import MODEL_FILE, by_label, list_policies, load
from ..rollouts import check_steps, default_steps, encode, find_paths, rollout
from ..runs import DESCRIPTION, check_at_least, check_folder, naming_memory, progress_bar, versions
from ..statistics import proportion
from .answers import OPTIMAL, judge, judge_tokens
from .predictions import SUFFIXES, read_predictions
from .report import markdown, scores_of
from .rows import RESTARTED, REUSED, Row
from .streams import restarted_paths, reused_paths

SETS = ("maze-unique-30", "maze-hard-30")
"""Sets on which published solvers are measured most."""
BOARD, PAGE = "leaderboard.json", "leaderboard.md"
UNSTATED = "not stated"


@dataclass(frozen=True)
class Board:
    """The results of a benchmark.

    Attributes:
        rows: a row for each set and policy or file, set by set.
    """

    rows: tuple[Row, ...]

    def markdown(self) -> str:
        """Return a page with a table for each set, the published figures included."""
        return markdown(self.rows)

    def table(self) -> Table:
        """Return a table of what was measured, a row a policy and set, in percent with 95 % intervals."""
        scores = scores_of(self.rows, ())
        rows = [
            (row.set, row.name, f"{row.n:,}", *(row.scores[s].percent(1) if s in row.scores else "" for s in scores))
            for row in self.rows
        ]
        return Table(("set", "policy", "mazes", *scores), rows, numbers=("mazes", *scores))

    def _repr_html_(self) -> str:
        return self.table().html()

    def save(self, folder: str | Path) -> list[Path]:
        """Write `leaderboard.json` and `leaderboard.md`; rows of other sets or names that the folder has stay.

        Returns:
            The two files.

        Raises:
            ValueError: `leaderboard.json` is there and is no leaderboard.
            OSError: a file could not be written; both are as before.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        merged = {(row.set, row.name): row for row in (*old, *self.rows)}
        board = Board(tuple(merged.values()))
        content = {"versions": versions(), "rows": [row.to_json() for row in board.rows]}
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


def bench(
    sets: str | Iterable[str] = SETS,
    *,
    policies: str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy | Path],
    n: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    device: str | None = None,
    out: str | Path | None = None,
) -> Board:
    """Measure policies and predictions on benchmark sets.

    This is the command `maze-nca-gym bench`, with its options.

    >>> bench("maze-hard-30", policies=["nca-shortest-path", "predictions.csv"]).rows[0].scores["canonical"]

    Args:
        sets: names from `benchmark_sets`.
        policies: names, model files, "module:class", files of predictions (.csv or .npy), or policies; a mapping gives
            them their names, and so does NAME=FILE.
        n: instances of each set at the most, always the first ones.
        steps: iterations on a maze, by default what a policy is made for, in proportion to the longest solution.
        batch: levels that run at once, by default 256, fewer of large ones.
        device: cpu, cuda, cuda:1 ..., by default where the policies are.
        out: a folder for `leaderboard.json` and `leaderboard.md`, written after each row; None to write nothing.

    Raises:
        ValueError: a bad option, set, policy or file of predictions.
        MemoryError: the device has too little memory.
        OSError: a file could not be read or written.
    """
    for name, number in (("--n", n), ("--steps", steps), ("--batch", batch)):
        check_at_least(name, number, 1)
    if out is not None:
        check_folder("--out", Path(out))
        if (Path(out) / BOARD).exists():
            Board.load(out)  # raises ValueError before the work begins
    chosen = [find_benchmark_set(name) for name in dict.fromkeys([sets] if isinstance(sets, str) else sets)]
    if not chosen:
        raise ValueError("name at least one benchmark set")
    entrants = _entrants(policies)
    if device is not None:
        entrants = [
            e._replace(what=e.what.to(find_device(device))) if isinstance(e.what, Policy) else e for e in entrants
        ]
    predicted = {
        (benchmark.name, entrant.name): read_predictions(entrant.what, benchmark)
        for benchmark, entrant in product(chosen, entrants)
        if isinstance(entrant.what, Path)
    }  # all of them first: a wrong file is not found after an hour of measuring
    rows = []
    with naming_memory(f"--batch {batch}", device), progress_bar("benchmark", len(chosen) * len(entrants)) as advance:
        for benchmark, entrant in product(chosen, entrants):
            if isinstance(entrant.what, Policy):
                rows.append(_measure(benchmark, entrant, entrant.what, n, steps, batch))
            else:
                rows.append(_measure_predictions(benchmark, entrant, predicted[benchmark.name, entrant.name], n))
            if out is not None:
                Board(tuple(rows[-1:])).save(out)  # at once: the next row may take an hour
            advance(1)
    return Board(tuple(rows))


class _Entrant(NamedTuple):
    """What is measured.

    Attributes:
        name: in the table.
        source: what `load` took, or the file; None for a policy that was given as such.
        what: the policy, or the file of predictions.
    """

    name: str
    source: str | None
    what: Policy | Path


def _entrants(given: str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy | Path]) -> list[_Entrant]:
    """Return policies and files of predictions.

    Raises:
        ValueError: none, an unknown policy, no such file, or a policy of another task.
    """
    if isinstance(given, Mapping):
        entrants = [_Entrant(name, None, what) for name, what in given.items()]
    elif isinstance(given, Policy):
        entrants = [_Entrant(type(given).__name__, None, given)]
    else:
        named = by_label(map(str, [given] if isinstance(given, str | Path) else given))
        entrants = [_Entrant(label, source, _entrant(source)) for label, source in named.items()]
    if not entrants:
        raise ValueError("name at least one policy, or file of predictions (*.csv, *.npy)")
    for name, _, what in entrants:
        if isinstance(what, Policy) and what.task != SHORTEST_PATH.name:
            raise ValueError(f"benchmark mazes ask for the shortest path, and {name} is for the task {what.task!r}")
    return entrants


def _entrant(name: str) -> Policy | Path:
    if not name.endswith(SUFFIXES):
        return load(name)
    if not Path(name).is_file():
        raise ValueError(f"there is no file of predictions {name}")
    return Path(name)


def _measure(
    benchmark: BenchmarkSet, entrant: _Entrant, policy: Policy, n: int | None, steps: int | None, batch: int | None
) -> Row:
    """Return the scores of a policy on a set."""
    name = entrant.name
    tiles = benchmark.levels(_count(benchmark, n)).tiles
    n_steps = default_steps(policy, SHORTEST_PATH.solve_all(tiles)) if steps is None else steps
    _try(f"{name} on {benchmark.name}", policy, tiles, n_steps)
    if policy.needs_border and not has_border(tiles).all():
        warnings.warn(border_warning(name), stacklevel=3)
    begin = time.perf_counter()
    if benchmark.stream == 1:
        answers = find_paths(policy, tiles, n_steps, batch=batch) > 0.5
        seconds = time.perf_counter() - begin
        right = judge(tiles, answers, benchmark.label(tiles))
    else:
        right = _measure_streams(benchmark, policy, tiles, n_steps, batch)
        seconds = time.perf_counter() - begin
    return _row(benchmark, name, right, policy.n_weights, trained_on(entrant.source), n_steps, seconds)


def _measure_streams(
    benchmark: BenchmarkSet, policy: Policy, tiles: Tiles, n_steps: int, batch: int | None
) -> dict[str, NDArray[np.bool_]]:
    """Return on which streams every maze is solved; a policy with weights for each iteration cannot go on."""
    streams = tiles.reshape(-1, benchmark.stream, *tiles.shape[1:])
    answers = {RESTARTED: restarted_paths(policy, streams, n_steps, batch)}
    if policy.most_iterations is None:
        answers[REUSED] = reused_paths(policy, streams, n_steps)
    labels = SHORTEST_PATH.solve_all(tiles)
    right = {way: judge(tiles, paths.reshape(tiles.shape), labels)[OPTIMAL] for way, paths in answers.items()}
    return {way: np.logical_and.reduce(solved.reshape(streams.shape[:2]), axis=1) for way, solved in right.items()}


def _measure_predictions(benchmark: BenchmarkSet, entrant: _Entrant, tokens: NDArray[np.uint8], n: int | None) -> Row:
    """Return the scores of (N, H * W) predictions on a set."""
    tiles = benchmark.levels(_count(benchmark, n)).tiles
    right = judge_tokens(tiles, tokens[: len(tiles)], benchmark.label(tiles))
    return _row(benchmark, entrant.name, right, None, UNSTATED, None, None)


def _row(
    benchmark: BenchmarkSet,
    name: str,
    right: Mapping[str, NDArray[np.bool_]],
    *about: Any,
) -> Row:
    n = len(next(iter(right.values())))
    return Row(benchmark.name, name, n, {score: proportion(of) for score, of in right.items()}, *about)


def _count(benchmark: BenchmarkSet, n: int | None) -> int:
    return benchmark.n if n is None else min(n, benchmark.n)


def _try(label: str, policy: Policy, tiles: Tiles, n_steps: int) -> None:
    """Run one iteration on one maze.

    Raises:
        ValueError: the policy cannot run on such mazes, or for that many iterations.
    """
    try:
        check_steps(policy, n_steps)
        rollout(policy, encode(policy, tiles[:1]), 1)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from error


def trained_on(name: str | None) -> str:
    """Return what a policy of that name learned from, as its card says, or the run in whose folder a model file is."""
    if name is None:
        return UNSTATED
    if name in cards():
        return str(cards()[name]["data"])
    if name in list_policies():
        return "nothing: weights written by hand"
    if not name.endswith(MODEL_FILE):
        return UNSTATED
    try:
        return str(json.loads((Path(name).parent / DESCRIPTION).read_text(encoding="utf-8"))["data"])
    except (OSError, ValueError, TypeError, KeyError):  # no file in the folder of a run, or one that does not say it
        return UNSTATED
