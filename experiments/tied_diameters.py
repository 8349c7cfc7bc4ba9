"""How often a policy lights two diameters of a level at once: `python -m experiments.tied_diameters --help`.

A diameter is a shortest path between two tiles that are as far apart as any two joined tiles of the level. No two have
the same tiles, but they may share most of them; where they part are the paper's "sub-paths". An output has two if it
lights all tiles of both, or of more. Tiles are lit above 0.5, after as many iterations as `evaluate` gives.
"""

from __future__ import annotations

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.progress import track

from maze_nca_gym.agents import load
from maze_nca_gym.agents.rollouts import default_steps, find_paths, label
from maze_nca_gym.mazes import Tile, Tiles, count_shortest_paths, distances, eccentricities, test_levels
from maze_nca_gym.support.tables import Table

POLICIES = tuple(f"nca-diameter{kind}" for kind in ("", "-general", "-lenient", "-perfect", "-hinted"))
FAMILIES = ("random", "perfect")
COLUMNS = ("levels with ties", "policy", "two", "two, above 0.25", "more tiles than one has", "one and nothing else")


def count_diameters(tiles: Tiles, lit: NDArray[np.bool_]) -> int:
    """Return how many diameters of a (H, W) level, two tiles of which are joined, have all their tiles in `lit`."""
    farthest = eccentricities(tiles)
    longest, inside, count = farthest.max(), np.where(lit, tiles, np.uint8(Tile.WALL)), 0.0
    for start in map(tuple, np.argwhere(lit & (farthest == longest))):
        # as far apart in the level itself, and no farther if every other tile is a wall
        ends = (distances(tiles, start) == longest) & (distances(inside, start) == longest)
        for end in map(tuple, np.argwhere(ends)):
            inside[start], inside[end] = Tile.SOURCE, Tile.TARGET
            count += float(count_shortest_paths(inside))
            inside[start] = inside[end] = Tile.EMPTY
    return round(count / 2)  # each diameter is found from both ends


@torch.no_grad()
def main(policies: tuple[str, ...] = POLICIES, families: tuple[str, ...] = FAMILIES, n: int = 1024) -> None:
    """Print a table of the outputs on those of the first n levels of each set that have two diameters or more."""
    rows = []
    for family in families:
        levels = test_levels(family, 16, "diameter", n).tiles
        tied = np.array([count_diameters(tiles, tiles != Tile.WALL) > 1 for tiles in levels])
        for name in track(policies, f"{family}-16"):
            targets = label(policy := load(name), levels).target
            path = find_paths(policy, levels, default_steps(policy, targets))
            has, faint = (np.array([*map(count_diameters, levels, path > least)]) for least in (0.5, 0.25))
            extra = (path > 0.5).sum(axis=(1, 2)) - targets.sum(axis=(1, 2))
            counts = [np.sum(tied & kind) for kind in (has > 1, faint > 1, extra > 0, (has == 1) & (extra == 0))]
            rows.append([f"{family}-16, {tied.sum():,} of {n:,}", f"`{name}`", *map(str, counts)])
    print(Table(COLUMNS, rows).markdown())


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
