"""Functions that return parts of Markdown pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with the headings `columns`."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in lines) + "\n"


def facts(content: Mapping[str, str]) -> str:
    """Return a table with a fact in each row."""
    return table(("property", "value"), [(f"**{name}**", value) for name, value in content.items()])


def details(title: str, text: str) -> str:
    """Return a text that is folded until a reader clicks on its title."""
    indented = "\n".join(f"    {line}" if line else "" for line in text.splitlines())
    return f'??? note "{title}"\n\n{indented}\n'


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:].removesuffix(".") + "."
