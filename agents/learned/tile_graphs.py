"""Batches of mazes as one graph, built from their one-hot tiles without a loop over tiles or mazes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.levels import Tile

from ..handcoded.weight_table import offsets

NEIGHBOURHOOD = (*offsets("C"), *offsets("N4"))
"""(rows down, columns to the right) from a tile to those that it reads: itself, up, left, down, right."""


class TileGraphs(NamedTuple):
    """The graphs of B mazes of H x W tiles: disjoint, n nodes and E directed edges in all.

    Every node is joined to its neighbours of the four directions, as far as they are nodes, and to itself.

    Attributes:
        nodes: (n,) int64, the tiles that are nodes, as places among the B H W tiles in row-major order.
        features: (n, T) floats, their one-hot tiles.
        edge_index: (2, E) int64. Row 0 has the nodes that are read, row 1 those that read them, in ascending order.
        positions: (E, 2) floats, the rows down and the columns to the right from the reader to the tile that it reads:
            (-1, 0), (0, -1), (1, 0), (0, 1), or (0, 0) for itself.
    """

    nodes: Tensor
    features: Tensor
    edge_index: Tensor
    positions: Tensor

    @classmethod
    def of(cls, maze: Tensor, traversable_only: bool) -> TileGraphs:
        """Make the graphs of (B, T, H, W) one-hot mazes: of all tiles, or of those that are no walls."""
        wall = maze[:, Tile.WALL] != 0
        is_node = ~wall if traversable_only else torch.ones_like(wall)
        nodes = is_node.flatten().nonzero()[:, 0]
        read, reader, direction = _edges(is_node)
        return cls(
            nodes,
            _rows(maze).index_select(0, nodes),
            torch.stack([read, reader]),
            maze.new_tensor(NEIGHBOURHOOD).index_select(0, direction),
        )

    def gather(self, grid: Tensor) -> Tensor:
        """Return the values of a (B, C, H, W) grid at the nodes, (n, C)."""
        return _rows(grid).index_select(0, self.nodes)

    def scatter(self, rows: Tensor, like: Tensor) -> Tensor:
        """Return values at the nodes, (n, C), as a grid with the shape and dtype of `like`, 0 at all other tiles."""
        batch, channels, height, width = like.shape
        grid = like.new_zeros(batch * height * width, channels).index_copy(0, self.nodes, rows.to(like.dtype))
        return grid.view(batch, height, width, channels).permute(0, 3, 1, 2)


def _rows(grid: Tensor) -> Tensor:
    """Reshape (B, C, H, W) to (B H W, C)."""
    return grid.permute(0, 2, 3, 1).flatten(0, 2)


def _edges(is_node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return three (E,) int64 tensors for (B, H, W) bool: the node read, its reader, the place in `NEIGHBOURHOOD`."""
    height, width = is_node.shape[1:]
    numbers = (is_node.flatten().cumsum(0) - 1).view_as(is_node).masked_fill(~is_node, -1)
    padded = F.pad(numbers, (1, 1, 1, 1), value=-1)
    shifted = [padded[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width] for down, right in NEIGHBOURHOOD]
    read = torch.stack(shifted, dim=-1)[is_node]
    reader, direction = (read >= 0).nonzero(as_tuple=True)
    return read[reader, direction], reader, direction
