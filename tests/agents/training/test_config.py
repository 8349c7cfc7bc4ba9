from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import pytest
import torch
from tables import for_each, refused

from maze_nca_gym.agents import find_policy
from maze_nca_gym.agents.automata.shipped.healing import HEALING
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.training import PRESETS, TrainingConfig, changed
from maze_nca_gym.agents.training.config import OPTIONS, WITHOUT_EVOLUTION
from maze_nca_gym.agents.training.options import LevelsOptions, OptimiserOptions, PoolOptions
from maze_nca_gym.agents.training.presets import published_recipe
from maze_nca_gym.mazes.families import FAMILIES, Family
from maze_nca_gym.support.options import options_of, type_name

POOL = {"pool_size": 64, "n_iterations": None}
VARIED = changed(
    TrainingConfig(),
    task="diameter",
    n_iterations=None,
    kernel_size=5,
    cut_corners=False,
    families=("perfect", "loops"),
    sizes=(8, 12),
    loss_steps=(0.25, 1),
    pool_size=100,
    pool_steps=(3, 3),
    learning_rate=1,
    compile=True,
    gradient_growth=1,
    seed=2**63 - 1,
)
EVOLVING = changed(
    TrainingConfig(), evolve=True, n_levels=64, mutation="edits", eviction="replay-weight", evolve_below=1
)


@for_each("name", [name for name in PRESETS if changed(name).pool_size])
def test_one_option_disables_the_pool_of_a_preset(name):
    config, before, usual = changed(name, pool_size=0), changed(name), TrainingConfig()
    assert config.n_iterations == usual.n_iterations
    assert all(getattr(config, option) == getattr(usual, option) for option in options_of(PoolOptions))
    others = {**options_of(LevelsOptions), **options_of(OptimiserOptions)}
    assert all(getattr(config, option) == getattr(before, option) for option in others)
    refused("state_noise needs a pool: set pool_size", changed, name, pool_size=0, state_noise=0.1)


@for_each("name", [name for name in PRESETS if changed(name).evolve])
def test_one_option_disables_the_evolution_of_a_preset(name):
    plain = changed(name, evolve=False)
    assert WITHOUT_EVOLUTION.items() <= plain.to_json().items()
    assert plain == changed(name.removesuffix("-evolved"))


WEIGHTS = {
    "paper-shortest-path": 84_480,
    "paper-diameter": 149_760,
    "paper-shortest-path-evolved": 84_480,
    "paper-diameter-evolved": 149_760,
    "fast": 5_760,
    "fast-diameter": 12_000,
    "extrapolate": 12_480,
    "extrapolate-diameter": 21_120,
    "guided": 5_760,
    "healing": 12_480,
}


@for_each("name", PRESETS)
def test_presets_have_the_weights_of_the_paper(name):
    model = changed(name).make_model()
    assert type(model) is NCA
    assert model.n_weights == WEIGHTS[name]
    assert model.task == changed(name).task
    assert model.max_pool == (model.task == "diameter")


@for_each("config", [*map(changed, PRESETS), VARIED, EVOLVING])
def test_it_survives_json(config):
    again = TrainingConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert hash(again) == hash(config)


def test_options_of_the_run_come_first_then_those_of_its_model():
    places = [list(OPTIONS).index(name) for name in ("seed", "n_channels", "kernel_size", "sizes", "learning_rate")]
    assert places == sorted(places)


def test_the_seed_decides_the_initial_weights():
    first, again, other = (changed("fast", seed=seed).make_model() for seed in (1, 1, 2))
    assert torch.equal(first.weights[0], again.weights[0])
    assert not torch.equal(first.weights[0], other.weights[0])


@for_each("model", ["GCN", "GAT", "MLP"])
def test_another_model_drops_unknown_options(model):
    config = changed("fast", model=model, batch_size=4)
    assert (config.model, config.batch_size, config.model_options) == (model, 4, {})
    refused("has no option cut_corners", changed, "fast", model=model, cut_corners=True)


