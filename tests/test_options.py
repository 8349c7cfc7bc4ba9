"""Options as fields: a user's own dataclass is checked, read from words and written as JSON like the package's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maze_nca_gym.agents.hinting.config import HintConfig
from maze_nca_gym.agents.training.config import OPTIONS
from maze_nca_gym.cli.reading import read_values
from maze_nca_gym.options import (
    Above,
    Between,
    Further,
    OneOf,
    Option,
    Shown,
    check_known,
    check_options,
    differences,
    flat,
    options_of,
    options_of_call,
    to_json,
    unflattened,
)
from maze_nca_gym.population import BreedingSchedule, PopulationConfig

KINDS: dict[str, dict[str, int]] = {"round": {"radius": 1}, "square": {"side": 2}}


def _kinds():
    return KINDS


def _further(values):
    return {name: Option(name, int, default=usual) for name, usual in KINDS[values["kind"]].items()}


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
class Cut:
    """Cut something."""

    file: Annotated[Path, Shown("FILE", positional=True)]
    """What to cut."""
    kind: Annotated[str, OneOf(_kinds)] = "round"
    """Kind of cut."""
    mode: Literal["fast", "slow"] = "fast"
    """Mode."""
    span: tuple[int, int] = (1, 2)
    """From and to."""
    seed: Annotated[int | None, Between(0, 99)] = None
    """Seed."""
    quiet: bool = False
    """Say nothing."""
    cool: bool = True
    """Do without cooling."""
    blade: Blade = field(default_factory=Blade)
    shape: Annotated[Mapping[str, Any], Further(_further)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self)


def read(words: str) -> Any:
    options = options_of(Cut)
    given = read_values(options, words.split(), "cut", "Cut something.", (Cut,))
    return unflattened(Cut, {name: option.default for name, option in options.items()} | given)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("--kind square --seed=7", {"kind": "square", "seed": 7}),
        ("--span 3 4 --quiet --no-cool", {"span": (3, 4), "quiet": True, "cool": False}),
        ("--quiet False --no-quiet --cool --mode slow", {"mode": "slow"}),
        ("--teeth 1,2 3 --angle 5", {"blade": Blade(5.0, (1, 2, 3))}),
        ("--seed None --no_cool", {"cool": False}),
    ],
)
def test_words(words, changes):
    expected = replace(Cut(Path("log")), **changes)
    assert read(f"log {words}") == expected


WRONG = {
    "log --sed 3": "there is no option --sed. Did you mean --seed?",
    "log --seed 100": "--seed must be from 0 to 99, got 100",
    "log --seed x": "--seed: an integer is expected, got 'x'",
    "log --teeth 1 12": "--teeth must be from 1 to 9, got 12",
    "log --teeth": "--teeth needs a value",
    "log --angle nan": "--angle must be a finite number above 0, got nan",
    "log --kind oval": "unknown kind 'oval'; known: round, square",
    "log --mode slwo": "--mode: fast or slow is expected, got 'slwo'. Did you mean 'slow'?",
    "": "cut needs FILE; --help describes it",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_one_line(words):
    with pytest.raises(ValueError, match=f"^{re.escape(WRONG[words])}$"):
        read(words)


def test_help_shows_what_the_field_says(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        read("--help")
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "Angle in degrees. (default: 30.0)",
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


def test_flat_and_back():
    cut = Cut(Path("log"), kind="square", blade=Blade(angle=4), shape={"side": 3})
    values = flat(cut)
    assert values["angle"] == 4.0
    assert values["side"] == 3
    assert unflattened(Cut, values) == cut
    assert to_json({**values, "file": "log"})["teeth"] == [3]
    assert differences(values, flat(Cut(Path("log")))) == {"kind": "square", "angle": 4.0, "side": 3}


def test_a_functions_arguments_are_options_too():
    def saw(file, *, speed=2, name: str | None = None, sides: list = ()):
        """Saw.

        Args:
            speed: how fast.
        """

    options = options_of_call(saw, leave_out=("file",))
    assert list(options) == ["speed", "name", "sides"]
    assert options["speed"].help == "How fast."
    assert options["speed"].read(["3"]) == 3


def test_a_misspelt_name_in_python():
    with pytest.raises(ValueError, match=r"a blade has no option teth. Did you mean 'teeth'\?"):
        check_known({"teth": 3}, options_of(Blade), "a blade")


EVERY = {**OPTIONS, **options_of(HintConfig), **options_of(PopulationConfig), **options_of(BreedingSchedule)}


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_any_value_in_range_survives_words_and_none_outside_does(name, data):
    option = EVERY[name]
    bounds = [rule for rule in option.rules if isinstance(rule, Between)]
    if not bounds or "tuple" in str(option.type):
        assert option.rules or option.type is not None
        return
    low, high = bounds[0].least, min(bounds[0].most, 2**53)
    whole = "int" in str(option.type)
    value = data.draw(st.integers(int(low), int(high)) if whole else st.floats(low, high))
    assert read_values({name: option}, ["--" + name, repr(value)], "it", "", ()) == {name: value}
    with pytest.raises(ValueError, match=r"must be (from|at least)"):
        option.check(low - 1)
    if bounds[0].most <= 2**53:
        with pytest.raises(ValueError, match="must be from"):
            option.check(int(high) + 1)
