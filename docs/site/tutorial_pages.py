"""Tutorials and exercises: scripts in the percent format, run as notebooks, shown with what they print and draw.

A cell begins with `# %%`, one of text with `# %% [markdown]`. Each page links to the notebook that was run. A cell
`# %% [file NAME]` is written to a file, behind what earlier ones wrote there, from which later cells import it: these
imports are comments, `# notebook: from ...`, because a script that runs as it is has run the cells of the file itself.

In an exercise, `# %% [gap]` is a cell with `...` to fill in, and `# %% [solution]` the same cell filled in, which runs
in its place. The page shows solutions folded, and what cells show too, once something was asked, in bold letters. It
links to the notebook with the gaps too. Where the repository is on GitHub, a page also opens in Colab, from the branch
`notebooks` that publishing the site writes, and notebooks begin by installing the package.
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
from links import Target, moved

FOLDER = Path(__file__).parents[1]
ORDER = ("first_steps", "train_your_own", "train_an_agent", "evolve_levels", "write_a_task", "your_own_world")
"""Names of the tutorials as they follow one another."""
EXERCISES = ("flood_by_hand", "train_and_break", "prove_a_rule")
"""Names of the exercises as they follow one another."""
SECONDS = 600
"""Longest time that a cell may take."""
GITHUB, COLAB = "https://github.com/", "https://colab.research.google.com/github/{}/blob/notebooks"
TEXT, GAP, SOLUTION = "[markdown]", "[gap]", "[solution]"
FILE = re.compile(r"\[file (.*)\]")
LATER = re.compile(r"^\n?# notebook: ", re.MULTILINE)
"""Before a line that a notebook has, and the script does not run."""
WRITTEN = re.compile(r"%%writefile (?:-a )?(.*)\n")
"""The first line of a notebook's cell that is written to a file."""


def paths() -> dict[str, list[str]]:
    """Return the paths of the pages by their folders, as the navigation names them."""
    return {
        "tutorials/*": [f"tutorials/{name}.md" for name in ORDER],
        "exercises/*": [f"exercises/{name}.md" for name in EXERCISES],
    }


def pages(run: bool, target: Target, address: str = "") -> dict[str, str | bytes]:
    """Return all pages and notebooks by their paths.

    Args:
        run: whether the cells run; otherwise the code is shown without what comes of it.
        target: what a link to a file of the repository becomes in a notebook, which may be anywhere.
        address: address of the repository, without a slash at its end; empty if it is not known.
    """
    is_public = address.startswith(GITHUB)
    colab = COLAB.format(address.removeprefix(GITHUB)) if is_public else ""
    made: dict[str, str | bytes] = {}
    for place in (path.removesuffix(".md") for path in chain(*paths().values())):
        notebook = read((FOLDER / f"{place}.py").read_text(encoding="utf-8"))
        notebook_of_gaps = _without(notebook, SOLUTION)
        if run:
            execute(notebook)
        made[f"{place}.md"] = page(notebook, Path(place).name, colab and f"{colab}/{place}")
        for each in (notebook, notebook_of_gaps) if is_public else ():
            install = nbformat.v4.new_code_cell(f'%pip install -q "maze-nca-gym[proof] @ git+{address}"', id="install")
            each.cells.insert(1, install)
        for cell in chain(notebook.cells, notebook_of_gaps.cells):
            if cell.cell_type == "markdown":
                cell.source = moved(cell.source, f"docs/{place}.py", target)
        made[f"{place}.ipynb"] = nbformat.writes(_without(notebook, GAP))
        if len(notebook_of_gaps.cells) < len(notebook.cells):
            made[f"{place}_gaps.ipynb"] = nbformat.writes(notebook_of_gaps)
    return made


def read(script: str) -> Any:
    """Return a script in the percent format as a notebook."""
    notebook, files = nbformat.v4.new_notebook(), set[str]()
    for i, cell in enumerate(re.split(r"^# %%", script, flags=re.MULTILINE)[1:]):
        kind, _, body = cell.partition("\n")
        if kind.strip() == TEXT:
            made = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        else:
            file = FILE.fullmatch(kind.strip())
            tags = [kind.strip()] if kind.strip() and not file else []
            first = f"%%writefile {'-a ' if file[1] in files else ''}{file[1]}\n" if file else ""
            files |= {file[1]} if file else set()
            made = nbformat.v4.new_code_cell(first + LATER.sub("", body.strip()), metadata={"tags": tags})
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


def page(notebook: Any, name: str, colab: str = "") -> str:
    """Return a notebook as a page in Markdown, which links to Colab where it has that address without its ending."""
    asks, cells = False, []
    is_exercise = any(SOLUTION in cell.metadata.get("tags", []) for cell in notebook.cells)
    for cell in notebook.cells:
        asks = asks or (is_exercise and cell.cell_type == "markdown" and "**" in cell.source)
        cells.append(cell.source if cell.cell_type == "markdown" else _code(cell, asks))
    links = [f"[This page as a notebook]({name}.ipynb)"]
    if is_exercise:
        links = [f"[This sheet as a notebook with gaps]({name}_gaps.ipynb)", f"[with the solutions]({name}.ipynb)"]
    links += [f"[in Colab]({colab}{'_gaps' * is_exercise}.ipynb)"] if colab else []
    return "\n\n".join([*cells, ", ".join(links)])


def _code(cell: Any, is_folded: bool) -> str:
    """Return a cell and what it shows, which may be folded; texts that follow one another are one block."""
    file = WRITTEN.match(cell.source)
    if file:
        return f'```python title="{file[1]}"\n{cell.source[file.end() :]}\n```'
    shown = [_shown(output) for output in cell.outputs]
    blocks = [
        f"<pre><code>{escape(''.join(text for _, text in group).rstrip())}</code></pre>"
        if is_text
        else "\n\n".join(html for _, html in group)
        for is_text, group in groupby((pair for pair in shown if pair[1].strip()), key=itemgetter(0))
    ]
    result = ["\n".join(['<div class="output" markdown>', "", "\n\n".join(blocks), "", "</div>"])] if blocks else []
    if is_folded:
        result = [_folded("What it shows", part) for part in result]
    code = "\n\n".join([f"```python\n{cell.source}\n```", *result])
    return _folded("Solution", code) if SOLUTION in cell.metadata.get("tags", []) else code


def _folded(summary: str, text: str) -> str:
    return f"<details markdown><summary>{summary}</summary>\n\n{text}\n\n</details>"


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
