"""A table and two figures of the results of `experiments.extrapolation`, with published results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np

from maze_nca_gym.agents.evaluation.drawing import COLOURS, INK, curve, figure, fraction_axis, legend, panels, size_axis
from maze_nca_gym.agents.evaluation.statistics import Estimate
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table


@dataclass(frozen=True)
class Measured:
    """The results of a policy on a test set.

    Attributes:
        policy: name of the policy.
        family: family of the levels.
        size: inner size of the levels.
        n_levels: number of levels.
        n_steps: number of iterations.
        final: accuracy, complete, optimal -> value after the last iteration, and the ends of its 95 % interval.
        curve: (iterations, accuracy, complete), until nothing changed any more.
        machine: description of the machine, see `benchmarks.machine`.
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
    """A published result: the value of a metric on levels of a family and size."""

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
"""The best published results that we know, each on the levels of its authors."""
NOTE = """Earle et al.: one network of 84,480 weights, trained at 16x16; the mean of five trials, and with twice the
iterations at 32x32. Their accuracy, by their code, is a mean over minibatches, in which long paths weigh more; ours is
a mean over levels."""
MARKERS = {PAPER: "*", RECURRENT: "P"}
METRICS = ("complete", "accuracy")
LINES = ("-", "-", "-", "--")
"""Line styles of the policies in turn. The last of four is dashed, so that the third shows where both are correct."""
SHOWN = {"random": 32, "perfect": 31, "loops": 31, "sparse": 32}
"""Family -> size of the levels whose curves are drawn, about twice the size of the training levels."""


def write_report(results: Sequence[Measured], out: Path) -> str:
    """Write EXTRAPOLATION.md, extrapolation.png and iterations.png, and return the text of EXTRAPOLATION.md.

    Args:
        results: the results of all policies and sets.
        out: folder that receives the files.
    """
    text = _markdown(results)
    out.mkdir(parents=True, exist_ok=True)
    write_all({out / "EXTRAPOLATION.md": text.encode()})
    _draw_sizes(results, out / "extrapolation.png")
    _draw_iterations(results, out / "iterations.png")
    return text


def _markdown(results: Sequence[Measured]) -> str:
    machine = results[0].machine
    lines = [
        "# Results of `python -m experiments.extrapolation`",
        "",
        f"One thread on {machine['cpu']} ({machine['system']}). The first levels of named test sets; in %, with "
        "95 % intervals of complete. Iterations are in proportion to the size or the longest solution.",
        "",
    ]
    rows = [
        (
            r.policy,
            f"{r.family}-{r.size}",
            f"{r.n_levels:,}",
            f"{r.n_steps:,}",
            Estimate(*r.final["complete"]).text(1),
            f"{100 * r.final['optimal'][0]:.1f}",
            f"{100 * r.final['accuracy'][0]:.2f}",
        )
        for r in results
    ]
    columns = ("policy", "levels", "number", "iterations", "complete", "optimal", "accuracy")
    lines.append(Table(columns, rows).markdown())
    lines += ["", "Published, on levels of their authors:", ""]
    lines += [f"- {p.source}: {p.family}-{p.size} {p.metric} {100 * p.value:g} %" for p in PUBLISHED]
    lines += ["", NOTE]
    return "\n".join([*lines, ""])


def _draw_sizes(results: Sequence[Measured], path: Path) -> None:
    """Draw the metrics against the size of the levels: a column for each family and a row for each metric.

    Each policy has a line with intervals. Markers are published results.
    """
    families, colours = _families(results), _colours(results)
    with figure(path, 1 + 3.6 * len(families), 6.4, dpi=110) as fig:
        all_axes = panels(fig, len(METRICS) * len(families), len(families), sharex="col", sharey="row")
        for axes, (metric, family) in zip(all_axes, product(METRICS, families), strict=True):
            for (policy, colour), line in zip(colours.items(), cycle(LINES), strict=False):
                measured = sorted(
                    (r for r in results if (r.policy, r.family) == (policy, family)), key=lambda r: r.size
                )
                ends = np.array([r.final[metric] for r in measured]).reshape(-1, 3).T
                style = {"linestyle": line, "label": policy, "marker": "o"}
                curve(axes, [r.size for r in measured], *ends, color=colour, **style)
            for p in (p for p in PUBLISHED if (p.family, p.metric) == (family, metric)):
                axes.plot(p.size, p.value, MARKERS[p.source], color=INK, markersize=11, label=p.source, zorder=4)
            axes.set_ylabel(metric if family == families[0] else "")
            fraction_axis(axes)
            if metric == METRICS[0]:
                axes.set_title(family)
            else:
                size_axis(axes, sorted({r.size for r in results if r.family == family}))
        legend(fig)


def _draw_iterations(results: Sequence[Measured], path: Path) -> None:
    """Draw accuracy against iterations, with a panel for each family."""
    families, colours = _families(results), _colours(results)
    with figure(path, 1 + 3.6 * len(families), 3.6, dpi=110) as fig:
        for axes, family in zip(panels(fig, len(families), len(families), sharey=True), families, strict=True):
            sizes = {r.size for r in results if r.family == family}
            size = SHOWN[family] if SHOWN[family] in sizes else min(sizes)
            for r in (r for r in results if (r.family, r.size) == (family, size)):
                steps = [*(step for step, _, _ in r.curve), r.n_steps]
                values = [accuracy for _, accuracy, _ in r.curve]
                curve(axes, steps, [*values, values[-1]], color=colours[r.policy], label=r.policy)
            axes.set(title=f"{family}-{size}", xlabel="iterations", xscale="log")
            fraction_axis(axes)
        fig.axes[0].set_ylabel("accuracy")
        legend(fig)


def _families(results: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(r.family for r in results))


def _colours(results: Sequence[Measured]) -> dict[str, str]:
    return dict(zip(dict.fromkeys(r.policy for r in results), COLOURS, strict=False))
