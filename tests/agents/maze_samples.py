"""Small mazes of many kinds, drawn independently of the package: (H, W) uint8 tiles without a border."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tile

Tiles = NDArray[np.uint8]


def random_maze(rng: Generator, height: int, width: int, wall_probability: float = 0.5) -> Tiles:
    return (rng.random((height, width)) < wall_probability).astype(np.uint8)


def open_maze(rng: Generator, height: int, width: int) -> Tiles:
    return np.zeros((height, width), np.uint8)


def perfect_maze(rng: Generator, height: int, width: int) -> Tiles:
    """A spanning tree of the cells at even rows and columns, by randomised depth-first search."""
    tiles = np.ones((height, width), np.uint8)
    stack = [(0, 0)]
    tiles[0, 0] = Tile.EMPTY
    while stack:
        row, col = stack[-1]
        moves = [(row + dr, col + dc, dr, dc) for dr, dc in ((-2, 0), (0, -2), (2, 0), (0, 2))]
        moves = [m for m in moves if 0 <= m[0] < height and 0 <= m[1] < width and tiles[m[0], m[1]]]
        if not moves:
            stack.pop()
            continue
        row, col, dr, dc = moves[rng.integers(len(moves))]
        tiles[row, col] = tiles[row - dr // 2, col - dc // 2] = Tile.EMPTY
        stack.append((row, col))
    return tiles


def loopy_maze(rng: Generator, height: int, width: int) -> Tiles:
    """A perfect maze with a tenth of its walls knocked out."""
    tiles = perfect_maze(rng, height, width)
    tiles[rng.random(tiles.shape) < 0.1] = Tile.EMPTY
    return tiles


def comb_maze(rng: Generator, height: int, width: int) -> Tiles:
    """A spine of one column and teeth in every second row, sometimes mirrored."""
    tiles = np.zeros((height, width), np.uint8)
    tiles[1::2, 1:] = Tile.WALL
    return tiles[:, :: rng.choice([-1, 1])].copy()


def spiral_maze(rng: Generator, height: int, width: int) -> Tiles:
    """One corridor that winds inwards from a corner."""
    tiles = np.ones((height, width), np.uint8)
    row, col, dr, dc = 0, 0, 0, 1
    turns = 0
    while turns < 2:
        tiles[row, col] = Tile.EMPTY
        ahead, beyond = (row + dr, col + dc), (row + 2 * dr, col + 2 * dc)
        blocked = not (0 <= ahead[0] < height and 0 <= ahead[1] < width) or not tiles[ahead]
        touches = 0 <= beyond[0] < height and 0 <= beyond[1] < width and not tiles[beyond]
        if blocked or touches:
            dr, dc = dc, -dr
            turns += 1
        else:
            (row, col), turns = ahead, 0
    return tiles


FAMILIES: dict[str, Callable[[Generator, int, int], Tiles]] = {
    "random 0.1": lambda rng, height, width: random_maze(rng, height, width, 0.1),
    "random 0.3": lambda rng, height, width: random_maze(rng, height, width, 0.3),
    "random 0.5": random_maze,
    "random 0.6": lambda rng, height, width: random_maze(rng, height, width, 0.6),
    "perfect": perfect_maze,
    "loops": loopy_maze,
    "comb": comb_maze,
    "spiral": spiral_maze,
    "open": open_maze,
}


def place_endpoints(rng: Generator, tiles: Tiles) -> Tiles:
    """The maze with source and target on two random tiles, cleared if they are walls; often unreachable."""
    tiles = tiles.copy()
    free = np.flatnonzero(tiles.ravel() == Tile.EMPTY)
    choice = free if len(free) >= 2 else np.arange(tiles.size)
    source, target = rng.choice(choice, 2, replace=False)
    tiles.flat[source], tiles.flat[target] = Tile.SOURCE, Tile.TARGET
    return tiles


def sample(rng: Generator, family: str, n_mazes: int, height: int, width: int) -> Tiles:
    """(N, H, W) mazes of a family with source and target."""
    return np.stack([place_endpoints(rng, FAMILIES[family](rng, height, width)) for _ in range(n_mazes)])
