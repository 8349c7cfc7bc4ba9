"""The drawing of every figure: one style, panels, curves with intervals, axes, legends, labels of points, and files.

matplotlib is imported here, but its global state is not used, because every figure has its own canvas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path as Path2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, PercentFormatter
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.support.files import atomic_write, user_path
from maze_nca_gym.support.names import find, unknown_name

from .figure_options import FIGURE_FORMATS, WIDTHS, FigureWidth

_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = _OKABE_ITO
COLOURS = (*_OKABE_ITO, "#882255", "#999933", "#332288", "#A0522D")
"""Colours of lines: Okabe and Ito's colours, which colour-blind readers can distinguish, then three of Tol's and a
brown."""
INK, GREY = "#212529", "#6c757d"
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "figure.titlesize": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e9ecef",
    "legend.frameon": False,
    "svg.hashsalt": "maze-nca-gym",  # without it every file has other names of its parts
}
"""Settings of matplotlib for every figure."""
PRINTED: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "figure.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.labelpad": 2,
    "legend.columnspacing": 1.2,
    "pdf.fonttype": 42,  # as text that can be selected and edited, which some publishers ask for
}
"""Further settings for figures in print, which have text of the size of a caption."""
_ANGLES = [math.radians(angle) for angle in (0, 180, 270, 90, -25, 205, 25, 155, -50, 230, -70, 250, 50, 130, 75, 105)]
"""Directions, as angles, in which a text is placed next to its point, in the order of trial: right, left, below and
above first."""
_TRIES = 30
"""Largest number of attempts to place all texts, each in another order, while some line crosses a text or a point."""
_UNDATED: Mapping[str, Mapping[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Metadata that are left out, by format, so that a figure drawn on another day has the same bytes."""


@contextmanager
def figure(
    path: str | Path,
    width: float,
    height: float,
    title: str = "",
    *,
    dpi: int = 120,
    style: dict[Any, Any] | None = None,
    printed: FigureWidth = None,
) -> Iterator[Figure]:
    """Yield an empty figure, which is written to a file, atomically, when the block ends without an error.

    Args:
        path: the file, with a suffix in `FIGURE_FORMATS`.
        width, height: size on a screen, in inches.
        title: a line above the panels.
        dpi: pixels per inch, for formats with pixels.
        style: settings that replace settings of the same name in `STYLE`.
        printed: width in print, to which the figure shrinks, with the text of `PRINTED`; None for a figure on a screen.

    Raises:
        ValueError: another suffix, or an unknown name of a width.
        OSError: the file could not be written.
    """
    path = user_path(path)
    kind = path.suffix.removeprefix(".")
    if kind not in FIGURE_FORMATS:
        raise ValueError(unknown_name("format of figures", kind, FIGURE_FORMATS))
    in_print = find("width of figures", printed, WIDTHS) if isinstance(printed, str) else printed
    with mpl.rc_context():
        mpl.rcdefaults()  # the user's own settings are for their own figures, and can need programs such as LaTeX
        mpl.rcParams.update({**STYLE, **(PRINTED if in_print else {}), **(style or {})})
        if in_print:  # a little higher, since text shrinks less than panels
            width, height, dpi = in_print, 1.25 * height * in_print / width, 300
        fig = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        FigureCanvasAgg(fig)
        if title:
            fig.suptitle(wrapped(title, width, float(mpl.rcParams["figure.titlesize"])), color=INK)
        yield fig
        with atomic_write(path) as file:
            fig.savefig(file, format=kind, metadata=_UNDATED.get(kind))


def panels(fig: Figure, n: int, columns: int, narrowest: float = 1.6, **options: Any) -> list[Axes]:
    """Return n panels of a figure, row by row; the rest of the last row stays empty.

    Args:
        fig: the figure, which gets higher if it is too narrow for that number of columns.
        n: number of panels, at least 1.
        columns: largest number of panels in a row; the exact number if panels share horizontal axes.
        narrowest: width of a panel, in inches, below which there are fewer columns.
        options: of `Figure.subplots`, such as `sharey`.
    """
    columns = min(n, columns)
    if "sharex" not in options:
        wanted, columns = columns, max(1, min(columns, int(fig.get_figwidth() / narrowest)))
        fig.set_figheight(fig.get_figheight() * ceil(n / columns) / ceil(n / wanted) * wanted / columns)
    grid = list(fig.subplots(ceil(n / columns), columns, squeeze=False, **options).flat)
    for axes in grid[n:]:
        axes.set_visible(False)
    return grid[:n]


def panel_width(axes: Axes) -> float:
    """Return the width of a panel in inches, including its labels."""
    return axes.get_figure().get_figwidth() / axes.get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]


