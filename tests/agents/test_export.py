"""Policies as files for other programs: what they hold, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from maze_nca_gym.agents import list_policies, load
from maze_nca_gym.agents.export import KIND, export
from maze_nca_gym.agents.handcoded import ShortestPathNCA
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.cli import main
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import one_hot

HELD = [name for name in list_policies() if "-baseline" not in name] + ["nca-shortest-path-baseline"]


def read(path):
    return json.loads(path.read_text())


def kernel_of(content):
    """The (C, S + C, k, k) kernel and (C,) bias that a file describes."""
    taps, weights = np.array(content["taps"]), np.array(content["weights"], np.float32)
    reach = np.abs(taps).max()
    kernel = np.zeros((*weights.shape[:2], 2 * reach + 1, 2 * reach + 1), np.float32)
    kernel[:, :, taps[:, 0] + reach, taps[:, 1] + reach] = weights
    return torch.from_numpy(kernel), torch.tensor(content["bias"])


class TestJson:
    @pytest.mark.parametrize("name", HELD)
    def test_weights_read_back_to_the_bit(self, name, tmp_path):
        policy = load(name)
        content = read(export(policy, tmp_path / "policy", name=name))
        kernel, bias = kernel_of(content)
        program = policy.program()
        assert torch.equal(kernel, program.kernel)
        assert torch.equal(bias, program.bias)
        assert (content["format"], content["name"], content["task"]) == (KIND, name, policy.task)
        assert content["channels"] == list(policy.channel_names)
        assert len(content["inputs"]) + len(content["channels"]) == program.kernel.shape[1]

    def test_it_is_the_iteration(self, tmp_path):
        policy = load("nca-shortest-path-guided")
        content = read(export(policy, tmp_path / "policy"))
        kernel, bias = kernel_of(content)
        maze = torch.from_numpy(one_hot(generate(np.random.default_rng(0), 3, (6, 9))))
        state = ours = torch.zeros(3, policy.n_channels, *maze.shape[2:])
        for step in range(30):
            state = policy(maze, state, step)
            ours = F.conv2d(torch.cat([maze, ours], dim=1), kernel, bias, padding="same")
            ours = ours.clamp(0, content["ceiling"])
        torch.testing.assert_close(ours, state, atol=1e-4, rtol=0)

    def test_the_last_iteration_of_an_episode_has_its_relu(self, tmp_path):
        policy = load("nca-shortest-path-small")
        assert policy.n_iterations is not None
        assert read(export(policy, tmp_path / "policy"))["rule"] == "relu"

    @pytest.mark.parametrize("name", list_policies())
    def test_the_front_is_a_channel(self, name):
        policy = load(name)
        assert policy.front in policy.channel_names

    def test_a_name_keeps_its_dots(self, tmp_path):
        assert export(load("depth-first"), tmp_path / "first.1").name == "first.1.json"


class TestRefusals:
    @pytest.mark.parametrize(
        "policy",
        [
            load("gcn-shortest-path-baseline"),
            load("mlp-shortest-path-baseline"),
            ShortestPathNCA(form="bounded"),
            NCA(4, 3, shared_weights=False, n_iterations=2),
            NCA(4, 3, skip_connections=False),
        ],
        ids=["gcn", "mlp", "bounded", "weights for each iteration", "no skip connections"],
    )
    def test_json_holds_convolutions_with_known_activations(self, policy, tmp_path):
        with pytest.raises(ValueError, match="json"):
            export(policy, tmp_path / "policy")
        assert not list(tmp_path.iterdir())

    def test_unknown_formats_name_the_nearest(self, tmp_path):
        with pytest.raises(ValueError, match=r"jsn.*json"):
            export(load("depth-first"), tmp_path / "policy", "jsn")


class TestCommand:
    def test_it_writes_a_file(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        assert main(["export", "depth-first"]) == 0
        assert read(tmp_path / "depth-first.json")["name"] == "depth-first"
        assert "depth-first.json" in capsys.readouterr().out

    def test_a_model_file_gives_its_name(self, tmp_path):
        from maze_nca_gym.agents.weights import save_model

        model = save_model(load("nca-shortest-path-compiled"), tmp_path / "mine")
        assert main(["export", str(model), "--out", str(tmp_path / "there")]) == 0
        assert read(tmp_path / "there.json")["name"] == "mine"

    @pytest.mark.parametrize(
        ("words", "said"),
        [(["depth-frist"], "depth-first"), (["depth-first", "--format", "jsonn"], "json")],
    )
    def test_mistakes_are_wrong_usage(self, words, said, capsys):
        assert main(["export", *words]) == 2
        assert said in capsys.readouterr().err

    def test_a_policy_that_does_not_fit_is_wrong_usage(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        assert main(["export", "gat-shortest-path-baseline"]) == 2
        assert "json" in capsys.readouterr().err
