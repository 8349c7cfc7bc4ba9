"""Common functions of the tests of commands: the command as a process, and its files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maze_nca_gym.agents import train
from maze_nca_gym.agents.training import TrainingConfig, changed
from maze_nca_gym.cli.commands import COMMANDS, Command, Commands
from maze_nca_gym.cli.output import one_command
from maze_nca_gym.support.options import options_of_call

RUN = [sys.executable, "-c", "from maze_nca_gym.cli import main; raise SystemExit(main())"]
"""The command in its own process; add its arguments."""


def files(folder: str | Path = ".") -> list[str]:
    """Return all files in a folder and its subfolders, by their relative paths."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())


def given(command: str) -> dict[str, Any]:
    """Return the options of a command line by name."""
    words = shlex.split(command)
    with one_command():
        return dict(COMMANDS.read(words[words[0] == "maze-nca-gym" :], "maze-nca-gym").keywords)


def configuration(command: str) -> TrainingConfig:
    """Return the configuration of a command line of `train`."""
    options = given(command)
    preset = options.pop("preset", "fast")
    return changed(preset, **{name: value for name, value in options.items() if name not in options_of_call(train)})


def commands(within: Commands = COMMANDS, above: str = "") -> Iterator[tuple[str, Command]]:
    """Return all commands by their words."""
    for name, command in within.within.items():
        if isinstance(command, Commands):
            yield from commands(command, f"{above}{name} ")
        else:
            yield above + name, command
