"""The figures of a sweep: learning curves of all rows, and a figure for each measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from ..evaluation.drawing import (
    COLOURS,
    INK,
    count_axis,
    curve,
    figure,
    fraction_axis,
    legend,
    panel_width,
    panels,
    wrapped,
)
from ..evaluation.figure_options import FigureFormat, FigureWidth
from ..evaluation.records import SweepResults
from ..runs import METRICS, Line, read_metrics
from .jobs import Job
from .specification import as_folder

CURVES = "curves"
SHOWN = {"loss": "training loss", "complete": "validation, complete", "optimal": "validation, optimal"}
"""Metrics whose curves are drawn, and their titles."""
STYLES = tuple(product(("-", "--", ":", "-."), COLOURS))
"""Line styles and colours of the rows, in their order."""


def draw_sweep(
    results: SweepResults, jobs: Iterable[Job], format: FigureFormat = "png", width: FigureWidth = None
) -> list[Path]:
    """Write the figures into the folder of the sweep, and return their paths.

    Learning curves are means over seeds, in bands from the lowest to the highest seed. The figure of a measurement
    shows, for each row, a dot for each seed, the mean and its 95 % interval.

    Args:
        results: the results of the sweep.
        jobs: the jobs of all runs. Their folders contain the metrics for the learning curves.
        format: file type of the figures.
        width: width of the figures in print.
    """
    lines: dict[str, list[Sequence[Line]]] = {}
    for job in jobs:
        if metrics := read_metrics(job.folder / METRICS):
            lines.setdefault(job.name, []).append(metrics)
    paths = [draw_curves(lines, results.out / f"{CURVES}.{format}", width)] if lines else []
    for name in results.measures:
        path = results.out / f"{as_folder(name)}.{format}"
        cells = {row.name: cell for row in results.rows if (cell := row.cell(name)).values}
        with figure(path, 8, 1.6 + 0.45 * len(cells), name, printed=width) as picture:
            (axes,) = panels(picture, 1, 1)
            for place, cell in enumerate(cells.values()):
                colour = COLOURS[place % len(COLOURS)]
                if cell.low is not None and cell.high is not None:
                    axes.hlines(place, cell.low, cell.high, color=colour, linewidth=5, alpha=0.35)
                values = list(cell.values.values())
                axes.plot(values, [place] * len(values), "o", color=colour, markeredgecolor="white")
                axes.plot(cell.value or 0.0, place, "|", color=INK, markersize=14, markeredgewidth=2)
            names = [wrapped(row, 0.45 * picture.get_figwidth()) for row in cells]
            picture.set_figheight(picture.get_figheight() * (1 + 0.35 * max(text.count("\n") for text in ["", *names])))
            axes.set_yticks(range(len(cells)), names)
            axes.set_ylim(len(cells) - 0.4, -0.6)
            axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            n_seeds = len(results.facts["seeds"])
            about = ("dots: seeds; lines: mean" + " and 95 % interval" * (n_seeds > 2)) * (n_seeds > 1)
            picture.supxlabel(about, fontsize="medium")
        paths.append(path)
    return paths


def draw_curves(lines: Mapping[str, Sequence[Sequence[Line]]], path: Path, width: FigureWidth = None) -> Path:
    """Write the learning curves of a sweep as one figure, and return the path.

    Args:
        lines: name of a row -> the lines of metrics of each of its runs.
        path: the file.
        width: width of the figure in print.
    """
    several = any(len(runs) > 1 for runs in lines.values())
    with figure(path, 15, 5, printed=width) as picture:
        for axes, (metric, title) in zip(panels(picture, len(SHOWN), len(SHOWN)), SHOWN.items(), strict=True):
            for i, (name, runs) in enumerate(lines.items()):
                curves = [{line["update"]: line[metric] for line in run if metric in line} for run in runs]
                places = sorted(set.intersection(*map(set, curves)))  # the updates that all runs have reached
                if places:
                    values = np.array([[by_update[place] for place in places] for by_update in curves])
                    dash, colour = STYLES[i % len(STYLES)]
                    style: dict[str, Any] = {"label": name, "color": colour, "linestyle": dash}
                    marker = "o" if len(places) < 3 else ""
                    ends = values.min(axis=0), values.max(axis=0)
                    curve(axes, places, values.mean(axis=0), *ends, marker=marker, **style)
            axes.set_title(wrapped(title, 0.8 * panel_width(axes)))
            count_axis(axes.xaxis, 5)
            if metric == "loss":
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_minor_locator(NullLocator())
                axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            else:
                fraction_axis(axes)
        picture.supxlabel("updates" + " (means; lowest to highest seed)" * several, fontsize="medium")
        legend(picture)
    return path
