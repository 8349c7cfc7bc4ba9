from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tables import for_each, refused

from maze_nca_gym.agents import load
from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.weights import KIND, load_model, save_model


def contents(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    with safe_open(path, framework="pt") as file:
        return file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def rewrite(path: Path, **changes: object) -> None:
    """Change the description in a model file, leaving its checksum as it was."""
    metadata, tensors = contents(path)
    description = json.loads(metadata[KIND])
    description["arguments"].update(changes)
    save_file(tensors, path, {KIND: json.dumps(description)})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save_model(NCA(4, 5), tmp_path / "model")


def test_names_with_any_letters_are_saved_and_the_model_can_be_trained(tmp_path):
    path = save_model(NCA(4, 3, channel_names=["path", "ä", "b"]), tmp_path / "a-0.5")
    assert path == tmp_path / "a-0.5.safetensors"
    again = load_model(str(path))
    assert again.channel_names == ("path", "ä", "b")
    assert all(parameter.requires_grad for parameter in again.parameters())
    assert not again.training


def test_files_are_the_same_for_the_same_model_and_replace_older_ones(tmp_path):
    path = save_model(NCA(4, 5), tmp_path / "model.safetensors")
    first = path.read_bytes()
    assert save_model(NCA(4, 5), path) == path
    assert path.read_bytes() == first
    save_model(NCA(4, 6), path)
    assert load_model(path).n_channels == 6
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"], "a partial file was left"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_model(NCA(4, 6), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_other_objects_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="models of class ShortestPathNCA cannot be saved; known: "):
        save_model(load("shortest-path-bfs"), tmp_path / "model")
    broken = NCA(4, 3)
    with torch.no_grad():
        broken.weights[0][0, 0, 0] = float("nan")
    refused(r"tensor 'weights.0' must hold finite float32 or float64 numbers", save_model, broken, tmp_path / "model")
    refused("should have dtype torch.float32, it has torch.bf", save_model, NCA(4, 3).bfloat16(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_every_damaged_byte_and_every_missing_end_is_noticed(saved):
    good = saved.read_bytes()
    flipped = (
        good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :] for place in [*range(0, len(good), 97), -2]
    )
    for damaged in (*flipped, *(good[:length] for length in (2000, 100, 8, 7, 0))):
        saved.write_bytes(damaged)
        refused("is not a readable model file", load_model, saved)


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        load_model(tmp_path / "nothing.safetensors")
    for no_file in (tmp_path, "/dev/null"):
        refused(f"{no_file} is not a readable model file: it is not a regular file", load_model, no_file)
    path = tmp_path / "weights.safetensors"
    torch.save({"weights": torch.zeros(1)}, path)
    refused("is not a readable model file", load_model, path)
    save_file({"weights": torch.zeros(1)}, path)
    refused("its header has no 'maze_nca_gym model 1'", load_model, path)


@for_each(
    ("changes", "message"),
    [
        ({"n_channels": 6, "channel_names": None}, r"'biases.0' should have shape \(6,\), it has \(5,\)"),
        ({"n_channels": 65536, "channel_names": None}, r"'biases.0' should have shape \(65536,\)"),
        ({"n_channels": 10**12}, "n_channels must be an integer from 1 to 65536"),
        ({"shared_weights": False, "n_iterations": 2}, r"it has no tensor 'biases.1', which should have shape \(5,\)"),
        ({"shared_weights": False, "n_iterations": 65536}, "need weights for 65536 iterations, and it has only 2"),
        ({"n_layers": 3}, "unexpected keyword argument 'n_layers'; another version of this package"),
        ({"generator": 3}, "generator"),
        ({"n_iterations": 32}, "its checksum is wrong"),
        ({"max_pool": True, "channel_names": None}, "its checksum is wrong"),
    ],
)
def test_descriptions_that_disagree_with_the_weights(tmp_path, changes, message):
    saved = save_model(NCA(4, 5), tmp_path / "model")
    rewrite(saved, **changes)
    refused(message, load_model, saved)


def described(**changes: object) -> str:
    return json.dumps({"class": "NCA", "arguments": {}, "guarantees": {}, "sha256": "", **changes})


@for_each(
    ("description", "message"),
    [
        ("", "Expecting value"),
        ("[]", "must hold `class`, `arguments`, `guarantees` and `sha256`"),
        ('{"class": "NCA", "arguments": {}}', "must hold `class`, `arguments`, `guarantees` and `sha256`"),
        (described(**{"class": "os.system"}), "it is of an unknown class of models 'os.system'; known: .*NCA"),
        (described(**{"class": ["NCA"]}), "it is of an unknown class of models"),
        (described(arguments=[4, 5]), r"its arguments must be named, got \[4, 5\]"),
        *[
            (
                described(**{"class": "PathActor", "arguments": {"n_tiles": 4, "network": network}}),
                "a network needs a class and arguments, got",
            )
            for network in ({"class": "NCA"}, {"class": "NCA", "arguments": [4, 5]}, {"arguments": {"n_tiles": 4}})
        ],
        ('{"class": "NCA", "sha256": "", "arguments": ' + "[" * 100_000, "not a readable model file"),
    ],
)
def test_invalid_descriptions_are_refused(saved, description, message):
    save_file(contents(saved)[1], saved, {KIND: description})
    refused(message, load_model, saved)


def test_weights_must_be_finite_floats(saved):
    metadata, tensors = contents(saved)
    wrong = {
        "must hold finite float32 or float64 numbers, got 0 NaN and 5 infinite of 5": torch.full((5,), float("inf")),
        "must hold finite float32 or float64 numbers, got 1 NaN and 0 infinite of 5": torch.tensor(
            [0, 0, 0, 0, torch.nan]
        ),
        "should have dtype torch.float32, it has F16": torch.zeros(5, dtype=torch.float16),
        "should have dtype torch.float32, it has BF16": torch.zeros(5, dtype=torch.bfloat16),
        "should have dtype torch.float32, it has torch.float64": torch.zeros(5, dtype=torch.float64),
        "should have dtype torch.float32, it has torch.int64": torch.zeros(5, dtype=torch.int64),
    }
    for message, bad in wrong.items():
        save_file({**tensors, "biases.0": bad}, saved, metadata)
        refused(f"tensor 'biases.0' {message}", load_model, saved)


@for_each(
    ("rename", "message"),
    [
        (lambda key: f"module.{key}", "the names of its tensors begin with 'module.', added by a wrapper"),
        (lambda key: f"_orig_mod.{key}", "the names of its tensors begin with '_orig_mod.', added by a wrapper"),
        (lambda key: key.replace("biases", "bias"), r"it has a tensor 'bias.0', and the model has only we"),
        (lambda key: key if key == "weights.0" else None, r"it has no tensor 'biases.0', which should have shape"),
    ],
)
def test_other_names_of_weights(tmp_path, rename, message):
    saved = save_model(NCA(4, 5), tmp_path / "model")
    metadata, tensors = contents(saved)
    save_file({name: tensor for key, tensor in tensors.items() if (name := rename(key))}, saved, metadata)
    refused(message, load_model, saved)


def test_a_file_of_another_kind_is_not_called_an_unknown_policy(tmp_path):
    torch.save({}, tmp_path / "model.pt")
    with pytest.raises(
        ValueError, match=r"model.pt is not a model file, as `save_model` writes them \(\*.safetensors\)$"
    ):
        load(str(tmp_path / "model.pt"))


def test_the_suffix_may_be_in_capitals(tmp_path):
    path = save_model(NCA(4, 5), tmp_path / "X.SafeTensors")
    assert path.name == "X.SafeTensors"
    assert type(load(str(path))) is NCA
