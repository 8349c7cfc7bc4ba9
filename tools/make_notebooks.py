"""Write the tutorials and exercises as notebooks, without running them: python -m tools.make_notebooks FOLDER.

Needs nbformat, which is installed with Jupyter.
"""

from __future__ import annotations

import sys
from pathlib import Path

from maze_nca_gym.cli.reading import run_script

ROOT = Path(__file__).parents[1]


def write(*, folder: Path = Path("runs/notebooks")) -> list[Path]:
    """Write a notebook for each tutorial, and two for each exercise: one with the solutions and one with gaps.

    Args:
        folder: folder that receives the notebooks.

    Returns:
        The paths of the notebooks.
    """
    sys.path.append(str(ROOT / "docs" / "site"))
    import tutorial_pages

    pages = tutorial_pages.pages(run=False, target=lambda path, is_picture: None)
    notebooks = {folder / Path(name).name: text for name, text in pages.items() if name.endswith(".ipynb")}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in notebooks.items():
        path.write_text(str(text), encoding="utf-8")
    return [*notebooks]


if __name__ == "__main__":
    print(*run_script(write, __doc__), sep="\n")
