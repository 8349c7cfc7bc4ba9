"""Tables and figures of the runs of `experiments.evolution`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maze_nca_gym.agents.evaluation.drawing import COLOURS, bar_places, figure, fraction_axis, legend, panels
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table

Run = dict[str, Any]
Runs = Sequence[Run]

METRICS = ("complete", "accuracy")


def write_report(folder: Path, out: Path, order: Sequence[str]) -> str:
    """Write EVOLUTION.md and a figure for each model, `evolution-<model>.png`.

    Args:
        folder: folder of the runs.
        out: folder that receives the report.
        order: kinds of levels in the order of the tables.

    Returns:
        The text of EVOLUTION.md.

    Raises:
        ValueError: no run has finished.
    """
    paths = sorted(folder.glob("*/result.json"))
    runs = [json.loads(path.read_text(encoding="utf-8"))["result"] for path in paths]
    if not runs:
        raise ValueError(f"no run in {folder} has finished")
    of_model: dict[str, dict[str, Runs]] = {}
    for model in sorted({run["model"] for run in runs}, reverse=True):
        groups = {levels: [run for run in runs if (run["model"], run["levels"]) == (model, levels)] for levels in order}
        of_model[model] = {levels: group for levels, group in groups.items() if group}
    text = _markdown(of_model)
    out.mkdir(parents=True, exist_ok=True)
    write_all({out / "EVOLUTION.md": text.encode()})
    for model, groups in of_model.items():
        _draw(groups, out / f"evolution-{model}.png")
    return text


NOTE = """\
`small` is our network of 5,760 weights, `paper` the paper's of 96 channels with cut corners, 48,000 weights. Neither is
trained by the paper's recipe (`experiments/evolution.py`). `evolved` has random parents, as the paper says, and
`evolved from the fittest` those of highest loss, as its code of 2025 does."""


def _markdown(of_model: dict[str, dict[str, Runs]]) -> str:
    parts = ["# Results of `python -m experiments.evolution`", "", NOTE, ""]
    for model, groups in of_model.items():
        first = next(iter(groups.values()))[0]
        machine = first["machine"]
        n_seeds = sorted({len(group) for group in groups.values()})
        parts += [
            f"## {model}: {first['n_updates']:,} updates of {first['batch_size']} levels, "
            f"{' or '.join(map(str, n_seeds))} seeds",
            "",
            f"One thread each on {machine['cpu']} ({machine['system']}). The mean over seeds, and from the least "
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
    first, last = (np.mean([run["lengths"][index][1] for run in group]) for index in (0, -1))
    length = f"{first:.1f}" if all(len(run["lengths"]) == 1 for run in group) else f"{first:.1f} -> {last:.1f}"
    cells = [_percent([run["tests"][test][metric] for run in group]) for test in tests]
    share = np.mean([run["evolution_seconds"] / run["seconds"] for run in group])
    return [levels, length, *cells, f"{share:.1%}" if share else ""]


def _percent(values: Sequence[float]) -> str:
    spread = f" ({100 * min(values):.1f} to {100 * max(values):.1f})" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def _draw(groups: dict[str, Runs], path: Path) -> None:
    """Draw the mean length of the training levels' solutions on the left, and the results on test sets on the right.

    A bar on the right is the fraction of complete levels. Dots show the seeds.
    """
    with figure(path, 13, 4.2, dpi=110) as fig:
        left, right = panels(fig, 2, 2, width_ratios=(1, 1.7))
        tests = list(next(iter(groups.values()))[0]["tests"])
        middles, width = bar_places(right, tests, len(groups))
        for (levels, group), places, colour in zip(groups.items(), middles, COLOURS, strict=False):
            for run in group:
                updates, lengths = zip(*run["lengths"], strict=True)
                if len(updates) == 1:
                    updates, lengths = (0, run["n_updates"]), lengths * 2
                left.plot(updates, lengths, color=colour, alpha=0.8, linewidth=1.5)
            values = np.array([[run["tests"][test]["complete"] for test in tests] for run in group])
            right.bar(places, values.mean(axis=0), width, color=colour, alpha=0.55, label=levels)
            for fractions in values:
                right.scatter(places, fractions, s=12, color=colour, zorder=3)
        left.set(xlabel="updates", ylabel="tiles", title="Mean solution of the training levels", ylim=(0, None))
        right.set_title("Complete on test sets")
        fraction_axis(right)
        legend(fig)
