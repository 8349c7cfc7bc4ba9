"""Optimisers, the tensors that they store between updates, and schedules of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from inspect import unwrap
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

LARGEST_SIDE = 2_048
"""Largest side of a matrix for which SOAP computes a basis. Beyond this, the basis would take longer than the
gradient."""
TURN_EVERY = 10
"""Updates between two refreshes of the bases."""
TINY = 1e-8
SIDES = ("left", "right")
RISE = 0.1
START, END = 1 / 25, 1e-5
"""First and last learning rate of the schedule one-cycle, as fractions of the peak. The rate rises during the fraction
`RISE` of the updates."""


class OptimiserKind(NamedTuple):
    """A kind of optimiser.

    Attributes:
        make: function that makes an optimiser from the parameters and the learning rate `lr`.
        empty: function that returns the initial tensors that the optimiser stores for a parameter, without `step`, by
            their names in PyTorch.
    """

    make: Callable[..., Optimizer]
    empty: Callable[[Tensor], dict[str, Tensor]]


class SOAP(Optimizer):
    """Adam in a rotated basis, in which the entries of a layer's gradient hardly correlate.

    (Vyas et al., "SOAP: Improving and Stabilizing Shampoo using Adam", algorithm 3.) The weights of a layer are treated
    as a matrix with a row for each output. Let G be the gradient of this matrix, L and R the moving averages of G G'
    and G' G, and Q_L and Q_R the eigenvectors of L and R. A step is

        Q_L adam(Q_L' G Q_R) Q_R'

    Every `TURN_EVERY` steps, a step of a power iteration refreshes the eigenvectors. Vectors, such as biases, are
    optimised by plain Adam.

    For each parameter that has had a gradient, the state of the optimiser contains `step`, () float32, and the tensors
    of `soap_tensors`.

    Args:
        parameters: the parameters to optimise.
        lr: the learning rate, about the size of a step in the rotated basis.
        decay: decay of all moving averages, in [0, 1).
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, decay: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient, in place. `closure` is ignored."""
        for options, parameter in [(group, weight) for group in self.param_groups for weight in group["params"]]:
            if parameter.grad is None:
                continue
            state, decay = self.state[parameter], options["decay"]
            if not state:
                state.update(soap_tensors(parameter), step=torch.zeros((), dtype=torch.float32))
            gradient = parameter.grad.reshape(state["exp_avg"].shape)
            state["step"] += 1
            number = int(state["step"])
            for dim, side in enumerate(SIDES):
                if f"{side}_basis" not in state:
                    continue
                rows = gradient if side == "left" else gradient.mT
                moments, basis = state[f"{side}_moments"], state[f"{side}_basis"]
                moments.lerp_(rows @ rows.mT, 1 - decay)
                if number == 1:  # directions of the largest moments first; the mean squares are reordered likewise
                    basis = _eigenvectors(moments).flip(1)
                elif number % TURN_EVERY == 0:
                    order = (basis * (moments @ basis)).sum(dim=0).argsort(descending=True)
                    basis = torch.linalg.qr(moments @ basis[:, order])[0]
                    state["exp_avg_sq"] = state["exp_avg_sq"].index_select(dim, order)
                # contiguous, as a checkpoint restores it: products of another memory layout would round differently
                state[f"{side}_basis"] = basis.contiguous()
            state["exp_avg"].lerp_(gradient, 1 - decay)
            state["exp_avg_sq"].lerp_(_turned(gradient, state).square(), 1 - decay)
            started = 1 - decay**number
            mean, scale = _turned(state["exp_avg"], state) / started, (state["exp_avg_sq"] / started).sqrt()
            step = _turned(mean / (scale + TINY), state, back=True)
            parameter.sub_(step.view_as(parameter), alpha=options["lr"])


def soap_tensors(parameter: Tensor) -> dict[str, Tensor]:
    """Return the tensors that SOAP stores for a parameter of any shape before the first step, by name, without
    `step`."""
    shape = parameter.shape
    matrix = (shape[0], shape[1:].numel()) if len(shape) > 1 else tuple(shape)
    tensors = {"exp_avg": parameter.new_zeros(matrix), "exp_avg_sq": parameter.new_zeros(matrix)}
    for side, length in zip(SIDES, matrix, strict=False):
        if len(matrix) > 1 and length <= LARGEST_SIDE:
            tensors[f"{side}_moments"] = parameter.new_zeros(length, length)
            tensors[f"{side}_basis"] = torch.eye(length, dtype=parameter.dtype, device=parameter.device)
    return tensors


def _eigenvectors(moments: Tensor) -> Tensor:
    """Return the eigenvectors of a symmetric (n, n) matrix as columns, in the order of ascending eigenvalues.

    The computation is repeated in float64, because in float32 LAPACK may return NaN or raise an error for a matrix of
    rank one, such as the moments of a layer with a single output.
    """
    wide = torch.linalg.eigh(moments.double())[1].to(moments.dtype)
    try:
        narrow = torch.linalg.eigh(moments)[1]
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        return wide
    return torch.where(narrow.isfinite().all(), narrow, wide)  # decided on the device, without a copy to the host


def _turned(matrix: Tensor, state: dict[str, Tensor], back: bool = False) -> Tensor:
    """Return a matrix rotated into the bases in the state of its parameter or, with `back`, rotated back."""
    if "left_basis" in state:
        matrix = (state["left_basis"] if back else state["left_basis"].T) @ matrix
    if "right_basis" in state:
        matrix = matrix @ (state["right_basis"].T if back else state["right_basis"])
    return matrix


class PlainAdam(Adam):
    """PyTorch's Adam without the wrappers that exclude its methods from `torch.compile`. The wrappers import the
    compiler, which takes two seconds, and are not needed because no step of an optimiser is compiled here."""

    add_param_group, zero_grad = unwrap(Adam.add_param_group), unwrap(Adam.zero_grad)
    state_dict, load_state_dict = unwrap(Adam.state_dict), unwrap(Adam.load_state_dict)
    step = torch.no_grad()(unwrap(Adam.step))


def make_adam(parameters: Iterable[Tensor], lr: float) -> Adam:
    """Return Adam for float parameters of any shape. On a GPU, Adam's step count is a tensor on the GPU, so that no
    step waits for a copy."""
    parameters = list(parameters)
    return PlainAdam(parameters, lr=lr, capturable=parameters[0].is_cuda)


OPTIMISERS = {
    "adam": OptimiserKind(make_adam, lambda p: {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}),
    "soap": OptimiserKind(SOAP, soap_tensors),
}
"""Kinds of optimisers by name."""


def one_cycle(progress: float) -> float:
    """Return the learning rate of the schedule one-cycle, as a fraction of its peak, at a progress from 0 to 1.

    The fraction rises from 1/25 to 1 during the first 10 % of the updates and then falls to 1e-5, both along a cosine
    (Smith & Topin, "Super-Convergence").
    """
    start, end, part = START, 1.0, progress / RISE
    if progress >= RISE:
        start, end, part = 1.0, END, (progress - RISE) / (1 - RISE)
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


SCHEDULES: dict[str, Callable[[float], float]] = {"constant": lambda progress: 1.0, "one-cycle": one_cycle}
"""Schedules by name: functions from the finished fraction of the updates to the learning rate as a fraction of the
peak."""
