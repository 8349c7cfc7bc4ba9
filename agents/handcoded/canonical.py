"""The canonical shortest path: one flood from the target, then a walk from the source.

The paper's extraction finds all shortest paths at once. To break ties it suggests "a similar directional queuing
mechanism" to its depth-first search's (section "Shortest path extraction"). This is such a mechanism. Every tile points
to the first of its neighbours, in the order up, left, down, right, that the flood reached earlier. The path follows the
pointers. Every rule is local, so nothing is pooled.

It is a form of the rule `automata.canonical_path`, with the same path after every iteration. In place of signals, the
ages of tiles show which neighbours are nearer.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.levels import Tile

from ..neighbours import DIRECTIONS, OPPOSITE
from .base import Form, step
from .weight_table import Weight, WeightTable


class Channel(IntEnum):
    """The state channels.

    `FLOOD` has reached the tile from the target, and `AGE` counts the iterations since then. `POINT_*` marks the next
    neighbour on the tile's canonical path. `ENTER_*` marks that the path enters the tile by a move in that direction.
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


def path_weights(channels: type[IntEnum], source: IntEnum, target: IntEnum, wall: IntEnum) -> tuple[Weight, ...]:
    """Return the weights between channels named as in `Channel`, for any channels that mark the ends and the walls."""
    path, flood, age = (channels[name] for name in ("PATH", "FLOOD", "AGE"))
    return (
        # the flood, as in the paper's Table "Dijkstra map generation"
        Weight(flood, target, "C"),
        Weight(flood, flood, "N5"),
        Weight(flood, wall, "C", -6),  # as much as five flooded tiles and the target can add
        # ages of neighbours differ by one, as the flood reaches them one iteration apart
        Weight(age, age, "C"),
        Weight(age, flood, "C"),
        # the path starts at the source once the flood is there, and stays
        Weight(path, source, "C"),
        Weight(path, flood, "C"),
        Weight(path, path, "C"),
        *(weight for towards in DIRECTIONS for weight in _pointer_weights(channels, towards)),
    )


def _pointer_weights(channels: type[IntEnum], towards: str) -> tuple[Weight, ...]:
    """Return weights by which a tile points at an older neighbour, and the path enters where its last tile points."""
    point = channels[f"POINT_{towards}"]
    return (
        Weight(point, channels["AGE"], towards),
        Weight(point, channels["AGE"], "C", -1),
        *follow_weights(channels, towards),
    )


def follow_weights(channels: type[IntEnum], towards: str) -> tuple[Weight, ...]:
    """Return weights by which the path enters a tile from the opposite neighbour, if that is on it and points here."""
    point, enter = channels[f"POINT_{towards}"], channels[f"ENTER_{towards}"]
    return tuple(Weight(enter, source, OPPOSITE[towards]) for source in (channels["PATH"], point))


def path_biases(channels: type[IntEnum]) -> dict[IntEnum, float]:
    """Return biases: -1 where two channels must both be on."""
    return {channels[name]: -1 for name in ("PATH", *(f"ENTER_{towards}" for towards in DIRECTIONS))}


TABLE = WeightTable(Tile, Channel, path_weights(Channel, Tile.SOURCE, Tile.TARGET, Tile.WALL), path_biases(Channel))


def activate(convolved: Tensor, state: Tensor) -> Tensor:
    """Apply the activations to (B, C, H, W) floats; of several pointers, the first of up, left, down, right remains."""
    # step(point) is 1 where the neighbour is older: by 1, or seen from a wall, whose age is 0, by its whole age
    path, flood, age, point, enter = torch.split(convolved, [1, 1, 1, 4, 4], dim=1)
    path, enter = follow(path, enter)
    return torch.cat([path, step(flood), torch.relu(age), first(step(point)), enter], dim=1)


def follow(path: Tensor, enter: Tensor) -> tuple[Tensor, Tensor]:
    """Return the (B, 1, H, W) path with the tiles that it enters, and the (B, 4, H, W) moves that enter them."""
    enter = torch.relu(enter)
    return step(path + enter.sum(dim=1, keepdim=True)), enter


def first(flags: Tensor) -> Tensor:
    """Keep the first of the (B, K, H, W) float flags at each tile: relu(x_k - sum of x_j over j < k)."""
    # the cumulative sum includes the flag itself, hence the factor 2
    return torch.relu(2 * flags - flags.cumsum(dim=1))


def fused(maze: Tensor, state: Tensor) -> Tensor:
    """Return the next state of (B, 4, H, W) mazes and (B, 11, H, W) float32 states in one pass of machine code."""
    from . import compiled  # here, because importing numba takes a third of a second

    out = np.empty(state.shape, np.float32)
    compiled.canonical_steps(maze.detach().contiguous().numpy(), state.detach().contiguous().numpy(), out)
    return torch.from_numpy(out)


FORM = Form(
    TABLE,
    activate,
    steps_per_edge=2,
    highlight=Channel.AGE,
    counters=frozenset({Channel.AGE}),
    rule="canonical",
    fused=fused,
)
