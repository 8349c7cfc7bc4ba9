"""Measure how long a path a network can draw: `python -m experiments.spirals --help`.

A spiral is one corridor that winds inwards, so its path is about as long as a path in a square of that size can be. All
shortest-path networks run on spirals in eight orientations, with their default numbers of iterations. The command
prints a table of the numbers of correct orientations, and draws them against the number of moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.evaluation.drawing import BLUE, curve, figure, fraction_axis, panels
from maze_nca_gym.agents.rollouts.solving import default_steps, find_paths
from maze_nca_gym.agents.rollouts.symmetrised import ORIENTATIONS, turn
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import shortest_path
from maze_nca_gym.support.tables import Table

from .cache import Record, all_cached
from .scaling.families import spiral

NETWORKS = tuple(name for name in list_policies(all=True) if name.startswith("nca-shortest-path"))


def measure(name: str, size: int) -> Record:
    """Run a network on the eight orientations of a spiral.

    Returns:
        The numbers of moves of the spiral, of iterations, and of orientations with the correct path.
    """
    policy, level = load(name), torch.from_numpy(spiral(np.random.default_rng(0), 1, size)[0])
    tiles = torch.stack([turn(level, i) for i in range(len(ORIENTATIONS))]).numpy()
    targets = shortest_path(tiles)
    n_steps = default_steps(policy, targets)
    correct = ((find_paths(policy, tiles, n_steps) > 0.5) == targets).all(axis=(1, 2))
    return {"moves": int(targets[0].sum()) - 1, "n_steps": n_steps, "correct": int(correct.sum())}


def draw(correct_by_moves: Mapping[str, Mapping[int, int]], path: Path) -> None:
    """Draw the fraction of correct orientations against the number of moves, with a panel for each network.

    Args:
        correct_by_moves: network -> number of moves -> number of correct orientations.
        path: the PNG file.
    """
    with figure(path, 9.5, 1.9 * -(-len(correct_by_moves) // 3), dpi=110) as fig:
        all_axes = panels(fig, len(correct_by_moves), 3, sharex=True, sharey=True)
        for axes, (name, correct) in zip(all_axes, correct_by_moves.items(), strict=True):
            fractions = [n / len(ORIENTATIONS) for n in correct.values()]
            curve(axes, [*correct], fractions, color=BLUE, marker="o")
            axes.set_title(name, fontsize="small")
            fraction_axis(axes)
        for axes in all_axes[-3:]:  # the last panel of a column may lie above an empty place
            axes.tick_params(labelbottom=True)
        fig.supxlabel("moves of the spiral", fontsize="small")
        fig.supylabel("orientations that are correct", fontsize="small")


def main(
    out: Path = Path("runs/spirals"),
    policies: tuple[str, ...] = NETWORKS,
    sizes: tuple[int, ...] = tuple(range(6, 33, 2)),
    jobs: int = 1,
) -> None:
    """Print the table, and draw the figure.

    Args:
        out: folder of spirals.png and of the results, which are not measured again.
        policies: names of policies of the shortest path.
        sizes: sizes of the spirals.
        jobs: number of measurements at the same time, each on one thread.
    """
    calls = {out / name / f"{size}.json": (name, size) for name in policies for size in sizes}
    results = dict(zip(calls.values(), all_cached("spirals", measure, calls, jobs), strict=True))
    correct_by_moves = {
        name: {results[name, size]["moves"]: results[name, size]["correct"] for size in sizes} for name in policies
    }
    columns = ["network", *(f"{moves}" for moves in correct_by_moves[policies[0]])]
    print(
        Table(
            columns, [(name, *map(str, correct.values())) for name, correct in correct_by_moves.items()], columns[1:]
        ).markdown()
    )
    draw(correct_by_moves, out / "spirals.png")


if __name__ == "__main__":
    run_script(main, __doc__)
