"""Mazes of cells and walls by the rules of other work. Their ends are cells, and the cell at which the carving begins
matters.

- DT-Net (arXiv 2202.05826, `make_mazes.py` of easy-to-hard-data) carves depth first from the start, so the start is
  nearly always a dead end.
- NeuralSolver (arXiv 2402.15393, `make_1s_maze.py`) carves depth first from a third cell.
- On Logical Extrapolation for Mazes (arXiv 2410.03020) takes any cell as start, and opens further walls.
- Gated Path Planning Networks (GPPN, arXiv 1806.06408, `utils/maze.py`) carve from the top left cell, and then open a
  random share of all tiles.
- The first mazes of edit streams are carved by Kruskal's algorithm.

The published sets have no published seeds, so these levels follow the same rules but are not the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes._kernels.compiling import kernels
from maze_nca_gym.mazes.families import named_seed
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances


def rngs(name: str, n: int) -> list[np.random.Generator]:
    """Return a random generator for each of the first `n` levels of the set `name`."""
    return [np.random.default_rng(named_seed(f"benchmark {name}", i)) for i in range(n)]


def _carve(uniforms: NDArray[np.float64], roots: NDArray[np.intp], cells: int) -> Tiles:
    """Return (N, S, S) perfect mazes of `cells` x `cells` cells without a border, carved depth first from the roots.

    Args:
        uniforms: (N, cells**2) in [0, 1), a number for each cell that is carved. The first number of each level is
            overwritten so that it selects the root.
        roots: (N,) numbers of cells, row by row.
        cells: number of cells in a row.
    """
    inner = np.full((len(roots), 2 * cells - 1, 2 * cells - 1), Tile.WALL, np.uint8)
    uniforms[:, 0] = (roots + 0.5) / cells**2  # the kernel takes the first one for the cell to begin with
    kernels.carve_depth_first(inner, uniforms)
    return inner


def draw_mazes(draws: Sequence[np.random.Generator], cells: int, root: str | None, loops: float) -> Tiles:
    """Return a maze of cells for each of N random generators, (N, 2 * cells + 1, 2 * cells + 1) uint8 with a border.

    Args:
        draws: the random generators, at least one.
        cells: number of cells in a row.
        root: the cell from which the maze is carved depth first: "start", "any", or "third" (a cell that is neither
            start nor goal). None carves by Kruskal's algorithm, which has no such cell.
        loops: the probability with which a wall between two cells is opened afterwards.
    """
    n = len(draws)
    ends = np.array([rng.choice(cells**2, 3, replace=False) for rng in draws])  # start, goal and a third cell
    if root is None:
        inner = np.full((n, 2 * cells - 1, 2 * cells - 1), Tile.WALL, np.uint8)
        kernels.carve_kruskal(inner, np.stack([rng.permutation(2 * cells * (cells - 1)) for rng in draws]))
    else:
        uniforms = np.stack([rng.random(cells**2) for rng in draws])
        roots = {"start": ends[:, 0], "third": ends[:, 2], "any": (uniforms[:, 0] * cells**2).astype(np.intp)}[root]
        inner = _carve(uniforms, roots, cells)
    if loops:
        row, col = np.ogrid[: inner.shape[1], : inner.shape[2]]
        opened = np.stack([rng.random(inner.shape[1:]) < loops for rng in draws])
        inner[opened & ((row + col) % 2 == 1)] = Tile.EMPTY
    levels = np.pad(inner, ((0, 0), (1, 1), (1, 1)), constant_values=Tile.WALL)
    for end, tile in ((ends[:, 0], Tile.SOURCE), (ends[:, 1], Tile.TARGET)):
        levels[np.arange(n), 2 * (end // cells) + 1, 2 * (end % cells) + 1] = tile
    return levels


def news_levels(side: int, name: str, n: int) -> Tiles:
    """Return the first `n` levels of a set by GPPN's rule, (n, side, side) uint8.

    Cells are at odd rows and columns, so with an even side the last row and column have no border. A random share of
    the tiles of each level, except the outermost, is opened, and so is the goal. GPPN's policies must name the first
    move from every tile. Here the source is a random tile that can reach the goal, so the mean score is the same.

    Args:
        side: number of rows and of columns.
        name: the name of the set, which seeds its levels.
        n: number of levels.
    """
    cells, levels = side // 2, np.full((n, side, side), Tile.WALL, np.uint8)
    for rng, level in zip(rngs(name, n), levels, strict=True):
        while (level == Tile.SOURCE).sum() == 0:  # a goal within walls has no sources, and the maze is drawn anew
            level[:] = Tile.WALL
            level[1 : 2 * cells, 1 : 2 * cells] = _carve(rng.random((1, cells**2)), np.zeros(1, np.intp), cells)[0]
            level[1:-1, 1:-1][rng.random((side - 2, side - 2)) < rng.random()] = Tile.EMPTY
            goal = tuple(rng.integers(1, side - 1, 2))
            level[goal] = Tile.EMPTY
            sources = np.argwhere(distances(level, goal) > 0)
            if len(sources):
                level[tuple(rng.choice(sources))], level[goal] = Tile.SOURCE, Tile.TARGET
    return levels


def from_every_tile(tiles: Tiles) -> Tiles:
    """Return copies of (N, H, W) levels with other sources: a copy for each tile from which the target can be reached,
    with the source there.

    Returns:
        (M, H, W) uint8, the copies of the first level first, row by row.
    """
    levels = []
    for level in tiles:
        row, col = np.nonzero(distances(level, np.argwhere(level == Tile.TARGET)[0]) > 0)
        started = np.repeat(np.where(level == Tile.SOURCE, np.uint8(Tile.EMPTY), level)[None], len(row), axis=0)
        started[np.arange(len(row)), row, col] = Tile.SOURCE
        levels.append(started)
    return np.concatenate(levels)
