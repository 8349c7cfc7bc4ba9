"""The parts that all runs share: a folder, a progress bar, executors for many runs, and a way to stop early.

folder      `RunFolder`: the description, the metrics and the checkpoint of a run
progress    a progress bar on a terminal, and lines of text elsewhere
executors   calls in processes of this machine, or in jobs of a cluster
stopping    a check for Ctrl-C and the signals of schedulers
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

from maze_nca_gym.support.arrays import is_sequence
from maze_nca_gym.support.names import NAMED, Registry
from maze_nca_gym.support.options import Call, check, flag, options_of_call

from .folder import (
    CHECKPOINT,
    DESCRIPTION,
    METRICS,
    RESULTS,
    Line,
    RunFolder,
    alone_in,
    check_folder,
    read_metrics,
    versions,
    write_json,
)
from .progress import ProgressBar, duration
from .stopping import Pause, asked_to_stop

__all__ = [
    "CHECKPOINT",
    "DESCRIPTION",
    "METRICS",
    "RESULTS",
    "Line",
    "Pause",
    "ProgressBar",
    "RunFolder",
    "alone_in",
    "asked_to_stop",
    "check_folder",
    "duration",
    "naming_memory",
    "number_in_environment",
    "own_modules",
    "read_metrics",
    "recorded",
    "unimportable",
    "versions",
    "write_json",
]


def recorded(*calls: Call) -> str:
    """Return the command line that makes the same run as a call of a Python function.

    Several calls become several commands in the same order, joined by &&. Each command has the option --import if
    modules have registered names in this process. If a call has an argument that no command can express, such as a
    policy object, the text is a comment that names this argument.

    Args:
        calls: calls of `checked` functions, with the arguments that the commands should contain.
    """
    modules, texts = own_modules(), []
    untyped = [f"{name}, which no module registers" for name in unimportable()]
    for function, arguments in calls:
        options, of_call = list[str](), options_of_call(function)
        positional = ["--import", ",".join(modules)] if modules else []
        for name, value in arguments.items():
            values = value if is_sequence(value) else [value]
            objects = [item for item in values if not isinstance(item, str | int | float | Path | None)]
            untyped += [f"the {type(item).__name__} given as {name}" for item in objects]
            words = [] if objects else [*map(str, values)]
            if name in of_call and of_call[name].style.positional:
                positional = words + positional
            elif words:
                options += [flag(name), *words]
        texts.append(shlex.join(["maze-nca-gym", function.__name__.replace("_", "-"), *positional, *options]))
    text = " && ".join(texts)
    return f"# no command can name {', '.join(dict.fromkeys(untyped))}: {text}" if untyped else text


def own_modules() -> tuple[str, ...]:
    """Return the names of the modules that another process must import to have the same registered names.

    These are the modules that the user named with --import, and the modules that have registered something in this
    process.
    """
    script = _script()
    registering = (script if module == "__main__" else module for module in Registry.modules())
    return tuple(dict.fromkeys(filter(None, (*NAMED.get(), *registering))))


def unimportable() -> list[str]:
    """Return the registered entries that other processes cannot import, such as "model Mine" of a notebook."""
    return [] if _script() else Registry.modules().get("__main__", [])


def _script() -> str | None:
    """Return the importable name of the module that runs as `__main__`, for other processes, or None if no file of that
    name is on the import path."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None or file is None:
        return None if spec is None else str(spec.name)
    module = PathFinder.find_spec(Path(file).stem) if Path(file).stem.isidentifier() else None
    return Path(file).stem if module is not None and module.origin == os.path.abspath(file) else None


def number_in_environment(name: str, usual: int = 1) -> int:
    """Return the number in an environment variable, or `usual` if the variable is empty or missing.

    Raises:
        ValueError: the variable contains anything but decimal digits.
    """
    text = os.environ.get(name, "").strip()
    check(not text or text.isdecimal(), f"the environment variable {name} must be a number, got {text!r}; unset it")
    return int(text) if text else usual


@contextmanager
def naming_memory(batch_option: str, device: object) -> Iterator[None]:
    """Turn an out-of-memory error of PyTorch in the block into a MemoryError that names the option to reduce.

    Args:
        batch_option: the option for the batch size with its value, as on the command line: "--batch-size 64".
        device: the device that has too little memory, for the message.

    Raises:
        MemoryError: the device has too little memory.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(f"{batch_option} is too much for {device}: {error}") from error
