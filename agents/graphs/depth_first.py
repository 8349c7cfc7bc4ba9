"""Depth-first search on any graph (paper, section "Depth-First Search" and appendix "DFS").

A pebble walks the graph, at each node to the first unvisited of its neighbours. The neighbours that it passes
by are stacked, each with a rank that grows while it waits. When the pebble is stuck, the node of least rank
is popped, and the pebble goes on there. A node reads its neighbours and, through them, theirs: two rounds of
messages, the 5x5 kernel of the grid. Two things are read from the whole graph, as on the grid: whether there
is a pebble (a maximum) and the least rank (a minimum). Known beforehand, like the weights of the grid, are
the graph's number of nodes and largest degree, from which ranks take their unit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..handcoded.base import sawtooth, step
from .automaton import FirstUnvisited, Flow, GraphNCA, Neighbours, PassedBy
from .graph import Graphs


class Channel(IntEnum):
    """The state channels.

    `PATH` is the paper's route, the nodes visited so far; `PEBBLE` is the node just entered. `STACK` marks the waiting
    nodes. `STACK_PLACE` is their place in the order of the neighbour from which the pebble passed by. `STACK_RANK`
    counts how long they have waited, times one more than the largest degree.
    """

    PATH = 0
    PEBBLE = 1
    STACK = 2
    STACK_PLACE = 3
    STACK_RANK = 4


class Visits(NamedTuple):
    """The result of a search.

    Attributes:
        order: (n,) int64: 0 at the source, then the number of the visit, -1 for nodes never visited.
        steps: (B,) int64, the iterations until nothing moved in each graph.
    """

    order: Tensor
    steps: Tensor


class DepthFirstGraphNCA(GraphNCA):
    """Visits the source's component in the order of a recursive depth-first search.

    n nodes take n steps to visit, each but the source at most one more to pop, and one to see that nothing is
    left: at most 2 n.
    """

    def __init__(self) -> None:
        super().__init__(Channel)
        self.neighbours = Neighbours()
        self.passed_by = PassedBy()
        self.first_unvisited = FirstUnvisited()
        self.flow = Flow()

    def largest_count(self, graphs: Graphs) -> int:
        """Return the rank that stands for a node off the stack."""
        return int(_unstacked(graphs).max())

    def update(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Move the pebble and stack what it passes by; if it is stuck, pop the node of least rank; (n, C) floats."""
        before = state[:, Channel.PATH]
        route = self._route(graphs, state)
        stack, place, rank = self._stack(graphs, state)
        pebble = route - before
        stuck = 1 - step(graphs.max(pebble))
        total = rank + place
        total = total + sawtooth(total, 0) * _unstacked(graphs)[graphs.batch]
        popped = sawtooth(total - graphs.min(total)[graphs.batch], 0) * stuck[graphs.batch]
        kept = 1 - popped
        return torch.stack([route, pebble, stack * kept, place * kept, rank * kept], dim=1)

    def _route(self, graphs: Graphs, state: Tensor) -> Tensor:
        """Return the route, which flows to the first unvisited neighbour unless that waits on the stack."""
        route, stack = state[:, Channel.PATH], state[:, Channel.STACK]
        flow = self.flow(graphs, route, best=self.first_unvisited(graphs, route))
        return step(graphs.source + route - stack + step(flow))

    def _stack(self, graphs: Graphs, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return stack, places and ranks after the pebble has passed by; nodes stacked again start from rank 0."""
        route, pebble, stack, place, rank = state.unbind(dim=1)
        unit = (graphs.degrees + 1)[graphs.batch].to(state.dtype)
        passed = self.neighbours(graphs, pebble)
        new_stack = torch.relu(passed + stack - 2 * route)
        new_place = torch.relu(self.passed_by(graphs, pebble, unit) + place - 2 * unit * route)
        new_rank = torch.relu(unit * (passed + stack - 2 * route) + rank)
        stacked_again = sawtooth(new_stack, 2)
        return (
            new_stack - stack * stacked_again,
            new_place - place * stacked_again,
            new_rank - (rank + unit) * stacked_again,
        )

    def run(self, data: Data, dtype: torch.dtype = torch.float32) -> Visits:
        """Search one graph or a batch.

        Args:
            data: graphs as for `Graphs.of`; a target is not needed.
            dtype: the dtype of the state.

        Raises:
            ValueError: graphs that `Graphs.of` rejects, or too large for the dtype to count on. In float32 that is
                (2 n + 1) (d + 1) > 2**24 for a graph of n nodes with d neighbours at most.
        """
        graphs = self.prepare(data)
        order, visits = torch.full_like(graphs.batch, -1), torch.zeros_like(graphs.sizes)
        steps = torch.zeros_like(graphs.sizes)
        for state, settled in self.iterate(graphs, dtype):
            pebble = state[:, Channel.PEBBLE] > 0
            order = torch.where(pebble, visits[graphs.batch], order)
            visits += graphs.max(pebble.long())
            steps += ~settled
        return Visits(order, steps)


def _unstacked(graphs: Graphs) -> Tensor:
    """Return the rank of a node off the stack, (B,): above any that waits, since a search ends within 2 n steps."""
    return (2 * graphs.sizes + 1) * (graphs.degrees + 1)
