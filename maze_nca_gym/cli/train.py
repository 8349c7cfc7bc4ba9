"""`maze-nca-gym train`: its options, those of a configuration included, and what it prints."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.agents.runs import check_folder
from maze_nca_gym.agents.training import PRESETS
from maze_nca_gym.agents.training.config import OPTIONS, preset_values
from maze_nca_gym.cli.options import ImportOption
from maze_nca_gym.cli.output import FAILED, INTERRUPTED, JobError, complain
from maze_nca_gym.cli.reading import in_words, read_values
from maze_nca_gym.options import Between, Option, Shown, check_options, options_of, unflattened
from maze_nca_gym.tables import Table, percent

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy


@dataclass(frozen=True)
class Train(ImportOption):
    """Train a policy on the exact solutions of mazes, or continue a run that was stopped.

    Ctrl-C saves and ends the run; the same command continues it. The run's folder receives model.safetensors, which the
    other commands accept as a policy, metrics.jsonl, curves.png, rollouts.png, config.json and, until it is finished,
    checkpoint.safetensors.
    If its levels evolve, it ends with population.npz, which the other commands accept as --levels.
    """

    preset: Annotated[str, Shown("PRESET", positional=True)] = "fast"
    """Preset whose values apply unless given; `train PRESET --help` shows them."""
    out: Annotated[Path | None, Shown("FOLDER", "runs/train/PRESET")] = None
    """Folder of the run."""
    device: str = "auto"
    """Device: auto (a GPU if there is one), cpu, cuda, cuda:1 …"""
    threads: Annotated[int | None, Between(1), Shown(default="one per core")] = None
    """Number of CPU threads."""
    log_every: Annotated[int, Between(1)] = 25
    """Number of updates between two lines of metrics."""
    validate_every: Annotated[int, Between(1)] = 250
    """Number of updates between two validations, a multiple of --log-every."""
    save_every: Annotated[float, Between(0)] = 60.0
    """Seconds between two checkpoints."""
    tensorboard: bool = False
    """Also write events for TensorBoard, into the folder tb of the run."""
    overwrite: bool = False
    """Delete the run in the folder, if there is one, and start a new one."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.validate_every % self.log_every:
            raise ValueError(
                f"--validate-every must be a multiple of --log-every {self.log_every}, got {self.validate_every}"
            )

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return Path("runs/train") / self.preset if self.out is None else self.out


@dataclass(frozen=True)
class ConfiguredTrain:
    """A run, and the options of its configuration that were given."""

    how: Train
    configuration: Mapping[str, Any]

    def run(self) -> int:
        """Train, print, save; returns the exit code.

        Raises:
            ValueError: a bad option or combination, or a folder with another run.
            JobError: the job could not be done; the last checkpoint is intact.
        """
        self.how.import_module()
        check_folder("--out", self.how.folder)
        from maze_nca_gym.agents.training import Diverged
        from maze_nca_gym.agents.training.run import train

        first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, one tells how it went
        how = {name: value for name, value in vars(self.how).items() if name != "module"}
        try:
            policy = train(**how, **self.configuration)
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

        folder = self.how.folder
        lines = read_metrics(folder / METRICS)
        facts = {
            "policy": f"{type(policy).__name__}, {policy.task}, {policy.n_weights:,} weights",
            "training": f"{lines[-1]['update']:,} updates, {duration(lines[-1]['seconds'])}",
        }
        validated = next((line for line in reversed(lines) if "complete" in line), None)
        if validated is not None:
            size = OPTIONS["sizes"].check({**preset_values(self.how.preset), **self.configuration}["sizes"])[0]
            facts[f"validation, {size}x{size}"] = (
                f"accuracy {validated['accuracy']:.4f}, complete {percent(validated['complete'])}, "
                f"optimal {percent(validated['optimal'])}"
            )
        Table.of_facts(facts).print()
        written = {"metrics": [METRICS], "pictures": [CURVES, ROLLOUTS], "levels": [LEVELS], "model": [MODEL]}
        for label, names in written.items():
            paths = [str(folder / name) for name in names if (folder / name).exists()]
            if paths:
                print(f"{label}: {', '.join(paths)}")


def parse_train(words: Sequence[str]) -> ConfiguredTrain:
    """Return the command that the words after `train` ask for.

    A preset may stand anywhere among them. A model of one's own has options once its module is imported.

    Raises:
        SystemExit: the same codes as from `read_values`.
        ValueError: an unknown preset; the message lists the known ones. Or an option that there is not.
    """
    how, named = options_of(Train), _named(words)
    ImportOption(module=named.get("--import")).import_module()
    usual = preset_values(next((word for word in words if word in PRESETS), Train.preset))
    options = dict(how)
    for name, option in {**_own_options(named, usual["model"]), **OPTIONS}.items():
        style = Shown(default=in_words(usual.get(name, option.default)), takes_value=True)
        options[name] = replace(option, style=style)
    about = f"{inspect.getdoc(Train)}\n\nPresets: {', '.join(PRESETS)}."
    given = read_values(options, words, "maze-nca-gym train", about, Train)
    configuration = {name: value for name, value in given.items() if name not in how}
    return ConfiguredTrain(
        unflattened(Train, {name: option.default for name, option in how.items()} | given), configuration
    )


def _named(words: Sequence[str]) -> dict[str, str]:
    """Return the module and the model that words name, which bring presets and options of their own."""
    pairs = (_pair(word, following) for word, following in zip_longest(words, words[1:], fillvalue=""))
    return {typed: value for typed, value in pairs if typed in ("--import", "--model")}


def _pair(word: str, following: str) -> tuple[str, str]:
    typed, equals, value = word.partition("=")
    return typed, value if equals else following


def _own_options(named: Mapping[str, str], usual: str) -> Mapping[str, Option]:
    """Return the options of the model that is named; none, without loading torch, where neither it nor a module is."""
    if not named:
        return {}
    from maze_nca_gym.agents.training.options import constructor_options
    from maze_nca_gym.agents.weights import MODELS

    model = named.get("--model", usual)
    return constructor_options(model) if model in MODELS else {}
