"""Files of an earlier version, of runs that it stopped after 3 of 6 updates, and what they then went on to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from training_runs import ALONE, CPU

from maze_nca_gym.agents.training import CHECKPOINT, MODEL, Intervals, NullReport, TrainingConfig, TrainingState, train
from maze_nca_gym.agents.training.config import FORMER
from maze_nca_gym.agents.weights import load_model
from maze_nca_gym.names import renamed

DATA = Path(__file__).parents[2] / "data"
RUNS = ("run_pooled", "run_evolved")


class Lines(NullReport):
    def __init__(self):
        self.lines = []

    def log(self, line):
        self.lines.append(line)


@pytest.mark.parametrize("name", RUNS)
def test_descriptions_are_read_and_written_as_before(name):
    values = json.loads((DATA / name / "config.json").read_text())["configuration"]
    config = TrainingConfig.from_json(values)
    written, values = config.to_json(), renamed(values, FORMER)
    values |= {"replay_probability": 1 - values["replay_probability"], "score": "loss"}  # which was called regret
    assert {name: written[name] for name in values} == values
    newer = set(written) - set(values)
    assert {name: written[name] for name in newer} == {name: TrainingConfig().to_json()[name] for name in newer}
    assert config == TrainingState.load(DATA / name / CHECKPOINT, CPU).config


@pytest.mark.parametrize("name", RUNS)
def test_runs_go_on_to_the_same_numbers(name, tmp_path):
    shutil.copy(DATA / name / CHECKPOINT, tmp_path)
    state, report = TrainingState.load(tmp_path / CHECKPOINT, CPU), Lines()
    assert state.update == 3
    train(state, tmp_path, ALONE, report, Intervals(log=1, validate=1))
    for line, before in zip(report.lines, json.loads((DATA / name / "lines.json").read_text()), strict=True):
        assert {key: line[key] for key in before} == pytest.approx(before, rel=1e-5)
    before, after = load_model(DATA / name / MODEL), load_model(tmp_path / MODEL)
    for key, weights in before.state_dict().items():
        torch.testing.assert_close(after.state_dict()[key], weights, rtol=1e-4, atol=1e-6)
