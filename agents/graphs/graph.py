"""Graphs as the automata read them: checked, undirected, and with an order of neighbours; mazes as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool, global_max_pool
from torch_geometric.utils import lexsort

from maze_nca_gym.levels import Tile, as_tiles

from ..handcoded.weight_table import DIRECTIONS, offsets

DEPTH_FIRST_DIRECTIONS = ("D", "R", "U", "L")
"""The order in which the grid's depth-first search visits neighbours."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """B disjoint undirected graphs with n nodes and E directed edges in all.

    Attributes:
        source: (n,) bool, the node where a path or a search starts, one in every graph that has nodes.
        target: (n,) bool, the node where a path ends; `check_one_each` checks that every graph has one.
        edge_index: (2, E) int64. Every edge appears here once in each direction, without self-loops. Messages go from
            the nodes of row 0, the senders, to those of row 1, the receivers.
        sender_preference: (E,) int64, how much the sender prefers the receiver: its degree for its first neighbour, one
            less for each that follows, 1 for the last.
        receiver_preference: (E,) int64, how much the receiver prefers the sender.
        batch: (n,) int64, the graph of each node.
        sizes: (B,) int64, the number of nodes of each graph.
        degrees: (B,) int64, the largest degree in each graph.
    """

    source: Tensor
    target: Tensor
    edge_index: Tensor
    sender_preference: Tensor
    receiver_preference: Tensor
    batch: Tensor
    sizes: Tensor
    degrees: Tensor

    @classmethod
    def of(cls, data: Data) -> Graphs:
        """Check one graph, or a `Batch` of them, and order its neighbours.

        Self-loops change no path and no search and are left out, and so are repeated edges.

        Args:
            data: a graph with these attributes. `edge_index`, (2, E) int64: every edge in both directions.
                `source_mask`, (n,) bool. `target_mask`, (n,) bool, which a search does not need. Optionally
                `edge_rank`, (E,) integers: a node's neighbours are ordered by the rank of the edges to them, lowest
                first, and by index where ranks are equal or missing. Of repeated edges the lowest rank counts.

        Raises:
            ValueError: a missing attribute, a wrong shape or dtype.
            ValueError: an edge that leaves its graph or has no opposite edge.
            ValueError: a graph with nodes and not exactly one source.
        """
        source = _mask(data, "source_mask")
        n_nodes = len(source)
        if "num_nodes" in data:
            _check_length(data.num_nodes, n_nodes, "num_nodes")
        target = _mask(data, "target_mask") if "target_mask" in data else torch.zeros_like(source)
        _check_length(len(target), n_nodes, "target_mask")
        batch, n_graphs = _batch(data, n_nodes)
        edge_index, rank = _without_repetitions(_edges(data, batch), _ranks(data))
        preference = _preferences(edge_index[0], rank, n_nodes)
        degree = torch.bincount(edge_index[0], minlength=n_nodes)
        graphs = cls(
            source,
            target,
            edge_index,
            sender_preference=preference,
            receiver_preference=preference[_opposites(edge_index)],
            batch=batch,
            sizes=torch.bincount(batch, minlength=n_graphs),
            degrees=global_max_pool(degree, batch, n_graphs),
        )
        graphs.check_one_each(source, "source")
        return graphs

    @property
    def n_nodes(self) -> int:
        """Nodes of all graphs."""
        return len(self.batch)

    def check_one_each(self, mask: Tensor, name: str) -> None:
        """Check that (n,) bool `mask` marks one node in every graph that has nodes.

        Raises:
            ValueError: it does not; the message contains `name`.
        """
        counts = global_add_pool(mask.long(), self.batch, len(self.sizes))
        wrong = (counts != self.sizes.clamp(max=1)).nonzero().flatten()
        if len(wrong):
            graph = int(wrong[0])
            raise ValueError(f"every graph needs exactly one {name}, but graph {graph} has {int(counts[graph])}")

    def max(self, x: Tensor) -> Tensor:
        """Return the maximum over each graph's nodes, (n,) floats -> (B,); 0 for a graph without nodes."""
        return global_max_pool(x, self.batch, len(self.sizes))

    def min(self, x: Tensor) -> Tensor:
        """Return the minimum over each graph's nodes, (n,) floats -> (B,); 0 for a graph without nodes."""
        return -self.max(-x)


def _mask(data: Data, name: str) -> Tensor:
    mask = getattr(data, name, None)
    if not isinstance(mask, Tensor) or mask.ndim != 1 or mask.dtype != torch.bool:
        raise ValueError(f"{name} must be a (n,) bool tensor, got {_described(mask)}")
    return mask


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"shape {tuple(value.shape)}, dtype {value.dtype}"
    return "none" if value is None else type(value).__name__


