"""Figures of evaluations: against iterations, against size, and of stability.

matplotlib is imported here, without its global state: figures are drawn on a canvas of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from maze_nca_gym.files import replacing

from ..figure_style import COLOURS, GREY, INK, STYLE
from .metrics import Estimate, Evaluation, Metrics, Point
from .stability import LONGER, Stability

MARKERS = "o^sDvP*"
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
RUNNING_ON = ":"
PERCENT = PercentFormatter(1, decimals=0, symbol=" %")
Value = TypeVar("Value")
METRICS = ("accuracy", "complete", "optimal")


@dataclass(frozen=True)
class Result:
    """A policy on a set: what tables and figures show.

    Attributes:
        policy: its label.
        family, size: of the levels.
        evaluation: the metrics.
        stability: None if it was not measured.
        enough: iterations with which an exact policy finishes on all levels; None if nothing is promised.
    """

    policy: str
    family: str
    size: int
    evaluation: Evaluation
    stability: Stability | None = None
    enough: int | None = None

    @property
    def metrics(self) -> Metrics:
        """The metrics after the last iteration."""
        return self.evaluation.final

    @property
    def n_wrong(self) -> int:
        """The number of levels that are not solved after the last iteration."""
        return round((1 - self.metrics.optimal.value) * self.evaluation.n_levels)


def draw_iterations(results: Sequence[Result], path: str | Path) -> Path:
    """Write accuracy and complete against iterations as a PNG file, a column a family; returns its path.

    A dotted line goes on to the end of the long run of the stability part, where there was one.
    """
    families = _distinct(result.family for result in results)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 4.2 * len(families), 7.2), dpi=130, layout="constrained")
        grid = figure.subplots(2, len(families), squeeze=False, sharex="col", sharey="row")
        looks = _Looks(results, ("policy", "size"))
        for axes, metric in zip(grid, ("accuracy", "complete"), strict=True):
            for ax, family in zip(axes, families, strict=True):
                for result in (r for r in results if r.family == family):
                    _draw_curve(ax, result, metric, looks)
            axes[0].set_ylabel(metric)
            _fraction_axis(axes[0])
        for ax, family in zip(grid[0], families, strict=True):
            ax.set_title(family)
        for ax in grid[1]:
            ax.set(xlabel="iterations", xscale="log")
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        extra = {"running on": RUNNING_ON} if any(result.stability is not None for result in results) else {}
        looks.legend(figure, extra)
        return _save(figure, path)


def _draw_curve(axes: Axes, result: Result, metric: str, looks: _Looks) -> None:
    curve = result.evaluation.curve
    colour, dash, _ = looks.of(result)
    steps, values, low, high = _columns(curve, metric)
    axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(steps, values, linestyle=dash, color=colour, linewidth=1.8)
    axes.plot(steps[-1:], values[-1:], "o", color=colour, markersize=5, markeredgecolor="white", zorder=3)
    if result.stability is not None:
        steps, values, _, _ = _columns([curve[-1], *result.stability.curve], metric)
        axes.plot(steps, values, linestyle=RUNNING_ON, color=colour, linewidth=1.4, alpha=0.8)


def _columns(curve: Iterable[Point], metric: str) -> tuple[NDArray[np.float64], ...]:
    """Return steps, values, lower and upper ends."""
    rows = [(p.step, e.value, e.low, e.high) for p in curve for e in [_estimate(p.metrics, metric)]]
    return tuple(np.array(rows, dtype=float).T)


def _estimate(metrics: Metrics, metric: str) -> Estimate:
    estimate: Estimate = getattr(metrics, metric)
    return estimate


def draw_sizes(results: Sequence[Result], path: str | Path) -> Path:
    """Write accuracy, complete and optimal against the levels' size as a PNG file; returns its path."""
    sizes = sorted({result.size for result in results})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(13.2, 4.6), dpi=130, layout="constrained")
        looks = _Looks(results, ("policy", "family"))
        for axes, metric in zip(figure.subplots(1, len(METRICS), sharey=True), METRICS, strict=True):
            for policy, family in _distinct((r.policy, r.family) for r in results):
                _draw_line(axes, [r for r in results if (r.policy, r.family) == (policy, family)], metric, looks)
            axes.set(title=metric, xlabel="size", xscale="log")
            axes.xaxis.set_major_locator(FixedLocator(sizes))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
            _fraction_axis(axes)
        looks.legend(figure)
        return _save(figure, path)


def _draw_line(axes: Axes, results: Sequence[Result], metric: str, looks: _Looks) -> None:
    """Draw one policy on one family."""
    ordered = sorted(results, key=lambda result: result.size)
    colour, dash, marker = looks.of(ordered[0])
    estimates = [_estimate(result.evaluation.final, metric) for result in ordered]
    sizes = [result.size for result in ordered]
    axes.fill_between(sizes, [e.low for e in estimates], [e.high for e in estimates], color=colour, alpha=0.18, lw=0)
    line = axes.plot(sizes, [e.value for e in estimates], linestyle=dash, marker=marker, color=colour, linewidth=1.8)
    line[0].set(markersize=6, markeredgecolor="white")


