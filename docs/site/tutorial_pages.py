"""Make the pages of tutorials and exercises: scripts in the percent format, run as notebooks, shown with their output.

The lines that begin a cell:

- `# %%`: a cell of code.
- `# %% [markdown]`: a cell of text.
- `# %% [file NAME]`: a cell that a notebook appends to a file, from which later cells import. These imports are
  comments, `# notebook: from ...`, because the plain script has already run the cell itself.
- `# %% [gap]`, in an exercise: a cell with `...` to fill in. It does not run.
- `# %% [solution]`, in an exercise: the same cell filled in, which runs in place of the gap.

A page of an exercise folds the solutions. It also folds the output of all cells after the first question, which is in
bold letters. Each page links to its notebook, and the page of an exercise also to the notebook with gaps. If the
repository is on GitHub, the page links to Colab too. Colab opens the notebook from the branch `notebooks`, which the
publication of the site writes, and such notebooks begin with the installation of the package.
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
"""Names of the tutorials in their order."""
EXERCISES = ("flood_by_hand", "train_and_break", "prove_a_rule")
"""Names of the exercises in their order."""
SECONDS = 600
"""Time limit of a cell."""
GITHUB, COLAB = "https://github.com/", "https://colab.research.google.com/github/{}/blob/notebooks"
TEXT, GAP, SOLUTION = "[markdown]", "[gap]", "[solution]"
FILE = re.compile(r"\[file (.*)\]")
LATER = re.compile(r"^\n?# notebook: ", re.MULTILINE)
"""The beginning of a line that runs only in notebooks."""
WRITTEN = re.compile(r"%%writefile (?:-a )?(.*)\n")
"""The first line of a notebook's cell that is written to a file."""


def paths() -> dict[str, list[str]]:
    """Return the paths of the pages by the names of their folders in the navigation."""
    return {
        "tutorials/*": [f"tutorials/{name}.md" for name in ORDER],
        "exercises/*": [f"exercises/{name}.md" for name in EXERCISES],
    }


def pages(run: bool, target: Target, address: str = "") -> dict[str, str | bytes]:
    """Return the content of each page and notebook by its path.

    Args:
        run: whether to run the cells. Otherwise pages have no output.
        target: function that returns the new target of a link to a file of the repository. Links in notebooks are
            absolute, because readers can store notebooks anywhere.
        address: address of the repository without a slash at its end, or an empty text.
    """
    is_public = address.startswith(GITHUB)
    colab = COLAB.format(address.removeprefix(GITHUB)) if is_public else ""
    contents: dict[str, str | bytes] = {}
    for place in (path.removesuffix(".md") for path in chain(*paths().values())):
        notebook = read((FOLDER / f"{place}.py").read_text(encoding="utf-8"))
        notebook_of_gaps = _without(notebook, SOLUTION)
        if run:
            execute(notebook)
        contents[f"{place}.md"] = page(notebook, Path(place).name, colab and f"{colab}/{place}")
        for version in (notebook, notebook_of_gaps) if is_public else ():
            install = nbformat.v4.new_code_cell(f'%pip install -q "maze-nca-gym[proof] @ git+{address}"', id="install")
            version.cells.insert(1, install)
        for cell in chain(notebook.cells, notebook_of_gaps.cells):
            if cell.cell_type == "markdown":
                cell.source = moved(cell.source, f"docs/{place}.py", target)
        contents[f"{place}.ipynb"] = nbformat.writes(_without(notebook, GAP))
        if len(notebook_of_gaps.cells) < len(notebook.cells):
            contents[f"{place}_gaps.ipynb"] = nbformat.writes(notebook_of_gaps)
    return contents


def read(script: str) -> Any:
    """Return a script in the percent format as a notebook."""
    notebook, files = nbformat.v4.new_notebook(), set[str]()
    for i, cell in enumerate(re.split(r"^# %%", script, flags=re.MULTILINE)[1:]):
        kind, _, body = cell.partition("\n")
        if kind.strip() == TEXT:
            new_cell = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        else:
            file = FILE.fullmatch(kind.strip())
            tags = [kind.strip()] if kind.strip() and not file else []
            first = f"%%writefile {'-a ' if file[1] in files else ''}{file[1]}\n" if file else ""
            files |= {file[1]} if file else set()
            new_cell = nbformat.v4.new_code_cell(first + LATER.sub("", body.strip()), metadata={"tags": tags})
        new_cell["id"] = str(i)  # nbformat's own ids are random
        notebook.cells.append(new_cell)
    return notebook


def _without(notebook: Any, tag: str) -> Any:
    """Return a copy of a notebook without the cells of a tag."""
    copied = copy.deepcopy(notebook)
    copied.cells = [cell for cell in copied.cells if tag not in cell.metadata.get("tags", [])]
    return copied


def execute(notebook: Any) -> None:
    """Run all cells except gaps in a temporary folder, and store their output in the notebook.

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
    """Return a notebook as a page in Markdown.

    Args:
        notebook: the notebook with the output of its cells.
        name: name of the notebook's file without its suffix.
        colab: address of the notebook in Colab without the suffix, or an empty text for no link.
    """
    is_folded, cells = False, []
    is_exercise = any(SOLUTION in cell.metadata.get("tags", []) for cell in notebook.cells)
    for cell in notebook.cells:
        is_folded = is_folded or (is_exercise and cell.cell_type == "markdown" and "**" in cell.source)
        cells.append(cell.source if cell.cell_type == "markdown" else _code(cell, is_folded))
    links = [f"[This page as a notebook]({name}.ipynb)"]
    if is_exercise:
        links = [f"[This sheet as a notebook with gaps]({name}_gaps.ipynb)", f"[with the solutions]({name}.ipynb)"]
    links += [f"[in Colab]({colab}{'_gaps' * is_exercise}.ipynb)"] if colab else []
    return "\n\n".join([*cells, ", ".join(links)])


def _code(cell: Any, is_folded: bool) -> str:
    """Return a cell of code with its output, folded if `is_folded`. Successive texts of the output form one block."""
    file = WRITTEN.match(cell.source)
    if file:
        return f'```python title="{file[1]}"\n{cell.source[file.end() :]}\n```'
    outputs = [_shown(output) for output in cell.outputs]
    blocks = [
        f"<pre><code>{escape(''.join(text for _, text in group).rstrip())}</code></pre>"
        if is_text
        else "\n\n".join(html for _, html in group)
        for is_text, group in groupby((pair for pair in outputs if pair[1].strip()), key=itemgetter(0))
    ]
    result = ["\n".join(['<div class="output" markdown>', "", "\n\n".join(blocks), "", "</div>"])] if blocks else []
    if is_folded:
        result = [_folded("What it shows", part) for part in result]
    code = "\n\n".join([f"```python\n{cell.source}\n```", *result])
    return _folded("Solution", code) if SOLUTION in cell.metadata.get("tags", []) else code


def _folded(summary: str, text: str) -> str:
    return f"<details markdown><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _shown(output: Any) -> tuple[bool, str]:
    """Return whether an output is text, and the text or the HTML. Output to stderr is left out."""
    if output.output_type == "stream":
        return True, output.text if output.name == "stdout" else ""
    data = output.data
    if "text/html" in data and output.output_type == "execute_result":  # other displays are progress bars
        return False, f"<div>{data['text/html']}</div>"
    if "image/png" in data:
        return False, f'<img alt="picture" src="data:image/png;base64,{data["image/png"].strip()}">'
    return True, data.get("text/plain", "").rstrip() + "\n"
