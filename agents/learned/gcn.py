"""The learned graph convolution (paper, section "Experimental setup", and the table of graph representations)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .arguments import check_flags
from .graph_policy import GraphPolicy
from .tile_graphs import TileGraphs


class GCN(GraphPolicy):
    """One graph convolution (Kipf and Welling) over the maze and the state, then a ReLU.

    A node p is a tile that is no wall, N(p) the up to four nodes next to it and p itself. With the maze m,
    (B, T, H, W), and the state x, (B, C, H, W),

        x_{t+1}(p) = relu(b + W sum_{q in N(p)} [m(q), max(x_t(q), 0)] / sqrt(|N(p)| |N(q)|)),    x_0 = 0.

    For all n nodes of a batch, with M, (n, T), and X, (n, C), their tiles and states, and with the adjacency A,
    (n, n), block-diagonal with a block for each maze,

        X_{t+1} = relu(D^(-1/2) (A + I) D^(-1/2) [M, max(X_t, 0)] W' + 1 b'),    D = diag((A + I) 1).

    All neighbours have the same weights, so that a turned or mirrored maze gives the turned or mirrored state. The
    last iteration, that of `step` n_layers - 1, has no ReLU; what follows it is as in `NCA`. Alone or in a batch, a
    maze's states agree but for rounding, since a matrix product may add in another order.

    `n_weights` is C (T + C) for each layer that has its own. The paper's table of GNN architectures counts unshared
    layers so, too. The rows of its table of graph representations pool trials with shared and with separate weights:
    what it counts is the mean of both.

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels; the first is the predicted path.
        shared_weights: the same weights at every iteration; otherwise each of n_layers has its own, chosen by `step`.
        n_layers: iterations of an episode. None, with shared weights only, for episodes without a last iteration:
            each ends with the ReLU.
        traversable_edges_only: walls are no nodes, and their state is 0. Otherwise every tile is a node, joined to all
            its neighbours, and walls are seen only in the maze's channels.
        channel_names: of the C channels, "path" first; made up by default.
        generator: draws the initial weights, uniform within +-sqrt(6 / (T + 2 C)); biases are 0. By default a fresh
            one with seed 0.

    Attributes:
        layers: one or n_layers `torch_geometric.nn.GCNConv`, each with W, (C, T + C), and b, (C,).

    Raises:
        ValueError: an argument of the wrong type or out of range.
        gymnasium.error.DependencyNotInstalled: when imported without torch_geometric, the optional extra `gnn`.
    """

    def __init__(
        self,
        n_tiles: int,
        n_channels: int,
        shared_weights: bool = True,
        n_layers: int | None = 32,
        traversable_edges_only: bool = True,
        *,
        channel_names: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        from torch_geometric.nn import GCNConv  # here, where `graph_policy` has already said what is missing

        check_flags(traversable_edges_only=traversable_edges_only)
        super().__init__(
            n_tiles,
            n_channels,
            shared_weights,
            n_layers,
            traversable_edges_only=traversable_edges_only,
            make_layer=partial(GCNConv, add_self_loops=False),
            channel_names=channel_names,
            generator=generator,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make a network of this shape: JSON-serialisable."""
        return {**super().arguments, "traversable_edges_only": self.traversable_edges_only}

    def convolve(self, layer: nn.Module, graphs: TileGraphs, x: Tensor) -> Tensor:
        """Read the neighbours, all alike."""
        return layer(x, graphs.edge_index)
