"""A new architecture needs only its own module and a row of the registry, because no other code knows its options."""

from __future__ import annotations

import json

import pytest
import torch
from tables import refused
from training_runs import CPU, POOL, loaded, tiny, train_in

from maze_nca_gym.agents import load
from maze_nca_gym.agents.policies.architectures import ARCHITECTURES
from maze_nca_gym.agents.policies.weights import model_class, register_model
from maze_nca_gym.agents.training import MODEL, TrainingConfig, TrainingState, changed
from maze_nca_gym.agents.training.options import GIVEN
from maze_nca_gym.support.options import options_of, options_of_call

MODULE = """
import torch
from torch import nn

from maze_nca_gym.agents.policies.policy import Policy
from maze_nca_gym.agents.policies.weights import register_model


@register_model
class TwoLayerNCA(Policy):
    def __init__(self, n_tiles, n_channels, hidden=8, slope=0.0, generator=None):
        if not 1 <= hidden <= 64:
            raise ValueError(f"hidden must be from 1 to 64, got {hidden}")
        super().__init__("shortest-path", n_tiles, ["path", *(f"hidden_{i}" for i in range(1, n_channels))])
        self.arguments = dict(n_tiles=n_tiles, n_channels=n_channels, hidden=hidden, slope=slope)
        self.first = nn.Conv2d(n_tiles + n_channels, hidden, 3, padding=1)
        self.second = nn.Conv2d(hidden, n_channels, 1)
        self.slope = slope

    def update(self, maze, state, step=0):
        return self.second(nn.functional.leaky_relu(self.first(torch.cat([maze, state], 1)), self.slope))
"""


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch, forgotten):
    (tmp_path / "two_layers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return __import__("two_layers").TwoLayerNCA


def test_a_custom_model_with_an_option_is_trained_saved_and_loaded(registered, tmp_path):
    config = tiny(model="TwoLayerNCA", hidden=12, slope=0.25, n_updates=4)
    assert config.model_options == {"hidden": 12, "slope": 0.25}
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert changed(config, hidden=3).make_model().first.out_channels == 3
    train_in(tmp_path, TrainingState.start(config, CPU), log_every=2, validate_every=2)
    policy = load(str(tmp_path / MODEL))
    assert (type(policy), policy.first.out_channels, policy.slope) == (registered, 12, 0.25)
    state = loaded(tmp_path, config)
    assert torch.equal(state.model.first.weight, policy.first.weight)


def test_it_trains_in_a_pool_if_it_declares_equal_iterations(registered, tmp_path, monkeypatch):
    refused("those of TwoLayerNCA depend on the step", tiny, **POOL, model="TwoLayerNCA")
    monkeypatch.setattr(registered, "stationary_from", 0)
    for n_iterations in (None, 6):
        config, folder = (
            tiny(**POOL | {"n_iterations": n_iterations}, n_updates=4, model="TwoLayerNCA"),
            tmp_path / str(n_iterations),
        )
        state = train_in(folder, TrainingState.start(config, CPU))
        assert all(pool.states.any() for pool in state.pools.values())
        again = loaded(folder, config)
        assert {size: pool.states.shape for size, pool in again.pools.items()} == {
            size: pool.states.shape for size, pool in state.pools.items()
        }


@pytest.mark.parametrize("options", [{"model": "GCN"}, {"model": "MLP", "sizes": (6,)}])
def test_other_models_with_equal_iterations_train_in_a_pool(options, tmp_path):
    if options["model"] == "GCN":
        pytest.importorskip("torch_geometric")
    state = TrainingState.start(tiny(**{**POOL, **options}, n_updates=4), CPU)
    train_in(tmp_path, state)
    assert all(pool.states.any() for pool in state.pools.values())


def test_its_options_are_checked():
    refused("hidden must be from 1 to 64, got 0", tiny, model="TwoLayerNCA", hidden=0)
    refused("a configuration has no option hiden", tiny, model="TwoLayerNCA", hiden=2)
    with pytest.raises(ValueError, match="TwoLayerNCA has no option kernel_size; its options: hidden, slope"):
        tiny(model="TwoLayerNCA", kernel_size=3)
    refused("a model of class NCA has no option hidden", TrainingConfig, model_options={"hidden": 3})
    assert changed(tiny(model="TwoLayerNCA", hidden=12), model="NCA").model_options == {}


def test_none_means_the_default_unless_the_constructor_uses_it(registered):
    assert changed(tiny(model="TwoLayerNCA", hidden=12), hidden=None).model_options == {}
    assert changed(tiny(model="NCA", kernel_size=5), kernel_size=None, state_limit=None).model_options == {}

    class Bounded(registered):
        def __init__(self, n_tiles, n_channels, limit: float | None = 2.0, generator=None):
            super().__init__(n_tiles, n_channels)
            self.arguments = {"n_tiles": n_tiles, "n_channels": n_channels, "limit": limit}

    register_model(Bounded)
    assert tiny(model="Bounded").model_options == {}
    for limit in (None, 2.0):
        config = tiny(model="Bounded", limit=limit)
        assert config.model_options == {"limit": limit}
        assert TrainingConfig.from_json(config.to_json()) == config


def test_a_model_may_not_take_an_option_of_the_run(registered):
    class Greedy(registered):
        def __init__(self, n_tiles, n_channels, seed=0, batch_size=2, generator=None):
            super().__init__(n_tiles, n_channels)
            self.arguments = {"n_tiles": n_tiles, "n_channels": n_channels}

    register_model(Greedy)
    refused("a model of class Greedy takes batch_size, seed, as the run does: choose other names", tiny, model="Greedy")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_options_of_an_architecture_are_arguments_of_its_constructor(name):
    if name in ("GCN", "GAT"):
        pytest.importorskip("torch_geometric")
    kinds = options_of(ARCHITECTURES[name]), options_of_call(model_class(name), leave_out=(*GIVEN, "channel_names"))
    options, arguments = (
        [(option.name, option.type, option.default, option.help) for option in kind.values()] for kind in kinds
    )
    assert options == arguments


@pytest.mark.parametrize(
    "wrong", [{"kernel_size": 65}, {"state_limit": 0.5}, {"model": "MLP", "n_nodes": 0}], ids=lambda it: [*it][-1]
)
def test_ranges_of_an_architecture_are_checked_with_its_options(wrong):
    refused(rf"^{[*wrong][-1]} must be ", changed, "fast", **wrong)
