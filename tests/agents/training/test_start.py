"""A training may begin with a network that ships, as the first channels of a larger one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.evaluation import validation_levels
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.agents.training.config import PRESETS, TrainingConfig
from maze_nca_gym.levels import one_hot

COMPILED = "nca-shortest-path-compiled"
CONFIG = replace(PRESETS["extrapolate"], n_channels=16, start_from=COMPILED)


def test_the_first_channels_do_what_the_network_does():
    model, start = CONFIG.make_model(), load(COMPILED)
    assert isinstance(model, NCA)
    maze = torch.from_numpy(one_hot(validation_levels("loops", 10, "shortest-path", 8).tiles))
    with torch.no_grad():
        state = rollout(replace(CONFIG, ceiling=None).make_model(), maze, 60)
        torch.testing.assert_close(state[:, :10], rollout(start, maze, 60))
    others = replace(CONFIG, start_from=None).make_model()
    assert torch.equal(model.weights[0][10:], others.weights[0][10:]), "the rest is random, from the same draws"
    assert state[:, 10:].any()


def test_as_many_channels_are_enough():
    model = replace(CONFIG, n_channels=10).make_model()
    assert torch.equal(model.weights[0], load(COMPILED).weights[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_from": "nca"}, "unknown pretrained model 'nca'; known: .*nca-shortest-path-compiled"),
        ({"start_from": "mlp-shortest-path-baseline"}, "to start from mlp-.* both must be of class NCA, with shared"),
        ({"start_from": "nca-diameter-hinted"}, "nca-diameter-hinted is for the task diameter, not shortest-path"),
        ({"cut_corners": False}, "has a kernel_size of 3 and cut_corners True: so must the model"),
        ({"kernel_size": 5}, "has a kernel_size of 3 and cut_corners True: so must the model"),
        ({"max_pool": True}, "must be without max_pool"),
        ({"n_channels": 9}, "nca-shortest-path-compiled has 10 channels, the model only 9"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)


def test_models_of_other_classes_start_from_none():
    with pytest.raises(ValueError, match="both must be of class NCA"):
        TrainingConfig(model="GCN", start_from=COMPILED)
