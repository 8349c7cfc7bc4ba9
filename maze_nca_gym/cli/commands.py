"""The tree of commands, and parsing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeAlias, get_args, get_type_hints

from tyro.conf import subcommand

from maze_nca_gym.cli.bench import Bench
from maze_nca_gym.cli.evaluate import Evaluate
from maze_nca_gym.cli.evolve import Evolve
from maze_nca_gym.cli.export import Export
from maze_nca_gym.cli.levels import Generate, ListLevels, ShowLevels
from maze_nca_gym.cli.options import read_options
from maze_nca_gym.cli.play import Play
from maze_nca_gym.cli.policies import ListPolicies, ShowPolicy
from maze_nca_gym.cli.reproduce import Reproduce
from maze_nca_gym.cli.solve import Solve
from maze_nca_gym.cli.train import Train
from maze_nca_gym.cli.train_hinted import TrainHinted
from maze_nca_gym.names import unknown_name


class Command(Protocol):
    """A parsed command line."""

    def run(self) -> int:
        """Run the command and return the exit code."""


@dataclass(frozen=True)
class Levels:
    """List and show levels: named mazes, packs, files."""

    command: Annotated[ListLevels, subcommand("list")] | Annotated[ShowLevels, subcommand("show")]

    def run(self) -> int:
        """Run the subcommand and return the exit code."""
        return self.command.run()


@dataclass(frozen=True)
class Policies:
    """List and show the policies that come with the package."""

    command: Annotated[ListPolicies, subcommand("list")] | Annotated[ShowPolicy, subcommand("show")]

    def run(self) -> int:
        """Run the subcommand and return the exit code."""
        return self.command.run()


AnyCommand: TypeAlias = (
    Annotated[Solve, subcommand("solve")]
    | Annotated[Play, subcommand("play")]
    | Annotated[Train, subcommand("train")]
    | Annotated[TrainHinted, subcommand("train-hinted")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Evolve, subcommand("evolve")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Generate, subcommand("generate")]
    | Annotated[Export, subcommand("export")]
    | Annotated[Levels, subcommand("levels")]
    | Annotated[Policies, subcommand("policies")]
)


def parse(arguments: Sequence[str]) -> Command:
    """Return the command that the arguments ask for.

    Raises:
        SystemExit: 0 after printing the requested help, 2 after reporting wrong usage.
        ValueError: an unknown command or preset; the message names the nearest.
    """
    _check_commands(arguments)
    if arguments[:1] == ["train"]:
        from maze_nca_gym.cli.configured import parse_train  # here, because only this command needs it

        return parse_train(arguments[1:])
    about = "Mazes in which each step is one iteration of a neural cellular automaton."
    command: Command = read_options(AnyCommand, arguments, "maze-nca-gym", about)
    return command


def _check_commands(arguments: Sequence[str]) -> None:
    """Check the names of commands at the beginning of the arguments, which tyro would reject without a suggestion.

    Raises:
        ValueError: an unknown name; the message lists the known ones.
    """
    commands = _commands(AnyCommand)
    for word in arguments:
        name = word.replace("_", "-")
        if not commands or word.startswith("-"):
            return
        if name not in commands:
            raise ValueError(unknown_name("command", word, commands))
        commands = _commands(get_type_hints(commands[name], include_extras=True).get("command"))


def _commands(choices: Any) -> dict[str, Any]:
    """Return the classes of a union of commands by name; an empty dict for anything else."""
    return {marked.__metadata__[0].name: get_args(marked)[0] for marked in get_args(choices)}
