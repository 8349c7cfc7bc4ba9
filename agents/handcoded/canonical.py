"""The canonical shortest path: one flood from the target, then a walk from the source.

The paper's extraction finds all shortest paths at once and suggests to break ties "using a similar
directional queuing mechanism" as its depth-first search (section "Shortest path extraction"). This is that
mechanism: every tile points to the first of its neighbours up, left, down, right that the flood reached
earlier, and the path follows the pointers. Every rule is local, so nothing is pooled.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from maze_nca_gym.levels import Tile

from .activations import step
from .form import Form
from .kernels import DIRECTIONS, OPPOSITE, Weight, WeightTable


class Channel(IntEnum):
    """The state channels.

    `FLOOD` has reached the tile from the target, `AGE` counts since when, `POINT_*` marks the neighbour that
    is next on the tile's canonical path, and `ENTER_*` says that the path enters the tile by a move in that
    direction.
    """

    PATH = 0
    FLOOD = 1
    AGE = 2
    POINT_U = 3
    POINT_L = 4
    POINT_D = 5
    POINT_R = 6
    ENTER_U = 7
    ENTER_L = 8
    ENTER_D = 9
    ENTER_R = 10


POINTS = [Channel[f"POINT_{direction}"] for direction in DIRECTIONS]
ENTERS = [Channel[f"ENTER_{direction}"] for direction in DIRECTIONS]

TABLE = WeightTable(
    inputs=Tile,
    channels=Channel,
    weights=(
        # the flood, as in the paper's Table "Dijkstra map generation"
        Weight(Channel.FLOOD, Tile.TARGET, "C"),
        Weight(Channel.FLOOD, Channel.FLOOD, "N5"),
        Weight(Channel.FLOOD, Tile.WALL, "C", -6),
        Weight(Channel.AGE, Channel.AGE, "C"),
        Weight(Channel.AGE, Channel.FLOOD, "C"),
        # the path starts at the source once the flood is there, stays, and enters where a path tile points
        Weight(Channel.PATH, Tile.SOURCE, "C"),
        Weight(Channel.PATH, Channel.FLOOD, "C"),
        Weight(Channel.PATH, Channel.PATH, "C"),
        *(Weight(point, Channel.AGE, towards) for point, towards in zip(POINTS, DIRECTIONS, strict=True)),
        *(Weight(point, Channel.AGE, "C", -1) for point in POINTS),
        *(
            Weight(enter, source, OPPOSITE[towards])
            for enter, point, towards in zip(ENTERS, POINTS, DIRECTIONS, strict=True)
            for source in (Channel.PATH, point)
        ),
    ),
    biases={Channel.PATH: -1, **dict.fromkeys(ENTERS, -1)},
)


def activate(convolved: Tensor, state: Tensor) -> Tensor:
    """Steps and ReLUs; a pointer gives way to those before it in the order up, left, down, right."""
    path, flood, age, point, enter = torch.split(convolved, [1, 1, 1, 4, 4], dim=1)
    enter = torch.relu(enter)
    path = step(path + enter.sum(dim=1, keepdim=True))
    return torch.cat([path, step(flood), torch.relu(age), first(step(point)), enter], dim=1)


def first(flags: Tensor) -> Tensor:
    """Of the (B, K, H, W) flags at a tile, keep the first: relu(x_k - sum of x_j over j < k)."""
    return torch.relu(2 * flags - flags.cumsum(dim=1))


FORM = Form(TABLE, activate, steps_per_edge=2, counters=frozenset({Channel.AGE}))
