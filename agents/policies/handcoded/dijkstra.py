"""All shortest paths at once: the paper's Dijkstra map generation and path extraction, with two variants.

Paper: sections "Dijkstra map generation" and "Shortest path extraction", Tables "Dijkstra map generation" and "path
extraction". As printed, the two tables solve no maze: ages keep growing while the path is extracted, because a local
rule cannot spread the news that the floods have met faster than the floods themselves.

There are two remedies. In `BIDIRECTIONAL`, all floods and ages of a maze stop when the floods first meet, which
requires a global maximum. In `EQUAL_AGES` and `ONE_FLOOD`, the extraction follows another quantity by local rules only,
and takes twice the number of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import Final

import torch
from torch import Tensor

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.mazes.neighbours import DIRECTIONS

from .base import Form, global_max, sawtooth, step
from .weight_table import Weight, WeightTable


class TwoFloodChannel(IntEnum):
    """State channels of the automaton that floods the maze from both ends.

    - `PATH` marks the tiles of the shortest paths so far, and `PATH_*` the tiles that a path enters from the neighbour
      in that direction.
    - `FLOOD_S` and `FLOOD_T` mark the tiles that the floods from source and target have reached.
    - `AGE` is the number of steps since then, summed over both floods.
    """

    PATH, FLOOD_S, FLOOD_T, AGE = range(4)
    PATH_U, PATH_L, PATH_D, PATH_R = range(4, 8)


class OneFloodChannel(IntEnum):
    """State channels of the automaton that floods the maze from the source only; the names are the same as in
    `TwoFloodChannel`."""

    PATH, FLOOD_S, AGE = range(3)
    PATH_U, PATH_L, PATH_D, PATH_R = range(3, 7)


def _table(channels: type[IntEnum], origins: Mapping[str, Tile], starts: Iterable[IntEnum]) -> WeightTable:
    """Return tables "Dijkstra map generation" and "path extraction" for some floods.

    Args:
        channels: the state channels.
        origins: for each flood, by name, the kind of tile at which it begins.
        starts: the two channels that are both on where the path starts.
    """
    path, age = channels["PATH"], channels["AGE"]
    weights = []
    for name, origin in origins.items():
        flood = channels[name]
        weights += [
            Weight(flood, origin, "C"),
            Weight(flood, flood, "N5"),
            Weight(flood, Tile.WALL, "C", -6),  # as much as five flooded tiles and the origin can add
            Weight(age, flood, "C"),
        ]
    weights.append(Weight(age, age, "C"))
    for towards in DIRECTIONS:  # path + 2 (age of the neighbour - age of the tile)
        enters = channels[f"PATH_{towards}"]
        weights += [Weight(enters, path, towards), Weight(enters, age, towards, 2), Weight(enters, age, "C", -2)]
    weights += [Weight(path, start, "C") for start in starts]
    return WeightTable(Tile, channels, tuple(weights), {path: -1})


_BOTH_ENDS = {"FLOOD_S": Tile.SOURCE, "FLOOD_T": Tile.TARGET}
# the path starts in the middle, where the floods have met
BIDIRECTIONAL_TABLE = _table(TwoFloodChannel, _BOTH_ENDS, (TwoFloodChannel.FLOOD_S, TwoFloodChannel.FLOOD_T))
# the path starts at the source, once the flood from the target is there
EQUAL_AGE_TABLE = _table(TwoFloodChannel, _BOTH_ENDS, (Tile.SOURCE, TwoFloodChannel.FLOOD_T))
# the path starts at the target, once the flood from the source is there
ONE_FLOOD_TABLE = _table(OneFloodChannel, {"FLOOD_S": Tile.SOURCE}, (Tile.TARGET, OneFloodChannel.FLOOD_S))

OLDER_BY_ONE: Final = -1
"""Value of path + 2 (age of the neighbour - age of the tile) if the path enters a tile that is older by one: 1 - 2."""
EQUAL_AGE: Final = 1
"""The same value if the ages are equal: 1 - 0."""


def extract_path(path: Tensor, directional: Tensor, peak: int) -> Tensor:
    """Return the next path and the directions from which the path enters tiles, (B, 5, H, W) floats.

    The formula in the paper omits the path's own weights.

    Args:
        path: (B, 1, H, W) floats, the path's channel of the convolution.
        directional: (B, 4, H, W) floats, path + 2 (age of the neighbour - age of the tile) for each direction.
        peak: the value of `directional` where the path enters a tile, `OLDER_BY_ONE` or `EQUAL_AGE`.
    """
    directional = sawtooth(directional, peak)
    path = step(step(path) + directional.sum(dim=1, keepdim=True))
    return torch.cat([path, directional], dim=1)


def _activate_bidirectional(convolved: Tensor, state: Tensor) -> Tensor:
    """Activate floods and ages that stop, all over the maze, from the step after their first overlap."""
    path, floods, age, directional = torch.split(convolved, [1, 2, 1, 4], dim=1)
    # floods and ages stop together: one further update of the ages would break every path of two or more edges
    before = state[:, TwoFloodChannel.FLOOD_S : TwoFloodChannel.AGE + 1]
    met = global_max(torch.relu(before[:, :1] + before[:, 1:2] - 1))
    flooding = torch.cat([step(floods), torch.relu(age)], dim=1)
    extracted = extract_path(path, directional, OLDER_BY_ONE)
    return torch.cat([extracted[:, :1], before + (1 - met) * (flooding - before), extracted[:, 1:]], dim=1)


def _activate_local(convolved: Tensor, state: Tensor, peak: int) -> Tensor:
    """Activate one flood or two, and ages that never stop."""
    path, floods, age, directional = torch.split(convolved, [1, convolved.shape[1] - 6, 1, 4], dim=1)
    extracted = extract_path(path, directional, peak)
    return torch.cat([extracted[:, :1], step(floods), torch.relu(age), extracted[:, 1:]], dim=1)


BIDIRECTIONAL = Form(
    BIDIRECTIONAL_TABLE, _activate_bidirectional, steps_per_edge=1, highlight=TwoFloodChannel.AGE, rule="bidirectional"
)
# once both floods are there, ages are 2 (t - 1) less both distances
EQUAL_AGES = Form(
    EQUAL_AGE_TABLE, partial(_activate_local, peak=EQUAL_AGE), steps_per_edge=2, highlight=TwoFloodChannel.AGE
)
# ages fall by one with each tile away from the source
ONE_FLOOD = Form(
    ONE_FLOOD_TABLE, partial(_activate_local, peak=OLDER_BY_ONE), steps_per_edge=2, highlight=OneFloodChannel.AGE
)
