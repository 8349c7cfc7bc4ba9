"""`maze-nca-gym train-hinted`: its options, and what it prints."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.hinting.config import HintConfig
from maze_nca_gym.cli.output import FAILED, complain
from maze_nca_gym.cli.reading import in_words, read_values
from maze_nca_gym.options import Between, Shown, check_options, options_of, unflattened
from maze_nca_gym.tables import Table

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy
    from maze_nca_gym.agents.hinting.certificate import Certificate


@dataclass(frozen=True)
class TrainHinted:
    """Train a policy on hints: everything that an automaton holds at every tile at every step.

    It takes half a minute on one core for shortest-path, a minute for shortest-path-healing, which checks itself and
    restarts when the maze changes, and some minutes for diameter. So there is nothing to resume. At the end, a
    certificate proves that the weights do the same as the automaton on every maze, in float32. The exit code is 1 if it
    cannot. The folder receives model.safetensors, which the other commands accept as a policy, metrics.jsonl, and
    config.json with the certificate.
    """

    out: Annotated[Path, Shown("FOLDER")] = Path("runs/train-hinted")
    """Folder of the run."""
    threads: Annotated[int, Between(1)] = 1
    """Number of CPU threads; another number can give other weights in the last digits."""
    overwrite: bool = False
    """Delete the run in the folder, if there is one, and start a new one."""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class ConfiguredTrainHinted:
    """A run, and the options of its configuration that were given."""

    how: TrainHinted
    configuration: Mapping[str, Any]

    def run(self) -> int:
        """Learn, prove, save, and return the exit code.

        Raises:
            ValueError: a bad option, or a folder with a run.
            OSError: a file could not be written.
        """
        from maze_nca_gym.agents.hinting.run import train_hinted

        model, certificate = train_hinted(**vars(self.how), **self.configuration)
        self._summarise(model, certificate)
        return 0 if certificate.holds else FAILED

    def _summarise(self, model: Policy, certificate: Certificate) -> None:
        """Print what came out, and where it is."""
        from maze_nca_gym.agents.runs import METRICS, duration, read_last
        from maze_nca_gym.agents.training.state import MODEL

        last = read_last(self.how.out / METRICS)  # an update, or a round of repair
        Table.of_facts(
            {
                "policy": f"NCA, {model.task}, {model.n_weights:,} weights",
                "learning": f"{last['update']:,} updates, {duration(last['seconds'])}",
                "certificate": _in_words(certificate),
            }
        ).print()
        print(f"model: {self.how.out / MODEL}")
        if not certificate.holds:
            advice = "try more --n-updates, or another --seed"
            complain(f"the weights are not proven to do what the automaton does; {advice}")


def parse_train_hinted(words: Sequence[str]) -> ConfiguredTrainHinted:
    """Return the command that the words after `train-hinted` ask for.

    Raises:
        SystemExit: the same codes as from `read_values`.
        ValueError: an option that there is not, or a bad value.
    """
    how = options_of(TrainHinted)
    options = dict(how)
    for name, option in options_of(HintConfig).items():
        default = str(option.default) if name == "automaton" else _default(name)
        options[name] = replace(option, style=Shown(default=default, takes_value=True))
    given = read_values(options, words, "maze-nca-gym train-hinted", inspect.getdoc(TrainHinted) or "", TrainHinted)
    configuration = {name: value for name, value in given.items() if name not in how}
    run = unflattened(TrainHinted, {name: option.default for name, option in how.items()} | given)
    return ConfiguredTrainHinted(run, configuration)


def _default(name: str) -> str:
    """Return the default of an option for each automaton, in words."""
    words = {automaton: in_words(getattr(HintConfig.of(automaton), name)) for automaton in AUTOMATA}
    usual = words.pop(HintConfig().automaton)
    return "; ".join([usual, *(f"{word} for {automaton}" for automaton, word in words.items() if word != usual)])


def _in_words(certificate: Certificate) -> str:
    if certificate.holds:
        given = ", if its invariant holds" if certificate.assumed else ""
        return f"does what the automaton does on every maze, of any size, at every iteration: proven, in float32{given}"
    return (
        f"not proven: sums reach {certificate.silent:.3g} where a channel must be silent, {certificate.least:.3g} to "
        f"{certificate.most:.3g} where not (0 to {certificate.largest:g}), and signals are off by "
        f"{certificate.error:.3g} ({certificate.tolerance:g})"
    )