@for_each(
    ("changes", "message"),
    [
        ({"families": ()}, "families must name at least one of random, "),
        ({"sizes": ()}, "sizes must hold at least one number"),
        ({"n_levels": 8, "sizes": (8, 9)}, r"a fixed training set has levels of one size, got sizes \(8, 9\)"),
        ({"loss_steps": ()}, r"loss_steps must ascend within \(0, 1\] and end with 1, got \(\)"),
        *(
            ({"loss_steps": steps}, "loss_steps must ascend")
            for steps in ((0.5,), (0.5, 0.5, 1.0), (0.0, 1.0), (float("nan"), 1.0))
        ),
        ({"n_iterations": None}, "n_iterations must be a number unless there is a pool"),
        ({"state_limit": 0.3}, "state_limit must be a finite number above 0.5, got 0.3"),
        ({"state_limit": 1e9}, "state_limit must be a number above 0.5, at most 16,777,216, or None, got 1000000000.0"),
        ({"model": "GCN", "cut_corners": None, "state_limit": 3}, "a model of class GCN has no option state_limit"),
        ({"model": "MLP", "sizes": (8, 9)}, r"class MLP is built for one size, got sizes \(8, 9\)"),
        ({"pool_size": 63}, "pool_size must be 0 or at least batch_size 64, got 63"),
        ({"state_noise": 0.1}, "state_noise needs a pool: set pool_size"),
        ({"pool_edited": 0.1}, "pool_edited needs a pool: set pool_size"),
        ({**POOL, "pool_edited": 0.0, "pool_edits": "all-kinds"}, "pool_edits needs levels that are edited: set p"),
        ({"pool_retry": 1.0}, "pool_retry needs a pool: set pool_size"),
        ({"gradient_growth": float("nan")}, "gradient_growth must be from 0 to 1,024, got nan"),
        ({"guidance": 1.0, "task": "diameter", "n_channels": 8}, "guidance needs at least 9 channels, got 8"),
        ({"guidance": 1.0, "n_channels": 4}, "guidance needs at least 5 channels, got 4"),
        ({"guidance": 1.0, "n_channels": 6, "max_pool": True}, "guidance needs at least 7 channels, got 6"),
        ({"nearest_solution": 0.5, "evolve": True}, "nearest_solution is not for levels that evolve"),
        ({**POOL, "model": "GCN", "n_iterations": 8}, "those of GCN depend on the step .* with n_iterations 8"),
        ({**POOL, "shared_weights": False, "n_iterations": 8}, "a pool needs a model whose iterations are all the sam"),
        ({**POOL, "input_injection": False}, "those of NCA depend on the step"),
        ({**POOL, "n_levels": 100}, "a pool takes fresh levels: leave n_levels at None"),
        ({**POOL, "pool_fresh": 0.5, "pool_edited": 0.75}, "at most 1 together, got 0.5 and 0.75"),
        ({**POOL, "pool_steps": (5, 4)}, r"pool_steps must ascend, got \(5, 4\)"),
        ({**POOL, "pool_steps": (0, 4)}, "pool_steps must be from 1 to 4,096, got 0"),
        ({"batch_size": 1, "families": ("random", "perfect")}, "a fresh level of each of 2 families, it has 1: raise"),
        ({**POOL, "pool_fresh": 0.001}, "an update needs a fresh level of each of 1 families, it has 0: .* or change"),
        ({"n_offspring": 8, "score": "loss", "top_k": 1}, "levels that evolve there is no top_k, n_offspring: set evo"),
        ({**POOL, "evolve": True}, "levels that evolve cannot be in a pool: set pool_size to 0"),
        ({"evolve": True, "sizes": (8, 9)}, r"levels that evolve are of one size, got sizes \(8, 9\)"),
        ({"dihedral": True}, "dihedral turns the levels of a level_set, and there is none"),
        ({"level_set": "ctm-39", "n_levels": 5}, "a level_set has a number of levels: leave n_levels at None"),
        ({"level_set": "ctm-39", "sizes": (8, 9)}, r"a level_set has levels of one size, got sizes \(8, 9\)"),
        ({"evolve": True, "level_set": "ctm-39"}, "levels that evolve start from generated ones: leave level_set at N"),
        ({"evolve": True, "n_levels": 11_000}, "n_levels must be at most the capacity of 10,000, got 11000"),
        ({"evolve": True, "replay_probability": 0.999}, "it has 0: raise batch_size, or change replay_probability"),
        ({"evolve": True, "tile_rate": 0, "source_rate": 0}, "tile_rate and source_rate are both 0"),
        ({"evolve": True, "capacity": 2**20 + 1}, "capacity must be"),
        ({"evolve": True, "evolve_every": 0}, "evolve_every must be"),
        ({"edge_features": True}, "a model of class NCA has no option edge_features; its options: kernel_size, cut_"),
        ({"kernel_size": 4}, "kernel_size must be odd, got 4"),
        (
            {"model": "PathActor", "initialisation": "paper"},
            "a model of class PathActor has no initialisation paper: the paper has no such model",
        ),
    ],
)
def test_values_that_are_refused(changes, message):
    refused(message, changed, TrainingConfig(), **changes)


