"""The tree of commands, and parsing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Protocol

import tyro
from tyro.conf import subcommand

from maze_nca_gym.cli.bench import Bench
from maze_nca_gym.cli.evaluate import Evaluate
from maze_nca_gym.cli.evolve import Evolve, parse_evolve
from maze_nca_gym.cli.export import Export
from maze_nca_gym.cli.levels import Generate, ListLevels, ShowLevels
from maze_nca_gym.cli.play import Play
from maze_nca_gym.cli.policies import ListPolicies, ShowPolicy
from maze_nca_gym.cli.reading import read_command
from maze_nca_gym.cli.reproduce import Reproduce
from maze_nca_gym.cli.solve import Solve
from maze_nca_gym.cli.train import Train, parse_train
from maze_nca_gym.cli.train_hinted import TrainHinted, parse_train_hinted
from maze_nca_gym.names import unknown_name


class Command(Protocol):
    """A parsed command line."""

    def run(self) -> int:
        """Run the command and return the exit code."""


class Levels:
    """List and show levels: named mazes, packs, files."""


class Policies:
    """List and show the policies that come with the package."""


COMMANDS: Mapping[str, Any] = {
    "solve": Solve,
    "play": Play,
    "train": Train,
    "train-hinted": TrainHinted,
    "evaluate": Evaluate,
    "evolve": Evolve,
    "bench": Bench,
    "reproduce": Reproduce,
    "generate": Generate,
    "export": Export,
    "levels": Levels,
    "policies": Policies,
}
"""Name of a command -> the class of its options, or of commands of its own."""
_WITHIN: Mapping[Any, Mapping[str, Any]] = {
    Levels: {"list": ListLevels, "show": ShowLevels},
    Policies: {"list": ListPolicies, "show": ShowPolicy},
}
_PARSERS: Mapping[Any, Callable[[Sequence[str]], Command]] = {
    Train: parse_train,
    TrainHinted: parse_train_hinted,
    Evolve: parse_evolve,
}
"""Commands whose options depend on what is named among them, which have parsers of their own."""
ABOUT = "Mazes in which each step is one iteration of a neural cellular automaton."


def parse(arguments: Sequence[str]) -> Command:
    """Return the command that the arguments ask for.

    Raises:
        SystemExit: 0 after printing the requested help, 2 after reporting wrong usage.
        ValueError: an unknown command, preset or option, or a bad value; the message says what is known or allowed.
    """
    return _parse(list(arguments), COMMANDS, "maze-nca-gym", ABOUT)


def _parse(words: list[str], commands: Mapping[str, Any], prog: str, about: str) -> Command:
    if not words:
        raise ValueError(f"{prog} needs a command: {', '.join(commands)}; --help describes them")
    name = words[0].replace("_", "-")
    if name.startswith("-"):
        _help(commands, words, prog, about)
    if name not in commands:
        raise ValueError(unknown_name("command", words[0], commands))
    kind, prog = commands[name], f"{prog} {name}"
    if kind in _WITHIN:
        return _parse(words[1:], _WITHIN[kind], prog, inspect.getdoc(kind) or "")
    parser: Callable[[Sequence[str]], Command] = _PARSERS.get(kind, partial(read_command, kind, prog=prog))
    return parser(words[1:])


def _help(commands: Mapping[str, Any], words: Sequence[str], prog: str, about: str) -> None:
    """Print the help that lists commands, or what is wrong with an option in place of one; end the program."""
    kinds = []
    for name, kind in commands.items():
        listed = make_dataclass(kind.__name__, [], namespace={"__doc__": inspect.getdoc(kind)})
        kinds.append(Annotated[listed, subcommand(name)])
    form: Any = reduce(or_, kinds)
    tyro.cli(form, prog=prog, description=about, args=words)
