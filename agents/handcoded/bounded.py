"""The canonical shortest path without counting: distances modulo 3 show which neighbour is nearer.

On a grid, which has no odd cycles, distances of neighbours to the target differ by exactly one. So distances modulo 3
suffice to tell which neighbours are nearer and which are farther. All channels are 0 or 1, so the automaton is exact in
bfloat16, and on mazes of any size. Otherwise it does the same as the automaton of `canonical`, step by step.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from maze_nca_gym.levels import Tile

from ..neighbours import DIRECTIONS
from .base import Form, sawtooth, step
from .canonical import first, follow, follow_weights, path_biases
from .weight_table import Weight, WeightTable


class Channel(IntEnum):
    """The state channels.

    `PHASE_k`: the flood has reached the tile, whose distance from the target is k modulo 3. `POINT_*` and `ENTER_*`
    are those of `canonical`.
    """

    PATH = 0
    PHASE_0 = 1
    PHASE_1 = 2
    PHASE_2 = 3
    POINT_U = 4
    POINT_L = 5
    POINT_D = 6
    POINT_R = 7
    ENTER_U = 8
    ENTER_L = 9
    ENTER_D = 10
    ENTER_R = 11


PHASES = (Channel.PHASE_0, Channel.PHASE_1, Channel.PHASE_2)
_CODES = {Channel.PHASE_0: 4, Channel.PHASE_1: 5, Channel.PHASE_2: 6}
"""Codes of the phases. A tile's code minus a neighbour's is 1 or -2 if the neighbour is nearer; where one of them is
unreached, the difference is 0 or at least 4 in absolute value."""


def _phase_weights(phase: Channel) -> tuple[Weight, ...]:
    """Return weights by which a free tile takes the phase after that of the neighbour that floods it, and keeps it."""
    before, after = PHASES[phase - Channel.PHASE_0 - 1], PHASES[(phase - Channel.PHASE_0 + 1) % 3]
    return (
        # neighbours add at most 4, so 6 keeps a tile in its phase, and -6 keeps it out of the others
        Weight(phase, before, "N4"),
        Weight(phase, phase, "C", 6),
        Weight(phase, before, "C", -6),
        Weight(phase, after, "C", -6),
        Weight(phase, Tile.WALL, "C", -6),
    )


def _point_weights(towards: str) -> tuple[Weight, ...]:
    """Return weights that subtract the code of the neighbour from that of the tile."""
    point = Channel[f"POINT_{towards}"]
    return tuple(
        Weight(point, phase, kernel, sign * code)
        for phase, code in _CODES.items()
        for kernel, sign in (("C", 1), (towards, -1))
    )


TABLE = WeightTable(
    inputs=Tile,
    channels=Channel,
    weights=(
        Weight(Channel.PHASE_0, Tile.TARGET, "C"),
        *(weight for phase in PHASES for weight in _phase_weights(phase)),
        *(weight for towards in DIRECTIONS for weight in _point_weights(towards)),
        *(weight for towards in DIRECTIONS for weight in follow_weights(Channel, towards)),
        # the path starts at the source once the flood is there, and stays
        Weight(Channel.PATH, Tile.SOURCE, "C"),
        *(Weight(Channel.PATH, phase, "C") for phase in PHASES),
        Weight(Channel.PATH, Channel.PATH, "C"),
    ),
    biases=path_biases(Channel),
)


def activate(convolved: Tensor, state: Tensor) -> Tensor:
    """Activate (B, C, H, W) floats as in `canonical`, but a tile points where the difference of codes is 1 or -2."""
    path, phases, point, enter = torch.split(convolved, [1, 3, 4, 4], dim=1)
    path, enter = follow(path, enter)
    # -2: the tile is in phase 0, and the nearer neighbour in phase 2
    nearer = sawtooth(point, 1) + sawtooth(point, -2)
    return torch.cat([path, step(phases), first(nearer), enter], dim=1)


FORM = Form(TABLE, activate, steps_per_edge=2, highlight=Channel.PHASE_0, counters=frozenset())
