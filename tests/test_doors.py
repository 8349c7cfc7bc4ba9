"""The contract of all registrations of users, and a run that uses everything of a user at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tables import refused

from maze_nca_gym import mazes
from maze_nca_gym.agents import load
from maze_nca_gym.agents.automata import AUTOMATA, register_automaton
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH
from maze_nca_gym.agents.evaluation.named_metrics import METRICS, f1, register_metric
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import MODELS, register_model
from maze_nca_gym.agents.sweeps.specification import read_sweep
from maze_nca_gym.agents.training import PRESETS, changed, register_preset
from maze_nca_gym.agents.training.losses import LOSSES, mse, register_loss
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.families import FAMILIES, Family, register_family, validation_levels
from maze_nca_gym.mazes.generation import GENERATORS, finish, perfect, register_generator
from maze_nca_gym.mazes.levels import LevelSet, Tile
from maze_nca_gym.mazes.tasks import DIAMETER, TASKS, register_task
from maze_nca_gym.support.names import Registry


def stripes(rng, n, size, *, gap=2, border=True, endpoints=True):
    """Return walls that leave a gap at one end."""
    rows, cols = (size, size) if isinstance(size, int) else size
    levels = np.zeros((n, rows, cols), np.uint8)
    levels[:, 1::gap, :-1] = Tile.WALL
    return finish(rng, levels, border, endpoints)


def unseeded(rng, n, size, *, border=True, endpoints=True):
    return perfect(np.random.default_rng(), n, size, border=border, endpoints=endpoints)


@dataclass
class Door:
    """A function that registers, accepted values, and refused values."""

    register: Callable[[str, Any], Any]
    registry: Registry[Any]
    ours: str
    good: Any
    bad: list[tuple[Any, str]]


DOORS = {
    "model": Door(
        lambda name, model: register_model(type(name, model, {})),
        MODELS,
        "NCA",
        (NCA,),
        [((torch.nn.Module,), "mine must be a subclass of Policy")],
    ),
    "task": Door(
        lambda name, task: register_task(replace(task, name=name) if isinstance(task, type(DIAMETER)) else task),
        TASKS,
        "diameter",
        DIAMETER,
        [(3, "a Task is expected, got 3"), (replace(DIAMETER, solve=lambda tiles: tiles), "solve of the task 'mine'")],
    ),
    "loss": Door(
        register_loss,
        LOSSES,
        "mse",
        lambda path, target: (path - target).abs().mean(dim=(1, 2)),
        [
            (3, "the loss mine fails on paths of shape .* TypeError"),
            (lambda path, target: (path - target).abs().mean(), "the loss mine must return 2 finite losses"),
            (lambda path, target: mse(path, target) / 0, "the loss mine must return 2 finite losses"),
            (lambda path, target: mse(path.detach(), target), "the loss mine fails on .* RuntimeError"),
        ],
    ),
    "metric": Door(
        register_metric,
        METRICS,
        "f1",
        lambda tiles, predicted, labels: (predicted & labels).sum((1, 2)) / labels.sum((1, 2)),
        [
            (3, r"the metric mine fails on answers of shape \(2, 3, 4\): TypeError"),
            (lambda tiles, predicted, labels: predicted == labels, r"mine must return 2 values .* got shape \(2, 3, 4"),
            (lambda *sets: f1(*sets) * np.nan, "the metric mine must return 2 values from 0 to 1, .* from nan to nan"),
            (lambda *sets: 2 * f1(*sets), "the metric mine must return 2 values from 0 to 1, .* to 2.0"),
        ],
    ),
    "generator": Door(
        register_generator,
        GENERATORS,
        "perfect",
        stripes,
        [
            (lambda rng, n, size: None, "the generator mine must take border and endpoints by keyword"),
            (lambda rng, n, size, *, border, endpoints: None, "options of the generator mine need defaults: border, e"),
            (
                lambda rng, n, size, *, border=True, endpoints=True: stripes(rng, n, size),
                r"border=False and endpoints=False, must return uint8 tiles of shape \(2, 12, 13\), got uint8",
            ),
            (
                lambda rng, n, size, *, border=True, endpoints=True: stripes(rng, n, size, border=border),
                "endpoints=False, returns levels with a source",
            ),
            (unseeded, "returns other levels for the same seed"),
            (lambda rng, n, size, *, border=True, endpoints=True: 1 // 0, "border=False .* fails: ZeroDivisionError"),
        ],
    ),
    "family of levels": Door(
        register_family,
        FAMILIES,
        "caves",
        Family("perfect", "mine"),
        [
            ("perfect", "a Family is expected, got 'perfect'"),
            (Family("perfct", "mine"), "unknown generator 'perfct'.*Did you mean 'perfect'"),
            (Family("loops", "mine", ({"loop": 1},)), "generator 'loops' has no option loop"),
            (Family("loops", "mine", ({}, {}, {})), "the family mine must have 1, 2 or 4 variants, got 3"),
        ],
    ),
    "preset": Door(
        lambda name, options: register_preset(name, **options),
        PRESETS,
        "fast",
        {"base": "fast", "n_updates": 3},
        [
            ({"base": "fats"}, "unknown preset 'fats'"),
            ({"n_update": 3}, "the preset mine .*n_update"),
            ({"n_updates": 0}, "n_updates must be from 1"),
        ],
    ),
    "automaton": Door(
        lambda name, automaton: register_automaton(
            replace(automaton, name=name) if automaton is SHORTEST_PATH else automaton
        ),
        AUTOMATA,
        SHORTEST_PATH.name,
        SHORTEST_PATH,
        [("reach", "an Automaton is expected, got 'reach'")],
    ),
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    door = DOORS[request.param]
    yield door
    if "mine" in door.registry:
        door.registry.remove("mine")


def test_registered_entries_are_found_and_may_be_replaced(door: Door) -> None:
    for _ in range(2):
        door.register("mine", door.good)
        assert "mine" in door.registry
        assert list(door.registry)[-1] == "mine"
        assert not door.registry.ships("mine")
        assert f"{door.registry.kind} mine" in Registry.modules()["__main__"]
        assert door.registry.find("mine") is door.registry["mine"]
    door.registry.remove("mine")
    assert f"{door.registry.kind} mine" not in Registry.modules().get("__main__", [])


def test_a_table_changes_only_through_its_register_function(door: Door) -> None:
    before = dict(door.registry)
    assert not isinstance(door.registry, MutableMapping)
    with pytest.raises(TypeError, match="does not support item assignment"):
        door.registry["mine"] = door.good  # type: ignore[index]
    for name in (door.ours, "nine"):
        refused(f"unknown {door.registry.kind} '{name}'", door.registry.remove, name)
    assert dict(door.registry) == before


def test_no_table_of_mazes_can_be_changed() -> None:
    assert [name for name in mazes.__all__ if isinstance(getattr(mazes, name), MutableMapping | list | set)] == []


def test_names_that_are_refused(door: Door) -> None:
    kind, before = door.registry.kind, dict(door.registry)
    refused(f"the {kind} {door.ours} is this package's own: choose another name", door.register, door.ours, door.good)
    for name in ("two words", "a:b"):
        refused(f"the {kind} must have a name such as wide or wide-2, got '{name}'", door.register, name, door.good)
    refused(f"unknown {kind} 'nine'; known: ", door.registry.find, "nine")
    assert dict(door.registry) == before


def test_entries_that_are_refused(door: Door) -> None:
    for entry, message in door.bad:
        refused(message, door.register, "mine", entry)
        assert "mine" not in door.registry


MODULE = """
import numpy as np, torch
from dataclasses import replace
from maze_nca_gym.agents import register_automaton, register_loss, register_metric, register_model, register_preset
from maze_nca_gym.agents.automata.shipped.shortest_path import SHORTEST_PATH as AUTOMATON
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.mazes.families import Family, register_family
from maze_nca_gym.mazes.generation import finish, register_generator
from maze_nca_gym.mazes.tasks import SHORTEST_PATH, register_task

