"""Trained models among those of the package, and their cards."""

from __future__ import annotations

import json
import sys

import pytest
import torch

from maze_nca_gym.agents import find_policy, list_policies, load
from maze_nca_gym.agents.pretrained import publish
from maze_nca_gym.cli import main

TRAIN = ["train", "--n-channels", "6", "--n-layers", "4", "--sizes", "6", "--n-updates", "4", "--batch-size", "8"]
TRAINED = [name for name in list_policies() if name.startswith(("nca", "gcn", "gat", "mlp")) and "compiled" not in name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(publish, "FOLDER", tmp_path)
    n_threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(n_threads)


def publish_as(name, *policies):
    main(["evaluate", *policies, "--families", "random", "--sizes", "6", "--n", "8", "--no-stability"])
    texts = ["--description", "a small one", "--measured", "8 levels"]
    sys.argv = ["publish", name, "runs/train/fast", "runs/evaluate/results.json", *texts]
    publish.main()


def test_a_card_says_where_a_model_is_from(folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    assert main([*TRAIN, "--threads", "1"]) == 0
    publish_as("tiny", "runs/train/fast/model.safetensors")
    card = json.loads((folder / "tiny.json").read_text())
    result = json.loads((folder / "runs/evaluate/results.json").read_text())["results"][0]
    assert (card["task"], card["exact"], card["iterations"]) == ("shortest-path", False, 4)
    assert card["made_by"].startswith("maze-nca-gym train fast --n-channels 6")
    assert card["data"].startswith("random levels at 6x6, fresh at every update")
    assert card["made_in"]["threads"] == 1
    assert card["metrics"]["accuracy, random-6"] == result["metrics"]["accuracy"]["value"]
    assert load(str(folder / "tiny.safetensors")).n_channels == 6


def test_an_evaluation_of_several_is_refused(folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    assert main([*TRAIN, "--threads", "1"]) == 0
    with pytest.raises(ValueError, match="must be of one policy"):
        publish_as("tiny", "runs/train/fast/model.safetensors", "shortest-path-bfs")
    assert not (folder / "tiny.safetensors").exists()


@pytest.mark.parametrize("name", TRAINED)
def test_cards_of_the_package_are_whole(name):
    scores = find_policy(name).scores
    assert {"accuracy, random-16", "complete, random-16", "optimal, random-16"} <= set(scores)
