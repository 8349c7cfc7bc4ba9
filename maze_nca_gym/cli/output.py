"""Output of the commands: messages on stderr, exit codes, and levels as coloured text."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from maze_nca_gym.support.files import WRITTEN
from maze_nca_gym.support.names import NAMED, printable
from maze_nca_gym.support.streams import say

_GLYPH_STYLES = {"#": "black on bright_black", "S": "bold white on blue", "T": "bold white on green", "*": "bold blue"}
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes other than 0; shells report 130 after Ctrl-C."""


class JobError(Exception):
    """The error of a command that was used correctly and has failed."""


@contextmanager
def writable_streams() -> Iterator[None]:
    """Make every print within the block succeed.

    Characters that stdout cannot encode become escapes. Text for a stream that did not exist when the process began is
    dropped.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass  # or the next file that is opened gets the number, and what native code prints
        os.close(number)
        for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    stream = sys.stdout
    if not isinstance(stream, TextIOWrapper):  # that of a notebook
        yield
        return
    errors = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with suppress(OSError):  # of a full disk, which was reported
            stream.reconfigure(errors=errors)


def complain(message: str) -> None:
    """Print one line on stderr."""
    say(f"maze-nca-gym: {message}")


def tell(text: str) -> None:
    """Print a text on stdout, with its control characters escaped, because file names may contain them."""
    print(printable(text))


def tell_json(records: Iterable[Any]) -> None:
    """Print records as a JSON array on stdout."""
    print(json.dumps(list(records), indent=2, default=dict))


@contextmanager
def complaining() -> Iterator[None]:
    """Print each warning of the library within the block as one line on stderr, like `complain`."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **source: Any) -> None:
        if issubclass(category, UserWarning):
            complain(str(message))
        else:
            plainly(message, category, *where, **source)

    with warnings.catch_warnings():
        plainly = warnings.showwarning
        warnings.filterwarnings("always", category=UserWarning, module="maze_nca_gym")
        warnings.showwarning = show
        yield


@contextmanager
def importing_from_here() -> Iterator[None]:
    """Let modules in the working directory be imported within the block; other modules of the same name take
    precedence."""
    try:
        here = os.getcwd()
    except FileNotFoundError as error:
        raise JobError("the working folder is no longer there") from error
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


@contextmanager
def one_command() -> Iterator[dict[Path, None]]:
    """Run one command in the block; yield the paths of the files written so far.

    At its end, the modules that the command named are forgotten.
    """
    named, written = NAMED.set(()), WRITTEN.set({})
    try:
        yield WRITTEN.get()
    finally:
        NAMED.reset(named)
        WRITTEN.reset(written)


def print_level(drawing: str) -> None:
    """Print a level's text, in colours on a terminal, unchanged elsewhere."""
    from rich.console import Console
    from rich.text import Text

    text = Text(drawing)
    for glyph, style in _GLYPH_STYLES.items():
        text.highlight_regex(f"[{glyph}]+", style)
    Console(highlight=False).print(text, soft_wrap=True)
