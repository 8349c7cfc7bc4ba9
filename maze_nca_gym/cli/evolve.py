"""`maze-nca-gym evolve`: its options; the work is in `evolving`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_at_least, check_folder, flag
from maze_nca_gym.cli.options import INTEGER, NUMBER, GeneratorOptions
from maze_nca_gym.mutation import MUTATIONS
from maze_nca_gym.population import PopulationConfig
from maze_nca_gym.population.config import EVICTIONS, SCORES, check_name
from maze_nca_gym.population.population import PARENTS
from maze_nca_gym.population.selection import PRIORITISATIONS

_POLICIES = arg(metavar="POLICY …", help_behavior_hint="(at least one)")
_STEPS = arg(help_behavior_hint="(default: the policy's usual number, in proportion to the size)")
_BATCH = arg(help_behavior_hint="(default: 256, fewer of large levels)")
_CAPACITY = arg(help_behavior_hint="(default: --n)")
_DEFAULT = PopulationConfig()


def _one_of(names: Any) -> Any:
    """Describe, for the help, a choice of names, whose words are joined by hyphens."""
    return arg(metavar="{" + ",".join(name.replace(" ", "-") for name in names) + "}")


def _rate(option: str, of: str, metavar: str) -> Any:
    """Describe, for the help, an option that only one mutation takes."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {getattr(MUTATIONS[of](), option)} for {of})")


@dataclass(frozen=True)
class PopulationOptions:
    """Selection and mutation of levels: by default as in the paper, with the rates of its code."""

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
    parents: Annotated[str, _one_of(PARENTS)] = "random"
    """How parents are chosen: at random, by highest score (fittest), or in proportion to replay weight."""
    eviction: Annotated[str, _one_of(EVICTIONS)] = _DEFAULT.eviction
    """Member that fitter offspring replace: the one of lowest score (fitness), or of lowest replay weight."""
    score: Annotated[str, _one_of(SCORES)] = _DEFAULT.score
    """Score of a level: regret, or learnability, which is high where some of several policies complete it."""
    prioritisation: Annotated[str, _one_of(PRIORITISATIONS)] = _DEFAULT.prioritisation
    """How scores become replay weights."""
    temperature: Annotated[float, NUMBER] = _DEFAULT.temperature
    """Temperature of rank and proportional; the lower, the larger the weights of the highest scores."""
    top_k: Annotated[int, INTEGER] = _DEFAULT.top_k
    """Number of levels to which top-k gives weight."""
    staleness_weight: Annotated[float, NUMBER, arg(metavar="FRACTION")] = _DEFAULT.staleness_weight
    """Fraction of the replay weights that depends on the time since a level was measured, 0 to 1."""

    def config(self, task: str, n: int) -> PopulationConfig:
        """Return the configuration of a population that begins with `n` levels.

        Raises:
            ValueError: a bad value, or an option that the mutation does not take.
        """
        given = {name: getattr(self, name) for name in ("tile_rate", "source_rate", "n_edits")}
        check_name("parents", self.parents, PARENTS)
        check_at_least("--capacity", self.capacity, n)
        return PopulationConfig(
            task=task,
            capacity=n if self.capacity is None else self.capacity,
            prioritisation=self.prioritisation,
            temperature=self.temperature,
            top_k=self.top_k,
            staleness_weight=self.staleness_weight,
            eviction=self.eviction.replace("-", " "),
            score=self.score,
            mutation=self.mutation,
            mutation_options={name: value for name, value in given.items() if value is not None},
        )


@dataclass(frozen=True)
class Evolve:
    """Evolve levels on which policies fail: mutate them, measure their regret, keep the hardest.

    Regret is the distance of a policy's path from the exact solution after the last iteration, averaged over all
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
    n_offspring: Annotated[int, INTEGER] = 64
    """Number of offspring in a round."""
    seed: Annotated[int, INTEGER] = 0
    """Seed of all randomness, at least 0; the same seed gives the same levels."""
    regret: Annotated[str, arg(metavar="{loss,accuracy}")] = "loss"
    """Regret of a policy: loss (as in the paper; long solutions count more), or accuracy (1 - accuracy)."""
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

    def check(self) -> None:
        """Check the options before the work begins.

        Raises:
            ValueError: what is wrong and what is allowed.
        """
        if not self.policies:
            raise ValueError("name at least one policy, or a model file (*.safetensors)")
        for name in ("n", "n_offspring", "steps", "batch", "picture_every"):
            check_at_least(flag(name), getattr(self, name), 1)
        for name in ("rounds", "seed", "save_every"):
            check_at_least(flag(name), getattr(self, name), 0)
        self.levels.inner_size()
        self.levels.generator_options()
        self.population.config("shortest-path", self.n)
        check_folder("--out", self.out)

    def run(self) -> int:
        """Evolve the levels, print and save the results, and return the exit code.

        Raises:
            ValueError: a bad option, policy or combination, or a folder with another population.
            JobError: the device has too little memory, or a file could not be written.
        """
        self.check()
        from maze_nca_gym.cli.evolving import evolve_levels

        return evolve_levels(self)
