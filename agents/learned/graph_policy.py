"""What `GCN` and `GAT` share: iterations by a layer of torch_geometric over the graph of a maze's tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .. import graphs as _graphs  # noqa: F401 - it says how to install torch_geometric, and silences its import
from ..policy import Policy
from .arguments import TASK_OF_TILES, check_shape, names_of_channels
from .tile_graphs import TileGraphs


class GraphPolicy(Policy):
    """One layer over the maze and the state at the tiles that are nodes, then a ReLU; the state of other tiles is 0.

    Subclasses say what the layer reads of the graph. Skip connections, the last iteration without a ReLU, and what
    becomes of the negative values that it leaves are as in `NCA`. A layer computes in the dtype of its weights.

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels; the first is the predicted path.
        shared_weights: the same weights at every iteration; otherwise each of n_layers has its own, chosen by `step`.
        n_layers: iterations of an episode. None, with shared weights only, for episodes without a last iteration.
        traversable_edges_only: nodes are the tiles that are no walls, not all tiles.
        make_layer: (T + C, C) -> a layer from as many to as many features of a node. It adds no self-loops: the graph
            has them.
        channel_names: of the C channels, "path" first; made up by default.
        generator: draws the initial weights as torch_geometric does, uniform by Glorot's rule; biases are 0. By default
            a fresh one with seed 0.

    Attributes:
        layers: one or n_layers modules.

    Raises:
        ValueError: an argument of the wrong type or out of range.
    """

    def __init__(
        self,
        n_tiles: int,
        n_channels: int,
        shared_weights: bool,
        n_layers: int | None,
        *,
        traversable_edges_only: bool,
        make_layer: Callable[[int, int], nn.Module],
        channel_names: Sequence[str] | None,
        generator: torch.Generator | None,
    ) -> None:
        check_shape(n_tiles, n_channels, shared_weights, n_layers)
        super().__init__(TASK_OF_TILES[n_tiles], n_tiles, names_of_channels(channel_names, n_channels))
        self.shared_weights = shared_weights
        self.n_layers = n_layers
        self.traversable_edges_only = traversable_edges_only
        self.uses_step = n_layers is not None
        n_kernels = 1 if n_layers is None or shared_weights else n_layers
        self.layers = nn.ModuleList(_undrawn(make_layer, n_tiles + n_channels, n_channels) for _ in range(n_kernels))
        self._draw(generator or torch.Generator().manual_seed(0))

    def convolve(self, layer: nn.Module, graphs: TileGraphs, x: Tensor) -> Tensor:
        """The layer's output, (n, C), for (n, T + C) features of the nodes."""
        raise NotImplementedError

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            if parameter.ndim == 1:
                parameter.zero_()
            else:
                bound = math.sqrt(6 / (parameter.shape[-2] + parameter.shape[-1]))
                parameter.uniform_(-bound, bound, generator=generator)

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make a network of this shape: JSON-serialisable."""
        return {
            "n_tiles": self.n_tiles,
            "n_channels": self.n_channels,
            "shared_weights": self.shared_weights,
            "n_layers": self.n_layers,
            "channel_names": list(self.channel_names),
        }

    @property
    def n_weights(self) -> int:
        """Number of entries of the weight matrices, without biases and vectors of attention, as the paper counts."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.ndim == 2)

    def _layer(self, step: int) -> nn.Module:
        if self.shared_weights:
            return self.layers[0]
        if not 0 <= step < len(self.layers):
            raise ValueError(
                f"this network has weights for {len(self.layers)} iterations, steps 0 to {len(self.layers) - 1}; "
                f"there are none for step {step}"
            )
        return self.layers[step]

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """One iteration.

        Raises:
            ValueError: weights are not shared, and there are none for this step.
        """
        return self.advance(self.share(maze), state, step)

    @property
    def same_share(self) -> bool:
        """That `share` is the same at every step."""
        return True

    def share(self, maze: Tensor, step: int = 0) -> TileGraphs:
        """The graphs of (B, T, H, W) mazes, the same at every step.

        Build them once a rollout and call `advance`, and the states are the same to the bit.
        """
        return TileGraphs.of(maze, self.traversable_edges_only)

    def advance(self, share: TileGraphs, state: Tensor, step: int = 0) -> Tensor:
        """The next state, from the mazes' graphs and the (B, C, H, W) state."""
        layer = self._layer(step)
        x = torch.cat([share.features, share.gather(state.clamp(min=0))], dim=1)
        convolved = self.convolve(layer, share, x.to(next(layer.parameters()).dtype))
        if self.n_layers is None or step != self.n_layers - 1:
            convolved = convolved.relu()
        return share.scatter(convolved, state)


def _undrawn(make_layer: Callable[[int, int], nn.Module], n_inputs: int, n_outputs: int) -> nn.Module:
    """A layer whose values are still to be drawn; made with values, it would draw on the global generator."""
    with torch.device("meta"):
        layer = make_layer(n_inputs, n_outputs)
    return layer.to_empty(device=torch.get_default_device())
