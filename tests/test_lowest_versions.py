"""The lowest versions that pyproject.toml allows: they install together, and the fast tests of the core pass."""

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
"""What is not installed again but linked, since it is large: torch, and what it needs."""
TESTS = ("test_generation.py", "test_scoring.py", "test_files.py", "test_names.py", "envs/test_contracts.py")


def lowest(*requirements: str) -> list[str]:
    """The requirements with the lowest version in place of the least allowed; those of other Pythons are left out."""
    plain = [requirement for requirement in requirements if ";" not in requirement]
    return [re.sub(r">=([\d.]+).*", r"==\1", each) for each in plain if not each.startswith("torch>")]


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the lowest versions have no wheels for later Pythons")
def test_the_lowest_versions_work(tmp_path: Path) -> None:
    project, links = project_table(), tmp_path / "links"
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    used = ("pytest", "hypothesis", "networkx", "filelock")
    tests = [each for each in project["optional-dependencies"]["test"] if each.startswith(used)]
    install = [python, "-m", "pip", "install", "-q"]
    subprocess.run([*install, *lowest(*project["dependencies"]), *tests], check=True)
    subprocess.run([*install, "--no-deps", "-e", str(ROOT)], check=True)
    links.mkdir()
    for name in TORCH:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (links / top).symlink_to(found.locate_file(top))
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (site / "torch.pth").write_text(f"{links}\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYTEST"))}
    help = subprocess.run(
        [python, "-m", "maze_nca_gym", "train", "--help"], env=environ, capture_output=True, check=False
    )
    assert help.returncode == 0, help.stderr
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "filterwarnings=",
        "-k",
        "not video",
    ]  # old packages warn; no moviepy
    tried = [str(ROOT / "tests" / name) for name in TESTS]
    result = subprocess.run(
        [python, "-m", "pytest", *options, *tried], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