def curve(
    axes: Axes,
    x: Sequence[float] | NDArray[Any],
    y: Sequence[float] | NDArray[Any],
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    color: str,
    end: float = 0.0,
    **options: Any,
) -> None:
    """Draw a line through N points.

    Args:
        axes: the panel.
        x, y: (N,) coordinates of the points.
        low, high: (N,) ends of the intervals of y, drawn as a band, or None for no band.
        color: colour of the line.
        end: diameter of a dot on the last point, in points of type, or 0 for no dot.
        options: of `Axes.plot`.
    """
    if low is not None and high is not None:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
    thickness = 0.15 * mpl.rcParams["font.size"]
    axes.plot(x, y, color=color, **{"linewidth": thickness, "markeredgecolor": "white", **options})
    if end:
        axes.plot(x[-1:], y[-1:], "o", color=color, markersize=end, markeredgecolor="white", zorder=3, clip_on=False)


def bar_places(axes: Axes, labels: Sequence[str], n: int) -> tuple[NDArray[np.float64], float]:
    """Label groups of bars on the horizontal axis; return the positions and the width of the bars.

    In print, labels that would overlap are turned by 90 degrees.

    Args:
        axes: the panel.
        labels: a label for each of G groups.
        n: the number of bars in a group.

    Returns:
        The middles of the bars, (n, G) float64, and the width of a bar.
    """
    width = 0.8 / n
    axes.set_xticks(range(len(labels)), labels)
    size, room = float(mpl.rcParams["font.size"]), panel_width(axes) / len(labels)
    if size == PRINTED["font.size"] and max(map(len, "\n".join(labels).split("\n"))) > room * 72 / (0.5 * size):
        axes.set_xticks(range(len(labels)), [label.replace("\n", " ") for label in labels], rotation=90)
    axes.grid(axis="x", visible=False)
    return np.arange(len(labels)) + width * (np.arange(n)[:, None] - (n - 1) / 2), 0.9 * width