def test_options_of_another_mutation_are_refused():
    message = "mutation 'flip' has no option n_edits; it takes tile_rate, source_rate"
    refused(message, changed, TrainingConfig(), evolve=True, n_edits=7)
    refused(message, TrainingConfig.from_json, {**TrainingConfig(evolve=True).to_json(), "n_edits": 7})
    assert changed(EVOLVING, mutation="flip").mutation_options == {"tile_rate": 0.1, "source_rate": 0.05}


def test_evolved_presets_differ_from_the_paper_only_in_evolution():
    for name in ("paper-shortest-path", "paper-diameter"):
        usual = {option: OPTIONS[option].default for option in ("evolve_absolute", "evolve_every", "evolve_below")}
        assert changed(f"{name}-evolved", evolve=False, **usual) == changed(name)
    assert changed("fast", evolve=True).prioritisation == "uniform"


@for_each("model", ["NCA", "GCN", "GAT", "MLP"])
def test_every_model_of_the_paper_has_its_recipe(model):
    config = changed("paper-shortest-path", model=model, n_channels=8, **published_recipe(model))
    assert config.learning_rate == (5e-5 if model == "NCA" else 1e-4)
    trained = config.make_model()
    assert trained.last_relu
    assert not getattr(trained, "normalise_edges", False)
    assert type(trained)(**trained.arguments).arguments == trained.arguments


def initial_weights(model, **options):
    config = changed(TrainingConfig(), model=model, n_channels=60, n_iterations=4, **options)
    return {name: weight.detach() for name, weight in config.make_model().named_parameters()}


def test_initial_weights_of_an_nca_are_those_of_the_papers_code():
    """The initial weights of a 3x3 convolution are PyTorch's own; corners are cut afterwards."""
    torch.manual_seed(0)
    bound = torch.nn.Conv2d(64, 60, 3).weight.abs().max().item()
    for name, weight in initial_weights("NCA", cut_corners=True, initialisation="paper").items():
        assert weight.abs().max() <= 1 / 24
        assert weight.abs().max().item() == pytest.approx(bound, rel=0.01 if "weights" in name else 0.1)
    usual = initial_weights("NCA", cut_corners=True)["weights.0"].abs().max().item()
    assert usual == pytest.approx(1 / 320**0.5, rel=0.01)


@for_each("model", ["GCN", "GAT"])
def test_initial_weights_of_graph_networks_are_those_of_the_papers_code(model):
    usual, paper = (initial_weights(model, initialisation=name) for name in ("usual", "paper"))
    differing = {name for name in usual if not torch.equal(usual[name], paper[name])}
    assert differing == {"layers.0.lin.weight", "layers.0.bias"}
    for name in differing:
        assert paper[name].std().item() == pytest.approx(0.01, rel=0.3)
        assert paper[name].mean().abs() < 0.005


def test_initial_weights_of_an_mlp_are_from_the_same_range_either_way():
    usual, paper = (initial_weights("MLP", initialisation=name, sizes=(4,)) for name in ("usual", "paper"))
    for name in usual:
        assert not torch.equal(usual[name], paper[name])
        assert usual[name].abs().max().item() == pytest.approx(paper[name].abs().max().item(), rel=0.1)


@for_each("name", [name for name in OPTIONS if name not in ("tile_rate", "source_rate", "n_edits", "n_swaps")])
def test_values_of_wrong_type(name):
    kind = type_name(OPTIONS[name].type)
    wrong: list[object] = ["many", b"", {}, [], (None,), {1}]
    wrong += [1.0, True] if kind in ("int", "int | None") else []
    wrong += [1, 0.0, "True"] if kind in ("bool", "bool | None") else []
    wrong += [True, "0.1"] if kind == "float" else []
    wrong += [1, None] if kind == "str" else []
    wrong = [value for value in wrong if not (kind in ("str", "str | None") and isinstance(value, str))]
    if kind == "tuple[str, ...]":
        wrong.remove("many")  # one family
    if kind.endswith(", ...]"):
        wrong.remove([])
    for value in wrong:
        with pytest.raises(ValueError, match="must be of type") as caught:
            changed(TrainingConfig(), **{name: value})
        assert str(caught.value) == f"{name} must be of type {kind}, got {value!r}"


