"""The figures of a reproduction: our values against the published ones, and trained networks on single mazes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import most_levels, test_levels
from maze_nca_gym.rendering import draw_level

from ...evaluation.drawing import COLOURS, GREY, figure, legend, panel_width, panels, strip, wrapped
from ...evaluation.figure_options import FigureFormat, FigureWidth
from ...evaluation.records import SweepResults, factor_of
from ...evaluation.statistics import spearman
from ...policies.policy import Policy
from ...policies.weights import load_model
from ...rollouts.iterating import iterate
from ...rollouts.scores import encode, path_of
from ...training.state import MODEL
from ..jobs import Job
from .paper import ALL, PaperScale, find_rows, n_steps_on

PUBLISHED = "published"
CANDIDATES = 256
"""Number of levels from which the level of a figure is chosen."""
MOMENTS = (0.0, 0.1, 0.3, 0.6, 1.0)
"""Moments at which an episode is shown, as fractions of its iterations. The paper's figures have the same number."""
LOWEST = -100.0
"""Accuracy, in percent, below which values are drawn at the edge of the plot: some are below -1,000."""


def usual(lengths: NDArray[np.int64], correct: NDArray[np.bool_], overlap: NDArray[np.float64]) -> int | None:
    """Return the index of the level at the third quartile of (N,) solution lengths: neither trivial nor extreme."""
    order = lengths.argsort(kind="stable")
    return int(order[3 * len(order) // 4])


def longest_correct(lengths: NDArray[np.int64], correct: NDArray[np.bool_], overlap: NDArray[np.float64]) -> int | None:
    """Return the index of the solved level with the longest solution, or None if no level is solved."""
    return int(np.where(correct, lengths, -1).argmax()) if correct.any() else None


def nearly_correct(lengths: NDArray[np.int64], correct: NDArray[np.bool_], overlap: NDArray[np.float64]) -> int | None:
    """Return the index of the level with the largest overlap among the levels that are not solved, or None if all are
    solved. With a large overlap, the path leaves the solution late."""
    return int(np.where(correct, -1.0, overlap).argmax()) if not correct.all() else None


BEHAVIOURS = {
    "mlp": ("1.3", (False,), usual),
    "gcn": ("1.2", (False,), usual),
    "nca": ("1.5", (False,), longest_correct),
    "nca-large": ("1.5", (True,), longest_correct),
    "diameter-right": ("5.2", (True, False), longest_correct),
    "diameter-wrong-fork": ("5.2", (True, False), nearly_correct),
}
"""Figures of behaviour in the paper's appendix, by the name of their file: the row whose best run is shown; whether on
the larger mazes or, with two values, on which first; and the function that chooses a level by (N,) lengths of
solutions, whether paths are correct, and their overlap with the solutions."""


@torch.no_grad()
def draw(
    results: SweepResults,
    jobs: Sequence[Job],
    scale: PaperScale,
    format: FigureFormat = "png",
    width: FigureWidth = None,
) -> list[Path]:
    """Write the figures of a reproduction into its folder, and return their paths.

    Figures of behaviour are drawn only for rows that have a trained network and a suitable level.

    Args:
        results: the results of the sweep.
        jobs: the jobs of all runs.
        scale: the scale of the runs.
        format: file type of the figures.
        width: width of the figures in print.
    """
    paths = [draw_published(results, results.out / f"{PUBLISHED}.{format}", width)]
    for name, (of_row, on_large, choose) in BEHAVIOURS.items():
        path, most_complete = results.out / f"{name}.{format}", scale.column("test {small} pct. complete")
        names = {run for row in results.rows if row.name == of_row for run in row.runs}
        measured = {job: result for job in jobs if job.name in names and (result := job.result()) is not None}
        best = max(measured, key=lambda job: measured[job]["figures"][most_complete], default=None)
        for is_large in on_large:
            if best is None:
                break
            policy, size = load_model(best.folder / MODEL), scale.size * (1 + is_large)
            tiles = test_levels("random", size, policy.problem, min(CANDIDATES, most_levels(size))).tiles
            task, n_steps = policy.problem, n_steps_on(policy, best.config, is_large=is_large)
            targets, last = task.solve(tiles), _paths(policy, tiles, {n_steps})[0] > 0.5
            correct = np.asarray(task.is_optimal(tiles, last), np.bool_)
            overlap = (last & targets).sum(axis=(1, 2)) / (last | targets).sum(axis=(1, 2))
            chosen = choose(targets.sum(axis=(1, 2)), correct, overlap)
            if chosen is not None:
                steps, level = sorted({round(part * n_steps) for part in MOMENTS}), tiles[chosen]
                pictures = [draw_level(level, after[0]) for after in _paths(policy, level[None], set(steps))]
                pictures.append(draw_level(level, targets[chosen]))
                words = [*(f"{step} iteration{'' if step == 1 else 's'}" for step in steps), "solution"]
                wrong = f"wrong, {overlap[chosen]:.0%} overlap".replace("%", "\xa0%")
                verdict = "correct" if correct[chosen] else wrong
                about = f"{best.config.model}, {policy.task}, {size}x{size}, seed {best.config.seed}"
                paths.append(strip(path, pictures, words, f"{about}: {verdict}", printed=width))
                break
    return paths


def draw_published(results: SweepResults, path: Path, width: FigureWidth = None) -> Path:
    """Plot our values against the published values, with one panel for each column that has both, and return the path.

    Args:
        results: the results of the sweep.
        path: the file.
        width: width of the figure in print.
    """
    shown = {}
    for column in results.measures:
        cells = [(row, row.cell(column)) for row in results.rows]
        both = [(row, it.published[0], it.value) for row, it in cells if it.published and it.value is not None]
        if both:
            shown[column] = [(row, factor_of(column) * x, factor_of(column) * y) for row, x, y in both]
    # the rows that share a model and a task share a colour; of all rows, so that each keeps its colour
    groups = list(dict.fromkeys((row.options["model"], row.options["task"]) for row in find_rows([ALL])))
    tasks = Counter(model for model, _ in groups)
    n_columns, n_panels = min(3, max(1, len(shown))), max(1, len(shown))
    with figure(path, 0.6 + 4.2 * n_columns, 0.6 + 4.2 * -(-n_panels // n_columns), dpi=130, printed=width) as picture:
        all_axes = panels(picture, n_panels, n_columns)
        for axes, (column, pairs) in zip(all_axes, shown.items(), strict=False):
            for i, (model, task) in enumerate(groups):
                points = [(x, y) for r, x, y in pairs if (r.options["model"], r.options["task"]) == (model, task)]
                if points:
                    x, y = np.array(points).T
                    floor = -np.inf if factor_of(column) == 1 else LOWEST
                    label = f"{model}, {task}" if tasks[model] > 1 else model
                    axes.plot(
                        x.clip(floor), y.clip(floor), "o", label=label, color=COLOURS[i], alpha=0.65, markersize=6
                    )
            rank = spearman([x for _, x, _ in pairs], [y for _, _, y in pairs])
            words = f"{len(pairs)} rows" if rank is None else f"{len(pairs)} rows, rank correlation {rank:.2f}"
            axes.set_title(f"{column}\n{wrapped(words, panel_width(axes))}", fontsize="medium")
            axes.set(xlabel="published", ylabel="ours")
            axes.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle=":")
        for axes in all_axes[len(shown) :]:
            axes.set_visible(False)
        legend(picture)
    return path


def _paths(policy: Policy, tiles: NDArray[np.uint8], steps: set[int]) -> list[NDArray[np.float32]]:
    """Return the (N, H, W) paths that a policy has drawn after some numbers of iterations, in ascending order."""
    states = enumerate(iterate(policy, encode(policy, tiles), max(steps)))
    return [path_of(policy, state) for step, state in states if step in steps]
