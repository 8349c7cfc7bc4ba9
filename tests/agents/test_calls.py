"""The work of the commands in one call each: the same options, the same files, as `main` does it."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from tables import for_each

from maze_nca_gym.agents import Policy, evaluate, evolve, find_policy, load, train
from maze_nca_gym.agents.evolution.loop import Evolution
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.training import TrainingConfig, changed, reports
from maze_nca_gym.agents.weights import MODELS, load_model
from maze_nca_gym.cli import main
from maze_nca_gym.levels import LevelSet, parse
from maze_nca_gym.population import LevelPopulation

TINY = {"n_channels": 6, "n_iterations": 4, "sizes": [6], "n_updates": 4, "batch_size": 8}

LEVEL = parse("#####\n#S..#\n#.#.#\n#..T#\n#####")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class TestTrain:
    @pytest.fixture(autouse=True)
    def _without_pictures(self, monkeypatch):
        monkeypatch.setattr(reports.Pictures, "on_validation", lambda *_: None)
        monkeypatch.setattr(reports.Pictures, "draw_curves", lambda *_: None)

    def test_it_returns_what_it_saves(self, capsys):
        n_threads = torch.get_num_threads()
        policy = train(out="mine", threads=2, **TINY)
        assert isinstance(policy, Policy)
        assert not policy.training
        saved = load_model("mine/model.safetensors").state_dict()
        assert all(torch.equal(weights, saved[name]) for name, weights in policy.state_dict().items())
        assert capsys.readouterr().out.startswith("mine: NCA of 300 weights, 4 updates of 8 levels on ")
        assert torch.get_num_threads() == n_threads

    def test_a_configuration_of_a_class_of_ones_own(self, monkeypatch):
        class MyNCA(NCA):
            """An NCA under another name."""

        monkeypatch.setitem(MODELS, "MyNCA", MyNCA)
        config = changed(
            TrainingConfig(), model="MyNCA", n_channels=6, n_iterations=4, sizes=(6,), n_updates=1, batch_size=8
        )
        assert type(train(config, threads=1)) is MyNCA
        assert Path("runs/train/own/model.safetensors").exists()


class TestEvaluate:
    def test_names_sets_and_files(self):
        policies = ["shortest-path-bfs", "depth-first"]
        found = evaluate(policies, families="perfect", sizes=[5, 6], n=4, stability=False, out="there")
        assert [(row.policy, row.family, row.size) for row in found] == [
            (policy, "perfect", size) for policy in policies for size in (5, 6)
        ]
        assert found[0].metrics.optimal.value == 1
        assert found._repr_html_().count("<tr>") == 5
        assert sorted(path.name for path in Path("there").iterdir()) == ["iterations.png", "results.json", "sizes.png"]

    @for_each("as_what", ["tiles", "set", "file", "name"])
    def test_levels_of_ones_own(self, as_what):
        levels = {"tiles": LEVEL[None], "set": LevelSet(LEVEL[None]), "file": "own.npz", "name": "FourRooms"}[as_what]
        LevelSet(LEVEL[None], {"size": [3, 3]}).save("own.npz")
        (row,) = evaluate(load("shortest-path-bfs"), levels=levels, stability=as_what == "tiles")
        assert (row.policy, row.metrics.optimal.value, row.n_wrong) == ("ShortestPathNCA", 1, 0)
        assert row.family == {"file": "own.npz", "name": "FourRooms"}.get(as_what, "levels")

    def test_a_mapping_names_policies_and_warnings_say_what_is_missing(self):
        policy = load("shortest-path-bfs")
        policy.guarantees = replace(policy.guarantees, needs_border=True)
        with pytest.warns(UserWarning, match="mine needs a wall around every level"):
            found = evaluate({"mine": policy}, levels=LEVEL[None, 1:-1, 1:-1], stability=False)
        assert [row.policy for row in found[:]] == ["mine"]

    @for_each(
        ("options", "message"),
        [
            ({"policies": []}, "at least one policy"),
            ({"families": []}, "at least one each"),
            ({"levels": LEVEL[None], "n": 2}, "--n must be at most 1"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            evaluate(**{"policies": "depth-first", **options})


class TestEvolve:
    SMALL: ClassVar = {"size": 6, "n": 12, "n_offspring": 4, "steps": 3, "rounds": 2}

    @pytest.fixture(autouse=True)
    def _without_pictures(self, monkeypatch):
        monkeypatch.setattr(Evolution, "draw", lambda *_: None)

    def test_it_is_what_the_command_does(self, capsys):
        options = {"mutation": "edits", "n_edits": 2, "eviction": "replay-weight", "wall_probability": 0.4}
        population = evolve("shortest-path-bfs", out="mine", **self.SMALL, **options)
        command = json.loads(Path("mine/config.json").read_text())["command"]
        assert main([*shlex.split(command)[1:], "--out", "theirs"]) == 0
        theirs = LevelPopulation.load("theirs/population.npz")
        assert (population.tiles == theirs.tiles).all()
        assert population.config == theirs.config
        assert len(evolve("shortest-path-bfs", out="mine", **self.SMALL, **options)) == 12
        assert "mine is finished" in capsys.readouterr().out

    @for_each(
        ("options", "message"),
        [
            ({"policies": ()}, "at least one policy"),
            ({"mutations": "edits"}, "evolve has no option mutations. Did you mean 'mutation'"),
            ({"smoothing": 3}, "smoothing"),
            ({"size": "large"}, "size must be"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            evolve(**{"policies": "shortest-path-bfs", **self.SMALL, **options})


MODULE = """
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.weights import register_model

