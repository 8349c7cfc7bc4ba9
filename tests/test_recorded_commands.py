"""The command in a run's config.json makes the same run again."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from command_lines import configuration
from tables import for_each

from maze_nca_gym.agents import compile_automaton, evolve, learn_automaton, load, reproduce, sweep, train
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE
from maze_nca_gym.agents.policies.weights import MODELS
from maze_nca_gym.agents.runs import recorded
from maze_nca_gym.agents.sweeps import run as sweeps_run
from maze_nca_gym.agents.training import PRESETS, changed
from maze_nca_gym.cli import main
from maze_nca_gym.cli.output import importing_from_here
from maze_nca_gym.mazes.tasks import TASKS
from maze_nca_gym.support.options import Call, differences

pytestmark = pytest.mark.usefixtures("command_line", "without_pictures")

MODULE = '''
import numpy as np
from maze_nca_gym.mazes import solvers
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import register_model
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, register_task
from dataclasses import replace
from typing import Literal


@register_model
class Mine(NCA):
    """An NCA with a wide part.

    Args:
        n_hidden: width of the part.
        window: from and to.
        way: left or right.
    """

    def __init__(
        self,
        n_tiles,
        n_channels,
        n_hidden: int = 8,
        gain=0.5,
        kind: str | None = None,
        window: tuple[int, int] = (3, 4),
        way: Literal["left", "right"] = "left",
        **options,
    ):
        super().__init__(n_tiles, n_channels, **options)
        self.own = {"n_hidden": n_hidden, "gain": gain, "kind": kind, "window": list(window), "way": way}

    @property
    def arguments(self):
        return super().arguments | self.own


def solve(tiles):
    return solvers.shortest_path(tiles)


register_task(replace(SHORTEST_PATH, name="mine", solve=solve))
'''
TINY = {"n_channels": 6, "n_iterations": 4, "sizes": 6, "n_updates": 2, "batch_size": 8}


@pytest.fixture
def own_module():
    Path("mine_to_record.py").write_text(MODULE)
    forget()
    with importing_from_here():
        yield
    forget()


def forget():
    for table, name in ((MODELS, "Mine"), (TASKS, "mine"), (PRESETS, "tiny")):
        if name in table:
            table.remove(name)
    sys.modules.pop("mine_to_record", None)


def recorded_in(folder):
    return json.loads((Path(folder) / "config.json").read_text())


@for_each("name", PRESETS)
@for_each("other", ["fast", "extrapolate-diameter", "paper-diameter-evolved", "healing"])
def test_every_preset_as_options_of_another(name, other):
    config = changed(name)
    options = differences(config.to_json(), changed(other).to_json())
    assert configuration(recorded(Call(train, {"preset": other, **options}))) == config


@for_each(
    "options",
    [
        {"model": "MLP", "n_nodes": 12, "sizes": (5,)},
        {"model": "GCN", "traversable_edges_only": False},
        {"families": ("caves", "rooms"), "compile": True, "learning_rate": 1e-5, "cut_corners": None},
        {"evolve": True, "mutation": "edits", "n_edits": 3, "evolve_below": None},
        {"evolve": True, "tile_rate": 0.25},
        {"level_set": "ctm-39", "dihedral": True, "sizes": 39},
    ],
)
def test_options_of_training(options):
    config = changed("fast", **options)
    assert configuration(recorded(Call(train, differences(config.to_json(), changed("fast").to_json())))) == config


@pytest.mark.usefixtures("few_levels")
def test_a_custom_model_with_its_own_options(own_module, capsys):
    assert main(["train", "--import", "mine_to_record", "--model", "Mine", "--help"]) == 0
    out = capsys.readouterr().out
    assert "mine options" in out
    assert "--n-hidden INT" in out
    assert "--window INT INT" in out
    assert "--way {left,right}" in out
    assert "Width of the part. (default: 8)" in out
    words = (
        "--import mine_to_record --model Mine --n-hidden 64 --gain 2 --kind wide --task mine --window 5 6 --way right"
    )
    tiny = recorded(Call(train, TINY)).split()[2:]
    assert main(["train", *words.split(), *tiny, "--threads", "1", "--out", "run"]) == 0
    config = recorded_in("run")
    options = {"n_hidden": 64, "gain": 2.0, "kind": "wide", "window": [5, 6], "way": "right"}
    assert options.items() <= config["configuration"].items()
    forget()  # a command in a new shell begins without the module
    assert configuration(config["command"]).to_json() == config["configuration"]


def test_a_misspelt_option_of_a_custom_model(own_module, capsys):
    assert main(["train", "--import", "mine_to_record", "--model", "Mine", "--n-hiden", "64"]) == 2
    assert capsys.readouterr().err.endswith("there is no option --n-hiden. Did you mean --n-hidden?\n")
    assert main(["train", "--import", "mine_to_record", "--model", "Mine", "--n-hidden", "wide"]) == 2
    assert capsys.readouterr().err.endswith("--n-hidden: an integer is expected, got 'wide'\n")


@pytest.mark.usefixtures("few_levels")
def test_runs_of_python_are_recorded_as_commands_too(own_module):
    import mine_to_record  # noqa: F401

    train("guided", out="run", threads=1, model="Mine", n_hidden=16, pool_size=0, **TINY)
    recorded = recorded_in("run")
    forget()
    assert configuration(recorded["command"]).to_json() == recorded["configuration"]


EVOLUTION = {"policies": "shortest-path-bfs", "n": 10, "rounds": 1, "n_offspring": 2, "size": 4, "batch": 4}
CALLS = [
    (evolve, EVOLUTION),
    (evolve, {**EVOLUTION, "policies": ["mine=shortest-path-bfs"], "size": (4, 5), "generator": "caves"}),
    (evolve, {**EVOLUTION, "generator": "caves", "wall_probability": 0.5, "smoothing": 1, "n_edits": None}),
    (evolve, {**EVOLUTION, "mutation": "edits", "n_edits": 2, "capacity": 12, "parents": "fittest"}),
    (evolve, {**EVOLUTION, "eviction": "replay-weight", "temperature": 0.5, "steps": 3, "wall_probability": 0.4}),
    (compile_automaton, {"automaton": "shortest-path", "order": "DLRU"}),
    (compile_automaton, {"automaton": f"{REACHABLE.signals.__module__}:REACHABLE"}),
    (learn_automaton, {"automaton": "reachable", "n_updates": 8, "n_rounds": 0, "sizes": [4], "seed": 3}),
    (learn_automaton, {"automaton": "shortest-path", "order": "DLRU", "n_updates": 1, "n_rounds": 0, "sizes": 4}),
    (train, {**TINY, "preset": "guided", "pool_size": 0, "n_channels": 8, "order": "DLRU", "learning_rate": 1e-5}),
    (train, {"preset": changed("fast", **TINY, seed=4)}),
    (train, {**TINY, "evolve": True, "mutation": "edits", "n_edits": 3, "evolve_below": None}),
]
"""Functions that record their calls, with options."""
SLOW = CALLS[8:9]
"""Calls whose function and order of options other calls test."""


@pytest.mark.usefixtures("few_levels")
@pytest.mark.parametrize(
    ("function", "options"),
    [pytest.param(*call, marks=pytest.mark.slow if call in SLOW else ()) for call in CALLS],
    ids=[f"{i} {call[0].__name__}" for i, call in enumerate(CALLS)],
)
def test_the_command_of_a_call_repeats_the_run(function, options):
    function(**options, out="first")
    recorded = recorded_in("first")
    assert main([*shlex.split(recorded["command"])[1:], "--out", "again"]) < 2  # 1 if the policy is not exact
    again = recorded_in("again")
    assert (again["command"], again["configuration"]) == (recorded["command"], recorded["configuration"])
    for path in [*Path("first").glob("*.safetensors"), *Path("first").glob("*.npz")]:
        assert path.read_bytes() == Path("again", path.name).read_bytes(), path.name


HELPER = """
from dataclasses import replace
from maze_nca_gym.agents.automata import register_automaton
from maze_nca_gym.agents.automata.shipped.gallery import REACHABLE, SMALL

