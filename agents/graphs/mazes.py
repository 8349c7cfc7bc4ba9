"""Mazes as graphs, so that automata on graphs and on grids can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from maze_nca_gym.levels import Tile, as_tiles

from ..handcoded.weight_table import DIRECTIONS, offsets

DEPTH_FIRST_DIRECTIONS = ("D", "R", "U", "L")
"""The order in which the grid's depth-first search visits neighbours."""


def maze_to_graph(tiles: ArrayLike, directions: Sequence[str] = DIRECTIONS) -> Data:
    """Return the graph of a maze: its free tiles in row-major order, each joined to its free neighbours.

    Args:
        tiles: (H, W) uint8.
        directions: "U", "L", "D", "R" in the order in which a node prefers its neighbours; the edges that
            leave a node stand in this order.

    Returns:
        A graph as `Graphs.of` reads it, on the CPU: `edge_index`, (2, E) int64; `edge_rank`, (E,) int64, the
        place of an edge's direction among `directions`; `pos`, (n, 2) int64, the rows and columns; and
        `source_mask` and `target_mask`, (n,) bool.

    Raises:
        ValueError: not (H, W) tiles, or other directions.
    """
    tiles = as_tiles(tiles, ndim=(2,))
    if sorted(directions) != sorted(DIRECTIONS):
        raise ValueError(f"directions must be {', '.join(DIRECTIONS)} in some order, got {', '.join(directions)}")
    pos = np.argwhere(tiles != Tile.WALL)
    sender, rank, receiver = _joined(tiles != Tile.WALL, directions)
    kinds = torch.from_numpy(tiles[tiles != Tile.WALL])
    return Data(
        edge_index=torch.from_numpy(np.stack([sender, receiver])),
        edge_rank=torch.from_numpy(rank),
        pos=torch.from_numpy(pos),
        source_mask=kinds == Tile.SOURCE,
        target_mask=kinds == Tile.TARGET,
        num_nodes=len(pos),
    )


def _joined(free: NDArray[np.bool_], directions: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
    """Return three (E,) arrays: node, number of the direction, and the neighbour there."""
    height, width = free.shape
    nodes = np.full((height + 2, width + 2), -1, np.int64)
    nodes[1:-1, 1:-1][free] = np.arange(free.sum())
    shifts = [offset for direction in directions for offset in offsets(direction)]
    views = [nodes[1 + down : 1 + down + height, 1 + right : 1 + right + width] for down, right in shifts]
    neighbours = np.stack([view[free] for view in views], axis=1)
    node, direction = np.nonzero(neighbours >= 0)
    return node, direction, neighbours[node, direction]


def path_to_grid(path: Tensor, tiles: ArrayLike) -> NDArray[np.bool_]:
    """Draw the nodes of a path into the maze, the inverse of `maze_to_graph`.

    Args:
        path: (n,) bool, one for every free tile.
        tiles: (H, W) uint8, the maze.

    Returns:
        (H, W) bool.

    Raises:
        ValueError: not (H, W) tiles, or another number of nodes than free tiles.
    """
    free = as_tiles(tiles, ndim=(2,)) != Tile.WALL
    if path.shape != (int(free.sum()),):
        raise ValueError(f"the maze has {int(free.sum())} free tiles, but path has shape {tuple(path.shape)}")
    grid = np.zeros(free.shape, np.bool_)
    grid[free] = path.cpu().numpy()
    return grid
