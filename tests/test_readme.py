"""The README and the first pages work as typed: their Python code, and their commands with any name of a policy."""

from __future__ import annotations

import json
import re
import shlex
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fresh_models import FRESH_MLP
from oracles import place_of
from tables import for_each

from maze_nca_gym.agents import find_policy, list_policies, load
from maze_nca_gym.agents.evaluation.leaderboard.answers import EXACT, OPTIMAL
from maze_nca_gym.agents.evaluation.leaderboard.rows import UNSTATED, published_beside
from maze_nca_gym.agents.evaluation.records import Effect
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.levels import Tile, prefab
from tools import make_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("commands", "quickstart"))]
DRAWINGS = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
BLOCKS, PYTHON = (re.findall(r"```python\n(.*?)```", page, re.DOTALL) for page in (README, PAGES[2]))
COMMANDS = [
    line.split("#")[0].strip()
    for page in PAGES
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("maze-nca-gym ")
]
ROWS = [line.split("|")[1] for line in PAGES[1].splitlines() if line.startswith("| `")]
COMMANDS += [f"maze-nca-gym {call}" for row in ROWS for call in re.findall("`(.*?)`", row)]
FEW = {"shortest-path-bfs", "nca-shortest-path", "nca-diameter", "depth-first"}
NAMES = [
    pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in [*list_policies(all=True), FRESH_MLP]
]
HARD = "maze-hard-30"
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
    """An MLP runs only on 16x16 levels."""
    return [{"6": "16", "8": "16"}.get(option, option) for option in options] if name == FRESH_MLP else options


@pytest.mark.parametrize("name", NAMES)
def test_the_episode_of_the_quick_start_works_for_any_policy(name):
    assert place_of(prefab("Labyrinth"), Tile.SOURCE) is not None
    code = next(block for block in PYTHON if "load(" in block)
    assert "shortest-path-bfs" in code
    assert 'render_mode="human"' in code
    size = "" if name == FRESH_MLP else ", size=5"
    namespace: dict[str, object] = {}
    exec(
        code.replace("shortest-path-bfs", name).replace('render_mode="human"', f'render_mode="rgb_array"{size}'),
        namespace,
    )
    info = namespace["info"]
    assert isinstance(info, dict)
    if find_policy(name).exact and load(name).output == "path":
        assert (info["accuracy"], info["complete"], info["optimal"]) == (pytest.approx(1, abs=1e-3), True, True)


def test_policies_without_a_single_path_agree_with_the_page_on_metrics():
    (code,) = (block for block in PYTHON if "load(" in block)
    drawings = {name for name in list_policies(all=True) if find_policy(name).exact and load(name).output != "path"}
    stated = dict(re.findall(r"`([a-z-]+)` returns (-?\d+\.\d+)", DRAWINGS))
    assert stated.keys() == drawings
    for name, accuracy in stated.items():
        namespace: dict[str, Any] = {}
        exec(code.replace("shortest-path-bfs", name).replace('"human"', '"rgb_array"'), namespace)
        assert f"{namespace['info']['accuracy']:.2f}" == accuracy


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


def test_each_block_of_the_readme_prints_the_text_of_its_comments(capsys):
    """The blocks are one program. Blocks before the installation of the extra `proof` need no extra."""
    namespace: dict[str, Any] = {}
    for code in BLOCKS:
        if "import prove" in code:
            pytest.importorskip("z3", reason="install the extra `proof`")
            assert README.index('".[proof]"') < README.index(code)
        else:
            assert "z3" not in code
        exec(code.replace('render_mode="human"', 'render_mode="rgb_array"'), namespace)
        comments = [line.partition("  # ")[2] for line in code.splitlines() if line.startswith("print")]
        assert capsys.readouterr().out.splitlines() == comments


