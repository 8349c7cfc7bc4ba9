"""The diameter of a maze by an automaton (paper, section "Computing the diameter", Alg. 1).

A depth-first search visits every tile. At each tile the pebble launches a wave, and every tile stores the largest
distance over which a wave has reached it, its eccentricity. Then a wave from the first tile with the largest
eccentricity marks the tiles at that distance, and the canonical shortest path leads to one of them.

With the waiting times of Alg. 1, waves can collide (or the algorithm takes quadratic time). Here the pebble launches
its wave once the latest wave has passed its own tile. Then each wave reaches every tile later than all waves before it:
a pebble at distance d from the previous pebble launches at least d + 1 steps after it, so its wave lies strictly
inside. Components of the maze cannot disturb each other. When a component is finished, the search starts again in the
next, at the first free tile in row-major order that has not been visited.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from maze_nca_gym.mazes.neighbours import DIRECTIONS

from ..guarantees import StepBound
from .base import HandcodedNCA, global_max, global_min, sawtooth, step
from .canonical import first, follow, path_biases, path_weights
from .depth_first import UNSTACKED, Search, explore, is_stuck, search_weights
from .weight_table import Weight, WeightTable


class Static(IntEnum):
    """The channels that never change.

    `FREE` and `WALL` are the maze. `POSITION` is H W minus the row-major index, which breaks ties between components
    that look alike.
    """

    FREE, WALL, POSITION = range(3)


class DiameterChannel(IntEnum):
    """The state channels.

    - `PATH`, and `FLOOD` to `ENTER_R`, extract the path as in `canonical.CountingChannel`.
    - `ROUTE` to `STACK_RANK` are the search of `depth_first`, which starts from the tiles of `SEED`.
    - `LAUNCHED` marks tiles that have sent their wave, and `CLOCK` counts steps.
    - `WAVE` is the launch time of the latest wave that has reached the tile, and `WAVE_*` the launch time at the
      neighbour in that direction.
    - `ECCENTRICITY` is the largest distance over which a wave has reached the tile, the paper's path_max.
    - `END` and `FAR` mark the first and the last tile of the longest shortest path.
    """

    PATH, ROUTE, ROUTE_U, ROUTE_L, ROUTE_D, ROUTE_R, PEBBLE, STACK, STACK_DIRECTION, STACK_RANK = range(10)
    SEED, LAUNCHED, CLOCK, WAVE, WAVE_U, WAVE_L, WAVE_D, WAVE_R, ECCENTRICITY = range(10, 19)
    END, FAR = range(19, 21)
    FLOOD, AGE, POINT_U, POINT_L, POINT_D, POINT_R, ENTER_U, ENTER_L, ENTER_D, ENTER_R = range(21, 31)


_KEPT = ("SEED", "LAUNCHED", "CLOCK", "WAVE", "ECCENTRICITY", "END", "FAR")

TABLE = WeightTable(
    inputs=Static,
    channels=DiameterChannel,
    weights=(
        *search_weights(DiameterChannel, DiameterChannel.ROUTE, DiameterChannel.SEED, Static.WALL, (Static.FREE,)),
        *(Weight(DiameterChannel[name], DiameterChannel[name], "C") for name in _KEPT),
        *(Weight(DiameterChannel[f"WAVE_{towards}"], DiameterChannel.WAVE, towards) for towards in DIRECTIONS),
        *path_weights(DiameterChannel, DiameterChannel.END, DiameterChannel.FAR, Static.WALL),
    ),
    biases={DiameterChannel.CLOCK: 1, **path_biases(DiameterChannel)},
)


class Fields(NamedTuple):
    """The groups of channels of a state, in the order of `DiameterChannel`.

    Each group is (B, 1, H, W), or has more channels where a comment gives their number.
    """

    path: Tensor
    search: Tensor  # 10: the nine of `depth_first.Search`, and SEED
    launched: Tensor
    clock: Tensor
    wave: Tensor
    wave_from: Tensor  # 4
    eccentricity: Tensor
    end: Tensor
    far: Tensor
    flood: Tensor
    age: Tensor
    point: Tensor  # 4
    enter: Tensor  # 4

    @classmethod
    def split(cls, channels: Tensor) -> Fields:
        """Return a (B, 31, H, W) float state as its groups of channels."""
        return cls(*torch.split(channels, [1, 10, 1, 1, 1, 4, 1, 1, 1, 1, 1, 4, 4], dim=1))


class DiameterNCA(HandcodedNCA):
    """Finds the canonical longest shortest path of every maze exactly, and every tile's eccentricity.

    A maze of n free tiles takes at most 8 n steps. All eccentricities are known after T <= 4 n + D steps, where D is
    the diameter in edges. The path is complete after T + 3 D + 2 steps.
    """

    highlight = "wave"
    rule = "diameter"

    def __init__(self) -> None:
        super().__init__("diameter", 2, TABLE, StepBound(per_tile=8), basis="argued and tested")

    def encode_maze(self, maze: Tensor) -> Tensor:
        """Return the channels of `Static`, (B, 3, H, W) floats, from the (B, T, H, W) one-hot maze."""
        height, width = maze.shape[2:]
        wall = maze[:, 1:2]
        position = torch.arange(height * width, 0, -1, dtype=maze.dtype, device=maze.device)
        return torch.cat([1 - wall, wall, position.view(1, 1, height, width).expand_as(wall)], dim=1)

    def activate(self, convolved: Tensor, state: Tensor, static: Tensor) -> Tensor:
        """Return the state after one step of Alg. 1, (B, C, H, W) floats.

        The step advances the search, launches and spreads waves, and draws the path between the first pair of farthest
        tiles.
        """
        free, _, position = torch.split(static, 1, dim=1)
        new, before = Fields.split(convolved), Fields.split(state)
        waits = Search.split(before.search[:, :-1]).pebble * (1 - before.launched)  # the pebble before its launch
        search, finished = _search(new, before, free, position)
        go = 1 - global_max(waits)  # the search stands still while a pebble waits
        # seeds launch at once: the waves of other components never reach them
        launch = waits * step(sawtooth(global_max(before.wave) - before.wave, 0) + before.search[:, -1:])
        wave_from = torch.relu(new.wave_from)
        # the latest wave wins: it lies inside all earlier ones, and no two waves reach a tile at once
        spread = torch.maximum(new.wave, wave_from.amax(dim=1, keepdim=True)) * free
        # all waves have ended once an iteration has neither arrivals nor launches
        in_motion = step(global_max(step(spread - before.wave) + launch))
        # the next wave starts from the first free tile of largest eccentricity, in row-major order, until there is an
        # end: positions fall in that order, so multiplied by them the first of the farthest tiles is the maximum
        farthest = sawtooth(before.eccentricity - global_max(before.eccentricity), 0) * free * position
        first_farthest = sawtooth(farthest - global_max(farthest), 0) * free * (1 - global_max(before.end))
        start = go * finished * (1 - in_motion) * first_farthest
        wave = torch.maximum(spread, (launch + start) * new.clock)
        # launch times grow from wave to wave, so a larger one than before is an arrival
        arrived = step(wave - before.wave)
        distance = new.clock - wave
        # at a diameter's distance, once the wave from the path's first tile is on its way
        last_wave = step(global_max(before.end) + global_max(start))
        is_last_tile = sawtooth(distance - global_max(before.eccentricity), 0) * last_wave
        path, enter = follow(new.path, new.enter)
        return torch.cat(
            [
                path,
                before.search + go * (search - before.search),
                step(new.launched + launch),
                new.clock,
                wave,
                wave_from,
                new.eccentricity + torch.relu(arrived * distance - new.eccentricity),
                step(new.end + start),
                step(new.far + arrived * is_last_tile),
                step(new.flood),
                torch.relu(new.age),
                first(step(new.point)),
                enter,
            ],
            dim=1,
        )

    def largest_count(self, height: int, width: int) -> int:
        """Return the largest integer of the search: the rank of a tile that is neither on the stack nor available."""
        return (UNSTACKED + 1) * height * width + 1

    @torch.no_grad()
    def finished(self, maze: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """Return for each maze whether the path has reached its last tile, or there is no free tile, (B,) bool."""
        arrived = state[:, DiameterChannel.PATH] * state[:, DiameterChannel.FAR] >= 1
        return arrived.flatten(1).any(dim=1) | (maze[:, 1] >= 1).flatten(1).all(dim=1)


def _search(new: Fields, before: Fields, free: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Advance the search by one step.

    One minimum finds the tile to pop or, with an empty stack, the first free tile that has not been visited.

    Returns:
        The search and its seeds, (B, 10, H, W), and (B, 1, 1, 1): 1 once every free tile is visited.
    """
    n_tiles = free.shape[2] * free.shape[3]
    search = explore(Search.split(new.search[:, :-1]), Search.split(before.search[:, :-1]))
    stuck, rank = is_stuck(search), search.rank + search.direction
    off_stack, available = 1 - step(rank), free * (1 - search.route)
    # tiles off the stack rank after those on it: first unvisited free tiles in row-major order, then all others
    order = available * (n_tiles - position) + (1 - available) * (n_tiles + 1)
    rank = rank + off_stack * (UNSTACKED * n_tiles + order)
    least = global_min(rank)
    popped = sawtooth(rank - least, 0) * stuck
    seed = step(new.search[:, -1:] + popped * off_stack * available)
    return torch.cat([*search.unstack(popped), seed], dim=1), stuck * step(least - (UNSTACKED + 1) * n_tiles)
