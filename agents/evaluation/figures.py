"""Figures of evaluations: against iterations, against size, and of stability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from .cells import Result
from .drawing import COLOURS, GREY, INK, bar_places, count_axis, curve, figure, fraction_axis, legend, panels, size_axis
from .figure_options import FIGURES, FigureWidth
from .metrics import Point
from .stability import LONGER, Stability
from .statistics import Estimate

MARKERS = "o^sDvP*"
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
RUNNING_ON = ":"
METRICS = ("accuracy", "complete", "optimal")


def draw_evaluation(results: Sequence[Result], folder: Path, format: str, width: FigureWidth = None) -> list[Path]:
    """Write the figures for which there are results, at most one of each name in `FIGURES`, and return their paths.

    Args:
        results: the results, one for each policy and set.
        folder: the folder of the figures.
        format: file type of the figures, one of `FIGURE_FORMATS`.
        width: width in print, or None for figures on a screen.
    """
    several_sizes = len({result.size for result in results}) > 1
    disturbed = any(result.stability is not None for result in results)
    wanted = zip(FIGURES, (draw_iterations, draw_sizes, draw_stability), (True, several_sizes, disturbed), strict=True)
    return [draws(results, folder / f"{name}.{format}", width) for name, draws, shows in wanted if shows]


def draw_iterations(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Plot accuracy and the fraction of complete levels against iterations, one column per family, and return the path.

    If stability was measured, a dotted line continues the curve to the end of the long run.
    """
    families = list(dict.fromkeys(result.family for result in results))
    looks = _Looks(results, ("policy", "size"))
    with figure(path, 1.2 + 4.2 * len(families), 6.6, dpi=130, printed=width) as fig:
        grid = np.array(panels(fig, 2 * len(families), len(families), sharex="col", sharey="row")).reshape(2, -1)
        for row, metric in zip(grid, ("accuracy", "complete"), strict=True):
            for (axes, family), result in product(zip(row, families, strict=True), results):
                if result.family == family:
                    points = result.evaluation.curve
                    look = looks.of(result) | {"marker": ""}
                    curve(axes, *_columns(points, metric), end=5, **look)
                    if result.stability is not None:
                        steps, values, *_ = _columns([points[-1], *result.stability.curve], metric)
                        look |= {"linestyle": RUNNING_ON, "linewidth": 1.4, "alpha": 0.8}
                        curve(axes, steps, values, **look)
            row[0].set_ylabel(metric)
            fraction_axis(row[0])
        for axes, family in zip(grid[0], families, strict=True):
            axes.set_title(family)
        for axes in grid[1]:
            axes.set(xlabel="iterations", xscale="log")
            count_axis(axes.xaxis)
        disturbed = any(result.stability is not None for result in results)
        legend(fig, looks.handles() | ({"running on": _sample(RUNNING_ON)} if disturbed else {}), looks.title)
    return Path(path)


def _columns(points: Iterable[Point], metric: str) -> NDArray[np.float64]:
    """Return steps, values, lower and upper ends, (4, N)."""
    estimates = [(point.step, getattr(point.metrics, metric)) for point in points]
    return np.array([(step, it.value, it.low, it.high) for step, it in estimates], dtype=float).T


