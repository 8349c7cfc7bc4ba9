"""Mistakes of users that no single option detects: names, files, drawings, modules, and combinations of options.

test_options.py tests the values that single options refuse.
"""

import os
import sys
from pathlib import Path

import pytest
import torch
from command_lines import files
from tables import for_each, refused

from maze_nca_gym.agents import load
from maze_nca_gym.agents.policies.learned import MLP, NCA
from maze_nca_gym.agents.policies.weights import MODELS, load_model, register_model, save_model
from maze_nca_gym.cli import main
from maze_nca_gym.cli.reading import _metavar
from maze_nca_gym.mazes.loading import load_levels
from maze_nca_gym.support.options import Option

pytestmark = pytest.mark.usefixtures("command_line")

MODULES = {
    "with_a_typo": ("def f(:\n", "with_a_typo, which fails: SyntaxError: invalid syntax (with_a_typo.py, line 1)"),
    "without_a_package": (
        "\nimport nowhere_at_all\n",
        "fails: ModuleNotFoundError: No module named 'nowhere_at_all' (",
    ),
    "that_raises": ("raise KeyError('a key')\n", "that_raises, which fails: KeyError: 'a key' ("),
    "that_is_refused": ("from maze_nca_gym.mazes import Kind\n\nKind('Mud', 'm', '#aa8855')\n", "got 'Mud' ("),
    "that_exits": ("import sys\nsys.exit('usage')\n", "that_exits, which fails: SystemExit: usage ("),
    "..": (None, "--import must name a module such as my_module or my_package.my_module, got '..'"),
    "a-file.py": (None, "--import must name a module such as my_module or my_package.my_module, got 'a-file.py'"),
    "mine.py": (None, "--import must name a module such as my_module or my_package.my_module, got 'mine.py'"),
    "nowhere.at_all": (None, "--import needs the module nowhere.at_all, but there is no module 'nowhere'"),
}


