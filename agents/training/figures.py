"""The pictures of a run: its curves, and example rollouts on levels that it never trains on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from maze_nca_gym.mazes.families import validation_levels
from maze_nca_gym.mazes.scoring import Scores, lengths_of, score
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level, save_png
from maze_nca_gym.rendering.palette import Frame

from ..evaluation.drawing import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    count_axis,
    curve,
    figure,
    fraction_axis,
)
from ..policies.policy import Policy
from ..rollouts import Batch, default_steps, encode, iterate, path_of
from ..runs import Line
from .config import TrainingConfig
from .data import concatenate, validation_batch, with_solutions

OWN_STYLE = {"axes.edgecolor": GREY, "legend.borderaxespad": 0.2}
METRICS = {"accuracy": VERMILION, "optimal": GREEN, "complete": BLUE}
LENGTH = "mean_solution_length"
UNITS, FEWEST = (("hours", 3600), ("minutes", 60), ("seconds", 1)), 3
"""Units of time in seconds; the largest is used of which the run took at least `FEWEST`."""
MANY = 40
"""Number of points from which a curve has no markers."""
CLOSE = 1e4
"""Losses within this factor also have ticks at 2 and 5; over more powers of ten, matplotlib would then draw none."""
SMOOTHED = 0.04
"""Part of the run over which the training loss is averaged."""
APART = 0.03
"""Least distance between two ticks of time, as a part of the width: slow first updates would crowd them."""


def draw_curves(lines: Sequence[Line], title: str, path: Path) -> Path:
    """Write loss, validation and learning rate against updates and time as a PNG file; returns its path.

    If the levels evolve, another panel shows the mean length of their solutions.

    Args:
        lines: at least one, in the order of updates.
        title: the title above the panels.
        path: the file.
    """
    evolving = any(LENGTH in line for line in lines)
    heights = (3, 3, 1.7, 1.4) if evolving else (3, 3, 1.4)
    with figure(path, 9, 11 if evolving else 9, title, style=OWN_STYLE) as drawn:
        loss, validation, *lengths, rate = drawn.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        _draw_loss(loss, lines)
        _draw_validation(validation, lines)
        for axes in lengths:
            _plot(axes, *_column(lines, LENGTH), BLUE, "")
            axes.set_ylabel("solution length\n(training)")
        _draw_rate(rate, lines)
        rate.set(xlabel="updates", xlim=(0, lines[-1]["update"]))
        count_axis(rate.xaxis, 9)
        _add_time(loss, lines)
        drawn.align_ylabels()
    return path


def _column(lines: Sequence[Line], name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return updates and values of the lines that have one."""
    pairs = [(line["update"], line[name]) for line in lines if name in line]
    updates, values = np.array(pairs, dtype=float).reshape(-1, 2).T
    return updates, values


def _draw_loss(axes: Axes, lines: Sequence[Line]) -> None:
    updates, losses = _column(lines, "loss")
    axes.plot(updates, losses, color=BLUE, alpha=0.25, linewidth=1)
    _plot(axes, updates, _smooth(losses), BLUE, "training, smoothed")
    _plot(axes, *_column(lines, "valid_loss"), VERMILION, "validation, after the last iteration")
    axes.set(ylabel="loss", yscale="log")
    least, most = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < CLOSE * least else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.legend(loc="best")


def _draw_validation(axes: Axes, lines: Sequence[Line]) -> None:
    for name, colour in METRICS.items():
        updates, values = _column(lines, name)
        last = f" {values[-1]:.1%}".replace("%", " %") if len(values) else ""
        _plot(axes, updates, values, colour, f"{name}{last}")
    axes.set_ylabel("validation")
    fraction_axis(axes)
    axes.legend(loc="best")


def _draw_rate(axes: Axes, lines: Sequence[Line]) -> None:
    axes.plot(*_column(lines, "learning_rate"), color=GREY, linewidth=2)
    axes.set_ylabel("learning rate")
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)


