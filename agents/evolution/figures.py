"""The pictures of an evolution: curves over the rounds, and an animation of the hardest levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level, save_gif
from maze_nca_gym.rendering.palette import Frame

from ..evaluation.drawing import COLOURS, count_axis, curve, figure, fraction_axis, panels
from ..runs import Line, RunFolder
from .record import CURVES, HARDEST, Snapshot

PANELS = {
    "mean_fitness": ("mean regret", "{:.3g}"),
    "mean_solution_length": ("mean solution length, tiles", "{:.1f}"),
    "complete": ("complete", "{:.1%}"),
}
"""Statistics of a round, and for each its label and the format of its first and last value in the title."""
FPS, LAST_FRAME = 2.5, 6
"""Frames per second of the animation, and the number of times that its last frame is shown."""
SIDE, LEAST_CELL = 216, 3
"""Approximate side of a level's picture, and smallest side of a tile, in pixels."""
GAP = 12
"""Pixels between the levels and around them."""


def draw_evolution(run: RunFolder, snapshots: Sequence[Snapshot], task: Task, title: str) -> None:
    """Write the files `CURVES`, statistics against rounds, and `HARDEST`, the hardest levels after some of the rounds.

    In the animation the first policy's path is blue, and the exact solution is outlined in orange.

    Args:
        run: the folder, with a line of statistics for each round.
        snapshots: at least one snapshot, all with the same number of levels of one size.
        task: the task of the levels.
        title: the title above the curves, and above the levels.

    Raises:
        OSError: a file could not be written.
    """
    rounds = [line["round"] for line in run.lines]
    with figure(run.path / CURVES, 12, 4, title) as picture:
        shown = panels(picture, len(PANELS), len(PANELS))
        for axes, colour, (name, (label, written)) in zip(shown, COLOURS, PANELS.items(), strict=False):
            values = [line[name] for line in run.lines]
            curve(axes, rounds, values, color=colour, end=7, linewidth=2)
            ends = (written.format(value).replace("%", " %") for value in (values[0], values[-1]))
            axes.set_title(f"{label}: {' to '.join(ends)}", fontsize=12)
            last, most = max(rounds[-1], 1), max(*values, 1e-9)
            axes.set(xlabel="rounds", xlim=(-0.03 * last, 1.03 * last), ylim=(-0.03 * most, 1.06 * most))
            count_axis(axes.xaxis, 6)
        fraction_axis(shown[-1])
        picture.draw_without_rendering()  # places the panels; the title belongs over that in the middle
        picture.texts[0].set_x(shown[1].get_position().intervalx.mean())
    by_round = dict(zip(rounds, run.lines, strict=True))
    frames = [_frame(snapshot, by_round[int(snapshot["round"])], task, title) for snapshot in snapshots]
    save_gif(run.path / HARDEST, frames + [frames[-1]] * (LAST_FRAME - 1), FPS)


def _frame(snapshot: Snapshot, line: Line, task: Task, title: str) -> Frame:
    tiles, pictures = snapshot["tiles"], []
    parts = zip(tiles, snapshot["paths"] / np.float32(255), task.solve_all(tiles), snapshot["regret"], strict=True)
    for level, path, solution, regret in parts:
        picture = draw_level(level, path, max(LEAST_CELL, SIDE // max(level.shape)), solution, kinds=task.kinds)
        pictures.append(captioned(picture, f"regret {regret:.3g}", f"{int(solution.sum())} tiles", size=13))
    sheet = captioned(contact_sheet(pictures, columns=math.ceil(math.sqrt(len(tiles))), gap=GAP), title, margin=GAP)
    facts = f"regret {line['mean_fitness']:.3g}, {line['mean_solution_length']:.1f} tiles"
    return captioned(sheet, f"round {line['round']:,}", facts, size=18, margin=GAP)
