"""The function `bench`, which measures policies and predictions on benchmark sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.solvers import shortest_path
from maze_nca_gym.support.options import Between, OneOf, Shown, Stored, check, checked

from ...runs import ProgressBar, check_folder, naming_memory
from ..figure_options import FigureFormat, FigureWidth
from ..named_metrics import METRICS

if TYPE_CHECKING:
    from ...policies.policy import Policy
    from .board import Board

SETS = ("maze-unique-30", "maze-hard-30-redrawn")
"""The sets on which most published solvers are measured."""


@checked
def bench(
    sets: Annotated[
        str | Iterable[str],
        Stored(tuple[str, ...]),
        OneOf(BENCHMARK_SETS, "benchmark set"),
        Shown("SET …", positional=True),
    ] = SETS,
    *,
    policies: Annotated[
        str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy | Path],
        Stored(tuple[str, ...]),
        Shown("POLICY|FILE …"),
    ],
    n: Annotated[int | None, Between(1, 10**9)] = None,
    steps: Annotated[int | None, Between(1)] = None,
    metrics: Annotated[str | Iterable[str], Stored(tuple[str, ...]), OneOf(METRICS, "metric")] = (),
    batch: Annotated[int | None, Between(1)] = None,
    device: str | None = None,
    data: Annotated[str | Path | None, Shown("FOLDER")] = None,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    plot: bool = False,
    format: FigureFormat = "png",
    figure_width: FigureWidth = None,
) -> Board:
    """Measure policies, or predictions from files, on benchmark sets of mazes, next to published results.

    The page leaderboard.md and its data, leaderboard.json, keep the rows of earlier runs on other sets or of other
    policies.

    A policy takes from 10 seconds to 20 minutes on 1,000 mazes of 30 x 30; --n 100 measures only the first 100 mazes.

    >>> bench("maze-hard-30-redrawn", policies=["nca-shortest-path", "predictions.csv"]).rows[0].scores["canonical"]

    Args:
        sets: names of sets; `maze-nca-gym levels list --details` describes them.
        policies: names from `policies list`, model files (*.safetensors), module:class, or predictions: a .csv or .npy
            file with a row of tokens for each maze. NAME=FILE sets the name in the tables; a file with a * stands for
            all seeds of one training, which are one row with mean and deviation: 'mine=runs/*/model.safetensors'. In
            Python also policies, or a mapping from names to policies and paths of predictions.
        n: largest number of mazes, or streams, of each set, by default all; always the first of the set.
        steps: number of iterations on a maze, by default the policy's usual number, in proportion to size and longest
            solution.
        metrics: further metrics: f1 and iou, which compare sets of tiles with the canonical answer, and metrics from
            `register_metric`.
        batch: number of mazes that run at once, by default 256, or fewer if they are large.
        device: device, such as cpu, cuda or cuda:1; by default the policies' own device, which is the CPU if names are
            given.
        data: folder with the files of maze-hard-30, which the package does not include: HRM's test.csv, or the files
            test/all__inputs.npy and test/all__labels.npy, which HRM's build_maze_dataset.py makes from it.
        out: folder for leaderboard.md, leaderboard-sources.md and leaderboard.json, written after each row. In Python,
            nothing is written by default.
        plot: write a figure, leaderboard, to that folder too: weights against percent, of all rows in the folder.
        format: file type of that figure: png, pdf or svg.
        figure_width: width of the figure in print: inches, column (3.35) or page (6.9); by default it is large, for a
            screen.

    Returns:
        The rows that were measured.

    Raises:
        ValueError: a bad option, set, policy or file of predictions, or files of a set with another content.
        MemoryError: the device has too little memory.
        OSError: a file could not be read or written.
    """
    from ...policies.policy import Policy, to_device
    from ..cells import prepare
    from ..named_metrics import score_named
    from .answers import judge_tokens, paths_of
    from .board import BOARD, Board
    from .entrants import find_entrants, measure_scores, row_of
    from .predictions import read_predictions

    # refuse options that cannot be written or measured before the work begins
    check(out is not None or not plot, "plot needs a folder for the picture: --out FOLDER")
    check(plot or (format == "png" and figure_width is None), "format and figure_width are for the figure of plot")
    if out is not None:
        check_folder("--out", out)
        if (Path(out) / BOARD).exists():
            Board.load(out)  # raises ValueError before the work begins
    chosen = [BENCHMARK_SETS[name] for name in dict.fromkeys(sets)]
    check(bool(chosen), "name at least one benchmark set")
    if data is not None:
        is_read = any(benchmark.read is not None for benchmark in chosen)
        check(is_read, f"--data is for sets that the package does not include, and it includes {', '.join(sets)}")
        chosen = [benchmark.from_files(data) for benchmark in chosen]
    # the policies, and the predictions, all of which are read first, so that a wrong file is refused early
    entrants, learned_from = find_entrants(policies)
    models = {name: to_device(entrant, device) for name, entrant in entrants.items() if isinstance(entrant, Policy)}
    predicted = {
        (benchmark.name, name): read_predictions(entrant, benchmark)
        for benchmark, (name, entrant) in product(chosen, entrants.items())
        if isinstance(entrant, Path)
    }
    levels = [benchmark.levels(min(n or benchmark.n, benchmark.n)) for benchmark in chosen]
    empty = {benchmark.name for benchmark in chosen if benchmark.may_be_empty}
    cells = {(cell.levels.config["name"], cell.name): cell for cell in prepare(models, levels, steps, empty)}
    # a row for each set and entrant
    rows = []
    where = next((model.device for model in models.values()), device)
    with naming_memory(f"--batch {batch}", where), ProgressBar("benchmark", len(chosen) * len(entrants)) as bar:
        for benchmark, level_set in zip(chosen, levels, strict=True):
            tiles, labels = level_set.tiles, benchmark.label(level_set.tiles)
            for name in entrants:
                if name in models:
                    row = measure_scores(
                        benchmark, cells[benchmark.name, name], labels, learned_from[name], batch, list(metrics)
                    )
                else:
                    tokens = predicted[benchmark.name, name][: len(labels)]
                    correct = judge_tokens(tiles, tokens, labels)
                    named = score_named(metrics, tiles, paths_of(tiles, tokens), shortest_path(tiles))
                    row = row_of(benchmark, tiles, name, correct, named, learned_from[name])
                rows.append(row)
                if out is not None:
                    Board(tuple(rows)).save(out)  # at once: the next row may take an hour
                bar.advance(1)
    if plot and out is not None:
        Board(tuple(rows)).save(out, plot, format, figure_width)
    return Board(tuple(rows))
