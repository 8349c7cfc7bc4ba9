"""The work of the commands in one call each: the same options, the same files, as `main` does it."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from maze_nca_gym.agents import Policy, train
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.training import TrainingConfig, loop, reports
from maze_nca_gym.agents.weights import MODELS, load_model
from maze_nca_gym.cli.train import Train

TINY = {"n_channels": 6, "n_layers": 4, "sizes": [6], "n_updates": 4, "batch_size": 8}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def defaults_of(function):
    return {p.name: p.default for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD}


class TestTrain:
    @pytest.fixture(autouse=True)
    def _without_pictures(self, monkeypatch):
        monkeypatch.setattr(reports.Pictures, "on_validation", lambda *_: None)
        monkeypatch.setattr(reports.Pictures, "draw_curves", lambda *_: None)

    def test_its_options_are_the_commands(self):
        assert defaults_of(train) == {field.name: field.default for field in fields(Train)}

    def test_it_returns_what_it_saves(self, capsys):
        n_threads = torch.get_num_threads()
        policy = train(out="mine", threads=1, **TINY)
        assert isinstance(policy, Policy)
        assert not policy.training
        saved = load_model("mine/model.safetensors").state_dict()
        assert all(torch.equal(weights, saved[name]) for name, weights in policy.state_dict().items())
        assert capsys.readouterr().out.startswith("mine: NCA of 300 weights, 4 updates of 8 levels on ")
        assert torch.get_num_threads() == n_threads

    def test_it_goes_on_after_ctrl_c(self, monkeypatch, capsys):
        plain = loop._Run.step

        def step(run, batch):
            if run.state.update == 2:
                raise KeyboardInterrupt
            plain(run, batch)

        with monkeypatch.context() as patch:
            patch.setattr(loop._Run, "step", step)
            with pytest.raises(KeyboardInterrupt, match=r"goes on from mine/checkpoint\.safetensors"):
                train(out="mine", threads=1, save_every=0, log_every=1, validate_every=2, **TINY)
        whole = train(out="whole", threads=1, **TINY).state_dict()
        capsys.readouterr()
        resumed = train(out="mine", threads=1, **TINY).state_dict()
        assert "going on after update" in capsys.readouterr().out
        assert all(torch.equal(weights, whole[name]) for name, weights in resumed.items())

    def test_a_configuration_of_a_class_of_ones_own(self, monkeypatch):
        class MyNCA(NCA):
            """An NCA under another name."""

        monkeypatch.setitem(MODELS, "MyNCA", MyNCA)
        config = TrainingConfig(model="MyNCA", n_channels=6, n_layers=4, sizes=(6,), n_updates=1, batch_size=8)
        assert type(train(config, threads=1)) is MyNCA
        assert Path("runs/train/own/model.safetensors").exists()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"preset": "slow"}, "unknown preset 'slow'"),
            ({"n_update": 3}, "n_update"),
            ({"threads": 0}, "threads must be at least 1, got 0"),
            ({"validate_every": 30}, "multiple"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            train(**options)
        assert not Path("runs").exists()
