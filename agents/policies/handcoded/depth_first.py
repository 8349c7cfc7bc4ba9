"""Depth-first search by an automaton (paper, section "Depth-First Search" and appendix "DFS").

A pebble walks through the maze, from each tile to the first unvisited neighbour in the order down, right, up, left. The
other unvisited neighbours are pushed on a stack, each with a rank that grows while it waits. When the pebble is stuck,
the tile with the smallest rank is popped, and the pebble continues there. Ranks are counted in fifths, so that all
values are integers, including the paper's direction priorities of 0.2 to 0.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from maze_nca_gym.mazes.levels import Tile

from ..guarantees import StepBound
from .base import HandcodedNCA, global_max, global_min, sawtooth, step
from .weight_table import Weight, WeightTable


class DepthFirstChannel(IntEnum):
    """The state channels.

    - `PATH` marks the paper's route, the tiles visited so far.
    - `ROUTE_*` marks a tile that the route enters from the neighbour in that direction.
    - `PEBBLE` marks the tile just entered.
    - `STACK` marks the tiles that wait on the stack.
    - `STACK_DIRECTION` is the move that would have entered a waiting tile: 1 for down, 2 right, 3 up, 4 left.
    - `STACK_RANK` is 5 times the number of iterations for which a tile has waited.
    """

    PATH, ROUTE_U, ROUTE_L, ROUTE_D, ROUTE_R = range(5)
    PEBBLE, STACK, STACK_DIRECTION, STACK_RANK = range(5, 9)


RANK_UNIT = 5
"""Increase of a rank per iteration on the stack: more than the largest direction priority, 4."""
UNSTACKED = 16
"""Rank of tiles that are not on the stack, as a multiple of H W. It exceeds every rank on the stack, because a search
ends within 2 H W steps."""
FIRST_VISITED = {"U": (), "L": ("DL",), "D": ("DD", "DR"), "R": ("UR", "RR", "DR")}
"""Position of the pebble relative to a tile -> the tiles that the pebble would visit before that tile, as kernels.