def test_only_the_block_about_proofs_needs_z3():
    """Blocks without proofs run without the extra `proof`, which the installation above them leaves out."""
    (rule,) = (code for code in BLOCKS if "compile_automaton" in code)
    program = f"import sys\nsys.modules.update(z3=None, cvc5=None)\n{rule}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "105 True\n"), done.stderr


def test_the_readme_is_short_and_the_quick_start_makes_its_environments():
    assert len(README.split()) <= 1100
    code = next(block for block in PYTHON if "make_vec" in block)
    namespace: dict[str, object] = {}
    exec(code.replace("num_envs=1024", "num_envs=2"), namespace)
    assert namespace["env"].observation_space["maze"].shape == (4, 33, 33)
    own_policy = next(block for block in PYTHON if "class Flood" in block)
    exec(own_policy, namespace)
    assert (namespace["solved"].name, 0 <= namespace["solved"].metrics["solved"] < 0.5) == ("Flood", True)
    assert namespace["envs"].num_envs == 2


def test_its_benchmark_figures_agree_with_the_leaderboard():
    """The README compares only equal scores, and only solvers that do not search."""
    section = " ".join(README.split("## Results")[1].split("\n## ")[0].split())
    seeds = json.loads((ROOT / "docs/maze-hard-moves.json").read_text(encoding="utf-8"))["seeds"]
    assert len(seeds) == 5
    for score, name in ((OPTIMAL, "optimal"), (EXACT, "exact")):
        values = [100 * seed["test"][name] for seed in seeds]
        ours = f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} %"
        theirs = [row for row in published_beside(HARD) if row.score == score and not row.searches]
        best = max((row for row in theirs if row.search != UNSTATED), key=lambda row: row.value)
        if score == OPTIMAL:
            assert f"Five networks of 5,760 weights draw a valid and optimal path on {ours}" in section
            assert f"without search has {best.value:g} % and {best.weights:,} weights" in section
        else:
            assert f"without search has {best.value:g} %, at its best moment on the test mazes" in section
            assert f"our five networks have {ours}" in section


def test_its_other_figures_agree_with_the_package():
    section = README.split("## Results")[1].split("\n## ")[0]
    starts = {"nca-shortest-path-hinted": "A network that learned", "nca-shortest-path": "A network trained"}
    for name, start in starts.items():
        (row,) = (line for line in section.splitlines() if line.startswith(f"| {start}"))
        assert f"{load(name).n_weights:,} weights" in row
    page = (ROOT / "docs/paper-errata.md").read_text(encoding="utf-8")
    errata = re.findall(r"^\| .* \|$", page.split("| printed | must be |")[1].split("\n\n")[0], re.MULTILINE)
    assert len(errata) == 16
    assert "Sixteen errors" in section
    small = json.loads((ROOT / "docs/paper-small/results.json").read_text())
    tests = [
        effect for effect in (Effect(**record) for record in small["effects"]) if effect.measure.startswith("test")
    ]
    counts = Counter(effect.verdict for effect in tests)
    assert (len(small["rows"]), len(tests)) == (171, 44)
    assert counts == {"appears": 9, "differs": 4, "unclear": 31}
    assert "All 171 rows" in section
    assert "nine of the paper's 44 comparisons of variants hold, four are reversed, and 31 are unclear" in section


@for_each("page", make_tables.PAGES)
def test_tables_of_pages_agree_with_their_data(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert make_tables.written(text) == text, "run python -m tools.make_tables"


def test_every_pattern_of_made_files_matches_some():
    lines = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    patterns = [line.split()[0] for line in lines if line and not line.startswith(("#", "*"))]
    assert patterns
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []


@for_each("command", COMMANDS)
def test_commands_in_texts_have_only_existing_options(command, capsys):
    words = shlex.split(command)[1:]
    names = [word for word in words if not word.startswith("-")]
    n_words = 2 if names[0] in ("levels", "policies", "train") and len(names) > 1 else 1
    assert main([*names[:n_words], "--help"]) == 0
    text = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert option in text, option
