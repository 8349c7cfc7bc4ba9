"""Figures of evaluations: against iterations, against size, and of stability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from .cells import Result
from .drawing import (
    COLOURS,
    GREY,
    INK,
    bar_places,
    count_axis,
    curve,
    figure,
    fraction_axis,
    legend,
    panels,
    size_axis,
)
from .figure_options import FigureWidth
from .metrics import Metrics, Point
from .stability import LONGER, Stability
from .statistics import Estimate

MARKERS = "o^sDvP*"
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
RUNNING_ON = ":"
Value = TypeVar("Value")
METRICS = ("accuracy", "complete", "optimal")
FIGURES = ("iterations", "sizes", "stability")
"""Names of the files, without the suffix of their format."""


def draw(results: Sequence[Result], folder: Path, format: str, width: FigureWidth = None) -> list[Path]:
    """Write the figures for which there are results into a folder, with their width in print; return their paths."""
    several_sizes = len({result.size for result in results}) > 1
    disturbed = any(result.stability is not None for result in results)
    wanted = zip(FIGURES, (draw_iterations, draw_sizes, draw_stability), (True, several_sizes, disturbed), strict=True)
    return [draws(results, folder / f"{name}.{format}", width) for name, draws, shows in wanted if shows]


def draw_iterations(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Write accuracy and complete against iterations, one column per family; return the path.

    Where stability was measured, a dotted line goes on to the end of its long run.
    """
    families = _distinct(result.family for result in results)
    with figure(path, 1.2 + 4.2 * len(families), 6.6, dpi=130, printed=width) as drawn:
        grid = np.array(panels(drawn, 2 * len(families), len(families), sharex="col", sharey="row")).reshape(2, -1)
        looks = _Looks(results, ("policy", "size"))
        for row, metric in zip(grid, ("accuracy", "complete"), strict=True):
            for axes, family in zip(row, families, strict=True):
                for result in (r for r in results if r.family == family):
                    _draw_curve(axes, result, metric, looks)
            row[0].set_ylabel(metric)
            fraction_axis(row[0])
        for axes, family in zip(grid[0], families, strict=True):
            axes.set_title(family)
        for axes in grid[1]:
            axes.set(xlabel="iterations", xscale="log")
            count_axis(axes.xaxis)
        disturbed = any(result.stability is not None for result in results)
        legend(drawn, looks.handles() | (_grey("running on", RUNNING_ON) if disturbed else {}))
    return Path(path)


def _draw_curve(axes: Axes, result: Result, metric: str, looks: _Looks) -> None:
    points = result.evaluation.curve
    colour, dash, _ = looks.of(result)
    steps, values, low, high = _columns(points, metric)
    curve(axes, steps, values, low, high, color=colour, end=5, linestyle=dash)
    if result.stability is not None:
        steps, values, _, _ = _columns([points[-1], *result.stability.curve], metric)
        curve(axes, steps, values, color=colour, linestyle=RUNNING_ON, linewidth=1.4, alpha=0.8)


def _columns(points: Iterable[Point], metric: str) -> tuple[NDArray[np.float64], ...]:
    """Return steps, values, lower and upper ends."""
    rows = [(p.step, e.value, e.low, e.high) for p in points for e in [_estimate(p.metrics, metric)]]
    return tuple(np.array(rows, dtype=float).T)


def _estimate(metrics: Metrics, metric: str) -> Estimate:
    estimate: Estimate = getattr(metrics, metric)
    return estimate