This is the paper's W_p,(i,j). For example, a pebble above a tile enters the tile by moving down, which is always its
first choice, so no tile comes before.
"""


def search_weights(
    channels: type[IntEnum], route: IntEnum, starts: IntEnum, wall: IntEnum, free: Sequence[IntEnum]
) -> tuple[Weight, ...]:
    """Return the weights of a depth-first search (the paper's table "DFS").

    Args:
        channels: state channels with the names of `DepthFirstChannel`, among others.
        route: the state channel of the visited tiles.
        starts: the channel that marks the tiles from which the search starts.
        wall: the channel that marks walls.
        free: the channels that mark free tiles.
    """
    pebble, stack = channels["PEBBLE"], channels["STACK"]
    direction, rank = channels["STACK_DIRECTION"], channels["STACK_RANK"]
    flows = []
    for towards, rivals in FIRST_VISITED.items():
        # the route flows in, unless its last tile first visits another free, unvisited neighbour
        flow = channels[f"ROUTE_{towards}"]
        flows.append(Weight(flow, route, towards))
        for rival in rivals:
            flows += [Weight(flow, route, rival), *(Weight(flow, tile, rival, -1) for tile in free)]
    return (
        Weight(route, starts, "C"),
        Weight(route, route, "C"),
        Weight(route, wall, "C", -1),
        Weight(route, stack, "C", -1),  # a tile that waits is popped before it is entered
        *flows,
        Weight(stack, pebble, "N4"),
        Weight(stack, stack, "C"),
        # at least as much as a pebble beside the tile and its place on the stack add: so these tiles never wait
        Weight(stack, wall, "C", -2),
        Weight(stack, route, "C", -2),
        *(Weight(direction, pebble, kernel, priority) for priority, kernel in enumerate("ULDR", start=1)),
        Weight(direction, direction, "C"),
        # more than two priorities, of at most 4 each, can add
        Weight(direction, wall, "C", -2 * RANK_UNIT),
        Weight(direction, route, "C", -2 * RANK_UNIT),
        # ranks grow with every iteration on the stack, so the tile pushed last has the least rank
        Weight(rank, pebble, "N4", RANK_UNIT),
        Weight(rank, rank, "C"),
        Weight(rank, stack, "C", RANK_UNIT),
        Weight(rank, wall, "C", -2 * RANK_UNIT),
        Weight(rank, route, "C", -2 * RANK_UNIT),
    )


class Search(NamedTuple):
    """The channels of a depth-first search, (B, 1, H, W) floats each, except for `flow`.

    Attributes:
        route: 1 on the tiles visited so far.
        flow: (B, 4, H, W), 1 where the route enters a tile from the neighbour above, left, below and right.
        pebble: 1 on the tile just entered.
        stack: 1 on the tiles that wait.
        direction: the move by which the pebble would have entered a waiting tile: 1 for down, 2 right, 3 up, 4 left.
        rank: the number of iterations for which a tile has waited, times `RANK_UNIT`.
    """

    route: Tensor
    flow: Tensor
    pebble: Tensor
    stack: Tensor
    direction: Tensor
    rank: Tensor

    @classmethod
    def split(cls, channels: Tensor) -> Search:
        """Return (B, 9, H, W) float channels, in the order of `DepthFirstChannel`, as a search."""
        return cls(*torch.split(channels, [1, 4, 1, 1, 1, 1], dim=1))

    def unstack(self, popped: Tensor) -> Search:
        """Return the search after the tiles that are 1 in `popped`, (B, 1, H, W) floats, have left the stack."""
        waits = 1 - popped
        return self._replace(stack=self.stack * waits, direction=self.direction * waits, rank=self.rank * waits)


def explore(convolved: Search, before: Search) -> Search:
    """Return the search after the pebble has moved one tile and pushed the free tiles beside it on the stack.

    This is the paper's appendix "DFS", "Forward pass", to `pebble`.

    Args:
        convolved: the channels after the convolution.
        before: the channels of the previous state.
    """
    flow = step(convolved.flow)
    route = step(convolved.route + step(flow.sum(dim=1, keepdim=True)))
    stack, direction, rank = (torch.relu(x) for x in (convolved.stack, convolved.direction, convolved.rank))
    # where the pebble passes a tile that already waits, the tile is pushed again, with a new direction and rank
    stacked_again = sawtooth(stack, 2)
    return Search(
        route,
        flow,
        pebble=route - before.route,
        stack=stack - before.stack * stacked_again,
        direction=direction - before.direction * stacked_again,
        rank=rank - (before.rank + RANK_UNIT) * stacked_again,
    )


def is_stuck(search: Search) -> Tensor:
    """Return 1 for the mazes without a pebble and 0 for the others, (B, 1, 1, 1) floats."""
    return 1 - step(global_max(search.pebble))


class DepthFirstNCA(HandcodedNCA):
    """Visits all tiles that the source can reach by a depth-first search; channel 0 marks the visited tiles.

    At each tile the search prefers down, then right, up and left. A maze with n reachable free tiles is finished within
    2 n steps: one step for each visit, one for each tile popped from the stack, and one to detect that no tile is left.
    """

    output = "visited tiles"
    highlight = "stack_rank"
    rule = "depth-first"

    def __init__(self) -> None:
        free = (Tile.EMPTY, Tile.SOURCE, Tile.TARGET)
        weights = search_weights(DepthFirstChannel, DepthFirstChannel.PATH, Tile.SOURCE, Tile.WALL, free)
        table = WeightTable(Tile, DepthFirstChannel, weights)
        super().__init__("shortest-path", len(Tile), table, StepBound(per_tile=2), basis="argued and tested")

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        """Return the next state, (B, C, H, W) floats: explore, or pop the tile with the smallest rank if the pebble is
        stuck."""
        search = explore(Search.split(convolved), Search.split(state))
        rank = search.rank + search.direction
        # rank 0 means that a tile is not on the stack, so it must not count as the least
        rank = rank + sawtooth(rank, 0) * UNSTACKED * state.shape[2] * state.shape[3]
        # ranks of tiles stacked together differ by their directions, so exactly one is the least
        popped = sawtooth(rank - global_min(rank), 0) * is_stuck(search)
        return torch.cat(search.unstack(popped), dim=1)

    def largest_count(self, height: int, width: int) -> int:  # noqa: D102
        return UNSTACKED * height * width

    @torch.no_grad()
    def finished(self, maze: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """Return for each maze whether another iteration would not change the state, (B,) bool."""
        state = state[:, : self.n_channels]
        return (self.update(maze, state, 0) == state).flatten(1).all(dim=1)
