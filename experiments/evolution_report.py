"""The runs of `experiments.evolution` as a table and a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from maze_nca_gym.agents.evaluation.drawing import COLOURS, bar_places, figure, fraction_axis, legend, panels
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table

Run = dict[str, Any]
Runs = Sequence[Run]

METRICS = ("complete", "accuracy")


def read_runs(folder: Path) -> list[Run]:
    """All finished runs of a folder.

    Raises:
        ValueError: there is none.
    """
    paths = sorted(folder.glob("*/result.json"))
    runs = [json.loads(path.read_text(encoding="utf-8"))["result"] for path in paths]
    if not runs:
        raise ValueError(f"no run in {folder} has finished")
    return runs


def write_report(folder: Path, out: Path, order: Sequence[str]) -> str:
    """Write EVOLUTION.md and a figure for each model, `evolution-<model>.png`; returns the text of the former.

    Args:
        folder: of the runs.
        out: for the report.
        order: kinds of levels, as they shall follow each other.
    """
    runs = read_runs(folder)
    models = sorted({run["model"] for run in runs}, reverse=True)
    of_model = {model: _by_levels([run for run in runs if run["model"] == model], order) for model in models}
    text = _markdown(of_model)
    out.mkdir(parents=True, exist_ok=True)
    write_all({out / "EVOLUTION.md": text.encode()})
    for model, groups in of_model.items():
        _draw(groups, out / f"evolution-{model}.png")
    return text


def _by_levels(runs: Runs, order: Sequence[str]) -> dict[str, Runs]:
    groups = {levels: [run for run in runs if run["levels"] == levels] for levels in order}
    return {levels: group for levels, group in groups.items() if group}


NOTE = """\
`small` is our network of 5,760 weights, `paper` the paper's of 96 channels with cut corners, 48,000 weights. Neither is
trained by the paper's recipe (`experiments/evolution.py`). `evolved` has random parents, as the paper says, and
`evolved from the fittest` those of highest loss, as its code of 2025 does."""


def _markdown(of_model: dict[str, dict[str, Runs]]) -> str:
    parts = ["# Results of `python -m experiments.evolution`", "", NOTE, ""]
    for model, groups in of_model.items():
        first = next(iter(groups.values()))[0]
        described = first["machine"]
        n_seeds = sorted({len(group) for group in groups.values()})
        parts += [
            f"## {model}: {first['n_updates']:,} updates of {first['batch_size']} levels, "
            f"{' or '.join(map(str, n_seeds))} seeds",
            "",
            f"One thread each on {described['cpu']} ({described['system']}). The mean over seeds, and from the least "
            "to the most, in %; 1,024 levels of each test set. The last column is evolution's part of the time.",
            "",
        ]
        tests = list(first["tests"])
        for metric in METRICS:
            columns = ["levels", "mean solution, tiles", *(f"{metric}, {test}" for test in tests), "evolution"]
            rows = [_row(levels, group, tests, metric) for levels, group in groups.items()]
            parts += [Table(columns, rows).markdown(), ""]
    return "\n".join(parts)


def _row(levels: str, group: Runs, tests: Sequence[str], metric: str) -> list[str]:
    first, last = (np.mean([run["lengths"][which][1] for run in group]) for which in (0, -1))
    length = f"{first:.1f}" if all(len(run["lengths"]) == 1 for run in group) else f"{first:.1f} -> {last:.1f}"
    cells = [_percent([run["tests"][test][metric] for run in group]) for test in tests]
    share = np.mean([run["evolution_seconds"] / run["seconds"] for run in group])
    return [levels, length, *cells, f"{share:.1%}" if share else ""]


def _percent(values: Sequence[float]) -> str:
    spread = f" ({100 * min(values):.1f} to {100 * max(values):.1f})" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def _draw(groups: dict[str, Runs], path: Path) -> None:
    """Draw on the left how long the solutions become, on the right what is completed of each test set, a dot a seed."""
    with figure(path, 13, 4.2, dpi=110) as drawn:
        left, right = panels(drawn, 2, 2, width_ratios=(1, 1.7))
        colours = dict(zip(groups, COLOURS, strict=False))
        _draw_lengths(left, groups, colours)
        _draw_tests(right, groups, colours)
        legend(drawn)


def _draw_lengths(axes: Axes, groups: dict[str, Runs], colours: dict[str, str]) -> None:
    for levels, group in groups.items():
        for run in group:
            updates, lengths = zip(*run["lengths"], strict=True)
            if len(updates) == 1:
                updates, lengths = (0, run["n_updates"]), lengths * 2
            axes.plot(updates, lengths, color=colours[levels], alpha=0.8, linewidth=1.5)
    axes.set(xlabel="updates", ylabel="tiles", title="Mean solution of the training levels", ylim=(0, None))


def _draw_tests(axes: Axes, groups: dict[str, Runs], colours: dict[str, str]) -> None:
    tests = list(next(iter(groups.values()))[0]["tests"])
    middles, width = bar_places(axes, tests, len(groups))
    for (levels, group), places in zip(groups.items(), middles, strict=True):
        values = np.array([[run["tests"][test]["complete"] for test in tests] for run in group])
        axes.bar(places, values.mean(axis=0), width, color=colours[levels], alpha=0.55, label=levels)
        for each in values:
            axes.scatter(places, each, s=12, color=colours[levels], zorder=3)
    axes.set_title("Complete on test sets")
    fraction_axis(axes)
