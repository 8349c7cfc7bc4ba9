"""Edits of a pool's levels while their states stay, so that policies learn to give up what is no longer true."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.mutation import mutate

FEW, MOST = 2, 40
"""Smallest and largest number of walls, gaps, sources or targets that a level gets."""
REPLACED, OPENED = 0.3, 0.4
"""Fractions of the levels, with edits of all kinds, that are replaced by others, and that get a single gap."""


class Edits(NamedTuple):
    """A way to edit levels.

    Attributes:
        edit: (n, H, W) levels; gets these and (P, H, W) of the pool.
        grace: iterations by which what they are asked for is due later than of a fresh level.
    """

    edit: Callable[[np.random.Generator, Tiles, Tiles], Tiles]
    grace: int


def _few(rng: np.random.Generator, tiles: Tiles, pool: Tiles) -> Tiles:
    return mutate(rng, tiles, "edits", n_edits=FEW)


def _all_kinds(rng: np.random.Generator, tiles: Tiles, pool: Tiles) -> Tiles:
    # Large changes alone would teach to give up everything. A gap alone contradicts nothing that a policy has found, so
    # it teaches to notice.
    n_replaced, n_opened = round(REPLACED * len(tiles)), round(OPENED * len(tiles))
    edited = tiles.copy()
    edited[:n_replaced] = pool[rng.integers(len(pool), size=n_replaced)]
    _open(rng, edited[n_replaced : n_replaced + n_opened])
    _change(rng, edited[n_replaced + n_opened :])
    return edited


def _open(rng: np.random.Generator, tiles: Tiles) -> None:
    """Give each level a gap in a wall that is not at the edge, if it has one."""
    for level in tiles:
        inner = level[1:-1, 1:-1]
        walls = np.argwhere(inner == Tile.WALL)
        if len(walls):
            inner[tuple(rng.choice(walls))] = Tile.EMPTY


def _change(rng: np.random.Generator, tiles: Tiles) -> None:
    """Make `FEW` to `MOST` edits in each level, numbers of any order of magnitude being as likely."""
    numbers = np.round(FEW * (MOST / FEW) ** rng.random(len(tiles))).astype(int)
    for level, n in zip(tiles, numbers, strict=True):
        level[...] = mutate(rng, level[None], "edits", n_edits=int(n))[0]


EDITS = {"few": Edits(_few, 0), "all-kinds": Edits(_all_kinds, 8)}
"""Name -> what is edited."""
