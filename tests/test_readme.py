"""The README and the first pages hold as typed: their Python, and their commands with any policy's name in them."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from pathlib import Path
from typing import Any

import pytest
from fresh_models import FRESH_MLP
from oracles import place_of
from tables import for_each

from maze_nca_gym.agents import find_policy, list_policies, load
from maze_nca_gym.agents.evaluation.leaderboard.rows import published_beside
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.levels import Tile, prefab
from tools import make_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("commands", "quickstart"))]
TEN_LINES = README.split("## Ten lines")[1].split("\n## ")[0]
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for page in PAGES
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("maze-nca-gym ")
]
FEW = {"shortest-path-bfs", "nca-shortest-path", "nca-diameter", "depth-first"}
NAMES = [
    pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in [*list_policies(all=True), FRESH_MLP]
]
SHORT = {
    "solve": ["--n", "4", "--size", "8"],
    "play": ["--size", "6", "--fps", "100000"],
    "evaluate": ["--families", "random,perfect", "--sizes", "6", "--n", "4"],
    "doubt": ["--seconds", "1", "--tiles", "4", "--sizes", "6"],
    "evolve": ["--n", "6", "--rounds", "2", "--n-offspring", "4", "--size", "6"],
    "policies show": [],
}
"""Command -> options that make it quick."""


pytestmark = pytest.mark.usefixtures("command_line")


def of_its_size(name: str, options: list[str]) -> list[str]:
    """An MLP runs on 16x16 alone."""
    return [{"6": "16", "8": "16"}.get(option, option) for option in options] if name == FRESH_MLP else options


@pytest.mark.parametrize("name", NAMES)
def test_the_ten_lines_work_for_any_policy(name):
    assert place_of(prefab("Labyrinth"), Tile.SOURCE) is not None
    code = next(block for block in PYTHON if "load(" in block)
    assert "shortest-path-bfs" in code
    assert 'render_mode="human"' in code
    size = "" if name == FRESH_MLP else ", size=5"
    seen: dict[str, object] = {}
    exec(code.replace("shortest-path-bfs", name).replace('render_mode="human"', f'render_mode="rgb_array"{size}'), seen)
    info = seen["info"]
    assert isinstance(info, dict)
    if find_policy(name).exact and f"`{name}`" not in TEN_LINES:
        assert (info["accuracy"], info["complete"], info["optimal"]) == (pytest.approx(1, abs=1e-3), True, True)


def test_the_policies_that_draw_no_single_path_end_as_the_readme_says():
    (code,) = (block for block in PYTHON if "load(" in block)
    drawings = {name for name in list_policies(all=True) if find_policy(name).exact and load(name).output != "path"}
    stated = dict(re.findall(r"`([a-z-]+)` (-?\d+\.\d+)", TEN_LINES))
    assert stated.keys() == drawings
    for name, accuracy in stated.items():
        seen: dict[str, Any] = {}
        exec(code.replace("shortest-path-bfs", name).replace('"human"', '"rgb_array"'), seen)
        assert f"{seen['info']['accuracy']:.2f}" == accuracy


@pytest.mark.parametrize("command", SHORT)
@pytest.mark.parametrize("name", NAMES)
def test_any_command_takes_any_policy(name, command, plays, capsys):
    plays(1)
    assert main([*command.split(), name, *of_its_size(name, SHORT[command])]) == 0
    out, err = capsys.readouterr()
    assert "is exact, yet" not in err
    assert "Traceback" not in err
    if find_policy(name).exact and command == "solve":
        assert "100.00 %" in out
    if find_policy(name).exact and command == "evaluate":
        assert out.count("100.00 %") >= 4


def test_the_rule_becomes_the_network_that_its_comment_says(capsys):
    pytest.importorskip("z3", reason="install the extra `proof`")
    code = next(block for block in PYTHON if "compile_automaton" in block)
    exec(code, {})
    said = [line.partition("  # ")[2].partition(",")[0] for line in code.splitlines() if line.startswith("print")]
    assert capsys.readouterr().out.splitlines() == said


def test_the_readme_is_short_and_the_quick_start_makes_its_environments():
    assert len(README.split()) <= 1000
    (code,) = re.findall(r"```python\n(.*?)```", PAGES[2], re.DOTALL)
    seen: dict[str, object] = {}
    exec(code.replace("num_envs=1024", "num_envs=2"), seen)
    assert seen["env"].observation_space["maze"].shape == (4, 33, 33)
    assert seen["envs"].num_envs == 2


def test_its_benchmark_figures_are_those_of_the_leaderboard():
    section = README.split("## On published benchmarks")[1].split("\n## ")[0]
    assert "](docs/leaderboard.png)" in section
    hard = [name for name in BENCHMARK_SETS if name.startswith("maze-hard")]
    board = [row for row in json.loads((ROOT / "docs/leaderboard.json").read_text())["rows"] if row["set"] in hard]
    known = {f"{100 * row['measures']['valid and optimal']['value']:.1f}" for row in board}
    seeds = [
        100 * row["measures"]["valid and optimal"]["value"] for row in board if row["name"].startswith("guided-DLRU #")
    ]
    known.add(f"{statistics.mean(seeds):.1f}")
    assert f"± {statistics.stdev(seeds):.2f} (five seeds)" in " ".join(section.split())
    assert len(seeds) == 5
    known |= {f"{each.value:g}" for name in hard for each in published_beside(name)}
    shown = re.findall(r"([\d.]+) %", section)
    assert len(shown) == 3
    assert set(shown) <= known
    weights = {f"{row.get('weights'):,}" for row in board} | {
        f"{each.weights or 0:,}" for name in hard for each in published_beside(name)
    }
    assert set(re.findall(r"[\d,]*\d,\d{3}(?=\s+weights)", section)) <= weights


def test_its_figures_are_those_of_the_cards():
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| ([\d,]+) \| ([\d.]+) % \| ([\d.]+) % \|$", README, re.MULTILINE)
    assert len(rows) == 4
    assert f"Four policies, of {len(list_policies(all=True))}" in README
    for name, n_weights, complete, paper_accuracy in rows:
        info = find_policy(name)
        assert n_weights == f"{load(name).n_weights:,}"
        for shown, metric in ((complete, "complete"), (paper_accuracy, "paper_accuracy")):
            assert shown == f"{100 * info.scores.get(f'{metric}, random-16', 1.0):.2f}"


def test_the_table_of_policies_is_what_their_cards_say():
    page = make_tables.FILE.read_text(encoding="utf-8")
    assert make_tables.written(page) == page, "run python -m tools.make_tables"


def test_every_pattern_of_made_files_matches_some():
    lines = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    patterns = [line.split()[0] for line in lines if line and not line.startswith(("#", "*"))]
    assert patterns
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []


@for_each("command", COMMANDS)
def test_commands_have_such_options(command, capsys):
    words = shlex.split(command)[1:]
    names = [word for word in words if not word.startswith("-")]
    known = 2 if names[0] in ("levels", "policies", "train") and len(names) > 1 else 1
    assert main([*names[:known], "--help"]) == 0
    text = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert option in text, option
