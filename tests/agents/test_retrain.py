"""Models are trained again from their cards."""

import math
import sys
from importlib import import_module

import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import load, train
from maze_nca_gym.agents.automata.networks.config import HintConfig
from maze_nca_gym.agents.automata.registry import find_automaton
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.training import TrainingConfig
from tools import retrain

TINY = {"n_channels": 6, "n_iterations": 4, "sizes": (6,), "n_updates": 4, "batch_size": 8}
CARDS = {name: card for name, card in cards().items() if "configuration" in card and "unshipped" not in card}


@pytest.mark.usefixtures("forgotten")
@for_each("name", CARDS)
def test_every_card_holds_a_configuration_of_its_network(name):
    configuration, policy = CARDS[name]["configuration"], load(name)
    for module in CARDS[name].get("modules", ()):
        import_module(module)
    if "certificate" in CARDS[name]:
        assert find_automaton(HintConfig(**configuration).automaton).channels == policy.channel_names
        return
    model = TrainingConfig.from_json(configuration).make_model()
    assert {key: tuple(value.shape) for key, value in model.state_dict().items()} == {
        key: tuple(value.shape) for key, value in policy.state_dict().items()
    }


def card_of(**changes):
    from maze_nca_gym.agents.training import changed

    return {"configuration": changed("fast", **TINY, **changes).to_json(), "made_in": {"threads": 1}}


@pytest.mark.usefixtures("without_pictures")
def test_equal_configurations_give_equal_weights(tmp_path):
    published = train("fast", out=tmp_path / "first", threads=1, device="cpu", **TINY)
    comparison = retrain.compare(published, retrain.retrain("tiny", card_of(), tmp_path / "again"))
    assert comparison.agrees
    assert comparison.difference == 0
    other = retrain.compare(published, retrain.retrain("tiny", card_of(seed=1), tmp_path / "other"))
    assert not other.agrees
    assert other.difference > 0


@pytest.mark.usefixtures("forgotten", "without_pictures")
def test_modules_on_a_card_are_imported_first(tmp_path):
    card = card_of()
    card["configuration"]["families"] = ["winding"]
    refused("unknown family of levels 'winding'", retrain.retrain, "tiny", card, tmp_path)
    assert retrain.retrain("tiny", {**card, "modules": ["experiments.winding"]}, tmp_path).n_channels == 6


@for_each("name", ["nca-diameter-lenient", "nca-shortest-path-hard", "nca-shortest-path-solutions-borderless"])
def test_a_card_of_several_runs_is_refused_with_their_commands(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", ["retrain", name, "--out", str(tmp_path / "runs")])
    with pytest.raises(SystemExit):
        retrain.main()
    errors = capsys.readouterr().err
    assert f"{name} was trained in several runs, and its card has the configuration of one:\n  maze-nca-gym" in errors
    assert errors.count("  maze-nca-gym train ") == CARDS[name]["made_by"].count("maze-nca-gym train ") > 1
    assert not (tmp_path / "runs").exists()


def test_a_difference_of_nan_is_reported():
    published, ours = load("nca-shortest-path-hinted"), load("nca-shortest-path-hinted")
    torch.nn.init.constant_(ours.biases[0], float("nan"))  # the last array of weights
    assert math.isnan(retrain.compare(published, ours).difference)


def test_hashes_distinguish_names_shapes_and_values():
    weights = {"a": torch.zeros(2, 3), "b": torch.ones(2)}
    others = [
        {"c": torch.zeros(2, 3), "b": torch.ones(2)},
        {"a": torch.zeros(3, 2), "b": torch.ones(2)},
        {"a": torch.zeros(2, 3), "b": torch.tensor([1, 1.0000001])},
    ]
    assert retrain.weights_hash(weights) == retrain.weights_hash(dict(reversed(weights.items())))
    assert len({retrain.weights_hash(tensors) for tensors in [weights, *others]}) == 4


@for_each("name", [name for name, card in cards().items() if "configuration" not in card])
def test_a_card_without_a_configuration_is_refused_with_the_command_of_its_experiment(
    tmp_path, capsys, monkeypatch, name
):
    message = f"the card of {name} has no training configuration; its weights are from: python -m experiments."
    refused(message, retrain.retrain, name, cards()[name], tmp_path)
    monkeypatch.setattr(sys, "argv", ["retrain", name])
    with pytest.raises(SystemExit):
        retrain.main()
    assert message in capsys.readouterr().err


def test_an_unknown_model_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["retrain", "mlp-shortest-path-baseline"])
    with pytest.raises(SystemExit):
        retrain.main()
    assert "unknown model 'mlp-shortest-path-baseline'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_hinted_network_is_learned_again_from_its_card(tmp_path):
    name = "nca-shortest-path-hinted"
    learned = retrain.retrain(name, CARDS[name], tmp_path)
    assert learned.guarantees.exact
    comparison = retrain.compare(load(name), learned)
    assert comparison.agrees or comparison.difference < 0.1  # other processors and versions add in other orders
