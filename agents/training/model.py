"""The initial model of a training run, with random weights or those of another network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import nn

from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.mazes.tasks import find_task
from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import torch_rng_for

from ..policies.guarantees import Guarantees
from ..policies.policy import Policy
from ..policies.program import RELU
from ..policies.registry import load
from ..policies.weights import arguments_of, model_class, without_memory
from .options import ModelConfig

FIRST_BIAS = 0.3
"""Usual initial bias of the channels in the loss, for NCAs that end each iteration with a ReLU.

A path of zeros everywhere would have no gradient.
"""


def make_model(
    config: ModelConfig, arguments: Mapping[str, Any], guided: Sequence[str], seed: int, guarantees: Guarantees
) -> Policy:
    """Make a model with its initial weights.

    Args:
        config: its class, and the network from which its weights start.
        arguments: keyword arguments of its constructor, except the generator.
        guided: names of the channels after the answer that the loss reads.
        seed: seed of the weights.
        guarantees: what is known before training: which levels it will learn from.

    Raises:
        ValueError: the network to start from is unknown or does not fit.
    """
    generator = torch_rng_for(seed, "weights")
    model = cast(Any, model_class(config.model))(**arguments, generator=generator)
    model.guarantees = guarantees
    if config.initialisation == "paper":
        model.draw_as_published(generator)
    answers = find_task(model.task).answers
    n_shown = len(answers) + len(guided)
    if guided:
        model.channel_names = (*answers, *guided, *model.channel_names[n_shown:])
    if config.start_from is not None:
        begin_with(model, config.start_from)
        return model
    program = model.program()
    if program is not None and program.unbounded is None and config.initialisation == "usual":
        with torch.no_grad():
            program.bias[:n_shown] = FIRST_BIAS
    return model


def shapes_of(config: ModelConfig, arguments: Mapping[str, Any]) -> Policy:
    """Make a model that has shapes but no memory for its weights.

    Raises:
        ValueError: an argument that its constructor refuses, or one of those that training gives and it does not take.
    """
    model = model_class(config.model)
    lacking = [name for name in ("n_tiles", "n_channels", "generator") if name not in arguments_of(model)]
    check(not lacking, f"the constructor of a model of class {config.model} must take {', '.join(lacking)}")
    try:
        return without_memory(model, arguments)
    except TypeError as error:
        raise ValueError(f"a model of class {config.model} cannot be made: {error}") from error


def _shapes(model: Policy) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in model.state_dict().items()}


@torch.no_grad()
def begin_with(model: Policy, name: str) -> None:
    """Copy the weights of another network into a model.

    Args:
        model: a model of the same class, with weights of the same shapes. Or an `NCA` with shared weights, of the same
            task, taps and kind of pooling, with at least as many channels: the first get the weights, and no other
            channel feeds into these. With max-pooling, which reads all channels and writes the last, both need as many.
            Its weights change.
        name: the name of a network that ships, or the path of a model file.

    Raises:
        ValueError: no such network or file, or one that does not fit.
    """
    start = load(name)
    theirs, ours = start.program(), model.program()
    same_question = split_order(start.task)[0] == split_order(model.task)[0]  # another order can be learned
    check(same_question, f"{name} is for the task {start.task}, not {model.task}")
    if theirs is None and type(start) is type(model) and _shapes(start) == _shapes(model):
        for key, tensor in model.state_dict().items():
            tensor.copy_(start.state_dict()[key])
        return
    if theirs is None or ours is None or {theirs.activation, ours.activation} != {RELU}:
        raise ValueError(
            f"to start from {name} both must be of class NCA, with shared weights, or of one class, with equal shapes"
        )
    same_taps = (theirs.kernel_size, theirs.taps) == (ours.kernel_size, ours.taps)
    cut_corners = len(theirs.taps) < theirs.kernel_size**2
    has = f"{name} has a kernel_size of {theirs.kernel_size} and cut_corners {cut_corners}"
    check(same_taps, f"{has}: so must the model")
    for option in ("max_pool", "pool_before_activation"):
        value = getattr(theirs, option)
        check(getattr(ours, option) == value, f"{name} has {option} {value}: so must the model")
    check(isinstance(ours.weight, nn.Parameter), f"to start from {name} every tap needs its own weights: not symmetric")
    n = start.n_channels
    check(n <= model.n_channels, f"{name} has {n} channels, the model only {model.n_channels}")
    check(n == model.n_channels or not ours.max_pool, f"{name} has max_pool and {n} channels: so must the model")
    ours.weight[:n] = 0
    ours.weight[:n, : start.n_tiles + n] = theirs.weight
    ours.bias[:n] = theirs.bias
