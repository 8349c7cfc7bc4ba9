"""What all runs have: a folder, a bar of progress, executors of many, and a way to end early.

folder      `RunFolder`: the description, the lines of figures, what is there already
progress    a bar on a terminal, lines elsewhere
executors   processes of this machine, or jobs of a cluster
stopping    Ctrl-C and a scheduler's SIGTERM as something to ask for
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .folder import DESCRIPTION, METRICS, Line, RunFolder, check_folder, read_last, read_metrics, versions, write_json
from .progress import ProgressBar, duration, progress_bar, say
from .stopping import asked_to_stop

__all__ = [
    "DESCRIPTION",
    "METRICS",
    "Line",
    "ProgressBar",
    "RunFolder",
    "asked_to_stop",
    "check_at_least",
    "check_folder",
    "command_line",
    "duration",
    "flag",
    "naming_memory",
    "progress_bar",
    "read_last",
    "read_metrics",
    "say",
    "versions",
    "write_json",
]


def flag(name: str) -> str:
    """Return an option's name as it is typed: --n-levels for n_levels."""
    return "--" + name.replace("_", "-")


def command_line(command: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return a command with options, in the words of a shell; several values of an option follow each other."""
    words = ["maze-nca-gym", *command]
    for name, value in options.items():
        words += [flag(name), *map(str, value if isinstance(value, list | tuple) else [value])]
    return shlex.join(words)


@contextmanager
def naming_memory(batch_option: str, device: object) -> Iterator[None]:
    """Name the option that makes batches smaller where a device has too little memory for the block.

    Raises:
        MemoryError: the device has too little memory.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(f"{batch_option} is too much for {device}: {error}") from error


def check_at_least(option: str, value: float | None, least: float) -> None:
    """Check that a number, if given, is at least `least`.

    Raises:
        ValueError: it is less.
    """
    if value is not None and not value >= least:
        raise ValueError(f"{option} must be at least {least}, got {value}")
