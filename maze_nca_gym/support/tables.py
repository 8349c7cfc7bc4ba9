"""Tables of texts for a terminal, a notebook, Markdown, LaTeX and CSV; results as records, for CSV and pandas."""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any, Literal

from maze_nca_gym.support.doors import needing
from maze_nca_gym.support.files import path_of_format, write_file
from maze_nca_gym.support.names import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_WHOLE = 12
"""Number of letters of a word from which the word may be split in a narrow table."""

_LATEX = str.maketrans(
    {"±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\n": " ", "\r": " "}
    | {char: f"{{{char}}}" for char in "[*"}  # the end of the row before would take them for its own options
    | {char: f"\\{char}" for char in "%&#_{}$"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


@dataclass(frozen=True)
class Table:
    """A table of texts.

    A text may have several lines, which Markdown and LaTeX join by spaces. No text can end a cell, or be a command, a
    tag or a formula, in any of the forms. Emphasis, code and links of Markdown remain.

    Attributes:
        columns: the headings; empty for a table of facts, in which each row is a name and a text.
        rows: the rows, with one text for each column.
        numbers: headings of the columns that are aligned to the right.
        title: a line above the table on a terminal and in a notebook.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[str] = ()
    title: str = ""

    def __repr__(self) -> str:
        return (
            shorten(f"Table({len(self.rows):,} row{'s' * (len(self.rows) != 1)}: {', '.join(self.columns)}", 120)
            + "; print() shows it)"
        )

    @classmethod
    def of_facts(cls, facts: Mapping[str, str]) -> Table:
        """Return a table without headings, with one fact in each row."""
        return cls((), list(facts.items()))

    @classmethod
    def of_records(cls, records: Sequence[Mapping[str, Any]]) -> Table:
        """Return a table with a row for each record and a column for each name in any record; a missing value is
        empty."""
        columns = names_in(records)
        texts = ({name: "" if value is None else str(value) for name, value in record.items()} for record in records)
        return cls(columns, [[row.get(column, "") for column in columns] for row in texts])

    def print(self, width: int | None = None) -> None:
        """Print the table.

        Args:
            width: number of characters per line, by default the terminal's width. If the table is wider, all texts
                except those in the first column are wrapped. If their words do not fit, each row is a paragraph.
        """
        from rich.console import Console

        Console(width=width).print(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the parts that a console of rich prints."""
        from rich.table import Table as TerminalTable
        from rich.text import Text

        if self.title:  # that of a rich table would be wrapped at the width of the table
            yield Text(printable(self.title), style="table.title")
        names, *others = zip(self.columns or ("", ""), *self.rows, strict=True)
        words = (min(_WHOLE, max(map(len, " ".join(column).split()), default=0)) for column in others)
        if max(map(len, names)) + sum(words) + 3 * len(others) + 4 > options.max_width:
            for name, *texts in self.rows:
                yield Text(printable(name), style="bold")
                for heading, text in zip(self.columns[1:] or ("",), texts, strict=True):
                    line = " ".join(printable(f"{heading}: {text}" if heading else text).split())
                    yield Text(fill(line, options.max_width, initial_indent="  ", subsequent_indent="    "))
            return
        table = TerminalTable(show_header=bool(self.columns))
        for i, (column, side) in enumerate(zip(self.columns or ("", ""), self._sides, strict=True)):
            is_name = i == 0  # not wrapped, so that names can be copied
            style = "bold" if is_name and not self.columns else ""
            table.add_column(Text(printable(column)), justify=side, no_wrap=is_name, overflow="fold", style=style)
        for row in self.rows:
            table.add_row(*(Text(printable(text)) for text in row))
        yield table

    def markdown(self) -> str:
        """Return the table as Markdown, without a line break at its end."""
        rule = ["---:" if side == "right" else "---" for side in self._sides]
        lines = (self.columns, rule, *self.rows)
        return "\n".join(f"| {' | '.join(map(as_markdown, line))} |" for line in lines)

    def latex(self, caption: str) -> str:
        """Return the table as LaTeX, for the packages booktabs and graphicx.

        Args:
            caption: the caption below the table, as LaTeX.
        """
        body = [" & ".join(map(as_latex, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                r"\resizebox{\linewidth}{!}{",
                rf"\begin{{tabular}}{{{''.join(side[0] for side in self._sides)}}}",
                r"\toprule",
                " & ".join(map(as_latex, self.columns)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                rf"\caption{{{caption}}}",
                r"\end{table}",
            ]
        )

    def csv(self) -> str:
        """Return the table as comma-separated values, each row with a line break.

        A text that a spreadsheet would calculate, such as "=1+1", gets an apostrophe before it; numbers get none.
        """
        file = io.StringIO()
        rows = [self.columns, *self.rows] if self.columns else self.rows
        csv.writer(file, lineterminator="\n").writerows([*map(_in_csv, row)] for row in rows)
        return file.getvalue()

    def html(self) -> str:
        """Return the table as HTML."""
        title = f'<caption style="text-align:left">{escape(self.title)}</caption>' if self.title else ""
        head = f"<thead>{self._html_row(self.columns, 'th', 'th')}</thead>" if self.columns else ""
        first = "td" if self.columns else "th"
        body = "".join(self._html_row(row, first, "td") for row in self.rows)
        return f"<table>{title}{head}<tbody>{body}</tbody></table>"

    _repr_html_ = html

    def _html_row(self, cells: Sequence[str], first: str, others: str) -> str:
        tags = [first, *[others] * (len(cells) - 1)]
        return "<tr>{}</tr>".format(
            "".join(
                f'<{tag} style="text-align:{side};vertical-align:top">{escape(cell).replace(chr(10), "<br>")}</{tag}>'
                for tag, side, cell in zip(tags, self._sides, cells, strict=True)
            )
        )

    @property
    def _sides(self) -> list[Literal["left", "right"]]:
        return ["right" if column in self.numbers else "left" for column in self.columns or ("", "")]


class Tabular(ABC):
    """Base class of results that have a table, and numbers in a record for each row of the table."""

    @abstractmethod
    def table(self) -> Table:
        """Return a table for readers."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return a record for each row: its names and numbers."""

    def to_frame(self) -> Any:
        """Return the records as a pandas.DataFrame.

        Raises:
            DependencyNotInstalled: pandas is not installed.
        """
        with needing("to_frame needs pandas: run `pip install pandas`"):
            import pandas
        return pandas.DataFrame(self.records(), columns=names_in(self.records()))

    def csv(self) -> str:
        """Return the records as comma-separated values."""
        return Table.of_records(self.records()).csv()

    def save_csv(self, path: str | Path) -> Path:
        """Write the records as comma-separated values, and return the path.

        Raises:
            OSError: the file could not be written.
        """
        return write_file(path_of_format(path, ".csv"), self.csv().encode())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({repr(self.table()).removeprefix('Table(').replace('print', 'table().print')}"

    def _repr_html_(self) -> str:
        return self.table().html()


def names_in(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return all names in the records, in an order that agrees with the order in each record as far as possible."""
    names: list[str] = []
    for record in records:
        place = len(names)
        for name in reversed([*record]):
            if name in names:
                place = names.index(name)
            else:
                names.insert(place, name)
    return names


def as_latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped, in one line."""
    return text.translate(_LATEX)


def as_markdown(text: str) -> str:
    """Return a text as Markdown without tags, in one line that a table's cell can contain."""
    in_line = re.sub(r"[\r\n]", " ", re.sub(r"[\\|]", r"\\\g<0>", text))
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", in_line)


def _in_csv(cell: str) -> str:
    """Return a cell, with an apostrophe before a text that a spreadsheet would calculate."""
    cell = re.sub(r"\r\n?", "\n", cell)  # Python before 3.13 does not quote \r, which readers take for a new row
    try:
        float(cell)
    except ValueError:
        return f"'{cell}" if re.match(r"[=+@\t\n-].", cell, re.DOTALL) else cell
    return cell


def percent(fraction: float, digits: int = 2) -> str:
    """Return a percentage, rounded to `digits` decimals; only exactly 1 is 100 %, and only exactly 0 is 0 %."""
    rounded, least = round(100 * fraction, digits), 10.0**-digits
    if fraction < 1 and rounded >= 100:
        return f">{100 - least:.{digits}f} %"
    if fraction > 0 and rounded == 0:
        return f"<{least:.{digits}f} %"
    return f"{rounded:.{digits}f} %"
