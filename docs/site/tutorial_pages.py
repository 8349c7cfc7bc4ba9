"""Tutorials and exercises: scripts in the percent format, run as notebooks, shown with what they print and draw.

A cell begins with `# %%`, one of text with `# %% [markdown]`. Each page links to the notebook that was run. In an
exercise, `# %% [gap]` is a cell with `...` to fill in, and `# %% [solution]` the same cell filled in, which runs in its
place. The page shows the solution folded, and links to the notebook with the gaps too.
"""

from __future__ import annotations

import copy
import re
import tempfile
from html import escape
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).parents[1]
ORDER = ("first_steps", "train_your_own", "evolve_levels", "write_a_task", "your_own_world")
"""Names of the tutorials as they follow one another."""
EXERCISES = ("flood_by_hand", "train_and_break", "prove_a_rule")
"""Names of the exercises as they follow one another."""
SECONDS = 600
"""Longest time that a cell may take."""
TEXT, GAP, SOLUTION = "[markdown]", "[gap]", "[solution]"


def paths() -> dict[str, list[str]]:
    """Return the paths of the pages by their folders, as the navigation names them."""
    return {
        "tutorials/*": [f"tutorials/{name}.md" for name in ORDER],
        "exercises/*": [f"exercises/{name}.md" for name in EXERCISES],
    }


def pages(run: bool) -> dict[str, str | bytes]:
    """Return all pages and notebooks by their paths.

    Args:
        run: whether the cells run; otherwise the code is shown without what comes of it.
    """
    made: dict[str, str | bytes] = {}
    for place in (path.removesuffix(".md") for path in chain(*paths().values())):
        notebook = read((FOLDER / f"{place}.py").read_text(encoding="utf-8"))
        notebook_of_gaps = _without(notebook, SOLUTION)
        if run:
            execute(notebook)
        made[f"{place}.md"] = page(notebook, Path(place).name)
        made[f"{place}.ipynb"] = nbformat.writes(_without(notebook, GAP))
        if len(notebook_of_gaps.cells) < len(notebook.cells):
            made[f"{place}_gaps.ipynb"] = nbformat.writes(notebook_of_gaps)
    return made


def read(script: str) -> Any:
    """Return a script in the percent format as a notebook."""
    notebook = nbformat.v4.new_notebook()
    for i, cell in enumerate(re.split(r"^# %%", script, flags=re.MULTILINE)[1:]):
        kind, _, body = cell.partition("\n")
        if kind.strip() == TEXT:
            made = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        else:
            tags = [kind.strip()] if kind.strip() else []
            made = nbformat.v4.new_code_cell(body.strip(), metadata={"tags": tags})
        made["id"] = str(i)  # drawn at random otherwise
        notebook.cells.append(made)
    return notebook


def _without(notebook: Any, tag: str) -> Any:
    """Return a copy of a notebook without the cells of a tag."""
    copied = copy.deepcopy(notebook)
    copied.cells = [cell for cell in copied.cells if tag not in cell.metadata.get("tags", [])]
    return copied


def execute(notebook: Any) -> None:
    """Run all cells but gaps in a folder of their own, and store what they show.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources=resources, skip_cells_with_tag=GAP
        ).execute()


def page(notebook: Any, name: str) -> str:
    """Return a notebook as a page in Markdown."""
    cells = [cell.source if cell.cell_type == "markdown" else _code(cell) for cell in notebook.cells]
    tags = {tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])}
    links = [f"[This page as a notebook]({name}.ipynb)"]
    if SOLUTION in tags:
        links = [f"[This sheet as a notebook with gaps]({name}_gaps.ipynb)", f"[with the solutions]({name}.ipynb)"]
    return "\n\n".join([*cells, ", ".join(links)])


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
    code = "\n\n".join([f"```python\n{cell.source}\n```", *result])
    if SOLUTION in cell.metadata.get("tags", []):
        return f"<details markdown><summary>Solution</summary>\n\n{code}\n\n</details>"
    return code


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
