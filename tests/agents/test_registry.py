from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from maze_nca_gym import agents
from maze_nca_gym.agents import Policy, find_policy, list_policies, load
from maze_nca_gym.agents.leaderboard.run import trained_on
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.registry import FORMER_NAMES
from maze_nca_gym.agents.weights import save_model


@pytest.mark.parametrize("name", list_policies())
def test_every_policy_loads_and_is_what_the_table_says(name):
    policy, info = load(name), list_policies()[name]
    assert isinstance(policy, Policy)
    assert policy.task == info.task
    assert policy.channel_names[0] == "path"
    assert len(set(policy.channel_names)) == policy.n_channels
    assert info.description
    assert "\n" not in info.description


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown policy 'dijkstra'; known: .*shortest-path-bfs"):
        load("dijkstra")
    with pytest.raises(ValueError, match=r"model file .*\. Did you mean 'nca-shortest-path-small'\?"):
        find_policy("nca-shortest-path-smal")


@pytest.mark.parametrize("former", FORMER_NAMES)
def test_a_former_name_is_accepted_and_not_listed(former):
    with pytest.warns(DeprecationWarning, match=f"^{former} is called {FORMER_NAMES[former]}$") as caught:
        policy = load(former)
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="is called") as caught:
        info = find_policy(former)
    assert caught[0].filename == __file__
    assert former not in list_policies()
    assert info == find_policy(FORMER_NAMES[former])
    present = load(FORMER_NAMES[former])
    assert all(torch.equal(mine, its) for mine, its in zip(policy.parameters(), present.parameters(), strict=True))
    assert trained_on(former) == trained_on(FORMER_NAMES[former]) != trained_on("nobody")


def test_a_model_file_is_a_policy(tmp_path):
    model = NCA(2, 6, n_iterations=5)
    path = str(save_model(model, tmp_path / "model"))
    loaded, info = load(path), find_policy(path)
    assert (info.task, info.description, info.exact) == ("diameter", "a model of class NCA, from a file", False)
    assert torch.equal(loaded.kernel(), model.kernel())
    assert path not in list_policies()


def test_what_is_no_model_file(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match=f"there is no model file {path}"):
        load(str(path))
    path.write_text("no model")
    with pytest.raises(ValueError, match="is not a readable model file"):
        find_policy(str(path))


def test_options_reach_the_constructor():
    assert load("shortest-path-bfs", ties="all").n_channels == load("all-shortest-paths").n_channels == 8
    with pytest.raises(ValueError, match="unknown ties 'none'; known: canonical, all"):
        load("shortest-path-bfs", ties="none")


def test_the_table_of_policies_is_a_copy():
    list_policies().clear()
    assert list_policies()


def test_listing_policies_imports_no_torch():
    code = (
        "import sys, maze_nca_gym.agents as agents; agents.list_policies();"
        "print('torch' in sys.modules, hasattr(agents, 'xyz'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_every_export_is_there():
    for name in agents.__all__:
        assert getattr(agents, name).__name__ == name
