"""The pictures of an evolution: curves over the rounds, and an animation of the hardest levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level, save_gif
from maze_nca_gym.rendering.palette import Frame

from ...evaluation.drawing import COLOURS, count_axis, curve, figure, fraction_axis, panels
from ...runs import Line

PANELS = {
    "mean_fitness": ("mean regret", "{:.3g}"),
    "mean_solution_length": ("mean solution length, tiles", "{:.1f}"),
    "complete": ("complete", "{:.1%}"),
}
"""Statistic -> its label, and the format of its first and last value in the title."""
FPS, LAST_FRAME = 2.5, 6
"""Frames per second of the animation, and the number of times that its last frame is shown."""
SIDE, LEAST_CELL = 216, 3
"""Approximate side of a level's picture, and least side of a tile, in pixels."""
GAP = 12
"""Pixels between the levels and around them."""


Snapshot: TypeAlias = dict[str, NDArray[Any]]
"""The hardest levels after a round: `round` (), `tiles` (n, H, W), `paths` (n, H, W) uint8 from 0 to 255, and
`regret` (n,)."""


def draw_curves(lines: Sequence[Line], title: str, path: Path) -> Path:
    """Write mean regret, mean solution length and the share completed against rounds as a PNG file; returns its path.

    Args:
        lines: at least one, in the order of rounds.
        title: the title above the panels.
        path: the file.
    """
    rounds = [line["round"] for line in lines]
    with figure(path, 12, 4, title) as drawn:
        shown = panels(drawn, len(PANELS), len(PANELS))
        for axes, colour, (name, (label, written)) in zip(shown, COLOURS, PANELS.items(), strict=False):
            values = [line[name] for line in lines]
            curve(axes, rounds, values, color=colour, end=7, linewidth=2)
            ends = (written.format(value).replace("%", " %") for value in (values[0], values[-1]))
            axes.set_title(f"{label}: {' to '.join(ends)}", fontsize=12)
            axes.set(xlabel="rounds", xlim=(0, max(rounds[-1], 1)))
            count_axis(axes.xaxis, 6)
        fraction_axis(shown[-1])
        for axes in shown[:-1]:
            axes.set_ylim(bottom=0)
    return path


def draw_hardest(snapshots: Sequence[Snapshot], lines: Sequence[Line], task: Task, path: Path) -> Path:
    """Write the hardest levels after each of some rounds as a GIF file; return its path.

    The path of the first policy is blue, and the exact solution outlined in orange.

    Args:
        snapshots: at least one, all with the same number of levels of one size.
        lines: the statistics of every round.
        task: the task of the levels.
        path: the file.
    """
    by_round = {line["round"]: line for line in lines}
    frames = [_frame(snapshot, by_round[int(snapshot["round"])], task) for snapshot in snapshots]
    return save_gif(path, frames + [frames[-1]] * (LAST_FRAME - 1), FPS)


def _frame(snapshot: Snapshot, line: Line, task: Task) -> Frame:
    tiles = snapshot["tiles"]
    parts = zip(tiles, snapshot["paths"] / np.float32(255), task.solve_all(tiles), snapshot["regret"], strict=True)
    sheet = contact_sheet([_level(task, *part) for part in parts], columns=math.ceil(math.sqrt(len(tiles))), gap=GAP)
    facts = f"regret {line['mean_fitness']:.3g}, {line['mean_solution_length']:.1f} tiles"
    return captioned(sheet, f"round {line['round']:,}", facts, size=18, margin=GAP)


def _level(task: Task, tiles: Tiles, path: NDArray[np.float32], solution: NDArray[np.bool_], regret: float) -> Frame:
    picture = draw_level(tiles, path, max(LEAST_CELL, SIDE // max(tiles.shape)), solution, kinds=task.kinds)
    return captioned(picture, f"regret {regret:.3g}", f"{int(solution.sum())} tiles", size=13)