def _plot(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], colour: str, label: str) -> None:
    marker = "o" if len(x) < MANY else ""
    curve(axes, x, y, color=colour, linewidth=2, marker=marker, markersize=4.5, label=label)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the geometric mean of a window around each value; windows shrink towards the ends, to stay centred."""
    reach = math.floor(SMOOTHED * len(values) / 2)
    sums = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(values, 1e-12)))])
    places = np.arange(len(values))
    room = np.minimum(reach, np.minimum(places, len(values) - 1 - places))
    means: NDArray[np.float64] = np.exp((sums[places + room + 1] - sums[places - room]) / (2 * room + 1))
    return means


def _add_time(axes: Axes, lines: Sequence[Line]) -> None:
    """Add an axis above the panels with the time that the updates took.

    Only this axis shows measured time, so it alone differs between two runs of one configuration.
    """
    updates, seconds = _column(lines, "seconds")
    unit, length = next(unit for unit in UNITS if seconds[-1] >= unit[1] * FEWEST or unit is UNITS[-1])
    times = np.concatenate([[0.0], seconds / length])
    ticks = [tick for tick in MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, times[-1]) if 0 <= tick <= times[-1]]
    places = np.interp(ticks, times, np.concatenate([[0.0], updates]))
    kept = _apart(places, APART * updates[-1])
    above = axes.secondary_xaxis("top")
    above.set_xticks(places[kept], [f"{ticks[i]:g}" for i in kept])
    above.set_xlabel(unit, color=GREY)
    above.tick_params(colors=GREY)


def _apart(places: NDArray[np.float64], least: float) -> list[int]:
    """Return the indices of ascending places that are at least `least` apart, keeping the first."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= least:
            kept.append(i)
    return kept


ROWS = 4
CANDIDATES = 64
"""Levels of a family among which the rows are chosen, by the length of their solutions."""
MOMENTS = (0.125, 0.25, 0.5, 1.0)
"""Fractions of the iterations after which the path is shown."""
PICTURE = 240
"""Approximate side of a level's picture, in pixels."""
GAP = 12
"""Pixels between the pictures and around them."""


@torch.no_grad()
def draw_rollouts(policy: Policy, config: TrainingConfig, title: str, path: Path) -> Path:
    """Write a PNG file with one row per level: the path after some iterations, then the solution; returns its path.

    Args:
        policy: the policy to run.
        config: the configuration of its training. The levels are from its validation set, or held-out levels of its
            families and first size.
        title: a line above the rows.
        path: the file.
    """
    rows = _rows(config)
    frames = list(_frames(policy, rows, default_steps(policy, rows.target)))
    sheet = contact_sheet(frames, columns=len(frames) // len(rows), gap=GAP)
    return save_png(path, captioned(sheet, title, size=20, margin=GAP))


def _rows(config: TrainingConfig) -> Batch:
    """Return levels from each source, in order of the length of their solutions up to the longest of all candidates."""
    sources = list(_sources(config))
    n_each = -(-ROWS // len(sources))
    rows = []
    for levels in sources:
        order = lengths_of(levels.target).argsort(kind="stable")
        rows.append(levels[order[np.arange(1, n_each + 1) * len(order) // n_each - 1]])
    return concatenate(rows)


def _sources(config: TrainingConfig) -> Iterator[Batch]:
    """Yield the candidates of a run's own validation set, or those of each of its families."""
    if config.levels.validation_set is not None:
        yield validation_batch(config)[:CANDIDATES]
        return
    for family in config.levels.families:
        levels = validation_levels(family, config.levels.sizes[0], config.task, CANDIDATES)
        yield with_solutions(levels.tiles, config.task)


def _frames(policy: Policy, rows: Batch, n_steps: int) -> Iterator[Frame]:
    """Yield captioned pictures, row by row."""
    tiles, target = rows.tiles, rows.target
    steps = sorted({max(1, round(part * n_steps)) for part in MOMENTS})
    paths = [path_of(policy, state) for state in iterate(policy, encode(policy, tiles), steps)]
    task = find_task(policy.task)
    scores = [score(tiles, path, target, task.judge) for path in paths]
    cell = max(3, PICTURE // tiles.shape[1])
    for i in range(len(rows)):
        for step, path, scored in zip(steps, paths, scores, strict=True):
            words = f"{step} iteration{'s' if step > 1 else ''}"
            yield captioned(draw_level(tiles[i], path[i], cell, kinds=task.kinds), words, _verdict(scored, i))
        yield captioned(
            draw_level(tiles[i], target[i], cell, kinds=task.kinds), "solution", f"{int(target[i].sum())} tiles"
        )


def _verdict(scores: Scores, i: int) -> str:
    if scores.complete[i]:
        return "complete"
    return "optimal" if scores.optimal[i] else f"accuracy {scores.accuracy[i]:.2f}"
