"""Random mazes with source and target far apart: a family for `--import experiments.winding`.

These mazes resemble the mazes of `maze-hard-30-redrawn`, in which 30 to 50 % of the tiles are random walls, and which
contains only mazes with a long solution.
"""

from __future__ import annotations

import numpy as np

from maze_nca_gym.mazes import Family, Tile, Tiles, register_family, register_generator
from maze_nca_gym.mazes.generation import Size, random
from maze_nca_gym.mazes.solvers import distances


def winding(
    rng: np.random.Generator,
    n: int,
    size: Size,
    *,
    wall_probability: float = 0.4,
    border: bool = True,
    endpoints: bool = True,
) -> Tiles:
    """Draw random mazes with source and target far apart.

    The first end is the tile that is farthest from a random tile. The second end is the tile that is farthest from the
    first end. Ties are broken at random, and a random end is the source. Arguments and result are the same as in
    `generation.random`.
    """
    levels = random(rng, n, size, wall_probability=wall_probability, border=border)
    for level in levels:
        ends = [np.argwhere(level == Tile.SOURCE)[0]]
        level[level != Tile.WALL] = Tile.EMPTY
        for _ in range(2):
            away = distances(level, ends[-1])
            farthest = np.argwhere(away == away.max())
            ends.append(farthest[int(rng.integers(len(farthest)))])
        source, target = ends[:0:-1] if rng.random() < 0.5 else ends[1:]
        if endpoints:
            level[tuple(source)], level[tuple(target)] = Tile.SOURCE, Tile.TARGET
    return levels


register_generator("winding", winding)
register_family(
    "winding",
    Family(
        "winding", "random mazes, their ends far apart", tuple({"wall_probability": p} for p in (0.34, 0.37, 0.4, 0.43))
    ),
)
