"""Random mazes whose ends are far apart: a family for `--import experiments.winding`.

The mazes of `maze-hard-30-redrawn` are alike: 30 to 50 % of their tiles are walls, placed at random, and only those
with a long solution are kept.
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
    """Draw random mazes, and put their ends far apart.

    The first end is the tile that is farthest from a random one, the second the tile farthest from the first, ties and
    which of them is the source by chance. Arguments and result are those of `generation.random`.
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
