"""Output of the commands: tables, levels as coloured text, and messages on stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent, wrap
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

_GLYPH_STYLES = {"#": "black on bright_black", "S": "bold white on blue", "T": "bold white on green", "*": "bold blue"}
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes other than 0; 130 is what a shell reports after Ctrl-C."""


class JobError(Exception):
    """A job that was asked for correctly, but could not be done."""


def complain(message: str) -> None:
    """Print one line on stderr."""
    print(f"maze-nca-gym: {message}", file=sys.stderr)


@contextmanager
def complaining() -> Iterator[None]:
    """Show the library's warnings within the block as complaints."""

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
    """Let modules in the working directory be imported within the block, after all others."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def print_facts(facts: Mapping[str, str]) -> None:
    """Print a table with one fact in each row."""
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
    """Print a table with a header.

    Args:
        columns: the headings.
        rows: the cells.
        numbers: columns that are aligned to the right.
        title: the title above the table.
        unbroken: columns that keep their width where the terminal is narrow, by default the first.
    """
    console, table = Console(), Table()
    unbroken = columns[:1] if unbroken is None else unbroken
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, no_wrap=column in unbroken, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    if title is not None:
        console.print(Text(title, style="table.title"))  # here: a title of the table folds at the table's width
    console.print(table)


def print_list(
    title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str], str]], whole: bool = False
) -> None:
    """Print names with figures, each above a line of text, with a header.

    Args:
        title: what the names are of, above them.
        columns: the headings of the figures, which are aligned to the right.
        rows: name, figures and text.
        whole: whether a text that is wider than the terminal goes on in the next line, rather than being cut off.
    """
    console, rows = Console(highlight=False), list(rows)
    cells = [(title, *columns), *((name, *figures) for name, figures, _ in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def print_line(name: str, figures: Sequence[str], style: str) -> None:
        cells = (f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True))
        console.print(Text.assemble((f"{name:<{widths[0]}}", style), *(f"   {cell}" for cell in cells)), soft_wrap=True)

    print_line(title, columns, "table.title")
    for name, figures, text in rows:
        print_line(name, figures, "bold")
        lines = wrap(text, console.width - 2, break_on_hyphens=False) if whole else [cut(text, console.width - 2)]
        console.print(Text(indent("\n".join(lines), "  ")), soft_wrap=True)


def cut(text: str, width: int) -> str:
    """Return a text that is at most `width` characters wide: a longer one ends in an ellipsis."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def print_level(drawing: str) -> None:
    """Print a level's text, coloured on a terminal, unchanged elsewhere."""
    text = Text(drawing)
    for glyph, style in _GLYPH_STYLES.items():
        text.highlight_regex(f"[{glyph}]+", style)
    Console(highlight=False).print(text, soft_wrap=True)


def percent(fraction: float, digits: int = 2) -> str:
    """Return a percentage, rounded to `digits` decimals; only all is 100 %, and only none is 0 %."""
    rounded, least = round(100 * fraction, digits), 10.0**-digits
    if fraction < 1 and rounded >= 100:
        return f">{100 - least:.{digits}f} %"
    if fraction > 0 and rounded == 0:
        return f"<{least:.{digits}f} %"
    return f"{rounded:.{digits}f} %"
