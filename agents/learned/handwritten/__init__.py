"""Weights, written by hand, with which an `NCA` solves every maze exactly.

The learned architecture, one convolution, a ReLU and at most one maximum over the map, can do what the hand-coded
automata do with more: these weights show it. They are a start for fine-tuning, and the ceiling for what training finds.
That they are exact is argued in their modules and tested, not proven by machine.
"""

from __future__ import annotations

from functools import cache

import torch

from ...promises import Promises, StepBound
from ..nca import NCA
from . import diameter, shortest_path

_TABLES = {
    "shortest-path": (shortest_path.TABLE, False, StepBound(constant=2, per_move=2)),
    "diameter": (diameter.TABLE, True, StepBound(constant=5, per_move=2, per_tile=9, per_move_and_tile=1)),
}
"""Weights by name, whether they need the maximum over the map, and a bound of their iterations.

For the diameter: at most L + 5 for each tile, 2 H (W + 1) <= 4 A where the scout is late, and 2 L + 5 for the last
path.
"""
NETWORKS = tuple(_TABLES)


def network(name: str) -> NCA:
    """Return a network of `NETWORKS` by name, whose episodes have no last iteration."""
    table, max_pool, bound = _TABLES[name]
    nca = NCA(
        n_tiles=len(table.inputs),
        n_channels=len(table.channels),
        kernel_size=table.kernel_size,
        cut_corners=True,
        n_layers=None,
        max_pool=max_pool,
        channel_names=[channel.name.lower() for channel in table.channels],
    )
    nca.set_kernel(*table.convolution())
    nca.promises = Promises(exact=True, bound=bound)
    return nca


def stays_exact(model: NCA, dtype: torch.dtype, n_tiles: int) -> bool:
    """Return whether a network has the weights of one of `NETWORKS`, and counts exactly in a dtype on `n_tiles` tiles.

    The shortest path holds multiples of 1/2 whose sums stay below 128: 8 significant bits are enough, as bfloat16 has.
    The diameter counts to the number of free tiles at most.
    """
    name = next((name for name in NETWORKS if _is_of(model, name)), None)
    return name == "shortest-path" or (name == "diameter" and n_tiles <= 2 / torch.finfo(dtype).eps)


def _is_of(model: NCA, name: str) -> bool:
    weight, bias = _weights(name)
    own = model.weights[0].detach().to("cpu", torch.float32), model.biases[0].detach().to("cpu", torch.float32)
    return len(model.weights) == 1 and torch.equal(own[0], weight) and torch.equal(own[1], bias)


@cache
def _weights(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    model = network(name)
    return model.weights[0].detach(), model.biases[0].detach()
