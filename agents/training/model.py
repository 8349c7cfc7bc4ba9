"""Copying the initial weights of a model from another network, for the option `start_from`."""

from __future__ import annotations

import torch
from torch import nn

from maze_nca_gym.mazes.orders import split_order
from maze_nca_gym.support.options import check

from ..policies.policy import Policy, program_of
from ..policies.program import RELU


@torch.no_grad()
def begin_with(model: Policy, start: Policy, name: str) -> None:
    """Copy the weights of another network into a model.

    Args:
        model: the model, which is changed in place. There are three cases:

            - A model of the same class, with weights of the same shapes, gets all weights.
            - An `NCA` with shared weights, of the same task, taps and kind of pooling, must have at least as many
              channels as the network. Its first channels get the weights, and no other channel feeds into them. With
              max-pooling, which reads all channels and writes the last, the numbers of channels must be equal.
            - In an `NCA` with `n_frozen`, the last channels get the weights of a network with `n_frozen` channels,
              which may be for any task with the same kinds of tile.
        start: the other network.
        name: the name of the other network in messages.

    Raises:
        ValueError: the network does not fit.
    """
    n_frozen, theirs, ours = getattr(model, "n_frozen", 0), program_of(start), program_of(model)
    shapes = [{key: tensor.shape for key, tensor in policy.state_dict().items()} for policy in (start, model)]
    same_question = split_order(start.task)[0] == split_order(model.task)[0]  # another order can be learned
    same_kinds = n_frozen and theirs is not None and ours is not None and theirs.inputs == ours.inputs
    check(same_kinds or same_question, f"{name} is for the task {start.task}, not {model.task}")
    if theirs is None and type(start) is type(model) and shapes[0] == shapes[1]:
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
    n = start.n_channels
    check(n_frozen in (0, n), f"{name} has {n} channels: exactly these must be frozen, got n_frozen {n_frozen}")
    for option in ("max_pool", "pool_before_activation", *(("state_limit", "sees_inputs") if n_frozen else ())):
        value = getattr(theirs, option)
        check(getattr(ours, option) == value, f"{name} has {option} {value}: so must the model")
    if n_frozen:
        first, buffers = start.n_tiles + model.n_channels - n_frozen, dict(model.named_buffers())
        buffers["frozen_weight"][:, : start.n_tiles] = theirs.weight[:, : start.n_tiles]
        buffers["frozen_weight"][:, first:] = theirs.weight[:, start.n_tiles :]
        buffers["frozen_bias"].copy_(theirs.bias)
        return
    check(isinstance(ours.weight, nn.Parameter), f"to start from {name} every tap needs its own weights: not symmetric")
    check(n <= model.n_channels, f"{name} has {n} channels, the model only {model.n_channels}")
    check(n == model.n_channels or not ours.max_pool, f"{name} has max_pool and {n} channels: so must the model")
    ours.weight[:n] = 0
    ours.weight[:n, : start.n_tiles + n] = theirs.weight
    ours.bias[:n] = theirs.bias
