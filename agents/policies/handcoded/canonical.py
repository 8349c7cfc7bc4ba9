"""The canonical shortest path: one flood from the target, then a walk from the source.

The paper's extraction predicts all shortest paths at once. To break ties, the paper suggests "a similar directional
queuing mechanism" to the queue of its depth-first search (section "Shortest path extraction"), and this module
implements such a mechanism. Every tile points to the first of its neighbours, in the order up, left, down, right, that
the flood reached earlier. The path follows the pointers. Every rule is local, so no operation reads the whole maze.

Both forms compute the rule `automata.canonical_path`, with the same path after every iteration. They differ in the
channels that show which neighbours are nearer to the target. `COUNTING` compares the ages of tiles. `BOUNDED` compares
distances modulo 3. They are sufficient because a grid has no odd cycles, so that the distances of two neighbours differ
by exactly one. All channels of `BOUNDED` are 0 or 1, so it is exact in bfloat16, and on mazes of any size.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS, OPPOSITE

from .base import Form, sawtooth, step
from .weight_table import Weight, WeightTable


class CountingChannel(IntEnum):
    """The state channels of the form that counts.

    - `PATH` marks the tiles of the path so far.
    - `FLOOD` marks the tiles that the flood from the target has reached, and `AGE` counts the iterations since then.
    - `POINT_*` marks a tile that points to its neighbour in that direction, the next tile on its canonical path.
    - `ENTER_*` marks a tile that the path enters by a move in that direction.
    """

    PATH, FLOOD, AGE = range(3)
    POINT_U, POINT_L, POINT_D, POINT_R = range(3, 7)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(7, 11)


class BoundedChannel(IntEnum):
    """The state channels of the form that does not count.

    `PHASE_k` marks the tiles that the flood has reached at a distance from the target that is k modulo 3. The other
    channels are the same as in `CountingChannel`.
    """

    PATH, PHASE_0, PHASE_1, PHASE_2 = range(4)
    POINT_U, POINT_L, POINT_D, POINT_R = range(4, 8)
    ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(8, 12)


PHASES = (BoundedChannel.PHASE_0, BoundedChannel.PHASE_1, BoundedChannel.PHASE_2)
_CODES = {BoundedChannel.PHASE_0: 4, BoundedChannel.PHASE_1: 5, BoundedChannel.PHASE_2: 6}
"""Codes of the phases. A tile's code minus the code of its neighbour is 1 or -2 if the neighbour is nearer to the
target. If the flood has reached only one of them or neither, the difference is 0 or at least 4 in absolute value."""


def path_weights(channels: type[IntEnum], source: IntEnum, target: IntEnum, wall: IntEnum) -> tuple[Weight, ...]:
    """Return the weights of the flood, the ages, the pointers and the path.

    A flood from the target makes tiles point along their shortest paths, and the path follows the pointers.

    Args:
        channels: state channels with the names of `CountingChannel`, among others.
        source, target, wall: the channels that mark the ends of the path, and walls.
    """
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
        # a tile points at an older neighbour
        *(
            weight
            for towards in DIRECTIONS
            for weight in (
                Weight(channels[f"POINT_{towards}"], age, towards),
                Weight(channels[f"POINT_{towards}"], age, "C", -1),
                *follow_weights(channels, towards),
            )
        ),
    )


def follow_weights(channels: type[IntEnum], towards: str) -> tuple[Weight, ...]:
    """Return the weights by which the path enters a tile with a move in the direction `towards`.

    The path enters if the neighbour behind the tile is on the path and points to the tile.
    """
    point, enter = channels[f"POINT_{towards}"], channels[f"ENTER_{towards}"]
    return tuple(Weight(enter, source, OPPOSITE[towards]) for source in (channels["PATH"], point))


def path_biases(channels: type[IntEnum]) -> dict[IntEnum, float]:
    """Return the bias -1 for the channels `PATH` and `ENTER_*`, because they switch on only if two channels are both
    on."""
    return {channels[name]: -1 for name in ("PATH", *(f"ENTER_{towards}" for towards in DIRECTIONS))}


COUNTING_TABLE = WeightTable(
    Tile,
    CountingChannel,
    path_weights(CountingChannel, Tile.SOURCE, Tile.TARGET, Tile.WALL),
    path_biases(CountingChannel),
)
BOUNDED_TABLE = WeightTable(
    inputs=Tile,
    channels=BoundedChannel,
    weights=(
        Weight(BoundedChannel.PHASE_0, Tile.TARGET, "C"),
        # a free tile takes the phase after that of the neighbour that floods it, and keeps it: neighbours add at most
        # 4, so 6 keeps a tile in its phase, and -6 keeps it out of the others
        *(
            weight
            for i, phase in enumerate(PHASES)
            for weight in (
                Weight(phase, PHASES[i - 1], "N4"),
                Weight(phase, phase, "C", 6),
                Weight(phase, PHASES[i - 1], "C", -6),
                Weight(phase, PHASES[(i + 1) % 3], "C", -6),
                Weight(phase, Tile.WALL, "C", -6),
            )
        ),
        # the code of the neighbour is subtracted from that of the tile
        *(
            Weight(BoundedChannel[f"POINT_{towards}"], phase, kernel, sign * code)
            for towards in DIRECTIONS
            for phase, code in _CODES.items()
            for kernel, sign in (("C", 1), (towards, -1))
        ),
        *(weight for towards in DIRECTIONS for weight in follow_weights(BoundedChannel, towards)),
        # the path starts at the source once the flood is there, and stays
        Weight(BoundedChannel.PATH, Tile.SOURCE, "C"),
        *(Weight(BoundedChannel.PATH, phase, "C") for phase in PHASES),
        Weight(BoundedChannel.PATH, BoundedChannel.PATH, "C"),
    ),
    biases=path_biases(BoundedChannel),
)


def follow(path: Tensor, enter: Tensor) -> tuple[Tensor, Tensor]:
    """Return the path after it has entered further tiles, (B, 1, H, W), and the moves that enter tiles, (B, 4, H, W)
    floats.

    Args:
        path: (B, 1, H, W) floats, the path's channel of the convolution.
        enter: (B, 4, H, W) floats, the channels `ENTER_*` of the convolution.
    """
    enter = torch.relu(enter)
    return step(path + enter.sum(dim=1, keepdim=True)), enter


def first(flags: Tensor) -> Tensor:
    """Return (B, K, H, W) float flags with only the first flag that is on at each tile.

    For flags of 0 and 1 the result is relu(x_k - sum of x_j over j < k).
    """
    # the cumulative sum includes the flag itself, hence the factor 2
    return torch.relu(2 * flags - flags.cumsum(dim=1))


def _activate_counting(convolved: Tensor, state: Tensor) -> Tensor:
    """Apply the activations to (B, C, H, W) floats. If a tile has several pointers, the first of up, left, down, right
    remains."""
    # step(point) is 1 where the neighbour is older: by 1, or seen from a wall, whose age is 0, by its whole age
    path, flood, age, point, enter = torch.split(convolved, [1, 1, 1, 4, 4], dim=1)
    path, enter = follow(path, enter)
    return torch.cat([path, step(flood), torch.relu(age), first(step(point)), enter], dim=1)


def _activate_bounded(convolved: Tensor, state: Tensor) -> Tensor:
    """Apply the activations of the other form: a tile points where the difference of codes is 1 or -2."""
    path, phases, point, enter = torch.split(convolved, [1, 3, 4, 4], dim=1)
    path, enter = follow(path, enter)
    # -2: the tile is in phase 0, and the nearer neighbour in phase 2
    nearer = sawtooth(point, 1) + sawtooth(point, -2)
    return torch.cat([path, step(phases), first(nearer), enter], dim=1)


def _fused(maze: Tensor, state: Tensor) -> Tensor:
    """Return the next state of (B, 4, H, W) mazes and (B, 11, H, W) float32 states in one pass of machine code."""
    from . import compiled  # here, because importing numba takes a third of a second

    out = np.empty(state.shape, np.float32)
    compiled.canonical_steps(maze.detach().contiguous().numpy(), state.detach().contiguous().numpy(), out)
    return torch.from_numpy(out)


COUNTING = Form(
    COUNTING_TABLE, _activate_counting, steps_per_edge=2, highlight=CountingChannel.AGE, rule="canonical", fused=_fused
)
BOUNDED = Form(BOUNDED_TABLE, _activate_bounded, steps_per_edge=2, highlight=BoundedChannel.PHASE_0, counts=False)
