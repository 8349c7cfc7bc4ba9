"""Disturbances in the middle of an episode: corrupted states, edited walls, a moved target.

The random draws on a level depend only on the disturbance's name and on the level's index in its set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.families import named_seed
from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.solvers import distances
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.transfer import read_back, upload

FRACTIONS = (0.01, 0.02, 0.05, 0.1)
"""Fractions of a state's entries that are corrupted."""
TRIES = 256
"""Largest number of tiles of a level that are changed, each alone, in search of a tile that changes the solution."""


def corrupt(state: Tensor, fraction: float, first: int) -> Tensor:
    """Return a copy of (B, C, H, W) states in which some entries have the value of another tile.

    In every state a fraction of the entries is drawn uniformly among all channels and tiles. Each of these entries gets
    the value that its channel has at another tile, drawn uniformly. Therefore all values are typical for their channel,
    but in the wrong places.

    Args:
        state: (B, C, H, W) floats, the states to corrupt.
        fraction: the fraction of the entries; their number is rounded, and at least one.
        first: the index of the first level in its set.
    """
    _, n_channels, height, width = state.shape
    area = height * width
    entries = n_channels * area
    corrupted = read_back(state).reshape(len(state), entries).copy()
    for i, values in enumerate(corrupted):
        rng = np.random.default_rng(named_seed(f"corruption {fraction}", first + i))
        places = rng.choice(entries, max(1, round(fraction * entries)), replace=False, shuffle=False)
        tiles = places % area
        donors = (tiles + rng.integers(1, area, size=len(places))) % area
        values[places] = values[places - tiles + donors]
    return upload(corrupted, state.device).view(state.shape)


def open_wall(rng: np.random.Generator, task: Task, level: Tiles, target: NDArray[np.bool_]) -> Tiles | None:
    """Return an (H, W) level with one wall removed so that the old solution is no longer optimal, or None.

    The new solution is shorter (for the diameter, longer). Walls in the outer frame are not removed. None if no such
    wall was found.
    """
    walls = level == Tile.WALL
    walls[[0, -1]] = walls[:, [0, -1]] = False
    edited, solutions = _try_tiles(rng, task, level, walls, Tile.EMPTY)
    return _first(edited, solutions.sum(axis=(1, 2)) != target.sum())


def close_path(rng: np.random.Generator, task: Task, level: Tiles, target: NDArray[np.bool_]) -> Tiles | None:
    """Return an (H, W) level with a wall on an empty tile of its canonical solution.

    None if every such wall would make the level unsolvable.
    """
    edited, solutions = _try_tiles(rng, task, level, target & (level == Tile.EMPTY), Tile.WALL)
    return _first(edited, solutions.sum(axis=(1, 2)) > 0)


def move_target(rng: np.random.Generator, task: Task, level: Tiles, target: NDArray[np.bool_]) -> Tiles | None:
    """Return an (H, W) level with its target on another tile in reach of the source, or None if there is no such
    tile."""
    places = np.argwhere((distances(level) > 0) & (level != Tile.TARGET))
    if not len(places):
        return None
    moved = np.where(level == Tile.TARGET, np.uint8(Tile.EMPTY), level)
    moved[tuple(rng.choice(places))] = Tile.TARGET
    return moved


def _try_tiles(
    rng: np.random.Generator, task: Task, level: Tiles, candidates: NDArray[np.bool_], tile: Tile
) -> tuple[Tiles, NDArray[np.bool_]]:
    """Return copies of a level, each with `tile` on one candidate in random order, and their solutions, both (K, H,
    W)."""
    places = rng.permutation(np.argwhere(candidates))[:TRIES]
    edited = np.repeat(level[None], len(places), axis=0)
    edited[np.arange(len(places)), places[:, 0], places[:, 1]] = tile
    return edited, task.solve(edited) if len(places) else np.zeros(edited.shape, np.bool_)


def _first(levels: Tiles, wanted: NDArray[np.bool_]) -> Tiles | None:
    return levels[wanted.argmax()] if wanted.any() else None


Edit = Callable[[np.random.Generator, Task, Tiles, NDArray[np.bool_]], "Tiles | None"]
"""A function of a random generator, a task, an (H, W) uint8 level and its canonical solution, (H, W) bool.

It returns the edited level, or None if the edit is impossible on this level.
"""
EDITS: dict[str, Edit] = {"wall opened": open_wall, "wall closed": close_path, "target moved": move_target}
"""Edits of one level by name."""


def edits_of(task: Task) -> dict[str, Edit]:
    """Return the edits that make sense for a task, by name.

    A task without endpoints has no target to move. A task with several answer channels has no edits.
    """
    if len(task.answers) > 1:
        return {}
    return {name: edit for name, edit in EDITS.items() if task.has_endpoints or edit is not move_target}


def edit_levels(
    name: str, task: Task, tiles: Tiles, targets: NDArray[np.bool_], first: int
) -> tuple[NDArray[np.intp], Tiles]:
    """Edit each level if possible; return the (n,) indices of the edited levels, and these levels, (n, H, W).

    Args:
        name: one of `EDITS`.
        task: the task of the levels.
        tiles: (N, H, W) uint8.
        targets: (N, H, W) bool, their canonical solutions.
        first: the index of the first level in its set.
    """
    attempts = [
        EDITS[name](np.random.default_rng(named_seed(name, first + i)), task, level, target)
        for i, (level, target) in enumerate(zip(tiles, targets, strict=True))
    ]
    rows = [i for i, level in enumerate(attempts) if level is not None]
    edited = [level for level in attempts if level is not None]
    return np.array(rows, np.intp), np.array(edited, np.uint8).reshape(len(rows), *tiles.shape[1:])
