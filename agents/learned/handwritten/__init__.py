"""Weights, written by hand, with which an `NCA` solves every maze exactly.

The learned architecture, one convolution, a ReLU and at most one maximum over the map, can do what the hand-coded
automata do with more: these weights are the proof, a start for fine-tuning, and the ceiling for what training finds.
"""

from __future__ import annotations

from ..nca import NCA
from . import diameter, shortest_path

_TABLES = {"shortest-path": (shortest_path.TABLE, False), "diameter": (diameter.TABLE, True)}
"""Name -> weights, and whether they need the maximum over the map."""
NETWORKS = tuple(_TABLES)


def network(name: str) -> NCA:
    """A network of `NETWORKS` by name, whose episodes have no last iteration."""
    table, max_pool = _TABLES[name]
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
    return nca
