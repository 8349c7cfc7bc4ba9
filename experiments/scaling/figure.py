"""The figure: steps against path length and number of tiles, with the derived formulas and bounds as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from maze_nca_gym.agents.evaluation.drawing import BLUE, GREY, VERMILION, figure, panels

from .measure import Results

LOCAL_FORMS = (
    "shortest-path-bfs",
    "shortest-path-bfs:bounded",
    "all-shortest-paths:equal-age",
    "all-shortest-paths:one-flood",
)
ROOM_FOR_LEGEND = 4
STYLE = {"legend.handletextpad": 0.4, "legend.borderaxespad": 0.1}


class Line(NamedTuple):
    """A formula of x, drawn grey."""

    label: str
    formula: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    style: str


class Points(NamedTuple):
    """A point a level: (x, steps)."""

    label: str
    pairs: list[tuple[int, int]]
    colour: str
    marker: str


class Panel(NamedTuple):
    """Points and lines on logarithmic axes."""

    title: str
    x_label: str
    points: list[Points]
    lines: list[Line]


def draw(results: Results, path: Path) -> Path:
    """Write the figure as a PNG file, a panel for each kind of automaton that was run; returns its path."""
    every = (_shortest_paths(results), _depth_first(results), _diameter(results))
    shown = [panel for panel in every if any(points.pairs for points in panel.points)] or every
    with figure(path, 4.2 * len(shown), 4.4, dpi=130, style=STYLE) as drawn:
        for axes, panel in zip(panels(drawn, len(shown), len(shown)), shown, strict=True):
            _draw_panel(axes, panel)
    return path


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel="steps", xscale="log", yscale="log")
    for points in panel.points:
        x, y = np.array(points.pairs, dtype=float).reshape(-1, 2).T
        axes.plot(
            x,
            y,
            points.marker,
            color=points.colour,
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=points.label,
        )
    x = np.geomspace(*axes.get_xlim(), 100)
    for line in panel.lines:
        axes.plot(x, line.formula(x), line.style, color=GREY, linewidth=1.3, zorder=1, label=line.label)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(top=ROOM_FOR_LEGEND * axes.get_ylim()[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper left")


def _shortest_paths(results: Results) -> Panel:
    def pairs(names: Iterable[str]) -> list[tuple[int, int]]:
        runs = [run for name in names for run in results.of(name)]
        return [pair for cell, mazes in runs for pair in zip(mazes.lengths, cell.steps, strict=False)]

    return Panel(
        "Shortest path",
        "edges L from source to target",
        [
            Points("the four local forms", pairs(LOCAL_FORMS), BLUE, "o"),
            Points("the paper's form", pairs(["all-shortest-paths"]), VERMILION, "^"),
        ],
        [Line("2 L + 2", lambda x: 2 * x + 2, "-"), Line("L + 2", lambda x: x + 2, "--")],
    )


def _depth_first(results: Results) -> Panel:
    runs = results.of("depth-first")
    pairs = [pair for cell, mazes in runs for pair in zip(mazes.reached, cell.steps, strict=False)]
    return Panel(
        "Depth-first search",
        "tiles visited n",
        [Points("steps", pairs, BLUE, "o")],
        [Line("2 n", lambda x: 2 * x, "-"), Line("n", lambda x: x, "--")],
    )


def _diameter(results: Results) -> Panel:
    runs = results.of("diameter")
    steps = [pair for cell, mazes in runs for pair in zip(mazes.free, cell.steps, strict=False)]
    one_by_one = [pair for _, mazes in runs for pair in zip(mazes.free, mazes.one_by_one, strict=False)]
    return Panel(
        "All eccentricities and the diameter",
        "free tiles n",
        [
            Points("one search after the other", one_by_one, VERMILION, "^"),
            Points("the automaton", steps, BLUE, "o"),
        ],
        [Line("8 n", lambda x: 8 * x, "-"), Line("2 n", lambda x: 2 * x, "--")],
    )
