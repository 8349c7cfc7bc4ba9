"""How every figure is drawn: one style, panels, curves with intervals, axes, legends that fit, strips, and files.

matplotlib is imported here, without its global state: figures are drawn on a canvas of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, PercentFormatter
from matplotlib.transforms import Bbox, IdentityTransform
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.files import atomic_write
from maze_nca_gym.names import find, unknown_name

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = _OKABE_ITO = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
COLOURS = (*_OKABE_ITO, "#882255", "#999933", "#332288", "#A0522D")
"""Okabe and Ito's colours, which the colour-blind can distinguish, and behind them four of Tol's and a brown."""
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
"""Settings for `matplotlib.rc_context`."""
FIGURE_FORMATS = ("png", "pdf", "svg")
"""Suffixes of files of figures."""
Width: TypeAlias = float | str | None
"""Width of a figure in print: inches, a name in `WIDTHS`, or None for a large figure on a screen."""
WIDTHS = {"column": 3.35, "page": 6.9}
"""Usual widths in inches: one of a page's two columns, or both."""
PRINTED: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "figure.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.labelpad": 2,
    "legend.columnspacing": 1.2,
    "pdf.fonttype": 42,  # as text that can be selected and edited, which some publishers ask for
}
"""Settings for `matplotlib.rc_context` of figures in print, whose text is as small as a caption's."""
_ANGLES = [math.radians(angle) for angle in (0, 180, 270, 90, -25, 205, 25, 155, -50, 230, -70, 250, 50, 130, 75, 105)]
"""Where a text is tried around its point: right, left, below and above first."""
_TRIES = 30
"""How often all texts are placed anew while some line crosses a text or a point."""
_UNDATED: Mapping[str, Mapping[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Format -> metadata without which the same figure is the same file tomorrow."""


def check_format(name: str) -> str:
    """Return the name of a format of figures.

    Raises:
        ValueError: it is none of `FIGURE_FORMATS`.
    """
    if name not in FIGURE_FORMATS:
        raise ValueError(unknown_name("format of figures", name, FIGURE_FORMATS))
    return name


def inches(width: Width) -> float | None:
    """Return a width in print in inches; None for None.

    Raises:
        ValueError: an unknown name, or not from 1 to 50 inches.
    """
    if isinstance(width, str):
        width = find("width of figures", width, WIDTHS)
    if width is not None and not 1 <= width <= 50:
        raise ValueError(f"a width of figures is {', '.join(WIDTHS)} or from 1 to 50 inches, got {width}")
    return width


@contextmanager
def figure(
    path: str | Path,
    width: float,
    height: float,
    title: str = "",
    *,
    dpi: int = 120,
    style: dict[Any, Any] | None = None,
    printed: Width = None,
) -> Iterator[Figure]:
    """Yield an empty figure, which is written to a file, atomically, when the block ends without an error.

    Args:
        path: the file, whose suffix is one of `FIGURE_FORMATS`.
        width, height: in inches, on a screen.
        title: a line above the panels.
        dpi: pixels per inch, where the format has pixels.
        style: settings that go before those of `STYLE`.
        printed: width in print, to which the figure shrinks, with the text of `PRINTED`.

    Raises:
        ValueError: another suffix, or a bad width.
        OSError: the file could not be written.
    """
    path = Path(path)
    kind = check_format(path.suffix.removeprefix("."))
    in_print = inches(printed)
    with mpl.rc_context({**STYLE, **(PRINTED if in_print else {}), **(style or {})}):
        if in_print:  # a little higher, since text shrinks less than panels
            width, height, dpi = in_print, 1.25 * height * in_print / width, 300
        drawn = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        FigureCanvasAgg(drawn)
        if title:
            letters = _letters(width, float(mpl.rcParams["figure.titlesize"]))
            drawn.suptitle("\n".join(wrap(title, letters)), color=INK)
        yield drawn
        with atomic_write(path) as file:
            drawn.savefig(file, format=kind, metadata=_UNDATED.get(kind))


def panels(drawn: Figure, n: int, columns: int, narrowest: float = 1.6, **options: Any) -> list[Axes]:
    """Return n panels, row by row; the rest of the last row stays empty.

    Args:
        drawn: the figure, which gets higher if it is too narrow for that many columns.
        n: at least 1.
        columns: panels in a row, at the most; exactly so many if they share horizontal axes.
        narrowest: width of a panel, in inches, below which there are fewer columns.
        options: of `Figure.subplots`, such as `sharey`.
    """
    columns = min(n, columns)
    if "sharex" not in options:
        wanted, columns = columns, max(1, min(columns, int(drawn.get_figwidth() / narrowest)))
        drawn.set_figheight(drawn.get_figheight() * ceil(n / columns) / ceil(n / wanted) * wanted / columns)
    made = list(drawn.subplots(ceil(n / columns), columns, squeeze=False, **options).flat)
    for axes in made[n:]:
        axes.set_visible(False)
    return made[:n]


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
    """Draw a line of (N,) points.

    Args:
        axes: where to.
        x, y: the points.
        low, high: ends of their intervals, drawn as a band; None for no band.
        color: the line's.
        end: size of a dot on the last point; 0 for none.
        options: of `Axes.plot`.
    """
    if low is not None and high is not None:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
    thickness = 0.15 * mpl.rcParams["font.size"]
    axes.plot(x, y, color=color, **{"linewidth": thickness, "markeredgecolor": "white", **options})
    if end:
        axes.plot(x[-1:], y[-1:], "o", color=color, markersize=end, markeredgecolor="white", zorder=3)


def bar_places(axes: Axes, labels: Sequence[str], n: int) -> tuple[NDArray[np.float64], float]:
    """Label groups of n bars each; return the (n, len(labels)) middles of the bars, and the width of each.

    Labels that would overlap in print are turned.
    """
    width = 0.8 / n
    axes.set_xticks(range(len(labels)), labels)
    size, columns = float(mpl.rcParams["font.size"]), axes.get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    room = axes.get_figure().get_figwidth() / columns / len(labels)  # type: ignore[union-attr]
    if size == PRINTED["font.size"] and max(map(len, "\n".join(labels).split("\n"))) > room * 72 / (0.5 * size):
        axes.set_xticks(range(len(labels)), [label.replace("\n", " ") for label in labels], rotation=90)
    axes.grid(axis="x", visible=False)
    return np.arange(len(labels)) + width * (np.arange(n)[:, None] - (n - 1) / 2), 0.9 * width


def count_axis(axis: Axis, n_ticks: int | None = None) -> None:
    """Write the numbers of an axis with commas between the thousands.

    Args:
        axis: of whole numbers.
        n_ticks: the number of ticks, at the most, each on a whole number; None to leave them where they are.
    """
    if n_ticks is not None:
        axis.set_major_locator(MaxNLocator(n_ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def fraction_axis(axes: Axes) -> None:
    """Write the vertical axis in percent, from 0 to 100; where what is drawn is negative, from there, at least -100."""
    axes.set_ylim(max(-1.0, min(-0.03, axes.dataLim.y0)), 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the horizontal axis one of sizes, logarithmic, with a tick at each of them."""
    axes.set(xlabel="size", xscale="log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    count_axis(axes.xaxis)


def legend(drawn: Figure, handles: Mapping[str, Artist] | None = None) -> None:
    """Draw a legend above the panels, in as many columns as fit, and make the figure higher by as much.

    Long labels go on in further lines: nothing of them is left out.

    Args:
        drawn: the figure.
        handles: label -> what has it; by default all that has a label in any panel, each label once.
    """
    found = dict(handles) if handles is not None else _labelled(drawn)
    if not found:
        return
    size = float(mpl.rcParams["font.size"])
    labels = ["\n".join(wrap(label, _letters(drawn.get_figwidth() - 0.8, size))) or " " for label in found]
    renderer = drawn.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg's
    room = drawn.bbox.width - 0.2 * drawn.dpi
    counts = dict.fromkeys(ceil(len(found) / rows) for rows in range(1, len(found) + 1))  # rows as full as can be
    for columns in counts:
        made = drawn.legend(found.values(), labels, loc="outside upper center", ncols=columns)
        box = made.get_window_extent(renderer)
        if box.width <= room or columns == 1:
            break
        made.remove()
    drawn.set_figheight(drawn.get_figheight() + box.height / drawn.dpi)


def _labelled(drawn: Figure) -> dict[str, Artist]:
    found: dict[str, Artist] = {}
    for axes in drawn.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in found}
    return found


def _letters(inches: float, size: float) -> int:
    """Return how many letters of a font size are surely no wider than that."""
    return max(8, int(inches * 72 / (0.62 * size)))


def label_points(drawn: Figure, axes: Axes, texts: Sequence[str], size: float = 8.5) -> None:
    """Write a text beside each of the points that were drawn with `Axes.plot`, so that no two texts overlap.

    A text takes the nearest free place around its point, and a thin line leads to it if it is far. No line crosses a
    text or another point, unless there is no such place. The figure's layout is fixed by this, so it comes last.

    Args:
        drawn: the figure.
        axes: its panel.
        texts: one for each point, in the order of drawing.
        size: of the letters, in points.
    """
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    points = [axes.transData.transform(np.asarray(line.get_xydata())[0]) for line in axes.lines[: len(texts)]]
    labels = [
        axes.annotate(text, tuple(point), (0, 0), "figure pixels", "offset points", size=size, color=INK, va="center")
        for text, point in zip(texts, points, strict=True)
    ]
    for label in labels:
        label.set_path_effects([withStroke(linewidth=2, foreground="white")])  # lines of the grid stay behind it
    leaving = np.random.default_rng(0).random((_TRIES, len(texts))) < 0.15
    leaving[0] = False  # afterwards some leave their nearest place to others
    for tried in leaving:
        lines, n_crossed = _place(drawn, axes, labels, points, tried)
        if not n_crossed:
            break
    for line in lines:
        axes.plot(*line.T, color=GREY, linewidth=0.6, transform=IdentityTransform(), zorder=1)


def _place(
    drawn: Figure,
    axes: Axes,
    labels: Sequence[Annotation],
    points: Sequence[NDArray[Any]],
    leaving: NDArray[np.bool_],
) -> tuple[list[NDArray[np.float64]], int]:
    """Move labels to the nearest free places beside their points, one after the other; some to the next nearest.

    Returns:
        The lines to the labels, (K, 2) pixels each, as far as its text, and how many of them cross something.
    """
    renderer, inside, unit = drawn.canvas.get_renderer(), axes.get_window_extent(), drawn.dpi / 72  # type: ignore[attr-defined]  # Agg's
    marks = [Bbox.from_extents(x - 6 * unit, y - 6 * unit, x + 6 * unit, y + 6 * unit) for x, y in points]
    boxes: list[Bbox] = []
    lines: list[NDArray[np.float64]] = []
    n_crossed = 0
    for label, point, mark, waits in zip(labels, points, marks, leaving.tolist(), strict=True):
        others, found = [each for each in marks if not each.overlaps(mark)], None
        for distance, angle in product((11, 18, 26, 38, 52, 68, 86, 106, 130, 160), _ANGLES):
            across, up = distance * math.cos(angle), distance * math.sin(angle)
            side = "left" if across > 0.1 else "right" if across < -0.1 else "center"
            label.set(position=(across, up), ha=side)
            box = label.get_window_extent(renderer).padded(1.5 * unit)
            if any(map(box.overlaps, (*marks, *boxes))) or not _contains(inside, box):
                continue
            line = np.linspace(point, point + np.array([across, up]) * unit, 100 if distance > 18 else 0)
            crossed = any([*map(box.count_contains, lines), *(each.count_contains(line) for each in (*boxes, *others))])
            if found is None or not crossed:
                found = crossed, (across, up), side, box, line
            if not crossed and not waits:
                break
            waits = waits and crossed
        if found is None:  # no room at all
            found = True, (across, up), side, box, np.empty((0, 2))
        crossed, place, side, box, line = found
        label.set(position=place, ha=side)
        boxes.append(box)
        lines.append(np.array([each for each in line if not box.contains(*each)]).reshape(-1, 2))
        n_crossed += crossed
    return lines, n_crossed


def _contains(outer: Bbox, inner: Bbox) -> bool:
    return bool(outer.x0 <= inner.x0 and inner.x1 <= outer.x1 and outer.y0 <= inner.y0 and inner.y1 <= outer.y1)


def strip(
    path: str | Path, pictures: Sequence[NDArray[Any]], captions: Sequence[str], title: str = "", height: float = 3.3
) -> Path:
    """Write pictures beside each other, a line of text above each, as one figure; return its path.

    Args:
        path: the file, whose suffix is one of `FIGURE_FORMATS`.
        pictures: (H, W, 3) uint8 each.
        captions: one for each.
        title: a line above them.
        height: of the figure, in inches.

    Raises:
        ValueError: another suffix.
        OSError: the file could not be written.
    """
    with figure(path, 2.7 * len(pictures), height, title, dpi=110) as drawn:
        for axes, picture, caption in zip(panels(drawn, len(pictures), len(pictures)), pictures, captions, strict=True):
            axes.imshow(picture, interpolation="nearest")
            axes.set_title(caption, fontsize=11)
            axes.set_axis_off()
    return Path(path)
