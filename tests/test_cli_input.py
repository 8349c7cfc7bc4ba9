"""What a user may type wrong, whatever the command: modules, drawings, sizes, folders in place of files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maze_nca_gym.agents import load
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.weights import MODELS, load_model, register_model, save_model
from maze_nca_gym.cli import main
from maze_nca_gym.loading import load_levels

pytestmark = pytest.mark.usefixtures("command_line")

MODULES = {
    "with_a_typo": ("def f(:\n", "with_a_typo, which fails: SyntaxError: invalid syntax (with_a_typo.py, line 1)"),
    "without_a_package": (
        "\nimport nowhere_at_all\n",
        "fails: ModuleNotFoundError: No module named 'nowhere_at_all' (",
    ),
    "that_raises": ("raise KeyError('a key')\n", "that_raises, which fails: KeyError: 'a key' ("),
    "that_exits": ("import sys\nsys.exit('usage')\n", "that_exits, which fails: SystemExit: usage ("),
    "..": (None, "--import must name a module such as my_module or my_package.my_module, got '..'"),
    "a-file.py": (None, "--import must name a module such as my_module or my_package.my_module, got 'a-file.py'"),
    "nowhere.at_all": (None, "--import needs the module nowhere.at_all, but there is no module 'nowhere'"),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("command", ["solve", "generate x.npz", "levels show SmallCorridor"])
def test_a_module_that_cannot_be_imported_is_one_line(command, name, capsys):
    source, message = MODULES[name]
    if source is not None:
        Path(f"{name}.py").write_text(source)
    assert main([*command.split(), "--import", name]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
    assert err.count("\n") == 1
    assert not Path("x.npz").exists()


def test_the_module_of_a_policy_that_fails():
    Path("policy_with_a_typo.py").write_text("class Policy(:\n")
    import sys

    sys.path.insert(0, ".")
    try:
        with pytest.raises(ValueError, match=r"the policy policy_with_a_typo:A needs the module .* fails: SyntaxError"):
            load("policy_with_a_typo:A")
    finally:
        sys.path.remove(".")


def test_a_module_of_ones_own_before_levels_are_shown(capsys):
    Path("says_hello.py").write_text("print('hello')\n")
    assert main(["levels", "show", "S.T", "--import", "says_hello", "--solution"]) == 0
    assert capsys.readouterr().out.split() == ["hello", "S*T"]


@pytest.mark.parametrize("drawing", ["S.T", r"###\n#S.\n..T", "##\n#."])
def test_a_drawing_is_levels_in_one_line_too(drawing):
    rows = drawing.replace(r"\n", "\n").split("\n")
    assert load_levels(drawing).tiles.shape == (1, len(rows), len(rows[0]))


@pytest.mark.parametrize(("drawing", "message"), [("S.X", "is neither a file, a known name nor a drawing of tiles")])
def test_what_is_no_drawing(drawing, message):
    with pytest.raises(ValueError, match=message):
        load_levels(drawing)


def test_rows_of_unequal_length_in_one_line():
    with pytest.raises(ValueError, match=r"all rows of a level must be equally long, got lengths \[2, 3\]"):
        load_levels(r"###\n#S")


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("100000", "size 100000 x 100000 is 10,000,000,000 tiles, and a level has at most 16,777,216"),
        ("0", "size must be an integer >= 1 or a pair (rows, cols) of such, got 0"),
    ],
)
def test_the_limit_of_a_size(size, message, capsys):
    assert main(["solve", "--size", size]) == 2
    assert capsys.readouterr().err == f"maze-nca-gym: error: {message}\n"


class TestWhatAPolicyMayBe:
    def test_a_folder(self, capsys):
        Path("runs/mine").mkdir(parents=True)
        assert main(["solve", "runs/mine"]) == 2
        assert "runs/mine is a folder, not a policy; it has no model.safetensors" in capsys.readouterr().err
        save_model(NCA(4, 4, n_iterations=2), "runs/mine/model")
        assert main(["solve", "runs/mine"]) == 2
        message = "runs/mine is a folder, not a policy; its model is runs/mine/model.safetensors"
        assert message in capsys.readouterr().err

    def test_a_file_of_a_class_that_no_module_has_registered(self):
        @register_model
        class Unregistered(NCA):
            pass

        with torch.no_grad():
            path = save_model(Unregistered(4, 4, n_iterations=2), "own")
        del MODELS["Unregistered"]
        with pytest.raises(ValueError, match=r"of class 'Unregistered'; .* registers it \(--import MODULE\)"):
            load_model(path)