def _check_length(found: int, n_nodes: int, name: str) -> None:
    if found != n_nodes:
        raise ValueError(
            f"source_mask has {n_nodes} nodes, but {name} says {found}: give every graph its `num_nodes`, and "
            "every mask as many entries"
        )


def _batch(data: Data, n_nodes: int) -> tuple[Tensor, int]:
    """Return the graph of each node, (n,) int64, and the number of graphs."""
    if data.batch is None:
        return data.source_mask.new_zeros(n_nodes, dtype=torch.int64), 1
    _check_length(len(data.batch), n_nodes, "batch")
    if isinstance(data, Batch):
        return data.batch, data.num_graphs
    return data.batch, int(data.batch.max()) + 1 if n_nodes else 1


def _edges(data: Data, batch: Tensor) -> Tensor:
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.ndim != 2 or len(edge_index) != 2:
        raise ValueError(f"edge_index must have shape (2, E), got {_described(edge_index)}")
    if edge_index.dtype != torch.int64:
        raise ValueError(f"edge_index must be int64, got {edge_index.dtype}")
    if edge_index.numel() and not (edge_index.min() >= 0 and edge_index.max() < len(batch)):
        raise ValueError(
            f"edge_index must hold nodes from 0 to {len(batch) - 1}, "
            f"got {int(edge_index.min())} to {int(edge_index.max())}"
        )
    leaving = (batch[edge_index[0]] != batch[edge_index[1]]).nonzero().flatten()
    if len(leaving):
        raise ValueError(f"the edge {_edge(edge_index, leaving)} joins different graphs of the batch")
    return edge_index


def _edge(edge_index: Tensor, places: Tensor) -> str:
    """Return the first of some edges as text, for a message."""
    return " -> ".join(str(int(node)) for node in edge_index[:, places[0]])


def _ranks(data: Data) -> Tensor:
    """Return the ranks of the edges as given, (E,); all are equal if none are given."""
    n_edges = data.edge_index.shape[1]
    if "edge_rank" not in data:
        return data.edge_index.new_zeros(n_edges)
    rank = data.edge_rank
    integer = isinstance(rank, Tensor) and not rank.is_floating_point() and rank.dtype != torch.bool
    if not integer or rank.shape != (n_edges,):
        raise ValueError(f"edge_rank must hold {n_edges} integers, one an edge, got {_described(rank)}")
    return rank


def _without_repetitions(edge_index: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
    """Return the edges by sender, then receiver, each once and with its lowest rank, without self-loops."""
    joining = edge_index[0] != edge_index[1]
    edge_index, rank = edge_index[:, joining], rank[joining]
    order = lexsort([rank, edge_index[1], edge_index[0]])
    edge_index, rank = edge_index[:, order], rank[order]
    first = torch.ones_like(rank, dtype=torch.bool)
    first[1:] = (edge_index[:, 1:] != edge_index[:, :-1]).any(dim=0)
    return edge_index[:, first], rank[first]


def _preferences(sender: Tensor, rank: Tensor, n_nodes: int) -> Tensor:
    """Return for edges by sender, then receiver, how many of the sender's edges come no earlier than each, (E,)."""
    order = lexsort([rank, sender])  # stable, so that equal ranks stay in the order of the receivers
    ends = torch.bincount(sender, minlength=n_nodes).cumsum(dim=0)
    preference = torch.empty_like(sender)
    preference[order] = ends[sender] - torch.arange(len(sender), device=sender.device)
    return preference


def _opposites(edge_index: Tensor) -> Tensor:
    """Return the index of the opposite edge, (E,), for edges by sender, then receiver."""
    opposites = lexsort([edge_index[0], edge_index[1]])
    if not torch.equal(edge_index[:, opposites].flip(0), edge_index):
        span = int(edge_index.max()) + 1
        sender, receiver = edge_index
        alone = ~torch.isin(sender * span + receiver, receiver * span + sender)
        raise ValueError(
            f"graphs must be undirected, but the edge {_edge(edge_index, alone.nonzero().flatten())} has no opposite: "
            "torch_geometric.utils.to_undirected adds them"
        )
    return opposites


def maze_to_graph(tiles: ArrayLike, directions: Sequence[str] = DIRECTIONS) -> Data:
    """Return the graph of a maze: its free tiles in row-major order, each joined to its free neighbours.

    Args:
        tiles: (H, W) uint8.
        directions: "U", "L", "D", "R" in the order in which a node prefers its neighbours; the edges that
            leave a node stand in this order.

    Returns:
        A graph as `Graphs.of` reads it, on the CPU. `edge_index` is (2, E) int64; `edge_rank`, (E,) int64, the
        place of an edge's direction among `directions`. `pos`, (n, 2) int64, has the rows and columns;
        `source_mask` and `target_mask` are (n,) bool.

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