@for_each("name", MODULES)
@for_each("command", ["solve", "generate x.npz", "levels show SmallCorridor"])
def test_a_module_that_cannot_be_imported_is_one_line(command, name, capsys):
    source, message = MODULES[name]
    if source is not None:
        Path(f"{name}.py").write_text(source)
    assert main([*command.split(), "--import", name]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert name != "that_is_refused" or err.endswith("that_is_refused.py, line 3)\n")  # a line of the module
    assert out == ""
    assert err.count("\n") == 1
    assert not Path("x.npz").exists()


@for_each(
    "command",
    [
        "generate file/x.npz --n 1 --size 4",
        "levels show SmallCorridor --png file/x.png",
        "compile-automaton reachable --export-proof file",
        "train fast --out ",
        "train fast --out file",
        "solve --n 1 --size 4 --picture none --out file",
        "solve-large --maze none.npy --out file",
        "evaluate nca-shortest-path --families perfect --sizes 8 --n 1 --out file",
        "evolve nca-shortest-path-small --n 2 --size 4 --rounds 1 --out file",
        "bench maze-unique-30 --policies nca-shortest-path --n 1 --out file",
        "compile-automaton reachable --out file",
        "learn-automaton reachable --out file",
        "reproduce 1.5 --scale tiny --out file",
        "sweep none.toml --out file",
    ],
)
def test_unwritable_folders_are_reported_before_the_work(command, capsys):
    Path("file").touch()
    assert main(command.split(" ")) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "but file is a file" in err or "--out: a path is expected, got ''" in err
    assert files() == ["file"]


def test_a_module_created_after_the_listing_of_its_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    refused("there is no module 'just_written'", load, "just_written:A")
    status = tmp_path.stat()
    (tmp_path / "just_written.py").write_text("A = 3\n")
    os.utime(tmp_path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as on file systems with a coarse clock
    refused("has no 'B'", load, "just_written:B")


def test_a_failing_module_of_a_policy():
    Path("policy_with_a_typo.py").write_text("class Policy(:\n")
    sys.path.insert(0, ".")
    try:
        refused(r"the policy policy_with_a_typo:A needs the module .* fails: SyntaxError", load, "policy_with_a_typo:A")
    finally:
        sys.path.remove(".")


def test_a_custom_module_is_imported_before_levels_are_shown(capsys):
    Path("says_hello.py").write_text("print('hello')\n")
    assert main(["levels", "show", "S.T", "--import", "says_hello", "--solution"]) == 0
    assert capsys.readouterr().out.split() == ["hello", "S*T"]


@for_each("drawing", ["S.T", r"###\n#S.\n..T", "##\n#."])
def test_a_drawing_in_one_line_is_a_level(drawing):
    rows = drawing.replace(r"\n", "\n").split("\n")
    assert load_levels(drawing).tiles.shape == (1, len(rows), len(rows[0]))


@for_each(
    ("drawing", "message"),
    [
        ("S.X", "is neither a file, a known name nor a drawing of tiles"),
        (r"###\n#S", r"all rows of a level must be equally long, got lengths \[2, 3\]"),
    ],
)
def test_invalid_drawings_are_refused(drawing, message):
    refused(message, load_levels, drawing)


WRONG = {
    "solv": "unknown command 'solv'. Did you mean 'solve'? Known: solve, solve-large, play, evaluate, ",
    "sovle": "Did you mean 'solve'?",
    "levels lst": "unknown command 'lst'. Did you mean 'list'? Known: list, show",
    "solve nothing": "unknown policy 'nothing'; known: shortest-path-bfs",
    "solve shortest-path-dfs": "Did you mean 'shortest-path-bfs'?",
    "solve --size 0": "size must be an integer >= 1 or a pair (rows, cols) of such, got 0",
    "solve --size 1": "size 1 x 1 has no room",
    "solve --size 100000": "100000 x 100000 is 10,000,000,000 tiles, and a level has at most 16,777,216",
    "solve --size large": "--size: a number such as 16, or ROWSxCOLS such as 12x20, is expected, got 'large'",
    "solve --wall-probability 1.5": "wall_probability must be a number in [0, 1], got 1.5",
    "solve --wall-probability high": "a number is expected, got 'high'",
    "solve --loop-fraction 0.5": "generator 'random' has no option loop_fraction; it takes wall_probability",
    "solve --generator perfect --smoothing 1": "generator 'perfect' has no option smoothing; it takes border",
    "solve --generator cave": "Did you mean 'caves'?",
    "solve --device quantum": "unknown device 'quantum'",
    "solve --device cuda:99": "torch finds",
    "solve --levels nowhere": "neither a file, a known name nor a drawing",
    "solve --levels labirinth": "Did you mean 'Labyrinth' or",
    "solve --levels a-file": "a-file is not a file of levels, whose names end in .txt",
    "solve --levels FourRooms --size 5": "size is for fresh levels: leave it out with levels",
    "solve --levels FourRooms --n 2": "--n must be at most 1, the number of levels of FourRooms, got 2",
    "solve depth-first twice": "maze-nca-gym solve takes no twice; --help describes it",
    "solve -n 3": "there is no option -n",
    "solve --no-device": "there is no option --no-device. Did you mean --device?",
    "play --fps inf": "--fps must be a finite number above 0, got inf",
    "play --steps 0": "--steps must be at least 1, got 0",
    "play own.safetensors --steps 9": "this policy has weights for 3 iterations",
    "play --levels nowhere": "neither a file, a known name nor a drawing",
    "play nothing": "unknown policy 'nothing'",
    "generate": "FILE",
    "generate .": "is a folder",
    "generate levels.npy": "levels.npy ends like a file of another format. Did you mean '.npz'? Allowed: .npz, .txt",
    "levels show nowhere": "neither a file, a known name nor a drawing",
    "levels show FourRooms --index 1": "--index must be from 0 to 0 in FourRooms, got 1",
    "levels show FourRooms --png picture.jpg": "--png must name a file that ends in .png, got picture.jpg",
    "levels list a-file": "a-file is not a file of levels, whose names end in .txt",
    "levels list nowhere": "nowhere",
    "policies show nothing": "unknown policy 'nothing'; known: shortest-path-bfs",
    "evaluate": "evaluate needs POLICY",
    "evaluate nowhere.safetensors": "no model file nowhere.safetensors",
    "evaluate a-file.safetensors": "a-file.safetensors is not a readable model file",
    "evaluate shortest-path-bfs diameter": "all policies must have the same task, got shortest-path-bfs for",
    "evaluate depth-first --families": "--families needs a value",
    "evaluate depth-first --sizes large": "--sizes: an integer is expected, got 'large'",
    "evaluate a=depth-first a=shortest-path-bfs": "'a' is the name of both depth-first and shortest-path-bfs",
    "evaluate =depth-first": "NAME=POLICY needs a name and a policy, got '=depth-first'",
    "evaluate depth-first --device quantum": "unknown device 'quantum'",
    "evaluate mlp.safetensors --sizes 6": "mlp.safetensors on random-6: this network is built for mazes of size 5 x 5",
    "evaluate own.safetensors --steps 9": "own.safetensors on random-16: this policy has weights for 3 iterations",
    "evolve nothing": "unknown policy 'nothing'; known: shortest-path-bfs",
    "evolve missing.safetensors": "there is no model file missing.safetensors",
    "evolve shortest-path-bfs diameter": "all policies must have the same task",
    "evolve depth-first --size 6 --wall-probability 2": "wall_probability",
    "evolve depth-first --capacity 10": "capacity must be at least n 1000, got 10",
    "evolve depth-first --n-edits 3": "mutation 'flip' has no option n_edits; it takes tile_rate, source_rate",
    "evolve depth-first --tile-rate 2": "tile_rate",
    "evolve depth-first --device quantum": "unknown device 'quantum'",
    "evolve own.safetensors --size 6 --n 99 --steps 9": "own.safetensors: this policy has weights for 3 iterations",
    "train fsat": "Did you mean 'fast'?",
    "train --n-iterations 4 nothing": "unknown preset 'nothing'; known: paper-shortest-path",
    "train --evolve maybe": "unknown preset 'maybe'",
    "train --pool-steps 3 --seed 1": "--pool-steps needs 2 values",
    "train --seed -1": "--seed must be from 0 to 9,223,372,036,854,775,807, got -1",
    "train --out": "--out needs a value",
    "train --families perfct": "Did you mean 'perfect'?",
    "train --edge-features True": "a model of class NCA has no option edge_features; its options: kernel_size,",
    "train --model MLP --sizes 8 16": "a model of class MLP is built for one size, got sizes (8, 16)",
    "train --kernel-size 4": "kernel_size must be odd, got 4",
    "train --n-offspring 5": "without levels that evolve there is no n_offspring: set evolve",
    "train --device quantum": "unknown device 'quantum'",
    "train --validate-every 30": "validate_every must be a multiple of log_every 25, got 30",
    "learn-automaton --families mazes": "unknown family of levels 'mazes'. Did you mean 'caves'? Known: random",
    "learn-automaton longest": "unknown automaton 'longest'; known: shortest-path, shortest-path-healing, ",
    "learn-automaton no_such:RULE": "the automaton no_such:RULE needs the module no_such, but there is no",
    "learn-automaton maze_nca_gym.mazes.tasks:Task": "the module 'maze_nca_gym.mazes.tasks' has no Automaton 'Task'",
    "reproduce 13": "unknown table '13'",
    "reproduce 1.3 --submit timeout_min=3": "the launcher local takes no options, got timeout_min",
    "reproduce 1.3 --submit fast": "submit takes words such as timeout_min=600, got 'fast'",
    "reproduce 1.3 --device abacus": "unknown device 'abacus'",
    "export depth-frist": "depth-first",
    "export gat-shortest-path-baseline": "json",
    "export depth-first --out x.onx": "x.onx ends like a file of another format. Did you mean '.onnx'? Allowed: .json",
    "export depth-first --out x.pt --format json": "x.pt ends like a file of another format; allowed: .json",
}


@for_each("words", WRONG)
def test_wrong_usage_is_one_line_and_leaves_nothing(words, capsys):
    Path("a-file").write_text("no level set", encoding="utf-8")
    Path("a-file.safetensors").write_text("no model", encoding="utf-8")
    save_model(MLP(4, 3, size=5, n_nodes=4), "mlp")
    save_model(NCA(4, 5, n_iterations=3, shared_weights=False), "own")
    before = files()
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert WRONG[words] in err
    assert err.startswith("maze-nca-gym: error: ")
    assert err.count("\n") == 1
    assert files() == before


class TestWhatAPolicyMayBe:
    def test_a_folder(self, capsys):
        Path("runs/mine").mkdir(parents=True)
        assert main(["solve", "runs/mine"]) == 2
        assert "runs/mine is a folder, not a policy; it has no model.safetensors" in capsys.readouterr().err
        save_model(NCA(4, 4, n_iterations=2), "runs/mine/model")
        assert main(["solve", "runs/mine"]) == 2
        message = "runs/mine is a folder, not a policy; its model is runs/mine/model.safetensors"
        assert message in capsys.readouterr().err

    def test_a_file_of_an_unregistered_class(self):
        @register_model
        class Unregistered(NCA):
            pass

        with torch.no_grad():
            path = save_model(Unregistered(4, 4, n_iterations=2), "own")
        MODELS.remove("Unregistered")
        refused(
            r"unknown class of models 'Unregistered'; known: .*, or one of your own once its module", load_model, path
        )

    @for_each(
        "words",
        [
            *("train mine", "train --task mine", "train --model Mine", "train --loss mine", "train --families mine"),
            *("solve --generator mine", "compile-automaton mine"),
            "bench --policies diameter --metrics mine",
        ],
    )
    def test_errors_about_names_explain_how_to_register_them(self, words, capsys):
        assert main(words.split()) == 2
        err = capsys.readouterr().err
        assert " 'mine'; known: " in err.lower()
        assert "module is imported (--import MODULE)" in err or "or module:NAME" in err


@for_each(
    ("kind", "text"),
    [
        (int, "INT"),
        (float, "NUMBER"),
        (str, "STR"),
        (Path, "PATH"),
        (int | None, "INT"),
        (int | str, "INT STR"),
        (tuple[int, ...], "INT …"),
        (tuple[int, float], "INT NUMBER"),
        (bool, ""),
    ],
)
def test_the_help_names_types_of_values(kind, text):
    assert _metavar(Option("any", kind)) == text
