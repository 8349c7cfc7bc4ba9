import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tables import for_each, refused

from maze_nca_gym import agents
from maze_nca_gym.agents import Policy, bench, evaluate, find_policy, list_policies, load, solve
from maze_nca_gym.agents.policies import learned
from maze_nca_gym.agents.policies.learned import MLP, NCA
from maze_nca_gym.agents.policies.pretrained import cards
from maze_nca_gym.agents.policies.registry import NAME_PARTS, named_policies
from maze_nca_gym.agents.policies.weights import save_model
from maze_nca_gym.agents.training import TrainingConfig
from maze_nca_gym.cli import main


@for_each("name", list_policies(all=True))
def test_every_policy_loads_and_agrees_with_the_table(name):
    policy, info = load(name), list_policies(all=True)[name]
    assert isinstance(policy, Policy)
    assert policy.task == info.task
    assert policy.channel_names[0] == "path"
    assert len(set(policy.channel_names)) == policy.n_channels
    assert info.description
    assert "\n" not in info.description


def test_a_model_file_is_a_policy(tmp_path):
    model = NCA(2, 6, n_iterations=5)
    path = str(save_model(model, tmp_path / "model"))
    loaded, info = load(path), find_policy(path)
    assert (info.task, info.description, info.exact) == ("diameter", "a model of class NCA, from a file", False)
    assert torch.equal(loaded.kernel(), model.kernel())
    assert path not in list_policies(all=True)


@for_each(
    ("name", "message"),
    [
        ("nowhere:Mine", "no module 'nowhere'"),
        ("json:Mine", "module 'json' has no 'Mine'"),
        ("json:dumps", "json:dumps"),
        ("json:JSONDecoder", "must return a Policy"),
    ],
)
def test_files_without_a_policy_are_refused(name, message):
    refused(message, load, name)


def test_options_reach_the_constructor():
    assert load("shortest-path-bfs", ties="all").n_channels == load("all-shortest-paths").n_channels == 8
    refused("unknown ties 'none'; known: canonical, all", load, "shortest-path-bfs", ties="none")


def test_the_table_of_policies_is_a_copy():
    list_policies(all=True).clear()
    assert list_policies(all=True)


def test_recommended_policies_come_first():
    """The best policy of each task has the plain name."""
    usual, everything = list_policies(), list_policies(all=True)
    assert list(everything)[: len(usual)] == list(usual)
    assert {info.role for info in usual.values()} == {"main"}
    assert {info.role for name, info in everything.items() if name not in usual} == {"variant", "ablation", "baseline"}
    assert all(bool(info.when) == (name in usual) and len(info.when) <= 78 for name, info in everything.items())
    for task in ("shortest-path", "diameter"):
        best = everything[f"nca-{task}"].scores["complete, random-16"]
        others = [info for info in everything.values() if info.task == task and not info.exact]
        assert all(info.scores["complete, random-16"] <= best for info in others)


def test_the_page_and_the_command_give_the_same_advice():
    page = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \| ([\d,]+) \| [^|]+ \| ([\d.]+) \|$", page, re.MULTILINE)
    assert {name: when for name, when, _, _ in rows} == {name: info.when for name, info in list_policies().items()}
    for name, _, n_weights, optimal in rows:
        score = find_policy(name).scores.get("optimal, random-16", 1.0)
        assert (n_weights, f"{float(optimal):.2f}") == (f"{load(name).n_weights:,}", f"{100 * score:.2f}"), name


def test_every_part_of_a_name_is_explained():
    trained = [name for name in list_policies(all=True) if name.startswith(("nca-", "gcn-", "gat-"))]
    pattern = "|".join(NAME_PARTS)
    parts = [re.fullmatch(rf"\w+-(?:shortest-path|diameter)((?:-(?:{pattern}))*)", name) for name in trained]
    assert all(parts), trained
    assert all(any(f"-{part}" in match[1] for match in parts if match) for part in NAME_PARTS)


@pytest.mark.usefixtures("without_pictures")
def test_a_card_of_figures_alone_says_how_to_train_its_model(tmp_path):
    name = "mlp-shortest-path-baseline"
    assert name not in list_policies(all=True)
    for function in (load, find_policy):
        with pytest.raises(ValueError, match=f"not include the weights of {name}, which completes nothing") as caught:
            function(name)
    command = str(caught.value).split("to train it: maze-nca-gym ")[1].split()
    shorter = ["3" if before == "--n-updates" else word for before, word in pairwise(["", *command])]
    assert main([*shorter, "--out", str(tmp_path), "--threads", "1"]) == 0
    configuration = json.loads((tmp_path / "config.json").read_text())["configuration"]
    expected = TrainingConfig.from_json(cards()[name]["configuration"]).to_json()
    assert {**configuration, "n_updates": 3000} == expected
    assert type(load(str(tmp_path / "model.safetensors"))) is MLP


def test_a_policy_can_be_a_path(tmp_path):
    path = save_model(load("nca-shortest-path-small"), tmp_path / "model")
    assert load(path).n_weights == named_policies(path)[str(path)].n_weights == 5760
    assert evaluate([path], families="random", sizes=4, n=2)[0].policy == str(path)


@for_each(
    ("use", "message"),
    [
        (lambda: load(3), "a policy is loaded by its name or file, got int"),
        (lambda: load("shortest-path-bfs", speed=2), "shortest-path-bfs cannot make a policy from the options {'sp"),
        (lambda: load("nca-shortest-path", speed=2), "nca-shortest-path cannot make a policy from the options"),
        (lambda: named_policies(None), "names or files are expected, or a mapping from names to policies, got NoneT"),
        (lambda: named_policies([load("depth-first")]), "a mapping from names to policies, got DepthFirstNCA"),
        (lambda: named_policies({"a": "depth-first"}), "names as keys and a Policy as each value, got str for 'a'"),
        (lambda: named_policies({1: load("depth-first")}), "a Policy as each value, got DepthFirstNCA for 1"),
        (lambda: solve(["depth-first", "shortest-path-bfs"]), "one policy is expected, got depth-first, shortest-p"),
        (lambda: bench("dt-net-9", policies={"a": "x.csv"}), "a Policy or Path as each value, got str for 'a'"),
        (lambda: bench("dt-net-9", policies={"a\n": load("depth-first")}), r"must be printable, got 'a\\n'"),
    ],
)
def test_an_unknown_policy_is_one_line(use, message):
    with pytest.raises(ValueError, match=message) as error:
        use()
    assert "\n" not in str(error.value)


def test_listing_policies_imports_no_torch():
    code = "import sys, maze_nca_gym.agents as agents; agents.list_policies(all=True); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@for_each("package", [agents, learned])
def test_packages_export_exactly_their_names(package):
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'xyz'"):
        package.xyz  # noqa: B018
