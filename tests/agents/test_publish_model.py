"""Publishing a trained model: the model's file, and its card."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scripted_policies import Dies
from tables import for_each

from maze_nca_gym.agents import find_policy, list_policies, load
from maze_nca_gym.agents.evaluation import iterations
from maze_nca_gym.agents.policies import pretrained
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.arrays import MazePicture
from maze_nca_gym.mazes.generation import generate
from maze_nca_gym.mazes.levels import LevelSet, parse
from maze_nca_gym.mazes.relations import canonical_path
from tools import publish_model as publish

TRAIN = ["train", "--n-channels", "6", "--n-iterations", "4", "--sizes", "6", "--n-updates", "4", "--batch-size", "8"]
TRAINED = [
    name for name in list_policies(all=True) if name.startswith(("nca", "gcn", "gat")) and "exact-weights" not in name
]


def test_cards_name_axioms_of_the_library():
    ghosts, tiles = canonical_path(), parse("S.\n.T")[None]
    picture = MazePicture(tiles, ghosts.ghosts(tiles))
    names = {str(axiom) for at in "CULDR" for axiom in ghosts.axioms(picture, at, np.int64(0))}
    for name in ("nca-shortest-path-hinted", "nca-shortest-path-healing-hinted"):
        assert {*publish.read_card(name)["proof"]["axioms"]} <= names


@pytest.fixture
def folder(tmp_path, monkeypatch, without_pictures):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(publish, "FOLDER", tmp_path)
    return tmp_path


def run(*arguments):
    sys.argv = ["publish", *map(str, arguments)]
    publish.main()


def evaluate(*policies):
    assert main(["evaluate", *policies, "--families", "random", "--sizes", "6", "--n", "8"]) == 0
    return json.loads(Path("runs/evaluate/results.json").read_text())["rows"]


def test_a_card_states_the_origin_and_the_results_of_a_model(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [])
    assert main([*TRAIN, "--threads", "1"]) == 0
    run("model", "tiny", "runs/train/fast", "--description", "a small one")
    card = publish.read_card("tiny")
    assert (card["task"], card["description"]) == ("shortest-path", "a small one")
    assert card["made_by"].startswith("maze-nca-gym train fast --n-")
    assert "--n-channels 6" in card["made_by"]
    assert card["data"].startswith("random levels at 6x6, fresh at every update")
    assert card["made_in"]["threads"] == 1
    assert (card["guarantees"]["exact"], card["guarantees"]["n_iterations"]) == (False, None)

    monkeypatch.setattr(publish, "find_iterations", lambda model, families: 7 if families == ["random"] else 0)
    run("iterations", "tiny")
    assert "tiny: 7 iterations, chosen on validation levels of random" in capsys.readouterr().out
    model = load(str(folder / "tiny.safetensors"))
    assert model.guarantees.to_json() == publish.read_card("tiny")["guarantees"]
    assert model.default_steps == 7

    (result,) = evaluate("tiny.safetensors")
    run("scores", "tiny", "runs/evaluate/results.json", "--measured", "8 levels")
    assert publish.read_card("tiny")["metrics"] == {
        f"{metric}, random-6": result["measures"][metric]["value"]
        for metric in ("accuracy", "paper_accuracy", "complete", "optimal")
    }
    assert publish.read_card("tiny")["measured"] == "8 levels"
    assert publish.read_card("tiny")["configuration"] == card["configuration"]


def test_a_card_states_the_training_data(folder, monkeypatch):
    LevelSet(generate(np.random.default_rng(3), 20, 6)).save("own.npz")
    for i, (options, expected) in enumerate(
        [
            (["--level-set", "own.npz", "--dihedral", "True"], "the levels of own.npz alone, turned and mirrored"),
            (
                ["--start-from", "nca-shortest-path-small", "--n-channels", "32", "--n-levels", "8"],
                "8 fixed ones.*, from the weights of nca-shortest-path-small$",
            ),
            (["--evolve", "True"], "at 6x6, the first of a population that evolves, none of any"),
        ]
    ):
        monkeypatch.setattr(sys, "argv", [])
        assert main([*TRAIN, *options, "--out", f"run-{i}"]) == 0
        run("model", "own", f"run-{i}", "--description", "on its own")
        assert re.search(expected, publish.read_card("own")["data"])


def test_the_certificate_and_the_modules_of_a_run_are_copied():
    run_record = {
        "command": "learn-automaton",
        "device": "cpu",
        "processes": 1,
        "threads": 2,
        "versions": {},
        "data": "traces",
    }
    card = publish.origin({**run_record, "configuration": {}, "certificate": {"holds": True}}, 3.4)
    assert (card["certificate"], card["data"], card["made_in"]["seconds"]) == ({"holds": True}, "traces", 3)
    assert "modules" not in card
    run_record["command"] = "maze-nca-gym train fast --import mine,more.of_it --n-updates 3"
    assert publish.origin({**run_record, "configuration": {}}, 3.4)["modules"] == ["mine", "more.of_it"]


def test_results_of_the_policy_are_chosen_from_an_evaluation_of_several(folder):
    publish.write_card("tiny", task="shortest-path")
    evaluate("depth-first", "shortest-path-bfs")
    with pytest.raises(ValueError, match=r"no policy 'tiny', but .*'depth-first', 'shortest-path-bfs'"):
        run("scores", "tiny", "runs/evaluate/results.json")
    assert publish.read_card("tiny") == {"task": "shortest-path"}


def test_iterations_are_the_fewest_sufficient_ones(monkeypatch):
    class Slow(Dies):
        """A policy that shows the path from the 10th to the 20th iteration."""

        def think(self, maze, path, memory, count):
            path, memory, count = super().think(maze, path, memory, count)
            return [path * (count >= 10), memory, count]

    model = Slow()
    model.n_iterations = 16
    monkeypatch.setattr(iterations, "N_LEVELS", 8)
    assert publish.find_iterations(model, ["random"]) == 10


def intervals_in(content):
    if isinstance(content, dict) and "high" in content:
        yield content
    elif isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from intervals_in(part)


@for_each("name", TRAINED)
def test_cards_of_the_package_are_whole(name):
    scores = find_policy(name).scores
    assert {f"{metric}, random-16" for metric in publish.METRICS} <= set(scores)
    intervals = [interval for interval in intervals_in(pretrained.cards()[name]) if interval["high"] is not None]
    assert len(intervals) >= 4
    assert all(interval["low"] <= interval["value"] <= interval["high"] <= 1 for interval in intervals)