def stripes(rng, n, size, *, gap: int = 2, border=True, endpoints=True):
    rows, cols = (size, size) if isinstance(size, int) else size
    levels = np.zeros((n, rows, cols), np.uint8)
    levels[:, 1::gap, : -1 if gap < 9 else 0] = 1
    levels[:, :, rng.integers(cols)] = 0
    return finish(rng, levels, border, endpoints)

@register_model
class Mine(NCA):
    pass

register_generator("stripes", stripes)
register_family("striped", Family("stripes", "corridors", ({"gap": 2}, {"gap": 3})))
register_metric("recall", lambda tiles, drawn, wanted: (drawn & wanted).sum((1, 2)) / wanted.sum((1, 2)))
register_loss("absolute", lambda path, target: (path - target).abs().mean(dim=(1, 2)))
register_task(replace(SHORTEST_PATH, name="my-path"))
register_automaton(replace(AUTOMATON, name="my-automaton"))
register_preset("small", "fast", model="Mine", task="my-path", loss="absolute", families=("striped", "random"),
    long_fraction=0.0, n_channels=4, n_iterations=3, n_updates=2, batch_size=8, sizes=(6,))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: None) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("all_of_mine.py").write_text(MODULE)
    return "all_of_mine"


def test_a_run_with_only_custom_parts(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    often = ["--log-every", "1", "--validate-every", "2"]
    assert main(["train", "small", "--import", module, "--threads", "1", *often]) == 0
    described = json.loads(Path("runs/train/small/config.json").read_text())
    assert f"--import {module} " in described["command"]
    assert type(load("runs/train/small/model.safetensors")).__name__ == "Mine"
    assert main(["train", "small", "--import", module, "--loss", "absolut"]) == 2
    assert "Did you mean 'absolute'" in capsys.readouterr().err
    assert changed("small").loss == "absolute"
    assert len(validation_levels("striped", 6, "my-path", 8)) == 8


def test_commands_accept_names_that_a_module_registers(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    generate_words = ["generate", "levels.npz", "--generator", "stripes", "--gap", "3", "--n", "3", "--size", "9"]
    assert main([*generate_words, "--import", module]) == 0
    assert LevelSet.load("levels.npz").config["gap"] == 3
    assert main(["generate", "--help", "--import", module]) == 0
    assert "--gap" in capsys.readouterr().out
    evaluate_words = ["shortest-path-bfs", "--n", "4", "--metrics", "recall,iou", "--import", module]
    assert main(["evaluate", *evaluate_words, "--families", "striped", "--sizes", "6"]) == 0
    assert "striped" in capsys.readouterr().out
    assert main(["bench", "dt-net-9", "--policies", *evaluate_words]) == 0
    for folder, name in (("evaluate", "results"), ("bench", "leaderboard")):
        (row,) = json.loads(Path(f"runs/{folder}/{name}.json").read_text())["rows"]
        assert row["measures"]["recall"]["value"] == row["measures"]["iou"]["low"] == 1
    assert "recall" in Path("runs/bench/leaderboard.md").read_text()
    evaluate_words[4] = "recal"
    assert main(["evaluate", *evaluate_words]) == 2
    assert "unknown metric 'recal'. Did you mean 'recall'?" in capsys.readouterr().err


def own_sweep(module: str) -> dict[str, Any]:
    """A sweep whose file names the module: it uses a user's preset, and measures on another family."""
    options = {"families": ["random"], "task": "shortest-path"}
    measure = {"families": ["striped"], "n": 4, "metrics": ["complete", "recall"]}
    return {"preset": "small", "options": options, "measure": measure, "modules": [module]}


def test_runs_of_a_sweep_import_what_is_registered(module: str) -> None:
    sweep = read_sweep({**own_sweep(module), "seeds": 1})
    (job,) = sweep.jobs(Path("out"))
    assert module in job.modules
    policy = load("shortest-path-bfs")
    assert sweep.measure(policy, job.config, Path("out")) == {"striped-6 complete": 1.0, "striped-6 recall": 1.0}


@pytest.mark.slow
def test_a_sweep_whose_processes_import_a_module(module: str) -> None:
    Path("mine.json").write_text(json.dumps({**own_sweep(module), "seeds": 1}))
    assert main(["sweep", "mine.json", "--device", "cpu"]) == 0
    Path("mine.json").write_text(json.dumps({**own_sweep(module), "seeds": 2}))
    assert main(["sweep", "mine.json", "--device", "cpu", "--import", module]) == 0
    results = json.loads(Path("runs/sweep/mine/results.json").read_text())
    assert [*results["rows"][0]["measures"]["striped-6 complete"]["values"]] == ["0", "1"]
