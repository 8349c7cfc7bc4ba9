"""The learned graph attention network (paper, appendix, table of GNN architectures)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .arguments import check_flags
from .graph_policy import GraphPolicy
from .tile_graphs import TileGraphs


class GAT(GraphPolicy):
    """One layer of graph attention (Velickovic et al.), a single head, over the maze and the state, then a ReLU.

    A node p is a tile that is no wall, N(p) the up to four nodes next to it and p itself. With the maze m,
    (B, T, H, W), the state x, (B, C, H, W), and y_t(p) = W [m(p), max(x_t(p), 0)],

        x_{t+1}(p) = relu(b + sum_{q in N(p)} a(p, q) y_t(q)),    x_0 = 0,
        a(p, q) = softmax over q in N(p) of leaky_relu(s y_t(q) + r y_t(p) + e V (q - p)),

    where leaky_relu has slope 0.2 below 0, and the last term is there with edge features only: q - p is the place of q
    as seen from p, (rows down, columns to the right), (0, 0) for p itself. Without it a turned or mirrored maze gives
    the turned or mirrored state; with it the layer can tell its neighbours apart.

    For all n nodes of a batch, with M, (n, T), and X, (n, C), their tiles and states,

        X_{t+1} = relu(P_t Y_t + 1 b'),    Y_t = [M, max(X_t, 0)] W',

    where P_t, (n, n), has a(p, q) in row p and column q: its rows sum to 1, and it is block-diagonal with a block for
    each maze. The last iteration, that of `step` n_layers - 1, has no ReLU; what follows it is as in `NCA`. Alone or in
    a batch, a maze's states agree but for rounding, since a matrix product may add in another order.

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels; the first is the predicted path.
        shared_weights: the same weights at every iteration; otherwise each of n_layers has its own, chosen by `step`.
        n_layers: iterations of an episode. None, with shared weights only, for episodes without a last iteration:
            each ends with the ReLU.
        edge_features: attention knows where a neighbour is.
        channel_names: of the C channels, "path" first; made up by default.
        generator: draws the initial weights, uniform within +-sqrt(6 / (rows + columns)) of their matrix; biases are
            0. By default a fresh one with seed 0.

    Attributes:
        layers: one or n_layers `torch_geometric.nn.GATConv`, each with W, (C, T + C), and b, (C,); the vectors of
            attention s, r and e, (C,) each; and V, (C, 2). `n_weights` counts W and V only.

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
        edge_features: bool = False,
        *,
        channel_names: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        from torch_geometric.nn import GATConv  # here, where `graph_policy` has already said what is missing

        check_flags(edge_features=edge_features)
        super().__init__(
            n_tiles,
            n_channels,
            shared_weights,
            n_layers,
            traversable_edges_only=True,
            make_layer=partial(GATConv, add_self_loops=False, edge_dim=2 if edge_features else None),
            channel_names=channel_names,
            generator=generator,
        )
        self.edge_features = edge_features

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make a network of this shape: JSON-serialisable."""
        return {**super().arguments, "edge_features": self.edge_features}

    def convolve(self, layer: nn.Module, graphs: TileGraphs, x: Tensor) -> Tensor:
        """Read the neighbours, each as much as attention says."""
        return layer(x, graphs.edge_index, graphs.positions.to(x.dtype) if self.edge_features else None)
