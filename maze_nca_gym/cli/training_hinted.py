"""The work of `maze-nca-gym train-hinted`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

from maze_nca_gym.agents.hinting.automata import AUTOMATA
from maze_nca_gym.agents.hinting.certificate import Certificate, certify
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.agents.hinting.learning import learn
from maze_nca_gym.agents.promises import Promises
from maze_nca_gym.agents.runs import flag, progress_bar, versions, write_json
from maze_nca_gym.agents.training.loop import MODEL
from maze_nca_gym.agents.training.reports import METRICS, MetricsFile, duration
from maze_nca_gym.agents.training.run import DESCRIPTION
from maze_nca_gym.agents.weights import save_model
from maze_nca_gym.cli.output import complain, print_facts

if TYPE_CHECKING:
    from maze_nca_gym.agents.learned import NCA
    from maze_nca_gym.cli.train_hinted import TrainHinted

FAILED = 1


def train_hinted(command: TrainHinted, config: HintConfig) -> int:
    """Learn from hints, print the results and return the exit code."""
    torch.set_num_threads(command.threads)
    _make_folder(command)
    model, n_updates, seconds = _learn(command, config)
    certificate = certify(model, config.largest)
    model.promises = Promises(exact=certificate.holds, bound=AUTOMATA[config.task, config.heals].bound)
    path = save_model(model, command.out / MODEL)
    write_json(command.out / DESCRIPTION, _describe(command, config, certificate))
    print_facts(
        {
            "policy": f"NCA, {config.task}, {model.n_weights:,} weights",
            "learning": f"{n_updates:,} updates, {duration(seconds)}",
            "certificate": _in_words(certificate),
        }
    )
    print(f"model: {path}")
    if not certificate.holds:
        complain("the weights are not proven to do what the automaton does; try more --n-updates, or another --seed")
    return 0 if certificate.holds else FAILED


def _make_folder(command: TrainHinted) -> None:
    """Make the folder, without the files of an earlier run.

    Raises:
        ValueError: it has a run.
    """
    paths = [command.out / name for name in (MODEL, METRICS, DESCRIPTION)]
    if not command.overwrite and any(path.exists() for path in paths):
        raise ValueError(f"{command.out} has a run; choose another --out, or lose that run with --overwrite")
    command.out.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.unlink(missing_ok=True)


def _learn(command: TrainHinted, config: HintConfig) -> tuple[NCA, int, float]:
    """Return the network, its updates, and the seconds that they took."""
    n_updates = config.n_updates_in_all
    print(f"{command.out}: watching the automaton, then {n_updates:,} updates of {config.batch_size:,} patches")
    with closing(MetricsFile(command.out / METRICS)) as metrics, progress_bar("learning", n_updates) as advance:

        def log(line: Mapping[str, float]) -> None:
            made = metrics.lines[-1]["update"] if metrics.lines else 0
            metrics.log(line)
            advance(int(line["update"] - made))
            if "round" in line:
                print(
                    f"round {line['round']} of at most {config.n_rounds}: sums reach {line['silent']:.3g} where a "
                    f"channel must be silent, signals are off by {line['error']:.3g}",
                    flush=True,
                )

        model = learn(config, log)
        return model, int(metrics.lines[-1]["update"]), metrics.lines[-1]["seconds"]


def _describe(command: TrainHinted, config: HintConfig, certificate: Certificate) -> Mapping[str, object]:
    sizes = ", ".join(f"{size}x{size}" for size in config.sizes)
    n_booleans = len(AUTOMATA[config.task, config.heals].signals)
    return {
        "command": command_line(config),
        "exact": certificate.holds,
        "data": f"traces of an automaton of {n_booleans} booleans a tile on {', '.join(config.families)} "
        f"levels at {sizes}: each patch of five tiles once",
        "configuration": config.to_json(),
        "certificate": {**asdict(certificate), "holds": certificate.holds},
        "device": "cpu",
        "processes": 1,
        "threads": command.threads,
        "versions": versions(),
    }


def command_line(config: HintConfig) -> str:
    """Return the command that learns with a configuration, in the words of a shell."""
    words = ["maze-nca-gym", "train-hinted"]
    words += [] if config.task == HintConfig().task else ["--task", config.task]
    words += ["--heals"] if config.heals else []
    for name, value in changes(config).items():
        words += [flag(name), *map(str, value if isinstance(value, tuple) else [value])]
    return shlex.join(words)


def _in_words(certificate: Certificate) -> str:
    if certificate.holds:
        return "does what the automaton does on every maze, of any size, at every iteration: proven, in float32"
    return (
        f"not proven: sums reach {certificate.silent:.3g} where a channel must be silent, {certificate.least:.3g} to "
        f"{certificate.most:.3g} where not (0 to {certificate.largest:g}), and signals are off by "
        f"{certificate.error:.3g} ({certificate.tolerance:g})"
    )
