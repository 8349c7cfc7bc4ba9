"""The shortest path on any graph (paper, sections "Dijkstra map generation" and "Shortest path extraction").

A flood spreads from one end, and every node counts the steps since the flood came. Ages of neighbours differ by at most
one, also on graphs with odd cycles. So the older of two neighbours is nearer to the flood's origin by one. The path
goes from the other end to older and older nodes. Every rule is local: a node reads its own state and its neighbours'.

The paper's meeting floods have no counterpart here. They rely on a grid having no odd cycles. On a triangle both floods
reach all three nodes in the same step, and the path would contain the third.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..handcoded.base import step
from .automaton import Extend, FirstOlder, Follow, GraphNCA, Neighbours
from .graph import Graphs


class ShortestPath(NamedTuple):
    """The result of a shortest-path automaton.

    Attributes:
        path: (n,) bool, the nodes of the path; none in a graph whose target cannot be reached.
        steps: (B,) int64, the iterations until each graph's path was complete or nothing moved any more.
    """

    path: Tensor
    steps: Tensor


class _PathGraphNCA(GraphNCA):
    """Floods, then extracts: a path of L edges is complete after exactly 2 L + 2 steps, and then stays.

    L is at most n - 1. Where the target cannot be reached, the flood fills its component within n - 1 steps,
    and the pointers stand one step later. So 2 n steps are enough.
    """

    def prepare(self, data: Data) -> Graphs:
        """Check graphs like `Graphs.of`, and that every graph with nodes has exactly one target."""
        graphs = super().prepare(data)
        graphs.check_one_each(graphs.target, "target")
        return graphs

    def largest_count(self, graphs: Graphs) -> int:
        """Return the largest age, or iteration."""
        return self.max_steps(graphs)

    def is_settled(self, graphs: Graphs, state: Tensor, following: Tensor) -> Tensor:
        """Return whether the path is at the source and the target, or nothing moves because no path exists, (B,)
        bool."""
        apart = (graphs.source | graphs.target) & (state[:, 0] < 1)
        joined = graphs.max(apart.to(state.dtype)) == 0
        return joined | super().is_settled(graphs, state, following)

    def run(self, data: Data, dtype: torch.dtype = torch.float32) -> ShortestPath:
        """Find the paths of one graph or of a batch.

        Args:
            data: graphs as for `Graphs.of`, with a source and a target each.
            dtype: the dtype of the state.

        Raises:
            ValueError: graphs that `prepare` rejects, or too large for the dtype to count on: more than 2**23 nodes in
                one graph in float32.
        """
        graphs = self.prepare(data)
        steps = torch.zeros_like(graphs.sizes)
        for state, settled in self.iterate(graphs, dtype):
            path = state[:, 0] > 0
            steps += ~settled
        return ShortestPath(path, steps)


class AllPathsChannel(IntEnum):
    """The state channels: `FLOOD` has reached the node from the source, `AGE` counts since when."""

    PATH = 0
    FLOOD = 1
    AGE = 2


class AllPathsGraphNCA(_PathGraphNCA):
    """The nodes of all shortest paths; the grid's form "one-flood" of `ShortestPathNCA("all")`, step by step."""

    def __init__(self) -> None:
        super().__init__(AllPathsChannel, frozenset({AllPathsChannel.AGE}))
        self.neighbours = Neighbours()
        self.extend = Extend()

    def update(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Advance the flood from the source and, once it is there, the path from the target; (n, C) floats."""
        path, flood, age = state.unbind(dim=1)
        enters = self.extend(graphs, path, age)
        return torch.stack(
            [
                step(step(graphs.target + flood - 1) + enters),
                step(graphs.source + flood + self.neighbours(graphs, flood)),
                age + flood,
            ],
            dim=1,
        )


class CanonicalPathChannel(IntEnum):
    """The state channels: those of a flood from the target, and `POINT`.

    `POINT` is how much the node prefers the neighbour that is next on its canonical path, 0 if there is none yet.
    """

    PATH = 0
    FLOOD = 1
    AGE = 2
    POINT = 3


class CanonicalPathGraphNCA(_PathGraphNCA):
    """One shortest path: from the source, always the first neighbour that is nearer to the target.

    On a maze's graph with neighbours in the order up, left, down, right it is `ShortestPathNCA("canonical")`,
    step by step.
    """

    def __init__(self) -> None:
        super().__init__(CanonicalPathChannel, frozenset({CanonicalPathChannel.AGE}))
        self.neighbours = Neighbours()
        self.first_older = FirstOlder()
        self.follow = Follow()

    def update(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Advance the flood from the target, the pointers and, once it is there, the path; (n, C) floats."""
        path, flood, age, point = state.unbind(dim=1)
        enters = self.follow(graphs, path, point)
        return torch.stack(
            [
                step(graphs.source + flood + path - 1 + enters),
                step(graphs.target + flood + self.neighbours(graphs, flood)),
                age + flood,
                self.first_older(graphs, age),
            ],
            dim=1,
        )
