"""One round of messages along the edges: what a convolution over neighbouring tiles becomes on a graph.

Features of nodes are (n,), of edges (E,). In a message `_j` marks its sender and `_i` its receiver. A rule
returns what every node, (n,), reads from its neighbours: 0 if it has none.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from ..handcoded.base import sawtooth, step
from ..handcoded.dijkstra import OLDER_BY_ONE
from .graph import Graphs


class Rule(MessagePassing):
    """Messages over (n,) features, and their sum or maximum at each node."""

    aggregation: ClassVar[str] = "sum"

    def __init__(self) -> None:
        super().__init__(aggr=self.aggregation, node_dim=0)


class Neighbours(Rule):
    """The sum over the neighbours, the kernel `N4` of the grid."""

    def forward(self, graphs: Graphs, x: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:  # noqa: D102
        return x_j


class Extend(Rule):
    """How many neighbours the path comes from: those on the path that are younger by one.

    Neighbours may be of one age on a graph with odd cycles, and no path passes between those: the paper's
    sawtooth, which is 0 there, needs no change.
    """

    def forward(self, graphs: Graphs, path: Tensor, age: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, path=path, age=age)

    def message(self, path_j: Tensor, age_j: Tensor, age_i: Tensor) -> Tensor:  # noqa: D102
        return sawtooth(path_j + 2 * (age_j - age_i), OLDER_BY_ONE)


class FirstOlder(Rule):
    """How much a node prefers the first of its older neighbours."""

    aggregation = "max"

    def forward(self, graphs: Graphs, age: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, age=age, preference=graphs.receiver_preference)

    def message(self, age_j: Tensor, age_i: Tensor, preference: Tensor) -> Tensor:  # noqa: D102
        return step(age_j - age_i) * preference


class Follow(Rule):
    """How many neighbours are on the path and point to the node."""

    def forward(self, graphs: Graphs, path: Tensor, point: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, path=path, point=point, preference=graphs.sender_preference)

    def message(self, path_j: Tensor, point_j: Tensor, preference: Tensor) -> Tensor:  # noqa: D102
        return torch.relu(path_j + sawtooth(point_j - preference, 0) - 1)


class FirstUnvisited(Rule):
    """How much a node prefers the first of its neighbours off the route."""

    aggregation = "max"

    def forward(self, graphs: Graphs, route: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, route=route, preference=graphs.receiver_preference)

    def message(self, route_j: Tensor, preference: Tensor) -> Tensor:  # noqa: D102
        return (1 - route_j) * preference


class Flow(Rule):
    """How many neighbours on the route prefer no unvisited neighbour to the node."""

    def forward(self, graphs: Graphs, route: Tensor, best: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, route=route, best=best, preference=graphs.sender_preference)

    def message(self, route_j: Tensor, best_j: Tensor, preference: Tensor) -> Tensor:  # noqa: D102
        return torch.relu(route_j + step(preference - best_j + 1) - 1)


class PassedBy(Rule):
    """The place that a node has in the order of the neighbour at which the pebble is; the first has the least.

    It is `unit` less the preference, so between 1 and the largest degree where `unit` is one more than that.
    """

    def forward(self, graphs: Graphs, pebble: Tensor, unit: Tensor) -> Tensor:  # noqa: D102
        return self.propagate(graphs.edge_index, pebble=pebble, unit=unit, preference=graphs.sender_preference)

    def message(self, pebble_j: Tensor, unit_j: Tensor, preference: Tensor) -> Tensor:  # noqa: D102
        return pebble_j * (unit_j - preference)
