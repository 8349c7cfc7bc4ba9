"""What all runs share: a folder, a progress bar, executors for many runs, and a way to stop early.

folder      `RunFolder`: a run's description, metrics and checkpoint, and whether it can go on
progress    a bar on a terminal, lines elsewhere
executors   processes of this machine, or jobs of a cluster
stopping    whether Ctrl-C or a scheduler's signal came
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maze_nca_gym.support.names import Registry
from maze_nca_gym.support.options import flag

from .folder import (
    CHECKPOINT,
    DESCRIPTION,
    METRICS,
    RESULTS,
    Line,
    RunFolder,
    check_folder,
    read_metrics,
    versions,
    write_json,
)
from .progress import ProgressBar, duration, say
from .stopping import asked_to_stop

__all__ = [
    "CHECKPOINT",
    "DESCRIPTION",
    "METRICS",
    "RESULTS",
    "Line",
    "ProgressBar",
    "RunFolder",
    "asked_to_stop",
    "check_folder",
    "command_line",
    "duration",
    "import_option",
    "naming_memory",
    "own_modules",
    "read_metrics",
    "say",
    "versions",
    "write_json",
]


def command_line(command: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return a command with options as a shell would read it; several values of an option follow each other."""
    words = ["maze-nca-gym", *command]
    for name, value in options.items():
        words += [flag(name), *map(str, value if isinstance(value, list | tuple) else [value])]
    return shlex.join(words)


def own_modules() -> tuple[str, ...]:
    """Return the modules that registered anything in this process, which others import to know the same names."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    script = "__main__" if file is None else Path(str(file)).stem if spec is None else str(spec.name)
    return tuple(dict.fromkeys(script if module == "__main__" else module for module in Registry.modules()))


def import_option() -> dict[str, str]:
    """Return the option that imports these modules, if there are any."""
    modules = own_modules()
    return {"import": ",".join(modules)} if modules else {}


@contextmanager
def naming_memory(batch_option: str, device: object) -> Iterator[None]:
    """Turn an out-of-memory error of the block into a MemoryError that names the option for the batch size.

    Raises:
        MemoryError: the device has too little memory.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(f"{batch_option} is too much for {device}: {error}") from error
