"""The families of mazes by name: the package's generators, and three extremes.

A family is a function `(rng, n, size) -> (N, size + 2, size + 2) uint8 tiles`, with a border of walls, source and
target.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from maze_nca_gym.mazes import Tile, Tiles, generate

Family = Callable[[np.random.Generator, int, int], Tiles]


def comb(rng: np.random.Generator, n: int, size: int) -> Tiles:
    """Return n copies of a comb: a corridor along the top, with teeth down from every other column.

    Source and target are at the tips of the first and the last tooth.
    """
    tiles = np.full((size, size), Tile.WALL, np.uint8)
    tiles[0] = tiles[:, ::2] = Tile.EMPTY
    tiles[-1, 0], tiles[-1, 2 * ((size - 1) // 2)] = Tile.SOURCE, Tile.TARGET
    return _copies(n, tiles)


def spiral(rng: np.random.Generator, n: int, size: int) -> Tiles:
    """Return n copies of a spiral: one corridor that winds inwards from source to target.

    Few paths are longer in a maze of this size.
    """
    tiles = np.full((size, size), Tile.WALL, np.uint8)
    at, heading = np.array([0, 0]), np.array([0, 1])
    for length in (size - 1, *np.repeat(np.arange(size - 1, 1, -2), 2)):
        for _ in range(length):
            tiles[tuple(at)] = Tile.EMPTY
            at += heading
        heading = np.array([heading[1], -heading[0]])
    tiles[0, 0], tiles[tuple(at)] = Tile.SOURCE, Tile.TARGET
    return _copies(n, tiles)


def _copies(n: int, tiles: Tiles) -> Tiles:
    return np.repeat(np.pad(tiles, 1, constant_values=Tile.WALL)[None], n, axis=0)


FAMILIES: dict[str, Family] = {
    "random, p = 0.5": generate,
    "random, p = 0.3": partial(generate, wall_probability=0.3),
    "perfect": partial(generate, generator="perfect"),
    "kruskal": partial(generate, generator="kruskal"),
    "loops": partial(generate, generator="loops"),
    "rooms": partial(generate, generator="rooms"),
    "caves": partial(generate, generator="caves"),
    "open": partial(generate, wall_probability=0.0),
    "comb": comb,
    "spiral": spiral,
}
ALWAYS_EQUAL = ("comb", "spiral")
"""Families whose levels of one size are all equal, so that one level is enough."""


def draw(name: str, size: int, n: int, seed: int) -> Tiles:
    """Return n levels of a family, the same for every automaton, or a single level if all would be equal."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name), size])
    return FAMILIES[name](rng, 1 if name in ALWAYS_EQUAL else n, size)