def test_every_option_is_a_field_of_one_record():
    refused("loss_after must be from 0 to 1,024, got -1", TrainingConfig, loss_after=-1)
    refused("model must be of type str, got 1", TrainingConfig, model=1)
    config = TrainingConfig(task="diameter", n_channels=8, sizes=(8,), model_options={"kernel_size": 5})
    assert config == changed(TrainingConfig(), task="diameter", n_channels=8, sizes=(8,), kernel_size=5)
    assert config == replace(TrainingConfig(), task="diameter", n_channels=8, sizes=8, model_options={"kernel_size": 5})
    assert not any(isinstance(value, dict) for value in config.to_json().values())


def test_every_option_has_a_help():
    assert all(option.help for option in OPTIONS.values())


@for_each(("name", "meant"), [("lr", "'learning_rate'"), ("epochs", "'n_updates'"), ("n_chanels", "'n_channels'")])
def test_a_misspelt_option_gets_a_suggestion(name, meant):
    refused(rf"a configuration has no option {name}\. Did you mean {meant}\?", changed, TrainingConfig(), **{name: 1})


def test_a_copy_keeps_its_task_after_later_registrations():
    config = TrainingConfig(seed=3, n_channels=6, sizes=(8,))
    assert copy.deepcopy(config) is config == replace(config)


WIDE = changed("fast", kernel_size=5)


@for_each(
    "values",
    [
        PRESETS["fast"],
        WIDE.model_options,
        WIDE.mutation_options,
        FAMILIES["loops"].variants[0],
        find_policy("all-shortest-paths").options,
        HEALING.rules,
    ],
)
@for_each(
    "change",
    [
        lambda values: values.update(n_channels=7),
        lambda values: values.__setitem__("n_channels", 7),
        lambda values: values.__ior__({"n_channels": 7}),
        lambda values: values.setdefault("own", 7),
        lambda values: values.pop(next(iter(values))),
        lambda values: values.popitem(),
        lambda values: values.clear(),
        lambda values: values.__delitem__(next(iter(values))),
    ],
)
def test_checked_values_cannot_be_changed(values, change):
    before = dict(values)
    with pytest.raises(TypeError, match="were checked together"):
        change(values)
    assert values == before == copy.copy(values)
    assert {**values, "own": 7} == values | {"own": 7} != before


def test_values_are_copies():
    options, variant = {"kernel_size": 5}, {"loop_fraction": 0.2}
    config, family = replace(WIDE, model_options=options), Family("loops", "mine", (variant,))
    options["kernel_size"] = variant["loop_fraction"] = 4
    assert (config.model_options, family.variants) == ({"kernel_size": 5}, ({"loop_fraction": 0.2},))
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    assert type(copy.copy(config).model_options) is type(config.model_options)


@for_each(
    ("change", "message"),
    [
        (lambda values: values.update(colour="red", age=3), "a configuration has no option age, colour; another versi"),
        (lambda values: values.update(sizes="16"), r"sizes must be of type tuple\[int, ...\], got '16'"),
        (lambda values: values.update(sizes=[[16, 16]]), r"sizes must be of type tuple\[int, ...\]"),
        (lambda values: values.update(pool_steps=[1, 2, 3]), r"pool_steps must be of type tuple\[int, int\]"),
        (lambda values: values.update(model="os:system"), "unknown model 'os:system'"),
    ],
)
def test_invalid_json_is_refused(change, message):
    values = TrainingConfig().to_json()
    change(values)
    refused(message, TrainingConfig.from_json, values)
    refused("a configuration must be an object with a value for every field, got", TrainingConfig.from_json, [values])


@for_each("name", sorted(OPTIONS))
def test_missing_options_have_their_defaults(name):
    values = TrainingConfig().to_json()
    del values[name]
    assert TrainingConfig.from_json(values) == TrainingConfig()


def test_another_process_reads_a_configuration_before_it_imports_the_task(monkeypatch):
    config = changed("guided", n_channels=16)
    sent = pickle.dumps(config)
    monkeypatch.setattr("maze_nca_gym.mazes.tasks.find_task", None)
    assert pickle.loads(sent) == config
