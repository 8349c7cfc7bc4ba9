"""The entrants of the benchmark (policies and files of predictions), and their scores on a set."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.benchmark_sets import BenchmarkSet
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.mazes.scoring import check_numbers
from maze_nca_gym.mazes.tasks import SHORTEST_PATH
from maze_nca_gym.support.options import check

from ...policies.policy import Policy, cost_note
from ...policies.pretrained import cards
from ...policies.registry import MODEL_FILE, by_label, list_policies, load, split_prefix
from ...rollouts.scores import encode, path_of
from ...rollouts.solving import find_paths, run_to_end
from ...runs import DESCRIPTION
from ..cells import Cell
from ..named_metrics import score_named
from ..statistics import mean, proportion
from .answers import OPTIMAL, judge, judge_moves
from .predictions import SUFFIXES
from .rows import RESTARTED, REUSED, SEED, SUPERVISIONS, UNSTATED, WHOLE, Measured


def find_entrants(
    policies: str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy | Path],
) -> tuple[dict[str, Policy | Path], dict[str, tuple[str, str]]]:
    """Return the policies and files of predictions to measure, by name, and the result of `learned_from` for each name.

    Raises:
        ValueError: no entrant, an unknown policy, a missing file, or a policy of another task.
    """
    entrants, sources = dict[str, Policy | Path](), dict[str, str]()
    for name, source in by_label(policies, Path).items():
        if isinstance(source, str):
            files = sorted(glob(source)) if "*" in source else [source]  # a pattern stands for all seeds of a training
            check(bool(files), f"no file matches {source}")
            sources |= {f"{name}{SEED}{i}" if "*" in source else name: file for i, file in enumerate(files)}
        else:
            entrants[name] = source
    for name, source in sources.items():
        is_file = source.lower().endswith(SUFFIXES)
        check(not is_file or Path(source).is_file(), f"there is no file of predictions {source}")
        entrants[name] = Path(source) if is_file else load(source)
    check(bool(entrants), "name at least one policy, or file of predictions (*.csv, *.npy)")
    for name, entrant in entrants.items():
        check(name.isprintable(), f"names of policies must be printable, got {name!r}")
        if isinstance(entrant, Policy) and split_order(entrant.task)[0] != SHORTEST_PATH.name:
            raise ValueError(f"benchmark mazes ask for the shortest path, and {name} is for the task {entrant.task!r}")
    return entrants, {name: learned_from(sources.get(name)) for name in entrants}


def learned_from(name: str | None) -> tuple[str, str]:
    """Return the supervision of a policy's training, one of `SUPERVISIONS`, and its training mazes, in words.

    They come from the policy's card or, for a model file, from the description of the training run. If neither exists,
    both are "not stated".

    Args:
        name: the policy's name or model file, or None for a policy without a name.
    """
    prefix, name = split_prefix(name or "")
    while prefix:
        prefix, name = split_prefix(name)
    try:
        if name in list_policies(all=True) and name not in cards():
            return "by hand", "no mazes"
        if name in cards():
            about = cards()[name]
        elif name.lower().endswith(MODEL_FILE):
            about = json.loads((Path(name).parent / DESCRIPTION).read_text(encoding="utf-8"))
        else:
            return UNSTATED, UNSTATED
        options, data = about.get("configuration"), str(about["data"])
        if "supervision" in about:
            check(about["supervision"] in SUPERVISIONS, f"unknown supervision {about['supervision']!r}")
            return about["supervision"], data
        if options is None:
            return "by hand", "no mazes"
        taught = "guidance" if options.get("guidance") else "answers"
        return "rule" if "certificate" in about else taught, data
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # no run's folder, or one that does not say it
        return UNSTATED, UNSTATED


def measure_scores(
    benchmark: BenchmarkSet,
    cell: Cell,
    labels: NDArray[np.bool_],
    lesson: tuple[str, str],
    batch: int | None,
    metrics: Sequence[str] = (),
) -> Measured:
    """Return the scores of a policy on a set.

    Args:
        benchmark: the set.
        cell: the policy with levels of the set.
        labels: (N, H, W) bool, the set's labels of these levels.
        lesson: the supervision and the training mazes, from `learned_from`.
        batch: the number of levels that run at once, or None for a number that keeps the state small.
        metrics: names of further metrics, for the answers that start from a state of zeros.
    """
    policy, n_steps, tiles, canonical = cell.policy, cell.n_steps, cell.labelled.tiles, cell.labelled.target
    begin = time.perf_counter()
    output = find_paths(policy, tiles, n_steps, batch=batch)
    check_numbers(output)
    paths = {RESTARTED: output > 0.5}
    if benchmark.stream > 1 and policy.max_steps is None:  # separate weights for each iteration end with the first maze
        paths[REUSED] = reused_paths(policy, tiles.reshape(-1, benchmark.stream, *tiles.shape[1:]), n_steps)
    seconds = time.perf_counter() - begin
    if benchmark.every_tile:
        correct = judge_moves(tiles, paths[RESTARTED]) | {OPTIMAL: judge(tiles, paths[RESTARTED], labels)[OPTIMAL]}
    elif benchmark.stream == 1:
        correct = judge(tiles, paths[RESTARTED], labels, canonical)
    else:
        correct = {
            way: judge(tiles, drawn.reshape(tiles.shape), labels, canonical)[OPTIMAL] for way, drawn in paths.items()
        }
        streams = {WHOLE[way]: optimal.reshape(-1, benchmark.stream) for way, optimal in correct.items()}
        correct = {way: np.logical_and.reduce(optimal, axis=1) for way, optimal in streams.items()} | correct
    search = cost_note(policy) if policy.engine_hints.passes > 1 else ""
    named = score_named(metrics, tiles, paths[RESTARTED], canonical)
    row = row_of(benchmark, tiles, cell.name, correct, named, lesson)
    return replace(row, search=search, weights=policy.n_weights, n_steps=n_steps, seconds=seconds)


def reused_paths(policy: Policy, streams: Tiles, n_steps: int) -> NDArray[np.bool_]:
    """Return the paths of a policy that starts each maze from its final state on the previous maze, (S, L, H, W) bool.

    Args:
        policy: a policy with weights for any number of iterations.
        streams: (S, L, H, W) uint8, S streams of L mazes each.
        n_steps: number of iterations on each maze.
    """
    paths, state = np.empty(streams.shape, np.bool_), None
    for i in range(streams.shape[1]):
        maze = encode(policy, np.ascontiguousarray(streams[:, i]))
        state = run_to_end(policy, maze, n_steps, state, start_step=i * n_steps)
        output = path_of(policy, state)
        check_numbers(output)
        paths[:, i] = output > 0.5
    return paths


def row_of(
    benchmark: BenchmarkSet,
    tiles: Tiles,
    name: str,
    correct: Mapping[str, NDArray[np.bool_]],
    named: Mapping[str, NDArray[np.float64]],
    lesson: tuple[str, str],
) -> Measured:
    """Return the row of a file of predictions, or of a policy before its search, weights, iterations and time.

    Args:
        benchmark: the set.
        tiles: (N, H, W) uint8, the levels of the set that were measured.
        name: the name of the policy or file.
        correct: score -> bool, which of the N levels, or of their streams, are correct.
        named: name of a further metric -> (N,) values from 0 to 1.
        lesson: the supervision and the training mazes, from `learned_from`.
    """
    # sizes of groups of similar levels: the mazes of a stream or, if a set has every tile as source, those of a maze
    alike = np.full(len(tiles) // benchmark.stream, benchmark.stream)
    if benchmark.every_tile:
        alike = np.unique(np.where(tiles == Tile.SOURCE, Tile.EMPTY, tiles), axis=0, return_counts=True)[1]
    n_independent = alike.sum() ** 2 / (alike**2).sum()
    return Measured(
        set=benchmark.name,
        name=name,
        weights=None,
        supervision=lesson[0],
        trained_on=lesson[1],
        search="",
        n=len(alike),
        scores={score: proportion(of, n_independent) for score, of in correct.items()}
        | {score: mean(of, 1, 0, n_independent) for score, of in named.items()},
        n_steps=None,
        seconds=None,
    )