def count_axis(axis: Axis, n_ticks: int | None = None) -> None:
    """Write the numbers of an axis with commas between the thousands.

    Args:
        axis: an axis of whole numbers.
        n_ticks: largest number of ticks, which are then on whole numbers, or None to leave the ticks where they are.
    """
    if n_ticks is not None:
        axis.set_major_locator(MaxNLocator(n_ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def fraction_axis(axes: Axes) -> None:
    """Show fractions on the vertical axis in percent, from 0 to 100.

    If the panel has negative values, the axis begins at the lowest value, but not below -100 %.
    """
    axes.set_ylim(max(-1.0, min(-0.03, axes.dataLim.y0)), 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the horizontal axis of a panel logarithmic, with a tick at each size of levels."""
    axes.set(xlabel="size", xscale="log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    count_axis(axes.xaxis)


def legend(fig: Figure, handles: Mapping[str, Artist] | None = None, title: str = "") -> None:
    """Draw a legend above the panels, in as many columns as the width allows, and increase the figure's height by its
    height.

    Long labels are wrapped, not cut off.

    Args:
        fig: the figure.
        handles: label -> the artist that it describes; by default every label of any panel, once.
        title: a line above the labels.
    """
    artists = dict(handles or {})
    for axes in fig.axes if handles is None else ():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            artists.setdefault(label, handle)
    if not artists:
        return
    labels = [wrapped(label, fig.get_figwidth() - 0.8) or " " for label in artists]
    renderer = fig.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg's
    room = fig.bbox.width - 0.2 * fig.dpi
    counts = dict.fromkeys(ceil(len(artists) / rows) for rows in range(1, len(artists) + 1))  # rows as full as can be
    for columns in counts:
        block = fig.legend(artists.values(), labels, loc="outside upper center", ncols=columns, title=title or None)
        box = block.get_window_extent(renderer)
        if box.width <= room or columns == 1:
            break
        block.remove()
    fig.set_figheight(fig.get_figheight() + box.height / fig.dpi)


def wrapped(text: str, inches: float, size: float | None = None) -> str:
    """Return a text with line breaks, so that lines are at most `inches` wide.

    Args:
        text: the text.
        inches: the largest width.
        size: the size of the font in points, by default the font size of the figure.
    """
    return "\n".join(wrap(text, max(8, int(inches * 72 / (0.62 * (size or mpl.rcParams["font.size"]))))))


def label_points(fig: Figure, axes: Axes, texts: Sequence[str]) -> None:
    """Write a text next to each of the points that were drawn with `Axes.plot`, so that no two texts overlap.

    A text takes the nearest free place around its point, and a thin line leads to the text if it is far from its point.
    No line crosses a text or another point, unless there is no such place. The call fixes the figure's layout, so it
    must come last.

    Args:
        fig: the figure.
        axes: its panel.
        texts: one text for each point, in the order of drawing.
    """
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    points = [axes.transData.transform(np.asarray(line.get_xydata())[0]) for line in axes.lines[: len(texts)]]
    scale = 0.1 * mpl.rcParams["font.size"]
    look: dict[str, Any] = {"size": 8.5 * scale, "color": INK, "va": "center"}
    labels = [axes.text(0, 0, text, transform=axes.transAxes, ha="center", **look) for text in texts]
    for label in labels:
        label.set_path_effects([withStroke(linewidth=2, foreground="white")])  # lines of the grid stay behind it
    sizes = [label.get_window_extent(fig.canvas.get_renderer()).size for label in labels]  # type: ignore[attr-defined]  # Agg's
    inside, unit = axes.get_window_extent(), scale * fig.dpi / 72
    rng, tries, n = np.random.default_rng(0), list[list[_Placed]](), len(texts)
    while len(tries) < _TRIES and (not tries or any(place.n_crossed for place in tries[-1])):
        order, placed = rng.permutation(n) if tries else range(n), dict[int, _Placed]()
        for i in [*order, *order]:
            others = [place for j, place in placed.items() if j != i]
            placed[i] = _place(i, sizes[i], points, inside, unit, others)
        tries.append([placed[i] for i in range(n)])
    best = min(tries, key=lambda placed: sum(place.n_crossed for place in placed))
    fractions = axes.transAxes.inverted()  # pixels are others in a PDF or SVG
    for label, place in zip(labels, best, strict=True):
        label.set_position(tuple(fractions.transform(place.box.corners().mean(axis=0))))
        axes.plot(*fractions.transform(place.line).T, color=GREY, linewidth=0.6, transform=axes.transAxes, zorder=1)


class _Placed(NamedTuple):
    """The place of a text, in pixels: its box, the (K, 2) points of its line, and the number of crossings.

    Crossings are texts, points and lines of others that the line crosses, and lines of others that cross the box.
    """

    box: Bbox
    line: NDArray[np.float64]
    n_crossed: int


def _place(
    i: int,
    size: NDArray[np.float64],
    points: Sequence[NDArray[np.float64]],
    inside: Bbox,
    unit: float,
    others: Sequence[_Placed],
) -> _Placed:
    """Return the place of a text next to point i with the fewest crossings; the nearest of such places."""
    marks = [Bbox.from_extents(x - 6 * unit, y - 6 * unit, x + 6 * unit, y + 6 * unit) for x, y in points]
    far = [mark for mark in marks if not mark.overlaps(marks[i])]
    best = None
    for distance, angle in product((11, 18, 26, 38, 52, 68, 86, 106, 130, 160), _ANGLES):
        across, up = distance * math.cos(angle), distance * math.sin(angle)
        x, y = end = points[i] + unit * np.array([across, up])
        left = x - size[0] * (0 if across > 0.1 else 1 if across < -0.1 else 0.5)
        box = Bbox.from_bounds(left, y - size[1] / 2, *size).padded(1.5 * unit)
        taken = (*marks, *(other.box for other in others))
        if any(map(box.overlaps, taken)) or inside.count_contains(box.corners()) < 4:
            continue
        line = np.linspace(points[i], end, 100 if distance > 18 else 0)
        line = np.array([point for point in line if not box.contains(*point)]).reshape(-1, 2)
        n_crossed = sum(mark.count_contains(line) > 0 for mark in far)
        for other in others:  # lines may cross near their points
            both_long = min(len(line), len(other.line)) > 20
            crosses = both_long and Path2D(line[[20, -1]]).intersects_path(Path2D(other.line[[20, -1]]))
            n_crossed += crosses or other.box.count_contains(line) > 0 or box.count_contains(other.line) > 0
        if not len(line):  # then it must not be nearer to another point
            n_crossed += any(math.dist(end, point) < 0.99 * distance * unit for point in points)
        if best is None or n_crossed < best.n_crossed:
            best = _Placed(box, line, n_crossed)
        if not n_crossed:
            break
    return best or _Placed(box, np.empty((0, 2)), 1)  # the latter: no room at all


def strip(
    path: str | Path, pictures: Sequence[NDArray[Any]], captions: Sequence[str], title: str, printed: FigureWidth = None
) -> Path:
    """Write pictures side by side, each below its captions, as one figure, and return its path.

    Args:
        path: the file, with a suffix in `FIGURE_FORMATS`.
        pictures: (H, W, 3) uint8 pictures. Equal pictures that follow one another are drawn once, below all their
            captions.
        captions: a caption for each picture.
        title: a line above the pictures.
        printed: width in print, or None for a figure on a screen. In print the pictures may need several rows.

    Raises:
        ValueError: another suffix.
        OSError: the file could not be written.
    """
    runs: list[tuple[NDArray[Any], list[str]]] = []
    for picture, caption in zip(pictures, captions, strict=True):
        if not runs or not np.array_equal(runs[-1][0], picture):
            runs.append((picture, []))
        runs[-1][1].append(caption)
    with figure(path, 2.7 * len(runs), 3.3, title, dpi=110, printed=printed) as fig:
        for axes, (picture, words) in zip(panels(fig, len(runs), len(runs), 1.0), runs, strict=True):
            axes.imshow(picture, interpolation="nearest")
            axes.set_title(",\n".join(words), fontsize="medium")
            axes.set_axis_off()
    return Path(path)
