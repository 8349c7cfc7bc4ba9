"""`maze-nca-gym train` with an option for each one of a configuration, whose defaults are the preset's."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Fixed, FlagConversionOff, Suppress

from maze_nca_gym.agents.runs import flag
from maze_nca_gym.agents.training import (
    PRESETS,
    LevelsConfig,
    LossConfig,
    ModelConfig,
    OptimiserConfig,
    PoolConfig,
)
from maze_nca_gym.agents.training.config import preset_values
from maze_nca_gym.agents.training.options import RunOptions
from maze_nca_gym.cli.evolve import PopulationOptions
from maze_nca_gym.cli.options import read_options
from maze_nca_gym.cli.output import FAILED, INTERRUPTED, JobError, complain, percent, print_facts
from maze_nca_gym.cli.train import Train
from maze_nca_gym.population import BreedingSchedule

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy


class _Unchecked:
    """Checks nothing: the configuration does, outside of the parser, so that its message stands alone."""

    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True)
class Model(_Unchecked, ModelConfig):  # type: ignore[misc] # agents/ is checked by its place on disk
    """The model. What is not given is as in the preset, here and in the following groups."""

    options: Annotated[Mapping[str, Any], Suppress, Fixed] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelsToTrainOn(_Unchecked, LevelsConfig):  # type: ignore[misc]
    """The levels to train on."""


@dataclass(frozen=True)
class Loss(_Unchecked, LossConfig):  # type: ignore[misc]
    """What training minimises."""


@dataclass(frozen=True)
class Optimiser(_Unchecked, OptimiserConfig):  # type: ignore[misc]
    """What changes the weights."""


@dataclass(frozen=True)
class Pool(_Unchecked, PoolConfig):  # type: ignore[misc]
    """Levels that keep their states from update to update."""


@dataclass(frozen=True)
class Breeding(_Unchecked, BreedingSchedule):
    """When offspring compete with the population of --evolve, and how many."""


@dataclass(frozen=True)
class Configuration(RunOptions):  # type: ignore[misc]
    """The task, and how long to train."""

    model: Model = field(default_factory=Model)
    levels: LevelsToTrainOn = field(default_factory=LevelsToTrainOn)
    loss: Loss = field(default_factory=Loss)
    optimiser: Optimiser = field(default_factory=Optimiser)
    pool: Pool = field(default_factory=Pool)
    population: PopulationOptions = field(default_factory=PopulationOptions)
    breeding: Breeding = field(default_factory=Breeding)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Configuration:
        """Return the options with these values, one for each name."""
        groups: dict[str, Any] = {}
        for group, kind in _GROUPS.items():
            groups[group] = kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})
        own = {f.name: values[f.name] for f in fields(cls) if f.name not in _GROUPS}
        return cls(**own, **groups)

    def values(self) -> dict[str, Any]:
        """Return all values by the names of the options."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _GROUPS}
        for group in _GROUPS:
            given |= {name: value for name, value in vars(getattr(self, group)).items() if name != "options"}
        return given


_GROUPS: dict[str, Any] = {
    "model": Model,
    "levels": LevelsToTrainOn,
    "loss": Loss,
    "optimiser": Optimiser,
    "pool": Pool,
    "population": PopulationOptions,
    "breeding": Breeding,
}


@dataclass(frozen=True)
class ConfiguredTrain(Train):
    """`Train` with a configuration."""

    configuration: Annotated[Configuration, FlagConversionOff] = field(default_factory=Configuration)

    def run(self) -> int:
        """Train, print, save; returns the exit code.

        Raises:
            ValueError: a bad option or combination, or a folder with another run.
            JobError: the job could not be done; the last checkpoint is intact.
        """
        self.import_module()
        self.check()
        options = {f.name: getattr(self, f.name) for f in fields(Train) if f.name != "module"}
        first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, one tells how it went
        usual, given = preset_values(self.preset), self.configuration.values()
        changes = {name: value for name, value in given.items() if value != usual[name]}
        from maze_nca_gym.agents.training import Diverged
        from maze_nca_gym.agents.training.run import train

        try:
            policy = train(**options, **changes)
        except (KeyboardInterrupt, Diverged) as end:
            if first:
                complain(str(end) if isinstance(end, KeyboardInterrupt) else f"error: {end}")
            return INTERRUPTED if isinstance(end, KeyboardInterrupt) else FAILED
        except ImportError as error:
            raise JobError(str(error)) from error
        if first:
            self._summarise(policy)
        return 0

    def _summarise(self, policy: Policy) -> None:
        """Print what came out, and where it is."""
        from maze_nca_gym.agents.runs import METRICS, duration, read_metrics
        from maze_nca_gym.agents.training import LEVELS, MODEL
        from maze_nca_gym.agents.training.reports import CURVES, ROLLOUTS

        lines = read_metrics(self.folder / METRICS)
        facts = {
            "policy": f"{type(policy).__name__}, {policy.task}, {policy.n_weights:,} weights",
            "training": f"{lines[-1]['update']:,} updates, {duration(lines[-1]['seconds'])}",
        }
        validated = next((line for line in reversed(lines) if "complete" in line), None)
        if validated is not None:
            size = self.configuration.levels.sizes[0]
            facts[f"validation, {size}x{size}"] = (
                f"accuracy {validated['accuracy']:.4f}, complete {percent(validated['complete'])}, "
                f"optimal {percent(validated['optimal'])}"
            )
        print_facts(facts)
        written = {"metrics": [METRICS], "pictures": [CURVES, ROLLOUTS], "levels": [LEVELS], "model": [MODEL]}
        for label, names in written.items():
            paths = [str(self.folder / name) for name in names if (self.folder / name).exists()]
            if paths:
                print(f"{label}: {', '.join(paths)}")


def parse_train(arguments: Sequence[str]) -> ConfiguredTrain:
    """Return the command that the arguments after `train` ask for.

    Args:
        arguments: the words, with a preset anywhere among them, or none.

    Raises:
        SystemExit: the same codes as from `read_options`.
        ValueError: an unknown preset; the message lists the known ones.
    """
    arguments = list(_switched_on(arguments))
    guess = arguments[0] if arguments and arguments[0] in PRESETS else Train.preset
    command = _parse(arguments, guess)
    return command if command.preset == guess else _parse(arguments, command.preset)


def _switched_on(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with True after every switch of the configuration that stands alone: --evolve ..."""
    kinds: list[Any] = [Configuration, *_GROUPS.values()]
    switches = {flag(f.name) for kind in kinds for f in fields(kind) if str(f.type).startswith("bool")}
    for word, after in zip_longest(arguments, arguments[1:], fillvalue=""):
        yield word
        if word.replace("_", "-") in switches and after not in ("True", "False", "None"):
            yield "True"


def _parse(arguments: Sequence[str], name: str) -> ConfiguredTrain:
    """Parse with the values of a preset as defaults."""
    default = ConfiguredTrain(preset=name, configuration=Configuration.of(preset_values(name)))
    description = f"{inspect.getdoc(Train)}\n\nPresets: {', '.join(PRESETS)}."
    command: ConfiguredTrain = read_options(
        ConfiguredTrain, arguments, "maze-nca-gym train", description, default=default
    )
    return command
