"""The figure: steps against path length and number of tiles, with the derived formulas and bounds as lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.ticker import NullFormatter

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


def draw(results: Results, path: Path) -> Path:
    """Write the figure as a PNG file, with a panel for each kind of automaton that was run; return the file's path."""

    def pairs(fact: str, *names: str) -> list[tuple[int, int]]:
        """Return (fact of the maze, steps) for every level on which one of the automata ran."""
        runs = [run for name in names for run in results.of(name)]
        return [pair for cell, mazes in runs for pair in zip(getattr(mazes, fact), cell.steps, strict=False)]

    searches = [pair for _, m in results.of("diameter") for pair in zip(m.free, m.one_by_one, strict=False)]
    # (title, label of x); points of levels: (label, (x, steps), style); lines a x + b: (label, a, b, style)
    all_panels = (
        (
            ("Shortest path", "edges L from source to target"),
            [
                ("the four local forms", pairs("lengths", *LOCAL_FORMS), BLUE, "o"),
                ("the paper's form", pairs("lengths", "all-shortest-paths"), VERMILION, "^"),
            ],
            [("2 L + 2", 2, 2, "-"), ("L + 2", 1, 2, "--")],
        ),
        (
            ("Depth-first search", "tiles visited n"),
            [("steps", pairs("reached", "depth-first"), BLUE, "o")],
            [("2 n", 2, 0, "-"), ("n", 1, 0, "--")],
        ),
        (
            ("All eccentricities and the diameter", "free tiles n"),
            [
                ("one search after the other", searches, VERMILION, "^"),
                ("the automaton", pairs("free", "diameter"), BLUE, "o"),
            ],
            [("8 n", 8, 0, "-"), ("2 n", 2, 0, "--")],
        ),
    )
    panels_shown = [panel for panel in all_panels if any(values for _, values, _, _ in panel[1])] or all_panels
    with figure(path, 4.2 * len(panels_shown), 4.4, dpi=130, style=STYLE) as fig:
        for axes, (about, points, lines) in zip(
            panels(fig, len(panels_shown), len(panels_shown)), panels_shown, strict=True
        ):
            axes.set(title=about[0], xlabel=about[1], ylabel="steps", xscale="log", yscale="log")
            for label, values, colour, marker in points:
                x, y = np.array(values, dtype=float).reshape(-1, 2).T
                rim = {"markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
                axes.plot(x, y, marker, color=colour, label=label, **rim)
            x = np.geomspace(*axes.get_xlim(), 100)
            for label, factor, more, style in lines:
                axes.plot(x, factor * x + more, style, color=GREY, linewidth=1.3, zorder=1, label=label)
            axes.set_xlim(x[0], x[-1])
            axes.set_ylim(top=ROOM_FOR_LEGEND * axes.get_ylim()[1])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_formatter(NullFormatter())
            axes.legend(loc="upper left")
    return path