def draw_sizes(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Write accuracy, complete and optimal against the levels' size; return the path."""
    sizes = sorted({result.size for result in results})
    with figure(path, 13.2, 4.2, dpi=130, printed=width) as drawn:
        looks = _Looks(results, ("policy", "family"))
        for axes, metric in zip(panels(drawn, len(METRICS), len(METRICS), sharey=True), METRICS, strict=True):
            for policy, family in _distinct((r.policy, r.family) for r in results):
                _draw_line(axes, [r for r in results if (r.policy, r.family) == (policy, family)], metric, looks)
            size_axis(axes, sizes)
            axes.set_title(metric)
            fraction_axis(axes)
        legend(drawn, looks.handles())
    return Path(path)


def _draw_line(axes: Axes, results: Sequence[Result], metric: str, looks: _Looks) -> None:
    """Draw one policy on one family."""
    ordered = sorted(results, key=lambda result: result.size)
    colour, dash, marker = looks.of(ordered[0])
    rows = [(r.size, e.value, e.low, e.high) for r in ordered for e in [_estimate(r.evaluation.final, metric)]]
    curve(axes, *np.array(rows, dtype=float).T, color=colour, linestyle=dash, marker=marker, markersize=6)


def draw_stability(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Write bars of complete after each disturbance, one panel per set of levels; return the path.

    Where the maze is edited, a line across the bar shows what a fresh start reaches.
    """
    shown = [result for result in results if result.stability is not None]
    sets = _distinct((result.family, result.size) for result in shown)
    columns = min(2, len(sets))
    height = 0.4 + 3.4 * -(-len(sets) // columns)
    with figure(path, 1 + 7 * columns, height, dpi=130, printed=width) as drawn:
        looks = _Looks(shown, ("policy",))
        for (family, size), axes in zip(sets, panels(drawn, len(sets), columns, 2.5, sharey=True), strict=True):
            _draw_bars(axes, [r for r in shown if (r.family, r.size) == (family, size)], looks)
            axes.set_title(f"{family}-{size}")
        for axes in drawn.axes:
            place = axes.get_subplotspec()
            axes.set_ylabel("complete" if place is not None and place.is_first_col() else "")
        legend(drawn, looks.handles() | _grey("a fresh start", "-"))
    return Path(path)


def _draw_bars(axes: Axes, results: Sequence[Result], looks: _Looks) -> None:
    bars = [_bars(result.stability) for result in results if result.stability is not None]
    places, width = bar_places(axes, [label for label, _, _ in bars[0]], len(results))
    for result, own, where in zip(results, bars, places, strict=True):
        for place, (_, estimate, fresh) in zip(where, own, strict=True):
            axes.bar(place, estimate.value, width, color=looks.of(result)[0])
            ends = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
            axes.errorbar(place, estimate.value, ends, color=INK, linewidth=1, capsize=2)
            if fresh is not None:
                axes.hlines(fresh.value, place - 0.55 * width, place + 0.55 * width, color=GREY, linewidth=2.5)
    axes.tick_params(axis="x", labelsize="small")
    fraction_axis(axes)
    axes.set_ylim(0, 1.05)


def _bars(stability: Stability) -> list[tuple[str, Estimate, Estimate | None]]:
    """Return (label, complete, complete of a fresh start) of each disturbance."""
    return [
        ("none", stability.before.complete, None),
        (f"{LONGER} times\nas long", stability.after.complete, None),
        *((f"{c.fraction * 100:g} %\ncorrupt", c.after.complete, None) for c in stability.corruption),
        *((e.edit.replace(" ", "\n"), e.continued.complete, e.fresh.complete) for e in stability.edits),
    ]


class _Looks:
    """Colours, dashes and markers of results: colours tell apart the first attribute that varies, dashes the second."""

    def __init__(self, results: Sequence[Result], attributes: Sequence[str]) -> None:
        values = {name: _distinct(getattr(result, name) for result in results) for name in attributes}
        self._varying = {name: found for name, found in values.items() if len(found) > 1} or {
            attributes[0]: values[attributes[0]]
        }

    def of(self, result: Result) -> tuple[str, Any, str]:
        """Return colour, line style and marker."""
        places = [values.index(getattr(result, name)) for name, values in self._varying.items()]
        return self._look(places[0], places[1] if len(places) > 1 else 0)

    def _look(self, first: int, second: int) -> tuple[str, Any, str]:
        marker = second if len(self._varying) > 1 else first
        turn, colour = divmod(first, len(COLOURS))
        return COLOURS[colour], DASHES[(second + turn) % len(DASHES)], MARKERS[marker % len(MARKERS)]

    def handles(self) -> dict[str, Artist]:
        """Return a sample line for each label of the legend."""
        lines: dict[str, Artist] = {}
        for i, (name, values) in enumerate(self._varying.items()):
            for place, value in enumerate(values):
                colour, dash = self._look(place, 0)[:2] if i == 0 else (GREY, self._look(0, place)[1])
                label = f"size {value}" if name == "size" else str(value)
                lines[label] = Line2D([], [], linestyle=dash, color=colour, linewidth=2.5)
        return lines


def _grey(label: str, dash: Any) -> dict[str, Artist]:
    return {label: Line2D([], [], linestyle=dash, color=GREY, linewidth=2.5)}


def _distinct(values: Iterable[Value]) -> list[Value]:
    """Return the distinct values in the order in which they first appear."""
    return list(dict.fromkeys(values))
