"""Options as fields and arguments: checks, words, and JSON; every command refuses the same values."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pytest
from command_lines import commands, files
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from maze_nca_gym.agents import train
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.training.config import OPTIONS
from maze_nca_gym.cli import main
from maze_nca_gym.cli.commands import Command
from maze_nca_gym.cli.reading import read_option, read_values, show_help
from maze_nca_gym.mazes.population import BreedingSchedule, PopulationConfig
from maze_nca_gym.support.options import (
    Above,
    Between,
    OneOf,
    Option,
    Shown,
    check_known,
    check_options,
    checked,
    differences,
    further_options,
    options_of,
    options_of_call,
    to_json,
)

Item = TypeVar("Item", bound=np.generic)
# equals `type Array[Item: np.generic] = ...` of Python 3.12, as in NumPy 2.5
Array = TypeAliasType("Array", np.ndarray[Any, np.dtype[Item]], type_params=(Item,))
Size = TypeAliasType("Size", int)
Few = TypeAliasType("Few", Annotated[Size, Between(1, 9)])

KINDS: dict[str, dict[str, int]] = {"round": {"radius": 1}, "square": {"side": 2}}


def _kinds():
    return KINDS


@dataclass(frozen=True)
class Blade:
    """A blade."""

    angle: Annotated[float, Above(0)] = 30.0
    """Angle
    in degrees."""
    teeth: Annotated[tuple[int, ...], Between(1, 9)] = (3,)
    """Numbers of teeth."""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Cut(Blade):
    """Cut something."""

    angle: float = 20.0
    file: Annotated[Path, Shown("FILE", positional=True)] = field(kw_only=True)
    """What to cut."""
    kind: Annotated[str, OneOf(_kinds)] = "round"
    """Kind of cut."""
    mode: Literal["fast", "slow"] = "fast"
    """Mode."""
    span: tuple[int, int] = (1, 2)
    """From and to."""
    seed: Annotated[int | None, Between(0, 99)] = None
    """Seed."""
    ends: tuple[int, int] | None = None
    """Both ends."""
    quiet: bool = False
    """Say nothing."""
    cool: bool = True
    """Do without cooling."""


def read(words: str) -> Any:
    return Cut(**read_values(options_of(Cut), words.split(), "cut"))


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("--kind square --seed=7", {"kind": "square", "seed": 7}),
        ("--span 3 4 --quiet --no-cool", {"span": (3, 4), "quiet": True, "cool": False}),
        ("--quiet False --no-quiet --cool --mode slow", {"mode": "slow"}),
        ("--teeth 1,2 3 --angle 5", {"angle": 5.0, "teeth": (1, 2, 3)}),
        ("--seed None --no_cool", {"cool": False}),
        ("--ends 3 -4 --seed 1 --seed=2", {"ends": (3, -4), "seed": 2}),
        ("--ends None --quiet", {"quiet": True}),
    ],
)
def test_options_as_words(words, changes):
    expected = replace(Cut(file=Path("log")), **changes)
    assert read(f"log {words}") == expected


WRONG = {
    "log --sed 3": "there is no option --sed. Did you mean --seed?",
    "log --seed 100": "--seed must be from 0 to 99, got 100",
    "log --seed x": "--seed: an integer is expected, got 'x'",
    "log --teeth 1 12": "--teeth must be from 1 to 9, got 12",
    "log --teeth": "--teeth needs a value",
    "log --ends 1": "--ends needs 2 values",
    "log more": "cut takes no more; --help describes it",
    "log --angle nan": "--angle must be a finite number above 0, got nan",
    "log --kind oval": "unknown kind 'oval'; known: round, square",
    "log --mode slwo": "--mode: fast or slow is expected, got 'slwo'. Did you mean 'slow'?",
    "": "cut needs FILE; --help describes it",
}


@pytest.mark.parametrize("words", WRONG)
def test_errors_in_words_are_one_line(words):
    with pytest.raises(ValueError, match=f"^{re.escape(WRONG[words])}$"):
        read(words)


def test_help_shows_the_documentation_of_the_field(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        show_help(options_of(Cut), "cut", "Cut something.", ["cut log"], (Cut,))
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "Angle in degrees. (default: 20.0)",
        "--no-cool",
        "--mode {fast,slow}",
        "blade options",
        "--quiet Say",
    ):
        assert text in out
    assert "--no-quiet" not in out


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ({"angle": 3}, {"angle": 3.0}),
        ({"angle": np.float32(0.5), "teeth": np.array([1, 2])}, {"angle": 0.5, "teeth": (1, 2)}),
        ({"teeth": 4}, {"teeth": (4,)}),
        ({"teeth": [4]}, {"teeth": (4,)}),
    ],
)
def test_values_are_stored_plainly(values, stored):
    blade = Blade(**values)
    for name, value in stored.items():
        assert getattr(blade, name) == value
        assert type(getattr(blade, name)) is type(value)


def test_a_group_with_other_defaults_keeps_types_and_help():
    options, usual = options_of(Cut), options_of(Blade)
    assert {name: options[name].group for name in ("angle", "teeth", "mode")} == {
        "angle": Blade,
        "teeth": Blade,
        "mode": Cut,
    }
    assert options["angle"] == replace(usual["angle"], default=20.0)
    with pytest.raises(ValueError, match="angle must be a finite number above 0, got -1"):
        Cut(file=Path("log"), angle=-1)
    values = vars(Cut(file=Path("log"), kind="square", angle=4))
    assert to_json({**values, "file": "log"})["teeth"] == [3]
    assert differences(values, vars(Cut(file=Path("log")))) == {"kind": "square", "angle": 4.0}


def test_a_functions_arguments_are_options_too():
    def saw(file, *, speed=2, name: str | None = None, sides: list = ()):
        """Saw.

        Args:
            speed: how fast.
        """

    options = options_of_call(saw, leave_out=("file",))
    assert list(options) == ["speed", "name", "sides"]
    assert options["speed"].help == "How fast."
    assert read_option(options["speed"], ["3"]) == 3


def test_help_of_a_function_shows_types_defaults_and_the_further_options():
    text = pydoc.plain(pydoc.render_doc(train))
    signature = text[text.index("train(") : text.index(") -> Policy")]
    assert "\n    out: str | Path | None = None,\n" in signature
    assert "\n    *,\n" in signature
    assert not re.search("Annotated|Shown|Between|OneOf|lambda", signature)
    for option in OPTIONS.values():
        assert re.search(rf"\b{option.name}=", signature), option.name
    assert max(map(len, signature.splitlines())) <= 100
    assert inspect.signature(train).parameters["preset"].annotation == "str | TrainingConfig"


def test_an_alias_is_replaced_by_its_type():
    @checked
    def drawn(tiles: Array[np.uint8] | Path, sizes: tuple[Size, ...] = (), n: Few = 1) -> Any:
        return tiles, sizes, n

    assert drawn(Path("a"), [3, 5], 7) == (Path("a"), (3, 5), 7)
    tiles = np.zeros((2, 2), np.uint8)
    assert drawn(tiles)[0] is tiles
    for wrong in ({"tiles": 1}, {"tiles": tiles, "sizes": "a"}, {"tiles": tiles, "n": 0}):
        with pytest.raises(ValueError, match=list(wrong)[-1]):
            drawn(**wrong)


def test_a_misspelt_name_in_python():
    with pytest.raises(ValueError, match=r"a blade has no option teth. Did you mean 'teeth'\?"):
        check_known({"teth": 3}, options_of(Blade), "a blade")


EVERY = {**OPTIONS, **options_of(HintConfig), **options_of(PopulationConfig), **options_of(BreedingSchedule)}


RANGES = [
    name
    for name, option in EVERY.items()
    if any(isinstance(rule, Between) for rule in option.rules) and "tuple" not in str(option.type)
]


@pytest.mark.parametrize("names", [RANGES[i::8] for i in range(8)], ids=range(8))
@settings(max_examples=20 * len(RANGES) // 8)
@given(data=st.data())
def test_values_survive_words_only_if_they_are_in_range(names, data):
    name = data.draw(st.sampled_from(names))
    option = EVERY[name]
    bounds = [rule for rule in option.rules if isinstance(rule, Between)]
    low, high = bounds[0].least, min(bounds[0].most, 2**53)
    is_integer = "int" in str(option.type)
    value = data.draw(st.integers(int(low), int(high)) if is_integer else st.floats(low, high))
    assert read_values({name: option}, ["--" + name, repr(value)], "it") == {name: value}
    with pytest.raises(ValueError, match=r"must be (from|at least)"):
        option.check(low - 1)
    if bounds[0].most <= 2**53:
        with pytest.raises(ValueError, match="must be from"):
            option.check(int(high) + 1)


EVERY_COMMAND = dict(commands())
FIRST = {
    "evaluate": {"policies": "depth-first"},
    "doubt": {"policy": "depth-first"},
    "evolve": {"policies": "depth-first"},
    "bench": {"policies": "depth-first"},
    "reproduce": {"which": "1.3"},
    "sweep": {"what": "sweep.toml"},
    "generate": {"file": "new"},
    "export": {"policy": "depth-first"},
    "levels show": {"source": "FourRooms"},
    "policies show": {"name": "depth-first"},
    "check-refutations": {"folder": "lemmas", "signatures": "eo"},
    "solve-large": {"maze": "maze.npy"},
}
"""Required arguments of commands."""


def words_of(name: str) -> list[str]:
    values, options = FIRST.get(name, {}), EVERY_COMMAND[name].options
    return [*name.split(), *(v if options[o].style.positional else f"--{o}={v}" for o, v in values.items())]


def not_allowed(option: Option) -> Iterator[tuple[Any, str]]:
    """Yield values that an option refuses, each with the message's text besides the option's name."""
    for rule in option.rules if "tuple[int, int]" not in str(option.type) else ():
        if isinstance(rule, OneOf):
            yield "no-such-name", "unknown .* 'no-such-name'; known: "
        elif isinstance(rule, Above):
            yield from ((value, rf"above {rule.bound}, got {value}") for value in (float(rule.bound), float("nan")))
        elif isinstance(rule, Between):
            yield rule.least - 1, rf"must be .*, got {rule.least - 1:,}"
            if rule.most <= 2**53:
                yield rule.most + 1, rf"must be .*, got {rule.most + 1:,}"


def all_options(command: Command) -> dict[str, Option]:
    further = further_options(command.function)
    return {**({} if further is None else further.options_of({})), **command.options}


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_refuses_values_out_of_range_and_leaves_no_files(name, command_line, capsys):
    command, refused = EVERY_COMMAND[name], [("unheard-of", "1", "no option --unheard-of")]
    for option in all_options(command).values():
        wrong = [(str(value), message) for value, message in not_allowed(option)]
        wrong += [("many", "expected, got 'many'")] if option.type in (int, float, int | None) else []
        refused += [(option.name.replace("_", "-"), *case) for case in wrong if not option.style.positional]
    for option, value, message in refused:
        assert main([*words_of(name), f"--{option}={value}"]) == 2, (option, value)
        out, err = capsys.readouterr()
        assert out == ""
        assert re.search(message, err), (option, value, err)
        assert f"--{option}" in err or "unknown" in err
        assert err.startswith("maze-nca-gym: error: ")
        assert err.count("\n") == 1
    assert files() == []


@pytest.mark.parametrize("name", [name for name, command in EVERY_COMMAND.items() if command.function])
def test_every_function_refuses_values_out_of_range(name, command_line):
    command = EVERY_COMMAND[name]
    of_function = {n: entry for n, entry in all_options(command).items() if entry.group is not command.run}
    options = {**of_function, **options_of_call(command.function)}
    for option in options.values():
        for value, message in not_allowed(option):
            with pytest.raises(ValueError, match=message) as caught:
                command.function(**{**FIRST.get(name, {}), option.name: value})
            assert option.name in str(caught.value) or "unknown" in str(caught.value)
    with pytest.raises((ValueError, TypeError), match="unheard_of"):
        command.function(**FIRST.get(name, {}), unheard_of=1)
    assert files() == []


@pytest.mark.parametrize("name", [name for name, command in EVERY_COMMAND.items() if "out" in command.options])
def test_every_command_refuses_a_file_in_place_of_its_folder(name, command_line, capsys):
    Path("a-file").touch()
    assert main([*words_of(name), "--out", "a-file/below"]) == 2
    assert "a-file" in capsys.readouterr().err
    assert files() == ["a-file"]


def test_every_help_text_is_printed_without_heavy_modules():
    code = (
        "import sys; from maze_nca_gym.cli import main; sys.path.insert(0, 'tests')\n"
        "from command_lines import commands\n"
        "assert main(['--help']) == 0 and 'rich' not in sys.modules\n"
        "for words in ('levels', 'policies', *dict(commands())): assert main([*words.split(), '--help']) == 0\n"
        "print(*{'torch', 'numba', 'pygame', 'PIL', 'matplotlib', 'scipy', 'z3'} & set(sys.modules))"
    )
    tests = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tests.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n\n")  # none of these modules is loaded
    for name in EVERY_COMMAND:
        assert f"maze-nca-gym {name} " in done.stdout


def test_commands_that_need_no_automaton_build_none():
    """The build of the package checks its rules with thousands of calls."""
    code = (
        "import sys; from maze_nca_gym.cli import main; sys.path.insert(0, 'tests')\n"
        "from command_lines import commands\n"
        "for words in ('', *dict(commands())):\n"
        "    if words != 'learn-automaton':  # its defaults are those of the automaton\n"
        "        assert main([*words.split(), '--help']) == 0\n"
        "assert main(['policies', 'list']) == 0\n"
        "print('built:', *(name for name in sys.modules if '.automata.registry' in name))\n"
        "assert main(['learn-automaton', '--help']) == 0\n"
        "print('maze_nca_gym.agents.automata.registry' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[1]
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nbuilt:\n" in done.stdout
    assert done.stdout.endswith("\nTrue\n")


@pytest.mark.parametrize("name", ["", "levels", "policies", "train fast", *EVERY_COMMAND])
def test_help_names_all_choices_and_breaks_no_line_early(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    for line, after in pairwise(out.splitlines()):
        # texts of options and commands are indented; long names have their own line
        if line[:5].isspace() and after[:5].isspace():
            assert len(f"{line} {after.split()[0]}") > 80
    for option in all_options(EVERY_COMMAND[name]).values() if name in EVERY_COMMAND else ():
        assert all(choice in out for rule in option.rules for choice in rule.names), option.name