def draw_sizes(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Plot accuracy and the fractions of complete and optimal levels against the size of levels, and return the
    path."""
    lines: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(results, key=lambda result: result.size):
        lines.setdefault((result.policy, result.family), []).append(result)
    looks = _Looks(results, ("policy", "family"))
    with figure(path, 13.2, 4.2, dpi=130, printed=width) as fig:
        for axes, metric in zip(panels(fig, len(METRICS), len(METRICS), sharey=True), METRICS, strict=True):
            for named in dict.fromkeys((result.policy, result.family) for result in results):
                places = _columns([Point(result.size, result.metrics) for result in lines[named]], metric)
                curve(axes, *places, markersize=6, **looks.of(lines[named][0]))
            size_axis(axes, sorted({result.size for result in results}))
            axes.set_title(metric)
            fraction_axis(axes)
        legend(fig, looks.handles(), looks.title)
    return Path(path)


def draw_stability(results: Sequence[Result], path: str | Path, width: FigureWidth = None) -> Path:
    """Plot the fraction of complete levels after each disturbance as bars, and return the path.

    There is one panel per set of levels. If the maze was edited, a line across the bar shows the fraction that a policy
    reaches from a state of zeros.
    """
    sets: dict[str, list[tuple[Result, Stability]]] = {}
    for result in results:
        if result.stability is not None:
            sets.setdefault(f"{result.family}-{result.size}", []).append((result, result.stability))
    columns = min(2, len(sets))
    height = 0.4 + 3.4 * -(-len(sets) // columns)
    with figure(path, 1 + 7 * columns, height, dpi=130, printed=width) as fig:
        looks = _Looks([result for own in sets.values() for result, _ in own], ("policy",))
        for (title, own), axes in zip(sets.items(), panels(fig, len(sets), columns, 2.5, sharey=True), strict=True):
            bars: list[dict[str, tuple[Estimate, Estimate | None]]] = [
                {
                    "none": (stability.before.complete, None),
                    f"{LONGER} times\nas long": (stability.after.complete, None),
                    **{f"{c.fraction * 100:g} %\ncorrupt": (c.after.complete, None) for c in stability.corruption},
                    **{e.edit.replace(" ", "\n"): (e.continued.complete, e.fresh.complete) for e in stability.edits},
                }
                for _, stability in own
            ]
            places, wide = bar_places(axes, [*bars[0]], len(own))
            for (result, _), shown, where in zip(own, bars, places, strict=True):
                for place, (it, fresh) in zip(where, shown.values(), strict=True):
                    axes.bar(place, it.value, wide, color=looks.of(result)["color"])
                    ends = [[it.value - it.low], [it.high - it.value]]
                    axes.errorbar(place, it.value, ends, color=INK, linewidth=1, capsize=2)
                    if fresh is not None:
                        axes.hlines(fresh.value, place - 0.55 * wide, place + 0.55 * wide, color=GREY, linewidth=2.5)
            axes.tick_params(axis="x", labelsize="small")
            fraction_axis(axes)
            axes.set_ylim(0, 1.05)
            axes.set_title(title)
        for axes in fig.axes:
            spec = axes.get_subplotspec()
            axes.set_ylabel("complete" if spec is not None and spec.is_first_col() else "")
        legend(fig, looks.handles() | {"a fresh start": _sample("-")})
    return Path(path)


class _Looks:
    """Colours, widths, dashes and markers of results.

    Colours and widths distinguish the values of the first attribute that varies. Dashes and markers distinguish the
    values of the second attribute or, if only one attribute varies, of the first too. Therefore a line remains visible
    behind another line with the same points.
    """

    def __init__(self, results: Sequence[Result], attributes: Sequence[str]) -> None:
        values = {name: list(dict.fromkeys(getattr(result, name) for result in results)) for name in attributes}
        self._varying = {name: choices for name, choices in values.items() if len(choices) > 1} or {
            attributes[0]: values[attributes[0]]
        }
        self.title = "" if "policy" in self._varying else values["policy"][0]
        """The policy, where the legend does not name it."""

    def of(self, result: Result) -> dict[str, Any]:
        """Return colour, line width, line style and marker by their names in matplotlib."""
        (first, n), *others = (
            (values.index(getattr(result, name)), len(values)) for name, values in self._varying.items()
        )
        second = others[0][0] + first // len(COLOURS) if others else first
        return {
            "color": COLOURS[first % len(COLOURS)],
            "linewidth": 0.15 * mpl.rcParams["font.size"] * (1 + 0.7 * (n - 1 - first) / max(1, n - 1)),
            "linestyle": DASHES[second % len(DASHES)],
            "marker": MARKERS[second % len(MARKERS)],
        }

    def handles(self) -> dict[str, Artist]:
        """Return a sample line for each label of the legend."""
        lines: dict[str, Artist] = {}
        for i, (name, values) in enumerate(self._varying.items()):
            for place, value in enumerate(values):
                label = f"size {value}" if name == "size" else str(value)
                dash = place if i or len(self._varying) == 1 else place // len(COLOURS)
                lines[label] = _sample(DASHES[dash % len(DASHES)], GREY if i else COLOURS[place % len(COLOURS)])
        return lines


def _sample(dash: Any, colour: str = GREY) -> Artist:
    return Line2D([], [], linestyle=dash, color=colour, linewidth=2.5)
