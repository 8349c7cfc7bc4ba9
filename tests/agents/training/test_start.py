"""A training may start from another network, which becomes the first channels of a larger network."""

import copy

import torch
from fresh_models import FRESH_MLP
from tables import for_each, refused
from training_runs import make_updates, started, tiny

from maze_nca_gym.agents import load, rollout
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import load_model, save_model
from maze_nca_gym.agents.training.config import TrainingConfig, changed
from maze_nca_gym.mazes.families import validation_levels
from maze_nca_gym.mazes.levels import one_hot

EXACT = "nca-shortest-path-exact-weights"
CONFIG = changed("extrapolate", n_channels=16, start_from=EXACT)


def test_the_first_channels_compute_the_network():
    model, start = CONFIG.make_model(), load(EXACT)
    assert isinstance(model, NCA)
    maze = torch.from_numpy(one_hot(validation_levels("loops", 10, "shortest-path", 8).tiles))
    with torch.no_grad():
        state = rollout(changed(CONFIG, state_limit=None).make_model(), maze, 60)
        torch.testing.assert_close(state[:, :10], rollout(start, maze, 60))
    fresh = changed(CONFIG, start_from=None).make_model()
    assert torch.equal(model.weights[0][10:], fresh.weights[0][10:]), "the rest is random, from the same draws"
    assert state[:, 10:].any()


def test_as_many_channels_are_enough():
    model = changed(CONFIG, n_channels=10).make_model()
    assert torch.equal(model.weights[0], load(EXACT).weights[0])


def test_frozen_channels_stay_fixed_while_others_train(tmp_path):
    state = started(n_channels=14, n_frozen=10, cut_corners=True, start_from=EXACT, weight_decay=0.1)
    before = copy.deepcopy(state.model.weights[0])
    make_updates(state, 2)
    save_model(state.model, tmp_path / "model.safetensors")
    model = load_model(tmp_path / "model.safetensors")
    assert isinstance(model, NCA)
    assert not torch.equal(model.weights[0], before)
    maze = torch.from_numpy(one_hot(validation_levels("loops", 6, "shortest-path", 8).tiles))
    with torch.no_grad():
        torch.testing.assert_close(rollout(model, maze, 5)[:, -10:], rollout(load(EXACT), maze, 5))


def test_a_model_file_with_max_pooling(tmp_path):
    config = tiny(task="diameter", max_pool=True, n_channels=6, state_limit=3.0)
    first, path = config.make_model(), str(tmp_path / "first.safetensors")
    save_model(first, path)
    again = changed(config, seed=1, start_from=path)
    assert not torch.equal(changed(config, seed=1).make_model().weights[0], first.weights[0])
    assert torch.equal(again.make_model().weights[0], first.weights[0])
    assert torch.equal(again.make_model().biases[0], first.biases[0])
    assert TrainingConfig.from_json(again.to_json()) == again


@for_each(
    ("changes", "message"),
    [
        ({"start_from": "nca"}, "unknown policy 'nca'; known: .*nca-shortest-path-exact-weights"),
        ({"start_from": FRESH_MLP}, f"to start from {FRESH_MLP}.* both must be of class NCA, with shared"),
        ({"start_from": "nca-diameter-hinted"}, "nca-diameter-hinted is for the task diameter, not shortest-path"),
        ({"cut_corners": False}, "has a kernel_size of 3 and cut_corners True: so must the model"),
        ({"kernel_size": 5}, "has a kernel_size of 3 and cut_corners True: so must the model"),
        ({"start_from": "no.safetensors"}, "there is no model file no.safetensors"),
        ({"start_from": "shortest-path-bfs"}, "to start from shortest-path-bfs both must be of class NCA"),
        ({"max_pool": True}, "nca-shortest-path-exact-weights has max_pool False: so must the model"),
        (
            {"task": "diameter", "start_from": "nca-diameter-exact-weights", "max_pool": True, "n_channels": 34},
            "nca-diameter-exact-weights has max_pool and 33 channels: so must the model",
        ),
        (
            {"n_frozen": 9},
            "nca-shortest-path-exact-weights has 10 channels: exactly these must be frozen, got n_frozen 9",
        ),
        ({"n_frozen": 10}, "nca-shortest-path-exact-weights has state_limit None: so must the model"),
        ({"n_frozen": 10, "start_from": None}, "n_frozen counts channels of another network: set start_from"),
        ({"n_frozen": 16}, "n_frozen must be an integer from 0 to 15, got 16"),
        ({"n_frozen": 10, "max_pool": True}, "n_frozen needs shared_weights, without max_pool and not symmetric"),
        ({"n_channels": 9}, "nca-shortest-path-exact-weights has 10 channels, the model only 9"),
    ],
)
def test_networks_that_do_not_fit_are_refused(changes, message):
    refused(message, changed, CONFIG, **changes)


def test_models_of_another_class_start_from_their_own(tmp_path):
    config, path = tiny(model="GCN", n_channels=6), str(tmp_path / "first.safetensors")
    first = config.make_model()
    save_model(first, path)
    again = changed(config, seed=1, start_from=path).make_model()
    assert all(torch.equal(tensor, first.state_dict()[name]) for name, tensor in again.state_dict().items())
    for other in ({"start_from": EXACT}, {"n_channels": 7}):
        refused("or of one class, with equal shapes", changed, config, **{"start_from": path, **other})
