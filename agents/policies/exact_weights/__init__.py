"""Weights, written by hand, with which an `NCA` solves every maze exactly.

They show that the learned architecture, a convolution, a ReLU and at most one maximum over the map, suffices for what
the hand-coded automata do with further operations. Training could find no better ones. That they are exact is argued
in their modules and tested, not proven by machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ..guarantees import StepBound
from ..handcoded.weight_table import WeightTable
from . import diameter_weights, shortest_path_weights


class Network(NamedTuple):
    """The parts of an exact `NCA`.

    Attributes:
        table: its weights.
        max_pool: whether it needs the maximum over the map.
        bound: the iterations within which it has finished every maze.
        largest_count: a function from the number of tiles to the largest sum, in units of the smallest step of values.
    """

    table: WeightTable
    max_pool: bool
    bound: StepBound
    largest_count: Callable[[int], int]


NETWORKS = {
    "shortest-path": Network(
        shortest_path_weights.TABLE,
        max_pool=False,
        bound=StepBound(constant=2, per_move=2),
        largest_count=lambda n_tiles: 256,  # sums stay below 128, in halves
    ),
    "diameter": Network(
        diameter_weights.TABLE,
        max_pool=True,
        bound=StepBound(constant=5, per_move=2, per_tile=9, per_move_and_tile=1),
        largest_count=lambda n_tiles: n_tiles,  # an eccentricity, plus 1
    ),
}
"""Exact networks by name, which `NCA.from_handcoded` makes.

The diameter's bound, for a diameter of L on A = H W tiles: waves take at most L + 5 iterations a tile, waiting for the
scout adds at most 2 H (W + 1) <= 4 A, and the last path 2 L + 5.
"""


def stays_exact(kernel: Tensor, bias: Tensor, dtype: torch.dtype, n_tiles: int) -> bool:
    """Return whether a convolution has the weights of one of `NETWORKS`, and is exact in a dtype on maps of a size.

    Args:
        kernel: (C, T + C, k, k), the same at every iteration.
        bias: (C,).
        dtype: the dtype of the computation.
        n_tiles: the number of tiles on the map.
    """
    own = [weight.detach().to("cpu", torch.float32) for weight in (kernel, bias)]
    largest = [
        network.largest_count(n_tiles)
        for name, network in NETWORKS.items()
        if all(map(torch.equal, own, _convolution(name)))
    ]
    return bool(largest) and largest[0] <= 2 / torch.finfo(dtype).eps  # up to there the dtype represents all integers


@cache
def _convolution(name: str) -> tuple[Tensor, Tensor]:
    return NETWORKS[name].table.convolution()
