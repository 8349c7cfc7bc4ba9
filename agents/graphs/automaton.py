"""Base class of the automata on graphs: one iteration by messages, and running until nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

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
        """Return the next state after one iteration, (n, C) -> (n, C)."""
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
