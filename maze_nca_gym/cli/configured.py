"""`maze-nca-gym train` with an option for each field of a configuration, whose defaults are the preset's.

Importing this loads torch, which the help of other commands does without.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import tyro
from tyro.conf import FlagConversionOff

from maze_nca_gym.agents import Policy
from maze_nca_gym.agents.runs import flag
from maze_nca_gym.agents.training import LEVELS, MODEL, PRESETS, Diverged, TrainingConfig, preset
from maze_nca_gym.agents.training.reports import CURVES, METRICS, ROLLOUTS, duration, read_metrics
from maze_nca_gym.agents.training.run import changes, train
from maze_nca_gym.cli.output import FAILED, INTERRUPTED, JobError, complain, percent, print_facts
from maze_nca_gym.cli.train import Train


@dataclass(frozen=True)
class Fields(TrainingConfig):  # type: ignore[misc] # agents/ is checked by its place on disk
    """Options that determine the weights at the end of the run; those not given are as in the preset."""

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
        self.import_module()
        self.check()
        options = {f.name: getattr(self, f.name) for f in fields(Train) if f.name != "module"}
        first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, one tells how it went
        try:
            policy = train(**options, **changes(self.preset, self.configuration))
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
        lines = read_metrics(self.folder / METRICS)
        facts = {
            "policy": f"{type(policy).__name__}, {policy.task}, {policy.n_weights:,} weights",
            "training": f"{lines[-1]['update']:,} updates, {duration(lines[-1]['seconds'])}",
        }
        validated = next((line for line in reversed(lines) if "complete" in line), None)
        if validated is not None:
            size = self.configuration.to_json()["sizes"][0]
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


def parse_train(arguments: Sequence[str], style: Any) -> ConfiguredTrain:
    """Return the command that the arguments after `train` ask for.

    Args:
        arguments: the words, with a preset anywhere among them, or none.
        style: the configuration of tyro.

    Raises:
        SystemExit: the same codes as from `tyro.cli`.
        ValueError: an unknown preset; the message lists the known ones.
    """
    arguments = list(_switched_on(arguments))
    guess = arguments[0] if arguments and arguments[0] in PRESETS else Train.preset
    command = _parse(arguments, style, guess)
    return command if command.preset == guess else _parse(arguments, style, command.preset)


def _switched_on(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with True after every switch of the configuration that stands alone: --evolve, --compile
    ..."""
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
