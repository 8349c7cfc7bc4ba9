"""One round of messages along the edges: what a convolution over neighbouring tiles becomes on a graph.

Features of nodes are (n,), of edges (E,). In a message `_j` marks its sender and `_i` its receiver.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from ..handcoded.activations import sawtooth, step
from ..handcoded.dijkstra import OLDER_BY_ONE


class Rule(MessagePassing):
    """What a node reads from its neighbours: the sum or the maximum of their messages, 0 if it has none."""

    def __init__(self, aggregation: str) -> None:
        super().__init__(aggr=aggregation, node_dim=0)

    def forward(self, edge_index: Tensor, **features: Tensor) -> Tensor:
        """One round over (2, E) edges, (n,) or (E,) features by name -> (n,)."""
        return self.propagate(edge_index, **features)


class Neighbours(Rule):
    """The sum over the neighbours, the kernel `N4` of the grid."""

    def __init__(self) -> None:
        super().__init__("sum")

    def message(self, x_j: Tensor) -> Tensor:  # noqa: D102
        return x_j


class PassedBy(Rule):
    """The place that a node has in the order of the neighbour at which the pebble is: 1 for the first.

    Counted from the end of the order, as `unit` less the preference, so that a node of fewer neighbours than
    another begins at a later place; only the order matters.
    """

    def __init__(self) -> None:
        super().__init__("sum")

    def message(self, pebble_j: Tensor, unit_j: Tensor, sender_preference: Tensor) -> Tensor:  # noqa: D102
        return pebble_j * (unit_j - sender_preference)


class Extend(Rule):
    """How many neighbours the path comes from: those on the path that are younger by one.

    Neighbours may be of one age on a graph with odd cycles, and no path passes between those: the paper's
    sawtooth, which is 0 there, needs no change.
    """

    def __init__(self) -> None:
        super().__init__("sum")

    def message(self, path_j: Tensor, age_j: Tensor, age_i: Tensor) -> Tensor:  # noqa: D102
        return sawtooth(path_j + 2 * (age_j - age_i), OLDER_BY_ONE)


class FirstOlder(Rule):
    """How much a node prefers the first of its older neighbours; 0 if there is none."""

    def __init__(self) -> None:
        super().__init__("max")

    def message(self, age_j: Tensor, age_i: Tensor, receiver_preference: Tensor) -> Tensor:  # noqa: D102
        return step(age_j - age_i) * receiver_preference


class Follow(Rule):
    """How many neighbours are on the path and point to the node."""

    def __init__(self) -> None:
        super().__init__("sum")

    def message(self, path_j: Tensor, point_j: Tensor, sender_preference: Tensor) -> Tensor:  # noqa: D102
        return torch.relu(path_j + sawtooth(point_j - sender_preference, 0) - 1)


class FirstUnvisited(Rule):
    """How much a node prefers the first of its neighbours off the route; 0 if there is none."""

    def __init__(self) -> None:
        super().__init__("max")

    def message(self, route_j: Tensor, receiver_preference: Tensor) -> Tensor:  # noqa: D102
        return (1 - route_j) * receiver_preference


class Flow(Rule):
    """How many neighbours on the route prefer no unvisited neighbour to the node."""

    def __init__(self) -> None:
        super().__init__("sum")

    def message(self, route_j: Tensor, best_j: Tensor, sender_preference: Tensor) -> Tensor:  # noqa: D102
        return torch.relu(route_j + step(sender_preference - best_j + 1) - 1)
