"""The picture of a leaderboard: the score of each solver against its number of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log10
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ..drawing import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, figure, label_points, legend, panels
from ..figure_options import WIDTHS, FigureWidth
from .rows import SUPERVISIONS, Standing

COLOURS = dict(zip(SUPERVISIONS, (ORANGE, SKY, BLUE, GREEN, VERMILION, PURPLE, GREY), strict=True))
"""Colours of the supervisions in the picture."""


def draw_board(sets: Mapping[str, Sequence[tuple[Standing, float]]], path: Path, width: FigureWidth = None) -> Path:
    """Write a picture with a panel for each set and score, and return its path.

    Args:
        sets: title of a panel -> at least one solver with its percentage.
        path: the file, with a suffix in `FIGURE_FORMATS`.
        width: width in print, or None for a screen.

    Raises:
        ValueError: another suffix.
        OSError: the file could not be written.
    """
    # the axes, which all panels share; solvers without a stated number of weights are at the right
    heights = [min(1.0 + 0.35 * len(solvers), 2.2 + 0.13 * len(solvers)) for solvers in sets.values()]
    lines = [line for solvers in sets.values() for line, _ in solvers]
    weights = [line.entry.weights for line in lines if line.entry.weights]
    least, unstated = min(weights, default=600) / 2, 10.0 ** (ceil(log10(max(weights, default=1000))) + 0.7)
    is_stated = len(weights) == len(lines)
    most = 8.0 * max(weights, default=0) if is_stated else unstated * 3
    ticks = {10.0**i: f"{10 ** (i % 3)}{'kMG'[i // 3 - 1] if i >= 3 else ''}" for i in range(12)}
    ticks = {x: name for x, name in ticks.items() if least < x < min(most, unstated / 3)}
    ticks |= {} if is_stated else {unstated: "not\nstated"}
    percentages, scale = (0, 50, 80, 90, 95, 98, 99, 100), 0.7 if width else 1.0
    with figure(path, 9.5, sum(heights), dpi=150, style={"font.size": 10 * scale}, printed=width) as fig:
        fig.set_figheight(fig.get_figheight() * max(1.0, WIDTHS["page"] / fig.get_figwidth()))  # room for names
        shown = panels(fig, len(sets), 1, height_ratios=heights)
        # a panel for each set, with a point for each solver
        for axes, (title, solvers) in zip(shown, sets.items(), strict=True):
            axes.set_title(title, loc="left", color=INK)
            for line, value in solvers:
                ring = line.entry.searches  # around other points on the same place
                size, edge = (7.5 if line.is_ours else 6.0) + 4.5 * ring, 1.4 if ring else 1.6
                look: dict[str, Any] = {
                    "marker": "o" if line.is_ours else "D",
                    "color": COLOURS[line.entry.supervision],
                    **({"markerfacecolor": "none"} if ring else {}),
                    "markersize": scale * size,
                    "markeredgewidth": scale * edge,
                }
                place = line.entry.weights or unstated, _height(value)
                axes.plot(*place, linestyle="none", zorder=3, clip_on=False, **look)
            axes.set(xscale="log", xlim=(least, most))
            axes.set_xticks(list(ticks), ticks.values())
            axes.xaxis.set_minor_locator(NullLocator())
            if not is_stated:
                axes.axvspan(unstated / 3, most, color=GREY, alpha=0.1, linewidth=0)
            axes.set_yticks([_height(tick) for tick in percentages], [f"{tick} %" for tick in percentages])
            axes.set_ylim(max(-0.08, _height(min(value for _, value in solvers)) - 0.3), 2.45)
            axes.axhline(_height(100), color=GREY, linewidth=0.8, zorder=0)
        shown[-1].set_xlabel("weights")
        # the legend has the colours and shapes that occur
        used = {line.entry.supervision for line in lines}
        samples: dict[str, dict[str, Any]] = {
            f"learns from {name}" if name != "by hand" else name: {"color": COLOURS[name]}
            for name in COLOURS
            if name in used
        }
        if any(line.is_ours for line in lines):
            samples["measured here"] = {"marker": "o"}
        if not all(line.is_ours for line in lines):
            samples["published"] = {"marker": "D", "markersize": 6}
        if any(line.entry.searches for line in lines):
            samples["searches"] = {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 1.6}
        usual = {"linestyle": "none", "marker": "s", "color": GREY, "markersize": 8}
        legend(fig, {label: Line2D([], [], **{**usual, **own}) for label, own in samples.items()})
        # names last, where there is room for them
        for axes, solvers in zip(shown, sets.values(), strict=True):
            label_points(fig, axes, [f"{line.name}  {value:.4g}" for line, value in solvers])
    return path


def _height(percent: float) -> float:
    """Return the height of a percentage in the picture, from 0 to 2: each equal step up halves the failures."""
    return -log10(1.01 - percent / 100)
