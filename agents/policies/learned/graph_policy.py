"""Base class of `GCN` and `GAT`: a layer of torch_geometric, iterated on the graph of a maze's tiles.

On a CPU a batch of mazes is one graph, built from their one-hot tiles without loops over tiles or mazes. The number of
nodes depends on the mazes, so on another device the host would have to wait until the device has counted them. On such
devices the same layer is instead computed at all tiles, from their five padded neighbours, without waiting and with
sums in a fixed order.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import offsets
from maze_nca_gym.support.doors import needing

from .base import LearnedPolicy

needs_geometric = needing('graph networks need torch_geometric: run `pip install "maze-nca-gym[gnn]"`')
with needs_geometric, warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its import calls torch.jit.script
    import torch_geometric.nn  # noqa: F401 - for the layers of subclasses

NEIGHBOURHOOD = (*offsets("C"), *offsets("N4"))
"""Offsets (rows down, columns to the right) of the tiles that a tile reads: the tile itself, up, left, down, right."""


class TileGraphs(NamedTuple):
    """The graphs of B mazes of H x W tiles as one graph without edges between mazes, with n nodes and E directed edges.

    Every node is joined to itself and to those of its four neighbours that are nodes.

    Attributes:
        nodes: (n,) int64, the tiles that are nodes, as indices into the B H W tiles in row-major order.
        features: (n, T) floats, the one-hot tiles at the nodes.
        edge_index: (2, E) int64. Row 0 contains the nodes that are read, and row 1 the nodes that read them, in
            ascending order.
        positions: (E, 2) floats, the offset from the reading node to the node that is read, as rows down and columns to
            the right: (-1, 0), (0, -1), (1, 0), (0, 1), or (0, 0) for the node itself.
    """

    nodes: Tensor
    features: Tensor
    edge_index: Tensor
    positions: Tensor

    @classmethod
    def of(cls, maze: Tensor, traversable_only: bool) -> TileGraphs:
        """Return the graphs of (B, T, H, W) one-hot mazes.

        Args:
            maze: (B, T, H, W) floats.
            traversable_only: whether walls are not nodes; otherwise all tiles are nodes.
        """
        wall = maze[:, Tile.WALL] != 0
        is_node = ~wall if traversable_only else torch.ones_like(wall)
        nodes = is_node.flatten().nonzero()[:, 0]
        numbers = (is_node.flatten().cumsum(0) - 1).view_as(is_node).masked_fill(~is_node, -1)
        read = around(numbers, outside=-1)[is_node]
        reader, direction = (read >= 0).nonzero(as_tuple=True)
        return cls(
            nodes,
            _rows(maze).index_select(0, nodes),
            torch.stack([read[reader, direction], reader]),
            maze.new_tensor(NEIGHBOURHOOD).index_select(0, direction),
        )

    def gather(self, grid: Tensor) -> Tensor:
        """Return the values of a (B, C, H, W) grid of floats at the nodes, (n, C)."""
        return _rows(grid).index_select(0, self.nodes)

    def scatter(self, rows: Tensor, like: Tensor) -> Tensor:
        """Return a grid of the shape and dtype of `like` with the (n, C) values of the nodes, and 0 at other tiles."""
        batch, channels, height, width = like.shape
        grid = like.new_zeros(batch * height * width, channels).index_copy(0, self.nodes, rows.to(like.dtype))
        return grid.view(batch, height, width, channels).permute(0, 3, 1, 2)


class TileMaps(NamedTuple):
    """The nodes and their neighbours as maps of B mazes of H x W tiles, with shapes that do not depend on the mazes.

    Attributes:
        maze: (B, T, H, W) floats, the one-hot tiles.
        there: (B, 1, H, W, 5) bool, in the order of `NEIGHBOURHOOD`: whether the tile and its neighbour are both nodes.
        degrees: (B, 1, H, W) floats, the number of nodes that the tile reads, itself included; 1 at tiles that are not
            nodes.
    """

    maze: Tensor
    there: Tensor
    degrees: Tensor

    @classmethod
    def of(cls, maze: Tensor, traversable_only: bool) -> TileMaps:
        """Return the maps of (B, T, H, W) one-hot mazes.

        Args:
            maze: (B, T, H, W) floats.
            traversable_only: whether walls are not nodes; otherwise all tiles are nodes.
        """
        wall = maze[:, Tile.WALL : Tile.WALL + 1] != 0
        is_node = ~wall if traversable_only else torch.ones_like(wall)
        there = around(is_node) & is_node[..., None]
        return cls(maze, there, there.sum(dim=-1).clamp(min=1).to(maze.dtype))


def around(grid: Tensor, outside: float = 0) -> Tensor:
    """Return the values of a (..., H, W) grid at the tiles of `NEIGHBOURHOOD`, (..., H, W, 5).

    Neighbours outside the grid have the value `outside`.
    """
    height, width = grid.shape[-2:]
    padded = F.pad(grid, (1, 1, 1, 1), value=outside)
    shifted = [padded[..., 1 + row : 1 + row + height, 1 + col : 1 + col + width] for row, col in NEIGHBOURHOOD]
    return torch.stack(shifted, dim=-1)


def _rows(grid: Tensor) -> Tensor:
    """Reshape (B, C, H, W) to (B H W, C)."""
    return grid.permute(0, 2, 3, 1).flatten(0, 2)


class GraphPolicy(LearnedPolicy):
    """One layer over the maze and the state at the tiles that are nodes, then a ReLU; the state of other tiles is 0.

    Subclasses define the features of the graph that the layer reads. The maze is an input of every iteration. The last
    iteration has no ReLU, and the next iteration reads negative values as zeros, as in `NCA`. A layer computes in the
    dtype of its weights. The constructor of a subclass ends with `_add_layers`.

    Attributes:
        traversable_edges_only: whether walls are not nodes; otherwise all tiles are nodes.
        layers: one or n_iterations modules.
    """

    traversable_edges_only = True

    def _add_layers(self, make_layer: Callable[[int, int], nn.Module], generator: torch.Generator | None) -> None:
        """Make the layers, and draw their weights as torch_geometric does: uniform by Glorot's rule, biases 0.

        Args:
            make_layer: a function of (T + C, C) that returns a layer from T + C to C features of a node. The layer must
                not add self-loops, because the graph contains them.
            generator: draws the weights; by default a fresh one with seed 0.
        """
        with torch.device("meta"):  # where a layer's own initialisation does not advance the global generator
            shape = self.n_tiles + self.n_channels, self.n_channels
            layers = nn.ModuleList(make_layer(*shape) for _ in range(self.n_layers))
        self.layers = layers.to_empty(device=torch.get_default_device()).float()
        self._draw(generator or torch.Generator().manual_seed(0))

    @abstractmethod
    def convolve(self, layer: nn.Module, graphs: TileGraphs, x: Tensor) -> Tensor:
        """Return the layer's output, (n, C), for (n, T + C) float features of n nodes."""
        raise NotImplementedError

    @abstractmethod
    def convolve_maps(self, layer: nn.Module, maps: TileMaps, y: Tensor) -> Tensor:
        """Return the layer's output at all tiles, (B, C, H, W), without the bias.

        Args:
            layer: the layer.
            maps: the nodes and their neighbours.
            y: (B, C, H, W) floats, the layer's matrix W times the inputs [m, max(x, 0)] of each tile.
        """
        raise NotImplementedError

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            if parameter.ndim == 1:
                parameter.zero_()
            else:
                bound = math.sqrt(6 / (parameter.shape[-2] + parameter.shape[-1]))
                parameter.uniform_(-bound, bound, generator=generator)

    @torch.no_grad()
    def draw_as_published(self, generator: torch.Generator) -> None:
        """Draw weights and biases again as the paper's code does: normal with standard deviation 0.01.

        Attention vectors keep their values.
        """
        for name, parameter in self.named_parameters():
            if name.endswith((".lin.weight", ".bias")):
                parameter.normal_(0, 0.01, generator=generator)

    @property
    def n_weights(self) -> int:
        """Number of entries of the weight matrices, without biases and attention vectors, as the paper counts."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.ndim == 2)

    def encode_maze(self, maze: Tensor) -> TileGraphs | TileMaps:
        """Return the graphs of (B, T, H, W) float mazes, which are the same at every step; on other devices than a CPU,
        their maps."""
        return (TileGraphs if maze.is_cpu else TileMaps).of(maze, self.traversable_edges_only)

    def update(self, encoded: TileGraphs | TileMaps, state: Tensor, step: int) -> Tensor:
        """Return the next state, (B, C, H, W), from the result of `encode_maze` and the (B, C, H, W) float state.

        Raises:
            ValueError: the weights are not shared, and there are none for this step.
        """
        layer: Any = self.layers[self._layer_of(step)]
        if isinstance(encoded, TileMaps):
            inputs = torch.cat([encoded.maze, state.clamp(min=0)], dim=1)
            y = F.conv2d(inputs.to(layer.bias.dtype), layer.lin.weight[:, :, None, None])
            convolved = self.convolve_maps(layer, encoded, y) + layer.bias[:, None, None]
            convolved = convolved if step == self.unbounded else convolved.relu()
            return (convolved * encoded.there[..., 0]).to(state.dtype)
        x = torch.cat([encoded.features, encoded.gather(state.clamp(min=0))], dim=1)
        convolved = self.convolve(layer, encoded, x.to(next(layer.parameters()).dtype))
        if step != self.unbounded:
            convolved = convolved.relu()
        return encoded.scatter(convolved, state)
