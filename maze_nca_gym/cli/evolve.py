"""The output of `maze-nca-gym evolve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maze_nca_gym.agents import evolve
from maze_nca_gym.cli.output import tell
from maze_nca_gym.support.tables import Table, percent


def run(*, out: Path = Path("runs/evolve"), **options: Any) -> int:
    """Print the changes of the levels, and the paths of the files."""
    from maze_nca_gym.agents.evolution.record import CURVES, HARDEST, POPULATION
    from maze_nca_gym.agents.runs import METRICS, read_metrics
    from maze_nca_gym.mazes.population import LevelPopulation

    evolve(out=out, **options)
    lines = read_metrics(out / METRICS, "round")
    population, first, last = LevelPopulation.load(out / POPULATION), lines[0], lines[-1]
    (worst,) = population.hardest(1)
    Table.of_facts(
        {
            "levels": f"{len(population):,} of {' x '.join(map(str, population.tiles.shape[1:]))} tiles, "
            f"{last['n_replacements']:,.0f} replaced in {last['round']:,} rounds",
            "mean regret": f"{first['mean_fitness']:.3g} to {last['mean_fitness']:.3g}",
            "solution length": f"{first['mean_solution_length']:.1f} to {last['mean_solution_length']:.1f} tiles",
            "complete": f"{percent(first['complete'])} to {percent(last['complete'])}",
            "hardest level": f"index {worst}, regret {population.members['fitness'][worst]:.3g}",
        }
    ).print()
    written = {"levels": POPULATION, "metrics": METRICS, "curves": CURVES, "hardest levels": HARDEST}
    for label, name in written.items():
        tell(f"{label}: {out / name}")
    return 0
