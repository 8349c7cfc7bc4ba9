"""Tutorials: scripts in the percent format, run as notebooks, shown with what they print and draw.

A cell begins with `# %%`, one of text with `# %% [markdown]`. Each page links to the notebook that was run.
"""

from __future__ import annotations

import re
import tempfile
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).parents[1] / "tutorials"
ORDER = ("first_steps", "train_your_own", "evolve_levels", "write_a_task", "your_own_world")
"""Names of the tutorials as they follow one another."""
SECONDS = 600
"""Longest time that a cell may take."""
TEXT = "[markdown]"


def paths() -> list[str]:
    """Return the paths of the pages."""
    return [f"tutorials/{name}.md" for name in ORDER]


def pages(run: bool) -> dict[str, str | bytes]:
    """Return all pages and notebooks by their paths.

    Args:
        run: whether the cells run; otherwise the code is shown without what comes of it.
    """
    made: dict[str, str | bytes] = {}
    for name in ORDER:
        notebook = read((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        if run:
            execute(notebook)
        made[f"tutorials/{name}.ipynb"] = nbformat.writes(notebook)
        made[f"tutorials/{name}.md"] = page(notebook, name)
    return made


def read(script: str) -> Any:
    """Return a script in the percent format as a notebook."""
    notebook = nbformat.v4.new_notebook()
    for i, cell in enumerate(re.split(r"^# %%", script, flags=re.MULTILINE)[1:]):
        kind, _, body = cell.partition("\n")
        if kind.strip() == TEXT:
            made = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        else:
            made = nbformat.v4.new_code_cell(body.strip())
        made["id"] = str(i)  # drawn at random otherwise
        notebook.cells.append(made)
    return notebook


def execute(notebook: Any) -> None:
    """Run all cells in a folder of their own, and store what they show.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()


def page(notebook: Any, name: str) -> str:
    """Return a notebook as a page in Markdown."""
    cells = [cell.source if cell.cell_type == "markdown" else _code(cell) for cell in notebook.cells]
    return "\n\n".join([*cells, f"[This page as a notebook]({name}.ipynb)"])


def _code(cell: Any) -> str:
    """Return a cell and what it shows; texts that follow one another are one block."""
    shown = [_shown(output) for output in cell.outputs]
    blocks = [
        f"<pre><code>{escape(''.join(text for _, text in group).rstrip())}</code></pre>"
        if is_text
        else "\n\n".join(html for _, html in group)
        for is_text, group in groupby((pair for pair in shown if pair[1].strip()), key=itemgetter(0))
    ]
    result = ["\n".join(['<div class="output" markdown>', "", "\n\n".join(blocks), "", "</div>"])] if blocks else []
    return "\n\n".join([f"```python\n{cell.source}\n```", *result])


def _shown(output: Any) -> tuple[bool, str]:
    """Return whether an output is text, and the text or the HTML; what goes to stderr is left out."""
    if output.output_type == "stream":
        return True, output.text if output.name == "stdout" else ""
    data = output.data
    if "text/html" in data and output.output_type == "execute_result":  # a display is a line of progress
        return False, f"<div>{data['text/html']}</div>"
    if "image/png" in data:
        return False, f'<img alt="picture" src="data:image/png;base64,{data["image/png"].strip()}">'
    return True, data.get("text/plain", "").rstrip() + "\n"
