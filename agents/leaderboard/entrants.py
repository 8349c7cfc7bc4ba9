"""What the benchmark measures, policies and files of predictions, and how each does on a set."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.benchmark_sets import BenchmarkSet
from maze_nca_gym.levels import Tiles, has_border
from maze_nca_gym.tasks import SHORTEST_PATH

from ..environments import border_warning
from ..policy import Policy
from ..pretrained import cards
from ..registry import MODEL_FILE, by_label, list_policies, load
from ..rollouts import check_steps, default_steps, encode, find_paths, rollout
from ..runs import DESCRIPTION
from ..statistics import proportion
from .answers import OPTIMAL, judge, judge_tokens
from .predictions import SUFFIXES
from .rows import RESTARTED, REUSED, Row
from .streams import restarted_paths, reused_paths

UNSTATED = "not stated"


class Entrant(NamedTuple):
    """What is measured.

    Attributes:
        name: in the table.
        source: what `load` took, or the file; None for a policy that was given as such.
        what: the policy, or the file of predictions.
    """

    name: str
    source: str | None
    what: Policy | Path


def find_entrants(given: str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy | Path]) -> list[Entrant]:
    """Return policies and files of predictions.

    Raises:
        ValueError: none, an unknown policy, no such file, or a policy of another task.
    """
    if isinstance(given, Mapping):
        entrants = [Entrant(name, None, what) for name, what in given.items()]
    elif isinstance(given, Policy):
        entrants = [Entrant(type(given).__name__, None, given)]
    else:
        named = by_label(map(str, [given] if isinstance(given, str | Path) else given))
        entrants = [Entrant(label, source, _entrant(source)) for label, source in named.items()]
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


def measure(
    benchmark: BenchmarkSet, entrant: Entrant, policy: Policy, n: int | None, steps: int | None, batch: int | None
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


def measure_predictions(benchmark: BenchmarkSet, entrant: Entrant, tokens: NDArray[np.uint8], n: int | None) -> Row:
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