def draw_stability(results: Sequence[Result], path: str | Path) -> Path:
    """Write bars of complete after each disturbance as a PNG file, a panel a set of levels; returns its path.

    Where the maze is edited, a line across the bar says what a fresh start reaches.
    """
    shown = [result for result in results if result.stability is not None]
    sets = _distinct((result.family, result.size) for result in shown)
    columns = min(2, len(sets))
    rows = -(-len(sets) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1 + 7 * columns, 0.8 + 3.4 * rows), dpi=130, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
        looks = _Looks(shown, ("policy",))
        for (family, size), axes in zip(sets, panels, strict=False):
            _draw_bars(axes, [r for r in shown if (r.family, r.size) == (family, size)], looks)
            axes.set_title(f"{family}-{size}")
        for axes in list(panels):
            axes.set_visible(False)
        for axes in figure.axes[::columns]:
            axes.set_ylabel("complete")
        looks.legend(figure, {"a fresh start": "-"})
        return _save(figure, path)


def _draw_bars(axes: Axes, results: Sequence[Result], looks: _Looks) -> None:
    width, labels = 0.8 / len(results), []
    for i, result in enumerate(results):
        assert result.stability is not None
        bars = _bars(result.stability)
        labels = [label for label, _, _ in bars]
        places = np.arange(len(bars)) + (i - (len(results) - 1) / 2) * width
        for place, (_, estimate, fresh) in zip(places, bars, strict=True):
            axes.bar(place, estimate.value, 0.9 * width, color=looks.of(result)[0])
            ends = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
            axes.errorbar(place, estimate.value, ends, color=INK, linewidth=1, capsize=2)
            if fresh is not None:
                axes.hlines(fresh.value, place - 0.5 * width, place + 0.5 * width, color=GREY, linewidth=2.5)
    axes.set_xticks(range(len(labels)), labels, fontsize=10)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PERCENT)


def _bars(stability: Stability) -> list[tuple[str, Estimate, Estimate | None]]:
    """Return (label, complete, complete of a fresh start) of each disturbance."""
    return [
        ("none", stability.before.complete, None),
        (f"{LONGER} times\nas long", stability.after.complete, None),
        *((f"{c.fraction * 100:g} %\ncorrupt", c.after.complete, None) for c in stability.corruption),
        *((e.edit.replace(" ", "\n"), e.continued.complete, e.fresh.complete) for e in stability.edits),
    ]


class _Looks:
    """Colour, dashes and marker of results: the first attribute that varies has the colours."""

    def __init__(self, results: Sequence[Result], attributes: Sequence[str]) -> None:
        values = {name: _distinct(getattr(result, name) for result in results) for name in attributes}
        self._varying = {name: found for name, found in values.items() if len(found) > 1} or {
            attributes[0]: values[attributes[0]]
        }

    def of(self, result: Result) -> tuple[str, Any, str]:
        """Colour, line style and marker."""
        places = [values.index(getattr(result, name)) for name, values in self._varying.items()]
        return self._look(places[0], places[1] if len(places) > 1 else 0)

    def _look(self, first: int, second: int) -> tuple[str, Any, str]:
        marker = second if len(self._varying) > 1 else first
        return COLOURS[first % len(COLOURS)], DASHES[second % len(DASHES)], MARKERS[marker % len(MARKERS)]

    def legend(self, figure: Figure, extra: Mapping[str, str] = MappingProxyType({})) -> None:
        """Draw a legend of the looks, and of more grey lines by their style, above the panels."""
        lines: list[tuple[str, str, Any]] = []
        for i, (name, values) in enumerate(self._varying.items()):
            for place, value in enumerate(values):
                colour, dash = (self._look(place, 0)[0], "-") if i == 0 else (GREY, self._look(0, place)[1])
                lines.append((f"size {value}" if name == "size" else str(value), colour, dash))
        lines += [(label, GREY, style) for label, style in extra.items()]
        handles = [Line2D([], [], linestyle=s, color=c, linewidth=2.5, label=label) for label, c, s in lines]
        figure.legend(handles=handles, loc="outside upper center", ncols=max(1, int(figure.get_figwidth() / 2.4)))


def _distinct(values: Iterable[Value]) -> list[Value]:
    """Return the different values in the order of their first appearance."""
    return list(dict.fromkeys(values))


def _fraction_axis(axes: Axes) -> None:
    """Set the axis from 0 to 100 %, and below where accuracy is negative, but no further than -100 %."""
    axes.set_ylim(max(-1.0, min(-0.03, axes.dataLim.y0)), 1.03)
    axes.yaxis.set_major_formatter(PERCENT)


def _save(figure: Figure, path: str | Path) -> Path:
    """Write the PNG file atomically."""
    path = Path(path)
    FigureCanvasAgg(figure)
    with replacing(path) as file:
        figure.savefig(file, format="png")
    return path
