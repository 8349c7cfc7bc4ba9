"""`maze-nca-gym train-hinted`: a run, its files, its complaints."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tables import for_each

from maze_nca_gym.agents import load
from maze_nca_gym.agents.hinting import learning
from maze_nca_gym.agents.hinting.config import HintConfig, changes
from maze_nca_gym.cli import main

pytestmark = pytest.mark.usefixtures("command_line")

TINY = ["train-hinted", "--families", "random", "--sizes", "4", "--n-levels", "8", "--n-recombined", "500"]
TINY += ["--n-updates", "120", "--batch-size", "64"]
FOLDER = Path("runs/train-hinted")


def test_a_run_that_is_too_short_says_that_nothing_is_proven(capsys):
    assert main(TINY) == 1
    out, err = capsys.readouterr()
    assert "not proven: sums reach" in out
    assert "the weights are not proven to do what the automaton does; try more --n-updates" in err
    described = json.loads((FOLDER / "config.json").read_text())
    assert not described["exact"]
    assert not described["certificate"]["holds"]
    assert described["configuration"] == {
        "automaton": "shortest-path",
        **HintConfig(
            families=("random",), sizes=(4,), n_levels=8, n_recombined=500, n_updates=120, batch_size=64
        ).to_json(),
    }
    updates = [json.loads(line)["update"] for line in (FOLDER / "metrics.jsonl").read_text().splitlines()]
    assert updates == [100, 120]
    assert load(str(FOLDER / "model.safetensors")).n_weights == 1785


def test_a_run_of_the_other_task(capsys):
    short = ["--n-updates", "8", "--sparsity", "0", "--n-recombined", "100", "--sizes", "4", "--n-levels", "2"]
    assert main(["train-hinted", "--automaton", "diameter", *short]) == 1
    assert "NCA, diameter, 28,875 weights" in capsys.readouterr().out
    described = json.loads((FOLDER / "config.json").read_text())
    assert described["configuration"]["automaton"] == "diameter"
    assert described["configuration"]["largest"] == 20
    assert described["command"].startswith("maze-nca-gym train-hinted --automaton diameter --sizes 4")
    model = load(str(FOLDER / "model.safetensors"))
    assert (model.task, model.max_pool) == ("diameter", True)


def test_a_run_that_heals(capsys):
    short = ["--n-updates", "8", "--sparsity", "0", "--n-recombined", "100", "--sizes", "4", "--n-levels", "2"]
    assert main(["train-hinted", "--automaton", "shortest-path-healing", *short]) == 1
    assert "NCA, shortest-path, 9,225 weights" in capsys.readouterr().out
    described = json.loads((FOLDER / "config.json").read_text())
    assert described["configuration"]["automaton"] == "shortest-path-healing"
    assert described["command"].startswith("maze-nca-gym train-hinted --automaton shortest-path-healing --sizes 4")
    assert described["data"].startswith("traces of an automaton of 21 booleans a tile on random")
    assert load(str(FOLDER / "model.safetensors")).max_pool


def test_a_run_with_rounds_of_repair_is_summarised(capsys):
    short = ["--n-updates", "8", "--n-updates-again", "4", "--n-rounds", "2", "--n-recombined", "100", "--sizes", "4"]
    assert main(["train-hinted", "--automaton", "shortest-path-healing", *short, "--n-levels", "2"]) == 1
    out = capsys.readouterr().out
    assert "round 2 of at most 2" in out
    assert "12 updates, " in out
    lines = [json.loads(line) for line in (FOLDER / "metrics.jsonl").read_text().splitlines()]
    assert [line.get("round") for line in lines] == [None, None, 1, 2]


def test_a_run_is_not_overwritten_by_accident(capsys):
    assert main(TINY) == 1
    before = (FOLDER / "model.safetensors").read_bytes()
    assert main([*TINY, "--seed", "1"]) == 2
    assert f"{FOLDER} has a run; choose another --out, or lose that run with --overwrite" in capsys.readouterr().err
    assert (FOLDER / "model.safetensors").read_bytes() == before
    assert main([*TINY, "--seed", "1", "--overwrite"]) == 1
    assert (FOLDER / "model.safetensors").read_bytes() != before


def test_a_command_line_says_all_that_differs():
    assert changes(HintConfig()) == {}
    assert changes(HintConfig.of("diameter")) == {"automaton": "diameter"}
    assert changes(HintConfig(sizes=(4, 5), seed=2)) == {"sizes": (4, 5), "seed": 2}


WRONG = {
    "--families mazes": "unknown family of levels 'mazes'; known: random, perfect",
    "--automaton longest": "unknown automaton 'longest'; known: shortest-path, shortest-path-healing, diameter, or",
    "--automaton no_such:RULE": "the automaton no_such:RULE needs the module no_such, but there is no module 'no_such'",
    "--automaton maze_nca_gym.tasks:Task": "the module 'maze_nca_gym.tasks' has no Automaton 'Task'",
    "--sizes 3": "--sizes must be at least 4, got 3",
    "--n-updates 0": "--n-updates must be at least 1, got 0",
    "--learning-rate much": "a number is expected, got 'much'",
    "--learning-rate -1": "--learning-rate must be a finite number above 0, got -1",
    "--threads 0": "--threads must be at least 1, got 0",
    "--out a-file": "--out must be a folder, but a-file is a file",
    "--unheard-of 1": "there is no option --unheard-of",
}


@for_each("arguments", WRONG)
def test_wrong_usage_is_explained_and_leaves_nothing(arguments, capsys):
    Path("a-file").touch()
    assert main([*TINY, *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert WRONG[arguments] in re.sub(r"\s*│\n│\s*", " ", err)
    assert [path.name for path in Path(".").iterdir()] == ["a-file"]


def test_a_run_tells_of_its_rounds(capsys, monkeypatch):
    # with weights as wrong as they are here these would take minutes
    monkeypatch.setattr(learning, "demands", lambda *_: [])
    monkeypatch.setattr(learning, "counterexamples", lambda *_: np.zeros((1, 5), np.int64))
    short = ["--n-updates", "8", "--n-updates-again", "4", "--n-rounds", "1"]
    levels = ["--n-recombined", "100", "--sizes", "4", "--n-levels", "2"]
    assert main(["train-hinted", "--automaton", "diameter", *short, *levels]) == 1
    out = capsys.readouterr().out
    assert "watching the automaton, then 20 updates of 2,048 patches" in out
    assert "round 1 of at most 1: sums reach" in out
    lines = [json.loads(line) for line in (FOLDER / "metrics.jsonl").read_text().splitlines()]
    assert [(line["update"], line.get("round")) for line in lines] == [
        (8, None),
        (12, None),
        (16, None),
        (20, None),
        (20, 1),
    ]
    assert all(before["seconds"] <= after["seconds"] for before, after in itertools.pairwise(lines))
