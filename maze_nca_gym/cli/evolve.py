"""`maze-nca-gym evolve`: its options, and what it prints."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from maze_nca_gym.cli.options import USUAL_BATCH, GeneratorOptions, ImportOption
from maze_nca_gym.cli.reading import read_values
from maze_nca_gym.mutation import MUTATIONS
from maze_nca_gym.options import Between, Option, Shown, check_options, options_of, unflattened
from maze_nca_gym.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.tables import Table, percent

_STEPS = "the policy's usual number, in proportion to the size"
_OWN = ("n_offspring", "parents")
"""Options of a `BreedingSchedule` that mean something here, where every round is due."""


@dataclass(frozen=True)
class Evolve(ImportOption):
    """Evolve levels on which policies fail: mutate them, measure their regret, keep the hardest.

    Regret is the loss of a policy's path against the nearest optimum after the last iteration, averaged over all
    policies. Levels of the test sets never enter. Ctrl-C saves and ends the run; the same command continues it, also
    with more --rounds. The folder receives population.npz, which the other commands and the environments accept as
    levels, metrics.jsonl, curves.png, hardest.gif, config.json and checkpoint.safetensors, from which a run goes on.
    """

    policies: Annotated[tuple[str, ...], Shown("POLICY …", positional=True)]
    """Names from `policies list`, or model files (*.safetensors), all of one task."""
    n: Annotated[int, Between(1)] = 1000
    """Number of levels at the start."""
    rounds: Annotated[int, Between(0)] = 200
    """Number of rounds in which offspring compete with the population."""
    seed: Annotated[int, Between(0)] = 0
    """Seed of all randomness, at least 0; the same seed gives the same levels."""
    steps: Annotated[int | None, Between(1), Shown(default=_STEPS)] = None
    """Number of iterations on a level."""
    batch: Annotated[int | None, Between(1), Shown(default=USUAL_BATCH)] = None
    """Number of levels that run at once."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    picture_every: Annotated[int, Between(1)] = 10
    """Number of rounds between two pictures of hardest.gif."""
    save_every: Annotated[float, Between(0)] = 60.0
    """Seconds between two saves."""
    overwrite: bool = False
    """Delete the population in the folder, if there is one, and start a new one."""
    out: Annotated[Path, Shown("FOLDER")] = Path("runs/evolve")
    """Folder of the population."""
    levels: GeneratorOptions = field(default_factory=GeneratorOptions)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class ConfiguredEvolve:
    """A run, and the options of its population that were given."""

    how: Evolve
    population: Mapping[str, Any]

    def run(self) -> int:
        """Evolve the levels, print and save the results, and return the exit code.

        Raises:
            ValueError: a bad option, policy or combination, or a folder with another population.
            MemoryError: the device has too little memory.
            OSError: a file could not be written.
        """
        self.how.import_module()
        levels = self.how.levels
        how = {name: value for name, value in vars(self.how).items() if name not in ("module", "levels")}
        how |= {"generator": levels.generator, "size": levels.inner_size()}
        from maze_nca_gym.agents import evolve

        evolve(**how, **levels.generator_options(), **self.population)
        self._summarise()
        return 0

    def _summarise(self) -> None:
        """Print what came of it, and where it is."""
        from maze_nca_gym.agents.evolution.loop import CURVES, HARDEST, POPULATION, ROUND, hardest
        from maze_nca_gym.agents.runs import METRICS, read_metrics
        from maze_nca_gym.population import LevelPopulation

        lines = read_metrics(self.how.out / METRICS, ROUND)
        population, first, last = LevelPopulation.load(self.how.out / POPULATION), lines[0], lines[-1]
        (worst,) = hardest(population, 1)
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
            print(f"{label}: {self.how.out / name}")


def parse_evolve(words: Sequence[str]) -> ConfiguredEvolve:
    """Return the command that the words after `evolve` ask for.

    Raises:
        SystemExit: the same codes as from `read_values`.
        ValueError: an option that there is not, or a bad value.
    """
    how = options_of(Evolve)
    options = {**how, **population_options()}
    given = read_values(options, words, "maze-nca-gym evolve", inspect.getdoc(Evolve) or "", Evolve)
    population = {name: value for name, value in given.items() if name not in how}
    return ConfiguredEvolve(
        unflattened(Evolve, {name: option.default for name, option in how.items()} | given), population
    )


def population_options() -> dict[str, Option]:
    """Return the options of a population, its mutation and its rounds."""
    options = {name: option for name, option in options_of(BreedingSchedule).items() if name in _OWN}
    options |= options_of(PopulationConfig)
    options["capacity"] = replace(options["capacity"], style=Shown(default="--n"))
    del options["task"]
    for kind, mutation in MUTATIONS.items():
        for name, option in options_of(mutation).items():
            options[name] = replace(option, style=Shown(default=f"{option.default} for {kind}"))
    return options
