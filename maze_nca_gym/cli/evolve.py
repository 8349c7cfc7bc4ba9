"""`maze-nca-gym evolve`: its options, and what it prints."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from maze_nca_gym.cli.options import INTEGER, NUMBER, GeneratorOptions, ImportOption
from maze_nca_gym.cli.output import percent, print_facts
from maze_nca_gym.mutation import MUTATIONS
from maze_nca_gym.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.population.config import EVICTIONS, PARENTS, SCORES
from maze_nca_gym.population.selection import PRIORITISATIONS

_POLICIES = arg(metavar="POLICY …", help_behavior_hint="(at least one)")
_STEPS = arg(help_behavior_hint="(default: the policy's usual number, in proportion to the size)")
_BATCH = arg(help_behavior_hint="(default: 256, fewer of large levels)")
_CAPACITY = arg(
    help_behavior_hint=lambda usual: "(default: --n)" if usual == "None" else f"(default: {usual})",
)
_DEFAULT = PopulationConfig()


def _one_of(names: Any) -> Any:
    """Describe, for the help, a choice of names."""
    return arg(metavar="{" + ",".join(names) + "}")


def _rate(option: str, of: str, metavar: str) -> Any:
    """Describe, for the help, an option that only one mutation takes."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {getattr(MUTATIONS[of](), option)} for {of})")


@dataclass(frozen=True)
class PopulationOptions:
    """Selection and mutation of levels, with the rates of the paper's code by default."""

    capacity: Annotated[int | None, INTEGER, _CAPACITY] = None
    """Largest number of levels in the population."""
    mutation: Annotated[str, _one_of(MUTATIONS)] = _DEFAULT.mutation
    """How offspring are made: flip changes each tile with a small probability, edits makes a fixed number of
    changes."""
    tile_rate: Annotated[float | None, NUMBER, _rate("tile_rate", "flip", "FRACTION")] = None
    """Probability that an inner tile turns from wall to empty or back, 0 to 1."""
    source_rate: Annotated[float | None, NUMBER, _rate("source_rate", "flip", "FRACTION")] = None
    """Probability that the source moves, 0 to 1."""
    n_edits: Annotated[int | None, INTEGER, _rate("n_edits", "edits", "INT")] = None
    """Number of edits of a level."""
    eviction: Annotated[str, _one_of(EVICTIONS)] = _DEFAULT.eviction
    """Member that fitter offspring replace: the one of lowest score (fitness), or of lowest replay weight."""
    score: Annotated[str, _one_of(SCORES)] = _DEFAULT.score
    """Score of a level. regret is the loss against the nearest optimum, loss that against the canonical solution, and
    accuracy is 1 - accuracy. learnability is high where some of several policies complete the level."""
    prioritisation: Annotated[str, _one_of(PRIORITISATIONS)] = _DEFAULT.prioritisation
    """How scores become replay weights."""
    temperature: Annotated[float, NUMBER] = _DEFAULT.temperature
    """Temperature of rank and proportional; the lower, the larger the weights of the highest scores."""
    top_k: Annotated[int, INTEGER] = _DEFAULT.top_k
    """Number of levels to which top-k gives weight."""
    staleness_weight: Annotated[float, NUMBER, arg(metavar="FRACTION")] = _DEFAULT.staleness_weight
    """Fraction of the replay weights that depends on the time since a level was measured, 0 to 1."""


@dataclass(frozen=True)
class Evolve(ImportOption):
    """Evolve levels on which policies fail: mutate them, measure their regret, keep the hardest.

    Regret is the loss of a policy's path against the nearest optimum after the last iteration, averaged over all
    policies. Levels of the test sets never enter. Ctrl-C saves and ends the run; the same command continues it, also
    with more --rounds. The folder receives population.npz, which the other commands and the environments accept as
    levels, statistics.jsonl, curves.png, hardest.gif and config.json.
    """

    policies: Annotated[Positional[tuple[str, ...]], _POLICIES]
    """Names from `policies list`, or model files (*.safetensors), all of one task."""
    n: Annotated[int, INTEGER] = 1000
    """Number of levels at the start."""
    rounds: Annotated[int, INTEGER] = 200
    """Number of rounds in which offspring compete with the population."""
    n_offspring: Annotated[int, INTEGER] = BreedingSchedule.n_offspring
    """Number of offspring in a round."""
    parents: Annotated[str, _one_of(PARENTS)] = BreedingSchedule.parents
    """How parents are chosen: at random, by highest score (fittest), or in proportion to replay weight."""
    seed: Annotated[int, INTEGER] = 0
    """Seed of all randomness, at least 0; the same seed gives the same levels."""
    steps: Annotated[int | None, INTEGER, _STEPS] = None
    """Number of iterations on a level."""
    batch: Annotated[int | None, INTEGER, _BATCH] = None
    """Number of levels that run at once."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 …"""
    picture_every: Annotated[int, INTEGER] = 10
    """Number of rounds between two pictures of hardest.gif."""
    save_every: Annotated[float, NUMBER] = 60.0
    """Seconds between two saves."""
    overwrite: bool = False
    """Delete the population in the folder, if there is one, and start a new one."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/evolve")
    """Folder of the population."""
    levels: GeneratorOptions = field(default_factory=GeneratorOptions)
    population: PopulationOptions = field(default_factory=PopulationOptions)

    def run(self) -> int:
        """Evolve the levels, print and save the results, and return the exit code.

        Raises:
            ValueError: a bad option, policy or combination, or a folder with another population.
            MemoryError: the device has too little memory.
            OSError: a file could not be written.
        """
        self.import_module()
        groups = ("module", "policies", "levels", "population")
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in groups}
        options |= {"generator": self.levels.generator, "size": self.levels.inner_size()}
        from maze_nca_gym.agents import evolve

        evolve(self.policies, **options, **self.levels.generator_options(), **vars(self.population))
        self._summarise()
        return 0

    def _summarise(self) -> None:
        """Print what came of it, and where it is."""
        from maze_nca_gym.agents.evolution.records import CURVES, HARDEST, POPULATION, STATISTICS, Records

        records = Records.load(self.out)
        population, first, last = records.population, records.lines[0], records.lines[-1]
        hardest = records.hardest(1)[0]
        print_facts(
            {
                "levels": f"{len(population):,} of {' x '.join(map(str, population.tiles.shape[1:]))} tiles, "
                f"{last['n_replacements']:,.0f} replaced in {last['round']:,} rounds",
                "mean regret": f"{first['mean_fitness']:.3g} to {last['mean_fitness']:.3g}",
                "solution length": f"{first['mean_solution_length']:.1f} to {last['mean_solution_length']:.1f} tiles",
                "complete": f"{percent(first['complete'])} to {percent(last['complete'])}",
                "hardest level": f"index {hardest}, regret {population.members['fitness'][hardest]:.3g}",
            }
        )
        written = {"levels": POPULATION, "statistics": STATISTICS, "curves": CURVES, "hardest levels": HARDEST}
        for label, name in written.items():
            print(f"{label}: {self.out / name}")