def register(name):
    register_automaton(replace(REACHABLE, name=name, learning=SMALL))
"""


@pytest.fixture
def helped(monkeypatch, forgotten):
    """A module that registers an automaton with the function of another module."""
    Path("helper_of_mine.py").write_text(HELPER)
    Path("mine_by_helper.py").write_text("import helper_of_mine\nhelper_of_mine.register('mine')\n")
    monkeypatch.syspath_prepend(".")
    yield "mine_by_helper"
    for name in ("mine_by_helper", "helper_of_mine"):
        sys.modules.pop(name, None)


OWN = [
    (
        train,
        {**TINY, "preset": "fast", "threads": 1, "model": "Mine", "task": "mine", "n_hidden": 16},
        "mine_to_record",
    ),
    (compile_automaton, {"automaton": "mine"}, "mine_by_helper"),
    (learn_automaton, {"automaton": "mine", "n_updates": 8, "n_rounds": 0}, "mine_by_helper"),
    (evolve, {**EVOLUTION, "policies": "mine_to_evolve:made"}, "mine_to_evolve"),
    (sweep, {"what": {"preset": "fast", "options": TINY, "seeds": 2}, "device": "cpu"}, None),
    (sweep, {"what": "own.toml", "workers": 1}, None),
    (reproduce, {"which": "1.3", "trials": 1, "scale": "tiny"}, None),
]
SWEEP = """
modules = ["mine_to_record"]
options = {model = "Mine", task = "mine", n_channels = 6, n_iterations = 4, sizes = 6, batch_size = 8}
vary.n_updates = [2, 3]
"""


@pytest.mark.parametrize(
    ("function", "options", "module"),
    [
        pytest.param(*call, marks=pytest.mark.slow if i else ())
        for i, call in enumerate([*OWN, *((*call, None) for call in CALLS)])
    ],
)
def test_the_command_makes_the_same_run_in_a_fresh_process(function, options, module, helped, own_module):
    Path("mine_to_evolve.py").write_text("from maze_nca_gym.agents.policies.handcoded import ShortestPathNCA as made\n")
    Path("own.toml").write_text(SWEEP)
    if module:
        import_module(module)
    function(**options, out="first")
    command = recorded_in("first")["command"].replace(" --out first", "")  # the command of a series includes its folder
    words = [sys.executable, "-m", "maze_nca_gym", *shlex.split(command)[1:], "--out", "again"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=3000)
    assert done.returncode < 2, done.stderr
    again = recorded_in("again")["command"].replace(" --out again", "")
    assert sorted(shlex.split(again)) == sorted(shlex.split(command))  # a sweep keeps the order of its options
    files = [path for end in ("safetensors", "npz") for path in Path("first").rglob(f"*.{end}")]
    assert files
    for path in files:
        assert path.read_bytes() == Path("again", path.relative_to("first")).read_bytes(), path


@pytest.mark.usefixtures("few_levels")
def test_a_custom_model_for_other_commands(own_module, capsys):
    import mine_to_record  # noqa: F401

    train("fast", out="run", threads=1, model="Mine", **TINY)
    evolve("run/model.safetensors", out="first", n=4, rounds=1, n_offspring=2, size=6)
    command = recorded_in("first")["command"]
    forget()
    assert main([*shlex.split(command)[1:], "--out", "again"]) == 0
    assert "--import mine_to_record" in command
    forget()
    capsys.readouterr()
    solve = ["solve", "run/model.safetensors", "--size", "5", "--n", "2", "--picture", "none"]
    assert main(solve) == 2
    assert "Mine" in capsys.readouterr().err
    for command in (solve, ["policies", "show", "run/model.safetensors"]):
        forget()
        assert main([*command, "--import", "mine_to_record"]) == 0


@pytest.mark.parametrize(("command", "typed"), [("compile-automaton", True), ("learn-automaton", False)])
def test_only_named_modules_are_imported(command, typed, helped):
    if typed:
        assert main([command, "mine", "--import", helped, "--out", "run"]) == 0
    else:
        import mine_by_helper  # noqa: F401

        {"compile-automaton": compile_automaton, "learn-automaton": learn_automaton}[command]("mine", out="run")
    assert recorded_in("run")["command"] == f"maze-nca-gym {command} mine --import {helped}"


def test_unregistered_names_are_left_out_of_commands(helped, monkeypatch):
    import helper_of_mine

    helper_of_mine.register("mine")
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # as in a notebook
    why = "# no command can name automaton mine, which no module registers: maze-nca-gym "
    compile_automaton("mine", out="run")
    assert recorded_in("run")["command"] == f"{why}compile-automaton mine"


def test_objects_of_python_are_not_part_of_a_command():
    small = {"n": 4, "rounds": 0, "size": 4}
    evolve(load("shortest-path-bfs"), out="run", **small)
    why = "# no command can name the ShortestPathNCA given as policies: maze-nca-gym evolve --n 4 "
    assert recorded_in("run")["command"].startswith(why)
    evolve("mine=shortest-path-bfs", out="labelled", **small)
    assert recorded_in("labelled")["command"].startswith("maze-nca-gym evolve mine=shortest-path-bfs ")
    compile_automaton(replace(REACHABLE, name="mine"), out="compiled")
    why = "# no command can name the Automaton given as automaton: maze-nca-gym compile-automaton"
    assert recorded_in("compiled")["command"] == why


class Commands(list[str]):
    facts: ClassVar[dict[str, Any]] = {}


def test_a_sweep_that_is_described_in_python(monkeypatch):
    results = lambda sweep, folder, about, facts, *_: (Commands([facts["command"]]), [])  # noqa: E731
    monkeypatch.setattr(sweeps_run, "run_sweep", results)
    monkeypatch.setattr("maze_nca_gym.agents.sweeps.figures.draw_sweep", lambda *_: None)
    options = {"n_channels": 6, "sizes": (6, 8)}
    (command,) = sweep({"preset": "fast", "options": options, "seeds": 2}, out="runs/a")
    assert command == "maze-nca-gym train fast --seeds 2 --n-channels 6 --sizes 6 8 --out runs/a"
    (command,) = sweep({"preset": "fast", "vary": {"n_channels": [6, 8]}}, out="runs/a")
    assert command == "# no command can name the dict given as what: maze-nca-gym sweep --out runs/a"
    Path("widths.toml").write_text("vary.n_channels = [6, 8]")
    (command,) = sweep("widths.toml", device="cpu", workers=2, format="pdf")
    assert command == "maze-nca-gym sweep widths.toml --workers 2 --device cpu --format pdf"


@pytest.mark.usefixtures("few_levels")
def test_a_custom_preset(capsys):
    Path("mine_to_record.py").write_text(
        f"from maze_nca_gym.agents.training import register_preset\nregister_preset('tiny', 'fast', **{TINY})\n"
    )
    try:
        assert main(["train", "tiny", "--import", "mine_to_record", "--seed", "3", "--threads", "1"]) == 0
        recorded = recorded_in("runs/train/tiny")
        assert (recorded["preset"], recorded["configuration"]["seed"]) == ("tiny", 3)
        assert main(["train", "tiny", "--import", "mine_to_record", "--help"]) == 0
        assert "(default: 6)" in capsys.readouterr().out
        assert configuration(recorded["command"]).to_json() == recorded["configuration"]
    finally:
        forget()
