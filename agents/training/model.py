"""A network that a training begins with, in place of random weights."""

from __future__ import annotations

import torch

from ..learned.nca import NCA
from ..policy import Policy
from ..registry import load
from .checks import check


@torch.no_grad()
def begin_with(model: Policy, name: str) -> None:
    """Let the first channels of a model begin with the weights of another network; no other channel reaches them.

    Args:
        model: an `NCA` with shared weights, of the same task, taps and kind of pooling, with at least as many channels.
            With max-pooling, which reads all channels and writes the last, the numbers must be equal.
        name: the name of a network that ships, or the path of a model file.

    Raises:
        ValueError: no such network or file, or one that does not fit.
    """
    start = load(name)
    if not isinstance(start, NCA) or not isinstance(model, NCA) or not start.shared_weights or not model.shared_weights:
        raise ValueError(f"to start from {name} both must be of class NCA, with shared weights")
    check(start.task == model.task, f"{name} is for the task {start.task}, not {model.task}")
    check(
        start.kernel_size == model.kernel_size and start.cut_corners == model.cut_corners,
        f"{name} has a kernel_size of {start.kernel_size} and cut_corners {start.cut_corners}: so must the model",
    )
    check(start.max_pool == model.max_pool, f"{name} has max_pool {start.max_pool}: so must the model")
    n = start.n_channels
    check(n <= model.n_channels, f"{name} has {n} channels, the model only {model.n_channels}")
    check(n == model.n_channels or not model.max_pool, f"{name} has max_pool and {n} channels: so must the model")
    weight, bias = model.weights[0], model.biases[0]
    weight[:n] = 0
    weight[:n, : start.n_tiles + n] = start.weights[0]
    bias[:n] = start.biases[0]
