"""Base classes of the automata on graphs: one iteration by messages, running until nothing moves, and the messages.

One round of messages along the edges is what a convolution over neighbouring tiles becomes on a graph. Features of
nodes are (n,), of edges (E,). In a message `_j` marks its sender and `_i` its receiver. A rule returns what every node,
(n,), reads from its neighbours: 0 if it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from ..handcoded.base import sawtooth, step
from ..handcoded.dijkstra import OLDER_BY_ONE
from .graph import Graphs


class GraphNCA(nn.Module):
    """An automaton whose state is a row of channels at every node; the object itself stores no state.

    Args:
        channels: the state channels; the first is the path.
        counters: channels that count forever, so that they never come to rest.
    """

    def __init__(self, channels: type[IntEnum], counters: frozenset[IntEnum] = frozenset()) -> None:
        super().__init__()
        self.channels = channels
        self.n_channels = len(channels)
        self._steady = [channel for channel in channels if channel not in counters]

    def update(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Return the next state after one iteration, (n, C) floats -> (n, C)."""
        raise NotImplementedError

    def largest_count(self, graphs: Graphs) -> int:
        """Return the largest integer that any channel or intermediate result reaches within `max_steps`."""
        raise NotImplementedError

    def prepare(self, data: Data) -> Graphs:
        """Return the checked graphs of `data`; errors are those of `Graphs.of`."""
        return Graphs.of(data)

    def max_steps(self, graphs: Graphs) -> int:
        """Return 2 n for the n nodes of the largest graph, a bound that the class states."""
        return 2 * int(graphs.sizes.max())

    def initial(self, graphs: Graphs, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the state before the first iteration, (n, C) zeros."""
        return torch.zeros(graphs.n_nodes, self.n_channels, dtype=dtype, device=graphs.batch.device)

    def forward(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Return the state after one iteration of every graph.

        Args:
            graphs: what `prepare` returned.
            state: (n, C) floats.

        Returns:
            The next state, (n, C).

        Raises:
            ValueError: a state of another shape, a dtype other than floats, or graphs so large that its dtype would not
                count exactly.
        """
        shape = (graphs.n_nodes, self.n_channels)
        if state.shape != shape or not state.is_floating_point():
            raise ValueError(f"state must be {shape} floats, got {tuple(state.shape)}, {state.dtype}")
        largest, limit = self.largest_count(graphs), 2 / torch.finfo(state.dtype).eps
        if largest > limit:
            raise ValueError(
                f"on these graphs the automaton counts to {largest}, but {state.dtype} states are exact only up "
                f"to {limit:.0f}; torch.float64 reaches farther"
            )
        return self.update(graphs, state)

    def is_settled(self, graphs: Graphs, state: Tensor, following: Tensor) -> Tensor:
        """Return whether nothing moves between a state and the one that follows it, (B,) bool."""
        moves = (state != following)[:, self._steady].any(dim=1)
        return graphs.max(moves.to(state.dtype)) == 0

    @torch.no_grad()
    def iterate(self, graphs: Graphs, dtype: torch.dtype = torch.float32) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every state from the initial one to that in which the last graph has settled.

        Yields:
            The (n, C) state, and (B,) bool: which graphs have settled, so that their path stays as it is.

        Raises:
            RuntimeError: a graph has not settled after `max_steps` iterations, which cannot be.
            ValueError: the same errors as in `forward`.
        """
        state = self.initial(graphs, dtype)
        for _ in range(self.max_steps(graphs) + 1):
            following = self(graphs, state)
            settled = self.is_settled(graphs, state, following)
            yield state, settled
            if settled.all():
                return
            state = following
        unsettled = (~settled).nonzero().flatten().tolist()
        raise RuntimeError(f"graphs {unsettled} have not settled within {self.max_steps(graphs)} iterations")


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

    Neighbours may be of one age on a graph with odd cycles, and no path passes between those. The paper's
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
