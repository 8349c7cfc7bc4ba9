"""Make the page of the examples: each script of the folder `examples`, below the first paragraph of its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

INTRODUCTION = """# Examples

The scripts of the folder `examples`, most under 60 lines. They run unchanged when the package is installed.
"""


def names(folder: Path) -> list[str]:
    """Return the names of the examples in their order, without `.py`."""
    return sorted(path.stem for path in folder.glob("*.py"))


def pages(folder: Path) -> dict[str, str | bytes]:
    """Return the page by its path."""
    return {"examples.md": "\n".join([INTRODUCTION, *(_section(folder / f"{name}.py") for name in names(folder))])}


def _section(path: Path) -> str:
    code = path.read_text(encoding="utf-8")
    about = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
    return f"## {path.stem.replace('_', ' ')}\n\n{about}\n\n```python\n{code}```\n"
