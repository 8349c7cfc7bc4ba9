"""Base class of the hand-coded automata: one convolution from a table of weights, then activations.

Every activation consists of ReLUs (paper, appendix "Hand-coded NCA"). The paper prints step(0) = 1, and a sawtooth that
ends at 1 instead of 0. Both are misprints, because an empty channel would switch itself on (docs/paper-errata.md). The
functions here follow the paper's text and the way in which the paper uses them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym.envs.dynamics import STATE_LIMIT

from ..guarantees import EARNED, Guarantees, StepBound
from ..identity import altered, speaks_for
from ..policy import EngineHints, Policy
from ..program import Program
from .weight_table import WeightTable, convolve


def step(x: Tensor) -> Tensor:
    """Return relu(x) - relu(x - 1) of (...) floats: 0 for x <= 0, x between 0 and 1, and 1 for x >= 1."""
    return x.clamp(0, 1)


def sawtooth(x: Tensor, peak: float) -> Tensor:
    """Return relu(1 - relu(x - peak) - relu(peak - x)) of (...) floats: 1 at the peak, 0 at distance 1 or more."""
    return torch.relu(1 - (x - peak).abs())


def global_max(x: Tensor) -> Tensor:
    """Return the maximum of each channel over each maze, (B, C, H, W) floats -> (B, C, 1, 1)."""
    return x.amax(dim=(2, 3), keepdim=True)


def global_min(x: Tensor) -> Tensor:
    """Return the minimum of each channel over each maze, (B, C, H, W) floats -> (B, C, 1, 1)."""
    return x.amin(dim=(2, 3), keepdim=True)


class HandcodedNCA(Policy):
    """One convolution over [static channels, state] with the weights of a table, then activations.

    A subclass defines `activate`, and further methods where the defaults do not fit:

    - `encode_maze`, if the static channels are not the channels of the maze;
    - `largest_count`, if a channel counts;
    - `finished`, if a state shows whether the policy has finished.

    The weights are ordinary parameters: gradients flow through a rollout, and an optimiser may change them. Mazes
    without a source, target or free tile are legal, and so is every size on which the channels still count exactly.

    The convolution is exact for integers, and has the same bits in both of its implementations. With gradients or on a
    GPU it runs in float64, which TF32, autocast and the inexact transforms of fast convolutions do not affect. Without
    gradients on a CPU, it computes with the non-zero weights only (`weight_table`), as long as the weights are equal to
    the table.

    Args:
        task: a name in `maze_nca_gym.mazes.tasks.TASKS`.
        n_tiles: channels of the one-hot maze.
        table: the weights as data.
        bound: the iterations within which every maze is finished, or None if no bound is known.
        basis: how the bound is known: "argued and tested" if the policy counts as exact, or "stated".

    Raises:
        TypeError: a subclass without `activate`.
        ValueError: a table with other inputs than `encode_maze` returns, or a bad task or channel.

    Attributes:
        table: the weights as data.
        weight: (C, S + C, k, k), one convolution over S static and C state channels.
        bias: (C,).
        rule: name of the activations in exported files, or None if the activations exist in Python only.
        sum_dtype: dtype of the convolution with gradients or on a GPU, float64. Exported files use float32, because
            many other programs have no float64 convolution. Then the convolution is exact in float32 arithmetic, but
            not with TF32 or fast convolutions.
    """

    rule: str | None = None
    sum_dtype = torch.float64
    stationary_from = 0
    engine_hints = EngineHints(gains_from_threads=False)

    def __init__(
        self, task: str, n_tiles: int, table: WeightTable, bound: StepBound | None = None, *, basis: str = "stated"
    ) -> None:
        name = type(self).__name__
        if type(self).activate is HandcodedNCA.activate:
            raise TypeError(f"{name} must define activate(convolved, state, static), which returns the next state")
        if type(self).encode_maze is Policy.encode_maze and len(table.inputs) != n_tiles:
            raise ValueError(
                f"the table of {name} has {len(table.inputs)} inputs, but a maze of the task {task} has {n_tiles} "
                "channels: name these as its inputs, or define encode_maze(maze), which returns the inputs"
            )
        super().__init__(task, n_tiles, [channel.name.lower() for channel in table.channels])
        weight, bias = table.convolution()
        self.table = table
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias)
        self._table_weight, self._table_bias = weight.clone(), bias.clone()
        # a subclass that changes the iterations does not inherit the statements about a class of this package
        basis, other = "" if bound is None else basis, ", ".join(altered(self))
        stated = Guarantees(exact=basis in EARNED, bound=bound, basis=basis)
        self.guarantees = stated.without(f"the class {name} changes {other}") if other else stated

    @abstractmethod
    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        """Return the next state, (B, C, H, W) floats.

        Args:
            convolved: (B, C, H, W) floats, the output of the convolution.
            state: (B, C, H, W) floats, the previous state.
            static: (B, S, H, W) floats, the static channels.
        """
        raise NotImplementedError

    def largest_count(self, height: int, width: int) -> int:
        """Return the largest integer that any channel or intermediate result reaches on mazes of this size.

        By default this is the largest sum of the table with inputs and channels between -1 and 1, because `step` and
        `sawtooth` return only such values. An automaton that counts, or reads larger inputs, has to define this method.
        """
        return self.table.largest_sum

    def program(self) -> Program | None:
        """Return an iteration as data, or None if the activations exist in Python only."""
        if self.rule is None:
            return None
        inputs, size = tuple(channel.name.lower() for channel in self.table.inputs), self.weight.shape[-1]
        return Program(self.rule, inputs, self.weight.flatten(2), self.bias, size, tuple(range(size**2)))

    def update(self, encoded: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, C, H, W), from (B, S, H, W) static channels, by the same function at every step.

        Raises:
            ValueError: the maze is so large that the state's dtype would not count exactly.
        """
        largest, limit = self.largest_count(*state.shape[2:]), min(2 / torch.finfo(state.dtype).eps, STATE_LIMIT)
        if largest > limit:  # 2**24 in float32, 256 in bfloat16
            raise ValueError(
                f"on mazes of {state.shape[2]} x {state.shape[3]} tiles this automaton counts to {largest}, "
                f"but {state.dtype} states are exact only up to {limit:.0f}"
            )
        # reading them as attributes of a module would be slow
        weight, bias = (cast(Tensor, self._parameters[name]) for name in ("weight", "bias"))
        gradients = torch.is_grad_enabled()
        plain = all(
            tensor.is_cpu and tensor.dtype == torch.float32 and not (gradients and tensor.requires_grad)
            for tensor in (encoded, state, weight, bias)
        )
        same = plain and torch.equal(weight, self._table_weight) and torch.equal(bias, self._table_bias)
        if same and speaks_for(self, "step_by_table"):
            return self.step_by_table(encoded, state)
        return self.activate(self.convolve(encoded, state), state, encoded)

    def convolve(self, static: Tensor, state: Tensor) -> Tensor:
        """Return the convolution of (B, S, H, W) static channels and a (B, C, H, W) state, (B, C, H, W); exact for
        integers."""
        channels = torch.cat([static, state], dim=1).to(self.sum_dtype)
        weight, bias = self.weight.to(self.sum_dtype), self.bias.to(self.sum_dtype)
        return F.conv2d(channels, weight, bias, padding=self.weight.shape[-1] // 2).to(state.dtype)

    def step_by_table(self, static: Tensor, state: Tensor) -> Tensor:
        """Return the next state, (B, C, H, W), computed with the table's non-zero weights only; for float32 on a CPU
        without gradients."""
        return self.activate(convolve(static, state, self.table.taps), state, static)


Activation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A function of the convolution's output and the previous state that returns the next state, all (B, C, H, W)."""


@dataclass(frozen=True)
class Form:
    """A variant of the automaton that floods a maze and extracts its shortest path.

    Attributes:
        table: the weights.
        activate: the activations.
        steps_per_edge: the path is complete after exactly `steps_per_edge * length + 2` iterations, for a shortest path
            of `length` edges.
        highlight: the channel that pictures show in addition to the path.
        counts: whether the values of that channel grow forever, so that the state never reaches a fixed point.
        rule: name of the activations in exported files, or None if the activations exist in Python only.
        fused: a function of a maze and a state that computes the next state by faster code, for float32 on a CPU
            without gradients, or None if there is no faster code.
    """

    table: WeightTable
    activate: Activation
    steps_per_edge: int
    highlight: IntEnum
    counts: bool = True
    rule: str | None = None
    fused: Callable[[Tensor, Tensor], Tensor] | None = None
