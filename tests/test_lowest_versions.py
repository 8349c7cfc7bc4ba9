"""The lowest versions in pyproject.toml install together, and fast tests of core and commands pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from test_package import ROOT, project_table

TORCH = ("torch", "sympy", "mpmath", "jinja2", "markupsafe", "fsspec")
"""Large packages that are linked instead of installed again: torch and its requirements."""
TESTS = (
    *("test_generation.py", "test_scoring.py", "test_files.py", "test_names.py", "envs/test_contracts.py"),
    *sorted(path.name for path in (ROOT / "tests").glob("test_cli*.py")),
)


def lowest(*requirements: str) -> list[str]:
    """Return the requirements pinned to their lowest versions, without requirements of other Pythons."""
    plain = [requirement for requirement in requirements if ";" not in requirement]
    return [re.sub(r">=([\d.]+).*", r"==\1", text) for text in plain if not text.startswith("torch>")]


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the lowest versions have no wheels for later Pythons")
def test_the_lowest_versions_work(tmp_path: Path) -> None:
    project, links = project_table(), tmp_path / "links"
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    extras = project["optional-dependencies"]
    tests = [
        requirement
        for requirement in extras["test"]
        if requirement.startswith(("pytest", "hypothesis", "networkx", "filelock"))
    ]
    # without lightning-fabric, because it would install torch
    requirements = [
        requirement for requirement in (*extras["gnn"], *extras["train"]) if not requirement.startswith("lightning")
    ]
    install = [python, "-m", "pip", "install", "-q"]
    subprocess.run([*install, *lowest(*project["dependencies"], *requirements), *tests], check=True)
    subprocess.run([*install, "--no-deps", "-e", str(ROOT)], check=True)
    links.mkdir()
    for name in TORCH:
        installed = distribution(name)
        for top in {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (links / top).symlink_to(installed.locate_file(top))
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (site / "torch.pth").write_text(f"{links}\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYTEST"))}
    help = subprocess.run(
        [python, "-m", "maze_nca_gym", "train", "--help"], env=environ, capture_output=True, check=False
    )
    assert help.returncode == 0, help.stderr
    # old packages emit warnings that only pytest shows; moviepy is missing
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=ignore::DeprecationWarning", "-k", "not video"]
    test_files = [str(ROOT / "tests" / name) for name in TESTS]
    result = subprocess.run(
        [python, "-m", "pytest", *options, *test_files],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:]
