"""What `experiments.extrapolation` measured as a table and two figures, with published results beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from maze_nca_gym.agents.figures import COLOURS, INK, STYLE
from maze_nca_gym.files import replacing


@dataclass(frozen=True)
class Measured:
    """A policy on a test set.

    Attributes:
        policy, family, size, n_levels: of what.
        n_steps: iterations.
        final: accuracy, complete, optimal -> value, lower and upper end of the 95 % interval, after the last one.
        curve: (iterations, accuracy, complete), until nothing changed any more.
        machine: where.
    """

    policy: str
    family: str
    size: int
    n_levels: int
    n_steps: int
    final: dict[str, tuple[float, float, float]]
    curve: Sequence[tuple[int, float, float]]
    machine: dict[str, Any]


@dataclass(frozen=True)
class Published:
    """A figure from a paper: `metric` of `family` levels of `size`."""

    source: str
    family: str
    metric: str
    size: int
    value: float


PAPER, RECURRENT = "Earle et al. 2023, evolved levels", "Bansal et al. 2022, recurrent networks"
PUBLISHED = (
    Published(PAPER, "random", "complete", 16, 0.9975),
    Published(PAPER, "random", "accuracy", 16, 0.9964),
    Published(PAPER, "random", "accuracy", 32, 0.9895),
    Published(RECURRENT, "perfect", "complete", 59, 0.973),
    Published(RECURRENT, "perfect", "complete", 201, 0.74),
)
"""The best that is known to us, each on the levels of its authors."""
NOTE = """Earle et al.: one network of 84,480 weights, trained at 16x16; the mean of five trials, and with twice the
iterations at 32x32. Their accuracy, by their code, is a mean over minibatches, in which long paths weigh more; ours is
a mean over levels."""
MARKERS = {PAPER: "*", RECURRENT: "P"}
METRICS = ("complete", "accuracy")
LINES = ("-", "-", "-", "--")
"""Of the policies in turn: the last of four is dashed, so that it does not hide the one before where both are right."""
SHOWN = {"random": 32, "perfect": 31, "loops": 31, "sparse": 32}
"""Family -> size of the levels whose curves are drawn: twice what was trained on."""


def read(path: Path) -> Measured:
    """What was written to a file."""
    return Measured(**json.loads(path.read_text(encoding="utf-8")))


def write_report(results: Sequence[Measured], out: Path) -> str:
    """Write EXTRAPOLATION.md, extrapolation.png and iterations.png; returns the text of the first."""
    text = _markdown(results)
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / "EXTRAPOLATION.md") as file:
        file.write(text.encode())
    for name, draw in (("extrapolation", _draw_sizes), ("iterations", _draw_iterations)):
        with matplotlib.rc_context(STYLE), replacing(out / f"{name}.png") as file:
            draw(results).savefig(file, format="png", dpi=110)
    return text


def _markdown(results: Sequence[Measured]) -> str:
    described = results[0].machine
    lines = [
        "# Results of `python -m experiments.extrapolation`",
        "",
        f"One thread on {described['cpu']} ({described['system']}). The first levels of named test sets; in %, with "
        "95 % intervals of complete. Iterations are in proportion to the size or the longest solution.",
        "",
        "| policy | levels | number | iterations | complete | optimal | accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        complete, low, high = (100 * value for value in r.final["complete"])
        lines.append(
            f"| {r.policy} | {r.family}-{r.size} | {r.n_levels:,} | {r.n_steps:,} | {complete:.1f} ({low:.1f} to "
            f"{high:.1f}) | {100 * r.final['optimal'][0]:.1f} | {100 * r.final['accuracy'][0]:.2f} |"
        )
    lines += ["", "Published, on levels of their authors:", ""]
    lines += [f"- {p.source}: {p.family}-{p.size} {p.metric} {100 * p.value:g} %" for p in PUBLISHED]
    lines += ["", NOTE]
    return "\n".join([*lines, ""])


def _draw_sizes(results: Sequence[Measured]) -> Figure:
    """A column a family, a row a metric: a line a policy, with its intervals, and a marker for what is published."""
    families, colours = _families(results), _colours(results)
    figure = Figure(figsize=(1 + 3.6 * len(families), 7), layout="constrained")
    grid = figure.subplots(len(METRICS), len(families), squeeze=False, sharex="col", sharey="row")
    for row, metric in zip(grid, METRICS, strict=True):
        for axes, family in zip(row, families, strict=True):
            for (policy, colour), line in zip(colours.items(), cycle(LINES), strict=False):
                own = [r for r in results if (r.policy, r.family) == (policy, family)]
                _draw_policy(axes, own, metric, colour, line)
            for p in (p for p in PUBLISHED if (p.family, p.metric) == (family, metric)):
                axes.plot(p.size, 100 * p.value, MARKERS[p.source], color=INK, markersize=11, label=p.source, zorder=4)
        row[0].set(ylabel=f"{metric}, %", ylim=(-3, 103))
    for axes, family in zip(grid[0], families, strict=True):
        axes.set_title(family)
    for axes, family in zip(grid[-1], families, strict=True):
        _size_axis(axes, sorted({r.size for r in results if r.family == family}))
    _legend(figure)
    return figure


def _draw_policy(axes: Axes, results: Sequence[Measured], metric: str, colour: str, line: str) -> None:
    ordered = sorted(results, key=lambda r: r.size)
    sizes = [r.size for r in ordered]
    value, low, high = ([100 * r.final[metric][i] for r in ordered] for i in range(3))
    axes.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
    marker = {"marker": "o", "markeredgecolor": "white"}
    axes.plot(sizes, value, line, color=colour, linewidth=1.8, label=ordered[0].policy, **marker)


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set(xlabel="size", xscale="log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))


def _draw_iterations(results: Sequence[Measured]) -> Figure:
    """Accuracy against iterations, a panel a family."""
    families, colours = _families(results), _colours(results)
    figure = Figure(figsize=(1 + 3.6 * len(families), 4), layout="constrained")
    for axes, family in zip(figure.subplots(1, len(families), squeeze=False, sharey=True)[0], families, strict=True):
        sizes = {r.size for r in results if r.family == family}
        size = SHOWN[family] if SHOWN[family] in sizes else min(sizes)
        for r in (r for r in results if (r.family, r.size) == (family, size)):
            steps = [*(step for step, _, _ in r.curve), r.n_steps]
            values = [100 * accuracy for _, accuracy, _ in r.curve]
            axes.plot(steps, [*values, values[-1]], color=colours[r.policy], linewidth=1.8, label=r.policy)
        axes.set(title=f"{family}-{size}", xlabel="iterations", xscale="log", ylim=(-20, 103))
    figure.axes[0].set_ylabel("accuracy, %")
    _legend(figure)
    return figure


def _families(results: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(r.family for r in results))


def _colours(results: Sequence[Measured]) -> dict[str, str]:
    return dict(zip(dict.fromkeys(r.policy for r in results), COLOURS, strict=False))


def _legend(figure: Figure) -> None:
    """Of all panels, each label once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        found |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=3)
