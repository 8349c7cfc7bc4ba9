"""The benchmark in one call: policies and predictions on sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from maze_nca_gym.benchmark_sets import find_benchmark_set

from ..runs import ProgressBar, check_at_least, check_folder, naming_memory

if TYPE_CHECKING:
    from ..policy import Policy
    from .board import Board

SETS = ("maze-unique-30", "maze-hard-30")
"""Sets on which published solvers are measured most."""


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
    from ..evaluation.cells import on_device, prepare
    from ..policy import Policy
    from .answers import judge_tokens
    from .board import BOARD, Board
    from .entrants import find_entrants, measure, row_of
    from .predictions import read_predictions

    for name, number in (("--n", n), ("--steps", steps), ("--batch", batch)):
        check_at_least(name, number, 1)
    if out is not None:
        check_folder("--out", Path(out))
        if (Path(out) / BOARD).exists():
            Board.load(out)  # raises ValueError before the work begins
    chosen = [find_benchmark_set(name) for name in dict.fromkeys([sets] if isinstance(sets, str) else sets)]
    if not chosen:
        raise ValueError("name at least one benchmark set")
    entrants, learned_from = find_entrants(policies)
    models = on_device({name: what for name, what in entrants.items() if isinstance(what, Policy)}, device)
    predicted = {
        (benchmark.name, name): read_predictions(what, benchmark)
        for benchmark, (name, what) in product(chosen, entrants.items())
        if isinstance(what, Path)
    }  # all of them first: a wrong file is not found after an hour of measuring
    levels = [benchmark.levels(min(n or benchmark.n, benchmark.n)) for benchmark in chosen]
    cells = {(cell.set_name, cell.name): cell for cell in prepare(models, levels, steps)}
    rows = []
    with naming_memory(f"--batch {batch}", device), ProgressBar("benchmark", len(chosen) * len(entrants)) as bar:
        for benchmark, drawn in zip(chosen, levels, strict=True):
            labels = benchmark.label(drawn.tiles)
            for name in entrants:
                if name in models:
                    row = measure(benchmark, cells[benchmark.name, name], labels, learned_from[name], batch)
                else:
                    tokens = predicted[benchmark.name, name][: len(labels)]
                    row = row_of(benchmark, name, judge_tokens(drawn.tiles, tokens, labels), learned_from[name])
                rows.append(row)
                if out is not None:
                    Board((row,)).save(out)  # at once: the next row may take an hour
                bar.advance(1)
    return Board(tuple(rows))
