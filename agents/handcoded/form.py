"""A hand-coded shortest-path automaton as a value: its weights, its activations and what they promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from torch import Tensor

from .kernels import WeightTable

Activation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(the convolution's output, the previous state) -> the next state, all (B, C, H, W)."""


@dataclass(frozen=True)
class Form:
    """One way to flood a maze and extract its shortest path.

    Attributes:
        table: the weights.
        activate: the activations.
        steps_per_edge: the path is complete after exactly `steps_per_edge * length + 2` iterations, for a shortest path
            of `length` edges.
        counters: channels that count forever, so that they never come to rest.
        fused: the same step in one pass, from (maze, state), float32 on a CPU and without gradients; for speed.
    """

    table: WeightTable
    activate: Activation
    steps_per_edge: int
    counters: frozenset[IntEnum]
    fused: Callable[[Tensor, Tensor], Tensor] | None = None
