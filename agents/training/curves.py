"""The figure `curves.png` of a run: losses, validation and learning rate. Importing this module loads matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ..evaluation.drawing import BLUE, GREEN, GREY, VERMILION, count_axis, curve, figure, fraction_axis
from ..runs import Line

OWN_STYLE = {"axes.edgecolor": GREY, "legend.borderaxespad": 0.2}
METRICS = {"accuracy": VERMILION, "optimal": GREEN, "complete": BLUE}
LENGTH = "mean_solution_length"
UNITS, FEWEST = (("hours", 3600), ("minutes", 60), ("seconds", 1)), 3
"""Units of the time axis with their seconds. The axis has the largest unit of which the run took at least `FEWEST`."""
MANY = 40
"""Least number of points of a curve that is drawn without markers."""
CLOSE, VERY_CLOSE = 1e4, 5
"""Ratios of the largest to the smallest loss that decide the ticks of the logarithmic axis: below `VERY_CLOSE`, ticks
are at even distances; below `CLOSE`, at 1, 2 and 5 times the powers of ten; otherwise, only at the powers of ten."""
SMOOTHED = 0.04
"""Width of the window over which the training loss is averaged, as a fraction of the run."""
APART = 0.03
"""Least distance between two ticks of time, as a fraction of the width. Without it, the ticks of slow first updates
would overlap."""


def draw_curves(lines: Sequence[Line], title: str, path: Path) -> Path:
    """Plot losses, validation and learning rate against updates and time, to a PNG file, and return its path.

    The training loss and the validation loss have separate panels, because only the training loss can include several
    iterations and guidance. If the levels evolve, another panel shows the mean length of their solutions.

    Args:
        lines: lines of metrics in the order of updates, at least one.
        title: the title above the panels.
        path: the file.
    """
    # the updates and values of each metric, from the lines that have it
    columns: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    for name in ("loss", "valid_loss", *METRICS, LENGTH, "learning_rate", "seconds"):
        pairs = [(line["update"], line[name]) for line in lines if name in line]
        updates, values = np.array(pairs, dtype=float).reshape(-1, 2).T
        columns[name] = updates, values

    def plot(axes: Axes, name: str, colour: str, label: str, values: NDArray[np.float64] | None = None) -> None:
        x, y = columns[name]
        style: dict[str, Any] = {"linewidth": 2, "marker": "o" if len(x) < MANY else "", "markersize": 4.5}
        curve(axes, x, y if values is None else values, color=colour, label=label, **style)

    # the panels, from top to bottom: losses, validation, lengths of solutions, rate
    heights = (2, 2, 3, *[1.7] * (len(columns[LENGTH][0]) > 0), 1.4)
    with figure(path, 9, 1.6 + sum(heights), title, style=OWN_STYLE) as picture:
        loss, valid, validation, *lengths, rate = picture.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        # losses, on logarithmic axes
        loss.plot(*columns["loss"], color=BLUE, alpha=0.25, linewidth=1)
        plot(loss, "loss", BLUE, "", _smooth(columns["loss"][1]))
        plot(valid, "valid_loss", VERMILION, "")
        loss.set_ylabel("training loss,\nsmoothed")
        valid.set_ylabel("validation loss,\nlast iteration")
        for axes in (axes for axes in (loss, valid) if axes.dataLim.minposy < math.inf):  # else it has no powers of ten
            axes.set_yscale("log")
            least, most = axes.get_ylim()
            of_powers = LogLocator(subs=(1, 2, 5) if most < CLOSE * least else (1,))
            axes.yaxis.set_major_locator(MaxNLocator(4) if most < VERY_CLOSE * least else of_powers)
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        # metrics of validation, and lengths of solutions where levels evolve
        for name, colour in METRICS.items():
            values = columns[name][1]
            plot(validation, name, colour, name + (f" {values[-1]:.1%}".replace("%", " %") if len(values) else ""))
        validation.set_ylabel("validation")
        fraction_axis(validation)
        validation.legend(loc="best")
        for axes in lengths:
            plot(axes, LENGTH, BLUE, "")
            axes.set_ylabel("solution length\n(training)")
        # the learning rate, with the updates below and the time above all panels
        rate.plot(*columns["learning_rate"], color=GREY, linewidth=2)
        last = lines[-1]["update"]
        rate.set(ylabel="learning rate", xlabel="updates", xlim=(-0.01 * last, 1.01 * last))
        rate.set_ylim(bottom=0)
        rate.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
        count_axis(rate.xaxis, 9)
        _add_time(loss, *columns["seconds"])
        picture.align_ylabels()
    return path


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the geometric means of windows centred at each of (N,) values, which shrink towards both ends, (N,)."""
    reach = math.floor(SMOOTHED * len(values) / 2)
    sums = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(values, 1e-12)))])
    places = np.arange(len(values))
    room = np.minimum(reach, np.minimum(places, len(values) - 1 - places))
    means: NDArray[np.float64] = np.exp((sums[places + room + 1] - sums[places - room]) / (2 * room + 1))
    return means


def _add_time(axes: Axes, updates: NDArray[np.float64], seconds: NDArray[np.float64]) -> None:
    """Add an axis above the panels with the time that the updates took.

    Two runs of the same configuration differ only in this axis, because all other axes show no measured time.
    """
    unit, length = next(unit for unit in UNITS if seconds[-1] >= unit[1] * FEWEST or unit is UNITS[-1])
    times = np.concatenate([[0.0], seconds / length])
    ticks = [tick for tick in MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, times[-1]) if 0 <= tick <= times[-1]]
    places = np.interp(ticks, times, np.concatenate([[0.0], updates]))
    apart: list[int] = []
    for i, place in enumerate(places):
        if not apart or place - places[apart[-1]] >= APART * updates[-1]:
            apart.append(i)
    above = axes.secondary_xaxis("top")
    above.set_xticks(places[apart], [f"{ticks[i]:g}" for i in apart])
    above.set_xlabel(unit, color=GREY)
    above.tick_params(colors=GREY)
