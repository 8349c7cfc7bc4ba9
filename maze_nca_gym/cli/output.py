"""What the commands print and write: tables, levels as coloured text, JSON files."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from maze_nca_gym.atomic import replacing

_PACKAGES = ("maze-nca-gym", "torch", "numpy", "numba", "gymnasium")
_GLYPH_STYLES = {"#": "black on bright_black", "S": "bold white on blue", "T": "bold white on green", "*": "bold blue"}


def print_facts(facts: Mapping[str, str]) -> None:
    """A table with one fact a row."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name, Text(value))
    Console().print(table)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[str] = (),
    title: str | None = None,
    unbroken: Sequence[str] | None = None,
) -> None:
    """A table with a header.

    Args:
        columns: headings.
        rows: cells.
        numbers: columns that are aligned to the right.
        title: stands above.
        unbroken: columns that keep their width where the terminal is narrow, by default the first.
    """
    table = Table(title=title, title_justify="left")
    unbroken = columns[:1] if unbroken is None else unbroken
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, no_wrap=column in unbroken, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_level(drawing: str) -> None:
    """A level's text, coloured on a terminal, as it is elsewhere."""
    text = Text(drawing)
    for glyph, style in _GLYPH_STYLES.items():
        text.highlight_regex(f"[{glyph}]+", style)
    Console(highlight=False).print(text, soft_wrap=True)


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while the block runs, if that is a terminal; it gives what advances the bar."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        job = progress.add_task(label, total=total)
        yield lambda n: progress.advance(job, n)


def percent(fraction: float, digits: int = 2) -> str:
    """Return a percentage, rounded, with so many digits behind the point; only all is 100 %, and only none is 0 %."""
    rounded, least = round(100 * fraction, digits), 10.0**-digits
    if fraction < 1 and rounded >= 100:
        return f">{100 - least:.{digits}f} %"
    if fraction > 0 and rounded == 0:
        return f"<{least:.{digits}f} %"
    return f"{rounded:.{digits}f} %"


def versions() -> dict[str, str]:
    """Of Python and of the packages on which figures depend."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def check_folder(option: str, folder: Path) -> None:
    """Check that there is such a folder to write in, or can be, by writing beside where it would be.

    Permissions do not tell: they mean nothing to root, or where a file system is read-only. Nothing is left, so that
    the commands that fail later make no folders.

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
