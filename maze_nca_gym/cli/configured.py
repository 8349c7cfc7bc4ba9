"""`maze-nca-gym train` with an option for each field of a configuration, whose defaults are the preset's.

Importing this loads torch, which the help of other commands does without.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import tyro
from tyro.conf import FlagConversionOff

from maze_nca_gym.agents.training import PRESETS, TrainingConfig, changed, preset
from maze_nca_gym.cli.options import flag
from maze_nca_gym.cli.train import Train


@dataclass(frozen=True)
class Fields(TrainingConfig):  # type: ignore[misc] # agents/ is checked by its place on disk
    """What decides the weights that the run ends with; what is not given is as in the preset."""

    def __post_init__(self) -> None:
        """Check nothing: `TrainingConfig` does, outside of the parser, so that its message stands alone."""


@dataclass(frozen=True)
class ConfiguredTrain(Train):
    """`Train` with a configuration."""

    configuration: Annotated[Fields, FlagConversionOff] = field(default_factory=Fields)

    def run(self) -> int:
        """Train, print, save; returns the exit code.

        Raises:
            ValueError: a bad option or combination, or a folder with another run.
            JobError: the job could not be done; the last checkpoint is intact.
        """
        self.check()
        config = changed(preset(self.preset), **changes(self.preset, self.configuration))
        from maze_nca_gym.cli.training import train

        return train(self, config)


def changes(name: str, config: TrainingConfig) -> dict[str, Any]:
    """The fields in which a configuration differs from a preset."""
    values = ((f.name, getattr(config, f.name), getattr(preset(name), f.name)) for f in fields(TrainingConfig))
    return {field_name: value for field_name, value, usual in values if value != usual}


def command_line(name: str, config: TrainingConfig) -> str:
    """The command that trains with a configuration, in the words of a shell."""
    words = ["maze-nca-gym", "train", name]
    for field_name, value in changes(name, config).items():
        words += [flag(field_name), *map(str, value if isinstance(value, tuple) else [value])]
    return shlex.join(words)


def parse_train(arguments: Sequence[str], style: Any) -> ConfiguredTrain:
    """The command that the arguments after `train` ask for.

    Args:
        arguments: with a preset anywhere among them, or none.
        style: tyro's.

    Raises:
        SystemExit: as `tyro.cli`.
        ValueError: an unknown preset; the message lists the known ones.
    """
    arguments = list(_switched_on(arguments))
    guess = arguments[0] if arguments and arguments[0] in PRESETS else Train.preset
    command = _parse(arguments, style, guess)
    return command if command.preset == guess else _parse(arguments, style, command.preset)


def _switched_on(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments, with True after every switch of the configuration that stands alone: --evolve, --compile ..."""
    switches = {flag(f.name) for f in fields(TrainingConfig) if str(f.type).startswith("bool")}
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        yield word
        if word.replace("_", "-") in switches and after not in ("True", "False", "None"):
            yield "True"


def _parse(arguments: Sequence[str], style: Any, name: str) -> ConfiguredTrain:
    """Parse with the values of a preset as defaults."""
    default = ConfiguredTrain(preset=name, configuration=Fields(**vars(preset(name))))
    command: ConfiguredTrain = tyro.cli(
        ConfiguredTrain,
        prog="maze-nca-gym train",
        description=f"{inspect.getdoc(Train)}\n\nPresets: {', '.join(PRESETS)}.",
        args=arguments,
        default=default,
        config=style,
    )
    return command
