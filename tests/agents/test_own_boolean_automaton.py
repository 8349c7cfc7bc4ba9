"""A user's boolean automaton is learned and certified like the automata of the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.automata import AUTOMATA, Automaton, Count, register_automaton
from maze_nca_gym.agents.automata.networks.certificate import certify
from maze_nca_gym.agents.automata.run import compile_automaton, learn_automaton
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.cli import main
from maze_nca_gym.mazes import tasks
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import KINDS, Kind, Tile, one_hot, parse
from maze_nca_gym.mazes.rules import around, threshold
from maze_nca_gym.mazes.solvers import distances
from maze_nca_gym.mazes.terms import Weighed, term_of


class Signal(IntEnum):
    PATH = 0
    WET = 1


REACH = Automaton(
    name="reach",
    task="shortest-path",
    signals=Signal,
    rules={
        Signal.PATH: lambda see: see(Signal.WET),
        Signal.WET: lambda see: (
            (see(Signal.WET) | see.tile(Tile.SOURCE) | around(see, Signal.WET)) & ~see.tile(Tile.WALL)
        ),
    },
    learning={
        "sizes": (4, 6),
        "n_levels": 8,
        "n_recombined": 500,
        "n_updates": 800,
        "batch_size": 512,
        "n_updates_again": 200,
    },
)
"""The automaton of the tiles that the source reaches."""


def test_own_automata_are_learned_proven_and_run(tmp_path: Path) -> None:
    model, certificate = learn_automaton(REACH, out=tmp_path)
    assert certificate.holds
    assert not certificate.assumed, "all that a tile can hold follows from the rules"
    assert not model.guarantees.exact, "it states no bound within which it solves a maze"
    assert model.channel_names == ("path", "wet_low", "wet_high")
    mazes = generate(np.random.default_rng(0), 6, 9, "rooms")
    policy = load(str(tmp_path / "model.safetensors"))
    with torch.no_grad():
        path = rollout(policy, torch.from_numpy(one_hot(mazes)), 60)[:, 0]
    np.testing.assert_array_equal(path > 0.5, distances(mazes) >= 0)
    described = json.loads((tmp_path / "config.json").read_text())
    assert (described["configuration"]["automaton"], described["exact"]) == ("reach", False)
    assert (
        described["command"] == "# no command can name the Automaton given as automaton: maze-nca-gym learn-automaton"
    )
    spoilt = model
    spoilt.biases[0].data[1] += 1
    assert not certify(spoilt, automaton=REACH).holds


def test_the_command_takes_it_by_module_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"{__name__}:REACH"
    assert main(["learn-automaton", name, "--n-updates", "8", "--n-rounds", "0"]) == 1
    described = json.loads(Path("runs/learn-automaton", name.replace(":", "."), "config.json").read_text())
    assert described["command"] == f"maze-nca-gym learn-automaton {name} --n-updates 8 --n-rounds 0"


@pytest.fixture
def registered() -> Iterator[None]:
    register_automaton(REACH)
    yield
    AUTOMATA.remove("reach")


@pytest.mark.usefixtures("registered")
def test_a_registered_one_is_found_by_name_and_by_channels(tmp_path: Path) -> None:
    model, certificate = learn_automaton("reach", n_updates=8, n_rounds=0, out=tmp_path)
    assert certify(model) == certificate


@pytest.mark.parametrize("use", [learn_automaton, compile_automaton])
@pytest.mark.parametrize("wrong", [5, None, Signal])
def test_other_objects_are_refused(use: Callable[..., object], wrong: object, tmp_path: Path) -> None:
    refused("an automaton must be a name or an Automaton, got ", use, wrong, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def ruled(**rules: object) -> dict[str, object]:
    return {"rules": {**REACH.rules, **{Signal[name]: rule for name, rule in rules.items()}}}


class Backwards(IntEnum):
    WET = 0
    PATH = 1


class Twice(IntEnum):
    PATH = 0
    FROM_SOURCE = 1
    FROM_TARGET = 1


def summed(*weights: Any, least: Any = 1) -> dict[str, object]:
    """Return rules in which WET is a sum over the neighbours."""
    return ruled(
        WET=lambda see: threshold(
            [(w, see(Signal.WET, tap)) for w, tap in zip(weights, "ULD"[: len(weights)], strict=True)], least
        )
    )


WRONG: list[tuple[dict[str, object], str]] = [
    ({"signals": Twice}, "FROM_TARGET and FROM_SOURCE of reach are two names of the signal 1, which has one rule"),
    (summed(0.1, 1), "the rule of WET in reach fails: .* whole numbers and fractions, such as .*, got 0.1"),
    (summed(1, 1, least=float("nan")), "whole numbers and fractions, .* got nan"),
    (summed(1, "1"), "whole numbers and fractions, .* got '1'"),
    (summed(), "a threshold needs at least one weight"),
    (summed(1, Fraction(1, 2**53)), "must add up to below"),
    ({"task": "shortest"}, "unknown task 'shortest'"),
    ({"signals": Backwards}, "the signals of reach must count from 0, and the first must be PATH"),
    ({"signals": IntEnum("Many", ["PATH", *(f"S{i}" for i in range(60))], start=0)}, "reach has 61 signals, but a til"),
    ({"pooled": (Signal.PATH,)}, "the last signals of reach must be the pooled ones, PATH"),
    ({"rules": {Signal.PATH: REACH.rules[Signal.PATH]}}, "the rule of WET in reach is missing"),
    (ruled(WET=lambda see: see(Signal.PATH)), "the rule of WET in reach reads PATH, which is an output"),
    (ruled(WET=lambda see: see(Signal.WET, "UU")), "the rule of WET in reach reads 'UU', but may read U, L, C, R, D"),
    (ruled(WET=lambda see: True), r"WET in reach must join the values that it sees by &, \|, \^ and ~: .* True"),
    (ruled(WET=lambda see: see("DRY")), r"WET in reach must join .* see takes a signal \(PATH, WET\), got 'DRY'"),
    (ruled(WET=lambda see: see(Signal.WET) & True), "the rule of WET in reach must join the values that it sees"),
    (ruled(WET=lambda see: see(Signal.WET) or see(Signal.WET, "U")), "a rule has neither `if` nor `and`, `or`, `not`"),
    (
        ruled(WET=lambda see: see(Signal.WET) if see(Signal.WET) else see(Signal.WET, "U")),
        "WET in reach .* neither `if`",
    ),
    (ruled(WET=lambda see: see(Signal.WET) == 1), "the rule of WET in reach .* a rule compares nothing"),
    (ruled(WET=lambda see: see(Signal.WET, "U") if see(Signal.WET) != 1 else see(Signal.WET)), "a rule compares nothi"),
    ({"signals": IntEnum("Alike", ["PATH", "WET", "Wet"], start=0)}, "WET and Wet of reach would share channel wet"),
    ({"signals": IntEnum("Alike", ["PATH", "WET", "WET_LOW"], start=0)}, "WET and WET_LOW of reach would share"),
    (ruled(WET=lambda see: see(SHORTEST_PATH.signals(3))), "the rule of WET in reach reads <PathSignal.NEAR_L: 3>"),
    ({"task": "diameter"}, "the rule of WET in reach reads the kind of tile 2, source, but the task diameter has 0 em"),
    ({"parts": ((Signal.PATH,),)}, "`parts` and `everywhere` of reach must contain each signal once in all"),
    ({"pooled": (Signal.WET,)}, "WET of reach is pooled, so it must be among `everywhere`"),
    ({"invariant": lambda see: ~see(Signal.WET, "U")}, "the invariant of reach reads 'U', but may read C only"),
    ({"bound": 10}, r"bound must be of type StepBound \| None, got 10"),
    ({"pooled": "WET"}, "pooled must be of type "),
    ({"everywhere": "WET"}, "everywhere must be of type "),
    ({"neighbourhood": [5]}, r"neighbourhood must be of type int, got \[5\]"),
    ({"rules": None}, "rules must be of type "),
    ({"signals": ["PATH", "WET"]}, "signals must be of type "),
    ({"theorem": "reached"}, r"theorem must be of type Ghosts \| None, got 'reached'"),
]


class Held:
    """A view of one tile that stores a number in the signals of a count."""

    def __init__(self, on: dict[str, bool]) -> None:
        self._on = on

    def __call__(self, signal: str, tap: str = "C") -> Any:
        return np.array([self._on[signal]])

    def tile(self, kind: int, tap: str = "C") -> Any:
        return np.array([kind == 0])


def test_fractions_are_added_without_errors() -> None:
    def walls(weight: Any, least: Any) -> Any:
        return lambda see: threshold([(weight, see.tile(Tile.WALL, tap)) for tap in "ULDR"], least)

    tenths, integers = (ruled(WET=walls(*weights)) for weights in ((Fraction(1, 10), Fraction(3, 10)), (1.0, 3)))
    for rules in (tenths, integers):
        automaton = replace(REACH, **rules)  # type: ignore[arg-type]
        assert term_of(automaton.rules[Signal.WET]).join == Weighed((1, 1, 1, 1), 3)
        *_, last = automaton.trace(parse("###/#S#/#T#".replace("/", "\n"))[None])
        assert last[0, Signal.WET].tolist() == [[False] * 3, [False, True, False], [False] * 3]


def test_a_count_to_a_large_number_has_readable_rules() -> None:
    age = Count("AGE", 1000, binary=True)
    signals = IntEnum("Signal", ["PATH", "LIT", *age.signals], start=0)  # type: ignore[misc]
    rules = {"PATH": lambda see: see("AGE_BIT_10"), "LIT": lambda see: see.tile(Tile.SOURCE)}
    rules |= age.rules(lambda see, n: see("LIT") & age.at_least(see, n - 1))
    automaton = Automaton("aged", "shortest-path", signals, rules, settles=False)
    tiles = np.array([[[2, 3]]], np.uint8)
    state = automaton.step(tiles, np.zeros((1, len(signals), 1, 2), bool))
    for number in range(1, 6):
        state = automaton.step(tiles, state)
        assert state[0, 2:, 0, 0].tolist() == [bool(number >> i & 1) for i in range(10)]


@for_each("most", [1, 2, 6, 9])
def test_a_count_holds_every_number_in_unary_and_in_binary(most: int) -> None:
    for count in (Count("N", most), Count("N", most, binary=True)):

        def held(number: int, count: Count = count) -> dict[str, bool]:
            return {s: bool(number >> i & 1) if count.binary else number > i for i, s in enumerate(count.signals)}

        for number in range(most + 1):
            says = [bool(count.at_least(Held(held(number)), n)[0]) for n in range(-1, most + 3)]
            assert says == [number >= n for n in range(-1, most + 3)]
            rules = count.rules(lambda see, n, number=number: np.array([number >= n]))  # type: ignore[misc]
            assert {signal: bool(rule(Held({}))[0]) for signal, rule in rules.items()} == held(number)
    refused(f"N must count to a number from 1, got {most - 10}", Count, "N", most - 10)


def test_exclusive_or_is_compiled() -> None:
    def odd(see: Any) -> Any:
        return see.tile(Tile.SOURCE) ^ see(Signal.WET, "U") ^ see(Signal.WET, "L")

    odd_number = replace(REACH, rules={**REACH.rules, Signal.WET: odd})
    model, certificate = compile_automaton(odd_number)
    assert certificate.holds
    assert certify(model, automaton=odd_number).holds


@for_each(("wrong", "message"), WRONG)
def test_mistakes_are_named(wrong: dict[str, object], message: str) -> None:
    refused(message, replace, REACH, **wrong)


@pytest.mark.usefixtures("forgotten")
def test_nothing_is_proven_about_kinds_that_were_added_later(tmp_path: Path) -> None:
    task = tasks.register_task(replace(tasks.SHORTEST_PATH, name="mine"))
    automaton = replace(SHORTEST_PATH, name="mine", task="mine", also={})
    assert compile_automaton(automaton, out=tmp_path)[1].holds
    tasks.register_task(replace(task, kinds=(*KINDS, Kind("mud", "m", "#aa8855"))))
    with pytest.raises(
        ValueError, match="the task mine was registered again with other kinds of tile or answers after"
    ):
        compile_automaton(automaton, out=tmp_path, overwrite=True)
