"""The function `evaluate`, which measures policies on named test sets or on a user's own levels."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.mazes.families import FAMILIES, most_levels, test_levels
from maze_nca_gym.mazes.levels import LevelSet, Tiles, has_border
from maze_nca_gym.support.options import Between, OneOf, Shown, Stored, check, checked
from maze_nca_gym.support.streams import say

from ..policies.registry import by_label, load_all
from ..runs import RESULTS, check_folder, naming_memory
from . import DEFAULT_N
from .figure_options import FigureFormat, FigureWidth
from .named_metrics import METRICS

if TYPE_CHECKING:
    from ..policies.policy import Policy
    from .results import EvaluationResults


@checked
def evaluate(
    policies: Annotated[
        str | Path | Policy | Iterable[str | Path] | Mapping[str, Policy],
        Stored(tuple[str, ...]),
        Shown("POLICY …", positional=True),
    ],
    *,
    levels: Annotated[str | Path | LevelSet | Tiles | None, Stored(str | None), Shown("FILE|NAME")] = None,
    families: Annotated[str | Iterable[str], Stored(tuple[str, ...]), OneOf(FAMILIES, "family of levels")] = (
        "random",
        "perfect",
    ),
    sizes: Annotated[int | Iterable[int], Stored(tuple[int, ...]), Between(2, 9999), Shown("SIZE …")] = (16, 32),
    n: Annotated[int | None, Between(1, 10**9)] = None,
    steps: Annotated[int | None, Between(1)] = None,
    metrics: Annotated[str | Iterable[str], Stored(tuple[str, ...]), OneOf(METRICS, "metric")] = (),
    find_iterations: bool = False,
    stability: bool = False,
    batch: Annotated[int | None, Between(1)] = None,
    device: str | None = None,
    out: Annotated[str | Path | None, Shown("FOLDER")] = None,
    format: FigureFormat = "png",
    figure_width: FigureWidth = None,
) -> EvaluationResults:
    """Measure policies on named test sets: metrics with 95 % intervals, curves and stability, as tables and figures.

    A set such as perfect-31 has the same levels on every machine. After Ctrl-C, results that are complete are saved.

    >>> evaluate("nca-shortest-path", families="perfect", sizes=[16, 32])[0].metrics.complete

    Args:
        policies: names from `policies list`, model files (*.safetensors) or module:class, all of one task; NAME=POLICY
            sets the name of a policy in tables and figures. In Python also policies, or a mapping from names to
            policies.
        levels: set of levels, instead of families and sizes: a file, a name from `levels list`, or a test set such as
            perfect-31. In Python also a set or (N, H, W) tiles.
        families: families of levels, separated by commas or spaces; sparse is random with 20 to 50 % walls.
        sizes: inner sizes of the levels, separated by commas or spaces.
        n: largest number of levels of each set, always the first levels; by default 128 of a test set, and all levels
            of --levels. 8192 takes complete test sets, which have fewer levels beyond size 32.
        steps: number of iterations on a level, by default the policy's usual number, in proportion to size and longest
            solution.
        metrics: further metrics of the last answers, separated by commas or spaces: f1 and iou, which compare sets of
            tiles with the canonical answer, and metrics from `register_metric`.
        find_iterations: first search for the best number of iterations, on validation levels of the families: the
            smallest number for which at most 0.1 % fewer paths are optimal than for the best number. Policies and their
            model files store it.
        stability: also test stability: 10 times the iterations, corrupted states and edited mazes, on the first 256
            levels (fewer if levels are large). It takes about 15 times as long as the other measurements of the same
            number of levels.
        batch: number of levels that run at once, by default 256, or fewer if they are large.
        device: device, such as cpu, cuda or cuda:1; by default the policies' own device, which is the CPU if names are
            given.
        out: folder for results.json and results.csv, which are rewritten after each result, and the figures; they
            replace the files of an earlier run. In Python, nothing is written by default.
        format: file type of the figures: png, pdf or svg.
        figure_width: width of the figures in print: inches, column (3.35) or page (6.9); by default they are large, for
            a screen.

    Returns:
        The results, with a row for each policy and set.

    Raises:
        ValueError: a bad option, policy or combination.
        MemoryError: the device has too little memory.
        OSError: a file could not be written.
        KeyboardInterrupt: after Ctrl-C; the results so far are in `out`, with their figures.
    """
    from ..policies.policy import common_task
    from ..rollouts.levels import describe_source, first_levels
    from .cells import measure_cell, prepare
    from .iterations import keep_iterations
    from .results import EvaluationResults

    check_folder("--out", out)
    sources = by_label(policies)
    named = load_all(sources, device)
    task = common_task(named)
    free = levels is None and steps is None
    check(free or not find_iterations, "find_iterations is for families of levels, without levels or steps")
    # the sets: of families by name, or the levels that are given
    if levels is None:
        kinds = list(dict.fromkeys(families))
        inner = list(dict.fromkeys([sizes] if isinstance(sizes, int) else sizes))
        chosen: dict[str, Any] = {"families": kinds, "sizes": inner}
        check(bool(kinds and inner), "families and sizes must name at least one each")
        most = n or DEFAULT_N
        sets = [test_levels(kind, size, task, min(most, most_levels(size))) for kind in kinds for size in inner]
        if find_iterations:
            keep_iterations(named, sources, kinds)
    else:
        name, loaded = describe_source(levels), first_levels(levels, n, task)
        size = max(loaded.tiles.shape[1:]) - (2 if has_border(loaded.tiles).all() else 0)
        about = {} if "family" in loaded.config else {"name": name, "family": name, "size": size}
        sets = [LevelSet(loaded.tiles, {**loaded.config, **about})]
        chosen = {"levels": sets[0].config["name"]}
    # a cell is a policy on a set: each is measured, and saved before the next
    configuration = {
        "policies": list(named),
        **chosen,
        "n": n,
        "steps": steps,
        "metrics": list(metrics),
        "stability": stability,
        "device": str(next(iter(named.values())).device),
    }
    cells = prepare(named, sets, steps)
    begin = time.perf_counter()
    results = EvaluationResults((), named, configuration, 0.0)
    try:
        for i, cell in enumerate(cells, 1):
            with naming_memory(f"--batch {batch}", configuration["device"]):
                row = measure_cell(cell, f"{i}/{len(cells)}", stability, batch, list(dict.fromkeys(metrics)))
            missing = tuple((later.name, later.levels.config["name"]) for later in cells[i:])
            results = replace(results, rows=(*results.rows, row), seconds=time.perf_counter() - begin, missing=missing)
            if out is not None:
                results.save_numbers(out)
            n_levels = row.evaluation.n_levels
            correct, name = n_levels - row.n_wrong, cell.levels.config["name"]
            say(f"{cell.name} on {name}: {correct:,} of {n_levels:,} levels optimal")
    # the results so far stay
    except KeyboardInterrupt:
        if out is None or not results.rows:
            raise
        results.save(out, format, figure_width)
        had = f"{len(results)} of {len(cells)} results"
        raise KeyboardInterrupt(f"stopped; {Path(out) / RESULTS} and the figures contain {had}") from None
    if out is not None:
        results.save(out, format, figure_width)
    return results
