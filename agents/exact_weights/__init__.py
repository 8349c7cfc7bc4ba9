"""Weights, written by hand, with which an `NCA` solves every maze exactly.

The learned architecture, one convolution, a ReLU and at most one maximum over the map, can do what the hand-coded
automata do with more: these weights show it. They are the best that training could find. That they are exact is
argued in their modules and tested, not proven by machine.
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
        bound: the iterations within which it has finished.
        largest_count: number of tiles -> the largest number that it adds up, in units of the smallest.
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

For the diameter: at most L + 5 for each tile; 2 H (W + 1) <= 4 A where the scout is late. The last path adds
2 L + 5.
"""


def stays_exact(kernel: Tensor, bias: Tensor, dtype: torch.dtype, n_tiles: int) -> bool:
    """Return whether a convolution has the weights of one of `NETWORKS`, and counts exactly in a dtype on a map.

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
    return bool(largest) and largest[0] <= 2 / torch.finfo(dtype).eps  # up to there all integers are numbers of it


@cache
def _convolution(name: str) -> tuple[Tensor, Tensor]:
    return NETWORKS[name].table.convolution()
