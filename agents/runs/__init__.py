"""Helpers of the commands: a progress bar, the folder of a run, and its description."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from maze_nca_gym.files import replacing

DESCRIPTION = "config.json"
"""File in the folder of a run that says what made it; its `data` says what the run learned from, in words."""
_PACKAGES = ("maze-nca-gym", "torch", "numpy", "numba", "gymnasium")


LINE_EVERY = 30.0
"""Seconds between two lines of progress where there is no terminal."""


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr while the block runs: a bar on a terminal, elsewhere a line every half minute.

    Yields:
        The function that advances it by a number. Work that is long for one advance calls it with 0 now and then.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(label, total).advance
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        job = progress.add_task(label, total=total)
        yield lambda n: progress.advance(job, n)


class _Lines:
    """Progress in lines on stderr."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._done = label, total, 0
        self._begin = self._last = time.monotonic()

    def advance(self, n: int) -> None:
        """Add to what is done; say so if the last line is half a minute old."""
        self._done += n
        now = time.monotonic()
        if now - self._last < LINE_EVERY or self._done >= self._total:
            return
        self._last, passed = now, now - self._begin
        left = f", about {passed * (self._total / self._done - 1):,.0f} s left" if self._done else ""
        say(f"{self._label}: {self._done:,} of {self._total:,} after {passed:,.0f} s{left}")


def say(line: str) -> None:
    """Print a line about work that has begun, at once; on stderr, so that stdout has results alone."""
    print(line, file=sys.stderr, flush=True)


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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which results depend."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def check_at_least(option: str, value: float | None, least: float) -> None:
    """Check that a number, if given, is at least `least`.

    Raises:
        ValueError: it is less.
    """
    if value is not None and not value >= least:
        raise ValueError(f"{option} must be at least {least}, got {value}")


def check_folder(option: str, folder: Path) -> None:
    """Check that a folder exists or can be made, and can be written to, by writing beside where it would be.

    Permissions are not enough: they mean nothing to root, or where a file system is read-only. Nothing is left, so that
    commands that fail later make no folders.

    Raises:
        ValueError: a file is in the way, or writing fails.
    """
    path = folder.absolute()
    existing = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if not existing.is_dir():
        raise ValueError(f"{option} must be a folder, but {folder if existing == path else existing} is a file")
    try:
        with tempfile.TemporaryDirectory(prefix=".", dir=existing) as trial:
            inside = Path(trial) / path.relative_to(existing)
            inside.mkdir(parents=True, exist_ok=True)
            (inside / "trial").write_bytes(b"trial")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"{option} must be a folder to write in, but writing in {existing} fails: {reason}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically: a reader never sees half of it."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with replacing(path) as file:
        file.write(text.encode())
