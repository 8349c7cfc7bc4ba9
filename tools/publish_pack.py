"""Add an evolved population to the packs, the hardest level first, with its origin and measurements.

maze-nca-gym evolve nca-diameter-exact-weights --out runs/evolve-diameter
python -m tools.publish_pack evolved-diameter-16 runs/evolve-diameter
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import maze_nca_gym
from maze_nca_gym.mazes import LevelPopulation
from maze_nca_gym.support.files import save_arrays
from maze_nca_gym.support.names import check_count

FOLDER = Path(str(maze_nca_gym.__file__)).parent / "mazes" / "packs"
FIGURES = {"regret": "mean_fitness", "solution length": "mean_solution_length", "complete": "complete"}
"""Measurement in a pack's description -> the statistic of `metrics.jsonl` that it reports."""
PER_LEVEL = ("tiles", "id", "last_seen", "n_seen", "completed", "fitness")
"""Arrays with one entry per level."""


def publish(name: str, run: Path, n: int, of_root: int, folder: Path) -> Path:
    """Choose the hardest levels of an evolved population, and write them as a pack.

    Args:
        name: name of the pack.
        run: the folder of a run of `maze-nca-gym evolve`.
        n: number of levels in the pack.
        of_root: largest number of levels that descend from the same initial level, so that the levels differ.
        folder: folder that receives the pack.

    Returns:
        The path of the pack.

    Raises:
        ValueError: the population cannot be read, or has too few levels.
        FileNotFoundError: the run has no population.
    """
    population = LevelPopulation.load(run / "population.npz")
    indices = _choose(population, n, of_root)
    for id in np.delete(population.members["id"], indices).tolist():
        population.lineage.remove(id)
    description = json.loads((run / "config.json").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    arrays, state = population.to_arrays()
    arrays |= {key: arrays[key][indices] for key in PER_LEVEL}
    facts = {
        "pack": name,
        "evolved_by": description["command"],
        "policies": description["configuration"]["policies"],
        "versions": description["versions"],
        "rounds": lines[-1]["round"],
        "measure": population.config.measure,
        "before": {label: lines[0][statistic] for label, statistic in FIGURES.items()},
        "after": _measured(population, indices),
    }
    path = save_arrays(folder / name, arrays, {**state, **facts})
    LevelPopulation.load(path)
    return path


def _choose(population: LevelPopulation, n: int, of_root: int) -> NDArray[np.int64]:
    """Return the (n,) indices of the hardest levels, by descending regret and then by descending solution length."""
    check_count("n", n, 1)
    members, roots = population.members, Counter[int]()
    indices = []
    for i in np.lexsort((members["id"], -members["length"], -members["fitness"])).tolist():
        root = population.lineage.ancestors(int(members["id"][i]))[0].id
        roots[root] += 1
        if roots[root] <= of_root:
            indices.append(i)
    if len(indices) < n:
        raise ValueError(f"only {len(indices):,} of {len(population):,} levels can be chosen, {n:,} are asked for")
    return np.array(indices[:n], np.int64)


def _measured(population: LevelPopulation, indices: NDArray[np.int64]) -> dict[str, float]:
    """Return the mean of each of `FIGURES` over the chosen levels."""
    members = population.members[indices]
    values = (members["fitness"], members["length"], population.complete_rate[indices])
    return {label: float(value.mean()) for label, value in zip(FIGURES, values, strict=True)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.publish_pack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="name of the pack: evolved-TASK-SIZE")
    parser.add_argument("run", type=Path, help="folder of a run of `maze-nca-gym evolve`")
    parser.add_argument("--n", type=int, default=1000, help="number of levels in the pack")
    parser.add_argument("--of-root", type=int, default=50, help="largest number of levels with the same ancestor")
    options = parser.parse_args(arguments)
    path = publish(options.name, options.run, options.n, options.of_root, FOLDER)
    print(f"{path}: {path.stat().st_size / 1024:,.0f} KiB")


if __name__ == "__main__":
    main()
