"""`maze-nca-gym evolve`: its options; the work is in `evolving`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.cli.options import INTEGER, NUMBER, GeneratorOptions, check_at_least, flag
from maze_nca_gym.mutation import MUTATIONS
from maze_nca_gym.population import PopulationConfig
from maze_nca_gym.population.config import EVICTIONS, SCORES, check_name
from maze_nca_gym.population.population import PARENTS
from maze_nca_gym.population.selection import PRIORITISATIONS

_POLICIES = arg(metavar="POLICY …", help_behavior_hint="(at least one)")
_STEPS = arg(help_behavior_hint="(default: what a policy is made for, in proportion to the size)")
_BATCH = arg(help_behavior_hint="(default: 256, fewer of large ones)")
_CAPACITY = arg(help_behavior_hint="(default: --n)")
_DEFAULT = PopulationConfig()


def _one_of(names: Any) -> Any:
    """How the help presents a name, whose words may be joined by a hyphen."""
    return arg(metavar="{" + ",".join(name.replace(" ", "-") for name in names) + "}")


def _rate(option: str, of: str, metavar: str) -> Any:
    """How the help presents an option that only one mutation takes."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {getattr(MUTATIONS[of](), option)} for {of})")


@dataclass(frozen=True)
class PopulationOptions:
    """Whom the population keeps, and how it makes offspring; by default as in the paper, with the rates of its code."""

    capacity: Annotated[int | None, INTEGER, _CAPACITY] = None
    """Levels that the population holds at the most."""
    mutation: Annotated[str, _one_of(MUTATIONS)] = _DEFAULT.mutation
    """What makes offspring: flip changes many tiles a little likely, edits a few for sure."""
    tile_rate: Annotated[float | None, NUMBER, _rate("tile_rate", "flip", "FRACTION")] = None
    """Probability that an inner tile turns from wall to empty or back."""
    source_rate: Annotated[float | None, NUMBER, _rate("source_rate", "flip", "FRACTION")] = None
    """Probability that the source moves."""
    n_edits: Annotated[int | None, INTEGER, _rate("n_edits", "edits", "INT")] = None
    """Edits of a level."""
    parents: Annotated[str, _one_of(PARENTS)] = "random"
    """Whose offspring: anybody's, that of the highest scores, or by their replay weights."""
    eviction: Annotated[str, _one_of(EVICTIONS)] = _DEFAULT.eviction
    """Whom fitter offspring replace: the level of lowest score, or of lowest replay weight."""
    score: Annotated[str, _one_of(SCORES)] = _DEFAULT.score
    """What a level lives by: regret, or learnability, high where some of several policies complete it."""
    prioritisation: Annotated[str, _one_of(PRIORITISATIONS)] = _DEFAULT.prioritisation
    """How scores become replay weights."""
    temperature: Annotated[float, NUMBER] = _DEFAULT.temperature
    """Of rank and proportional: the lower, the more weight for the highest scores."""
    top_k: Annotated[int, INTEGER] = _DEFAULT.top_k
    """Levels that top-k weighs."""
    staleness_weight: Annotated[float, NUMBER, arg(metavar="FRACTION")] = _DEFAULT.staleness_weight
    """Part of the replay weights that goes by the time since a level was measured."""

    def config(self, task: str, n: int) -> PopulationConfig:
        """The configuration of a population that begins with `n` levels.

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
    """Evolve levels on which policies fail: mutate, measure their regret, keep the hardest.

    Regret is what a policy's path lacks of the exact solution after its last iteration, the mean over all policies.
    Levels of the test sets never enter. Ctrl-C saves and ends; the same command goes on, also with more --rounds. The
    folder gets population.npz, which the other commands and the environments take for levels, statistics.jsonl,
    curves.png, hardest.gif and config.json.
    """

    policies: Annotated[Positional[tuple[str, ...]], _POLICIES]
    """Names from `policies list`, or model files (*.safetensors), all of one task."""
    n: Annotated[int, INTEGER] = 1000
    """Levels to begin with."""
    rounds: Annotated[int, INTEGER] = 200
    """How often offspring compete with the population."""
    n_offspring: Annotated[int, INTEGER] = 64
    """Offspring of a round."""
    seed: Annotated[int, INTEGER] = 0
    """Of all randomness, at least 0: the same seed gives the same levels."""
    regret: Annotated[str, arg(metavar="{loss,accuracy}")] = "loss"
    """The loss, as in the paper, by which long solutions count more; or what the accuracy lacks of 1."""
    steps: Annotated[int | None, INTEGER, _STEPS] = None
    """Iterations on a level."""
    batch: Annotated[int | None, INTEGER, _BATCH] = None
    """Levels that run at once."""
    device: str = "cpu"
    """cpu, cuda, cuda:1 …"""
    picture_every: Annotated[int, INTEGER] = 10
    """Rounds from one picture of hardest.gif to the next."""
    save_every: Annotated[float, NUMBER] = 60.0
    """Seconds from saving to saving."""
    overwrite: bool = False
    """Start anew if the folder has a population, which is lost."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/evolve")
    """Of the population."""
    levels: GeneratorOptions = field(default_factory=GeneratorOptions)
    population: PopulationOptions = field(default_factory=PopulationOptions)

    def check(self) -> None:
        """Fail before the work begins where the options alone tell that it would be in vain.

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
        """Evolve, print, save; returns the exit code.

        Raises:
            ValueError: a bad option, policy or combination, or a folder with another population.
            JobError: the device has too little memory, or a file could not be written.
        """
        self.check()
        from maze_nca_gym.cli.evolving import evolve_levels

        return evolve_levels(self)
