"""How long a path can a network draw? `python -m experiments.spirals --help`.

A spiral is one corridor that winds inwards, so its path is about as long as one can be in a square of that size. All
shortest-path networks draw it in eight orientations, after the number of iterations that they usually get. Prints a
table of how many they draw correct, and draws it against the number of moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.evaluation.drawing import BLUE, curve, figure, fraction_axis, panels
from maze_nca_gym.agents.rollouts import find_paths
from maze_nca_gym.agents.rollouts.solving import default_steps
from maze_nca_gym.agents.rollouts.symmetrised import ORIENTATIONS, turn
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.mazes import shortest_path
from maze_nca_gym.support.tables import Table

from .kept import Record, all_kept
from .scaling.families import spiral

NETWORKS = tuple(name for name in list_policies(all=True) if name.startswith("nca-shortest-path"))


def measure(name: str, size: int) -> Record:
    """Return how many of the eight orientations of a spiral a network draws correct, of how many moves."""
    policy, level = load(name), torch.from_numpy(spiral(np.random.default_rng(0), 1, size)[0])
    tiles = torch.stack([turn(level, i) for i in range(len(ORIENTATIONS))]).numpy()
    targets = shortest_path(tiles)
    n_steps = default_steps(policy, targets)
    correct = ((find_paths(policy, tiles, n_steps) > 0.5) == targets).all(axis=(1, 2))
    return {"moves": int(targets[0].sum()) - 1, "n_steps": n_steps, "correct": int(correct.sum())}


def draw(found: Mapping[str, Mapping[int, int]], path: Path) -> None:
    """Draw a panel a network: the fraction of orientations that are correct, against the number of moves."""
    with figure(path, 9.5, 1.9 * -(-len(found) // 3), dpi=110) as drawn:
        made = panels(drawn, len(found), 3, sharex=True, sharey=True)
        for axes, (name, correct) in zip(made, found.items(), strict=True):
            fractions = [n / len(ORIENTATIONS) for n in correct.values()]
            curve(axes, [*correct], fractions, color=BLUE, marker="o")
            axes.set_title(name, fontsize="small")
            fraction_axis(axes)
        for axes in made[-3:]:  # below the last of a column there may be an empty place
            axes.tick_params(labelbottom=True)
        drawn.supxlabel("moves of the spiral", fontsize="small")
        drawn.supylabel("orientations that are correct", fontsize="small")


def main(
    out: Path = Path("runs/spirals"),
    policies: tuple[str, ...] = NETWORKS,
    sizes: tuple[int, ...] = tuple(range(6, 33, 2)),
    jobs: int = 1,
) -> None:
    """Print the table, and draw the figure.

    Args:
        out: folder of what is measured, which is not measured again, and of spirals.png.
        policies: names of policies of the shortest path.
        sizes: of the spirals.
        jobs: number of measurements at the same time, one core each.
    """
    calls = {out / name / f"{size}.json": (name, size) for name in policies for size in sizes}
    results = dict(zip(calls.values(), all_kept("spirals", measure, calls, jobs), strict=True))
    found = {
        name: {results[name, size]["moves"]: results[name, size]["correct"] for size in sizes} for name in policies
    }
    columns = ["network", *(f"{moves}" for moves in found[policies[0]])]
    print(
        Table(columns, [(name, *map(str, correct.values())) for name, correct in found.items()], columns[1:]).markdown()
    )
    draw(found, out / "spirals.png")


if __name__ == "__main__":
    run_script(main, __doc__)