@register_model
class OwnNCA(NCA):
    pass
"""


class TestImport:
    @pytest.fixture(autouse=True)
    def _module(self, monkeypatch):
        monkeypatch.setattr("maze_nca_gym.agents.training.reports.Pictures.draw_curves", lambda *_: None)
        monkeypatch.setattr("maze_nca_gym.agents.training.reports.Pictures.on_validation", lambda *_: None)
        Path("own_models.py").write_text(MODULE, encoding="utf-8")
        yield
        MODELS.pop("OwnNCA", None)
        sys.modules.pop("own_models", None)

    def test_commands_know_its_models(self, capsys):
        tiny = ["--sizes", "5", "--n-channels", "4", "--n-iterations", "3", "--n-updates", "1", "--batch-size", "2"]
        assert main(["train", "--import", "own_models", "--model", "OwnNCA", *tiny, "--out", "mine"]) == 0
        command = json.loads(Path("mine/config.json").read_text())["command"]
        assert command.startswith("maze-nca-gym train fast --import own_models ")
        assert "--model OwnNCA" in command
        MODELS.pop("OwnNCA")
        sys.modules.pop("own_models")
        solve = ["solve", "mine/model.safetensors", "--size", "5", "--n", "2", "--picture", "none"]
        assert main(solve) == 2
        assert "OwnNCA" in capsys.readouterr().err
        assert main([*solve, "--import", "own_models"]) == 0
        MODELS.pop("OwnNCA")
        sys.modules.pop("own_models")
        assert main(["policies", "show", "--import", "own_models", "mine/model.safetensors"]) == 0

    def test_a_class_is_a_policy_for_every_command(self):
        Path("own_policies.py").write_text("from maze_nca_gym.agents import ShortestPathNCA as Own", encoding="utf-8")
        assert main(["solve", "own_policies:Own", "--size", "5", "--n", "2", "--picture", "none"]) == 0
        assert main(["evaluate", "own_policies:Own", "--sizes", "5", "--n", "2"]) == 0
        sys.modules.pop("own_policies")


class TestLoad:
    def test_a_class_of_ones_own(self, monkeypatch):
        Path("mine.py").write_text(
            "from maze_nca_gym.agents import ShortestPathNCA\n"
            "class Mine(ShortestPathNCA):\n    pass\n"
            "def tied(ties='all'):\n    return Mine(ties=ties)\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(".")
        assert type(load("mine:Mine")).__name__ == "Mine"
        assert load("mine:tied", ties="canonical").task == "shortest-path"
        assert find_policy("mine:Mine").task == "shortest-path"
        assert evaluate("mine:Mine", levels=LEVEL[None], stability=False)[0].metrics.optimal.value == 1

    @for_each(
        ("name", "message"),
        [
            ("nowhere:Mine", "no module 'nowhere'"),
            ("json:Mine", "module 'json' has no 'Mine'"),
            ("json:dumps", "json:dumps"),
            ("json:JSONDecoder", "no Policy"),
        ],
    )
    def test_what_is_no_policy(self, name, message):
        with pytest.raises(ValueError, match=message):
            load(name)
