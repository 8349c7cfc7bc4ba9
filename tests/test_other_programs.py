"""Every command works on each promised Python on PATH, with settings that users make for other programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from command_lines import commands
from smoke import COMMANDS
from tables import for_each
from test_package import ROOT, project_table

from maze_nca_gym.agents import evaluate
from maze_nca_gym.cli import main

VERSIONS = re.findall(r"Python :: (3\.\d+)", " ".join(project_table()["classifiers"]))
HERE = "{}.{}".format(*sys.version_info)
NEEDED = "import torch, gymnasium, numba, scipy, pygame, safetensors, docstring_parser, rich, PIL, matplotlib, z3"
"""Modules that an interpreter must have. Other interpreters are found on PATH, as `python3.13`."""


def test_the_smoke_test_has_every_command() -> None:
    names = {" ".join(command.split()[:2]) for command in COMMANDS} | {command.split()[0] for command in COMMANDS}
    assert {name for name, _ in commands()} <= names


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_works(version: str, tmp_path: Path) -> None:
    """Settings: a notebook's matplotlib, LaTeX in all figures, numba switched off, and a stderr that is not a file."""
    python = sys.executable if version == HERE else shutil.which(f"python{version}")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "module://missing", "NUMBA_DISABLE_JIT": "1"}
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    environ["MATPLOTLIBRC"] = str(tmp_path)
    if python is None or subprocess.run([python, "-c", NEEDED], env=environ, capture_output=True).returncode:
        pytest.skip(f"there is no python{version} with the packages that the commands need")
    smoke = [python, str(ROOT / "tests" / "smoke.py")]
    done = subprocess.run(smoke, env=environ, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


def test_a_python_that_strips_docstrings_lists_the_commands() -> None:
    command = [sys.executable, "-OO", "-m", "maze_nca_gym", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT.parent, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  solve" in done.stdout


@for_each("backend", ["widget", "no such backend", "module://missing"])
def test_matplotlib_is_imported_with_any_chosen_backend(backend: str) -> None:
    """A backend that matplotlib accepts stays the backend of the process."""
    code = (
        "import sys; from maze_nca_gym.support.pictures import any_backend\n"
        "with any_backend(): import maze_nca_gym.agents.evaluation.drawing\n"
        "import matplotlib, os; print(matplotlib.rcParams._get('backend'), os.environ['MPLBACKEND'], sep='|')"
    )
    environ = {**os.environ, "MPLBACKEND": backend}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (present, named) = done.stdout.strip().split("|")
    assert named == backend
    assert (present == backend) == backend.startswith("module://")


@pytest.mark.usefixtures("command_line")
def test_a_picture_that_cannot_be_drawn_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no latex")

    for name in ("evaluation.drawing.Figure", "rollouts.solved.save_png", "training.figures.save_png"):
        monkeypatch.setattr(f"maze_nca_gym.agents.{name}", fail)
    small = "--sizes 4 --n-updates 2 --batch-size 2 --n-channels 4 --n-iterations 2 --log-every 1 --validate-every 1"
    for command, results in {
        "evaluate nca-shortest-path --families perfect --sizes 8 --n 1 --out out": "results.csv",
        "solve --n 1 --size 4 --picture png --out out": "results.csv",
        "bench maze-unique-30 --policies nca-shortest-path-small --n 1 --plot --out out": "leaderboard.md",
        "evolve nca-shortest-path-small --n 2 --n-offspring 2 --rounds 1 --size 4 --out out": "population.npz",
        f"train fast --device cpu --out out {small}": "model.safetensors",
    }.items():
        assert main(command.split()) == 0, command
        output = capsys.readouterr()
        assert "a picture is missing, as drawing it failed: no latex; the results are complete" in output.err
        assert "Traceback" not in output.err
        assert (Path("out") / results).exists()
        assert not {".png", ".gif"} & {path.suffix for path in Path("out").iterdir()}
        shutil.rmtree("out")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(evaluate("nca-shortest-path", families="perfect", sizes=8, n=1, out="out")) == 1
    assert "no latex" in str(caught[0].message)
    with pytest.raises(ValueError, match="format of figures"):
        evaluate("nca-shortest-path", families="perfect", sizes=8, n=1, out="out", format="bmp")
