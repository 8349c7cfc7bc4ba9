"""What is asked of a maze."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym import solvers
from maze_nca_gym.levels import Tile, Tiles, clear_endpoints
from maze_nca_gym.names import unknown_name


@dataclass(frozen=True)
class Task:
    """A task as the environments see it.

    Attributes:
        name: "shortest-path" or "diameter".
        n_tiles: T, kinds of tile: the channels of the one-hot maze.
        n_channels: state channels that the task's hand-coded automaton needs, the default of the environments.
        solve: (N, H, W) tiles -> (N, H, W) bool canonical solutions, empty where there is none.
        has_endpoints: whether its levels have a source and a target.
    """

    name: str
    n_tiles: int
    n_channels: int
    solve: Callable[[Tiles], NDArray[np.bool_]]
    has_endpoints: bool

    def prepare(self, tiles: Tiles) -> Tiles:
        """Return the same levels as this task has them: without source and target if they play no role."""
        return tiles if self.has_endpoints else clear_endpoints(tiles)

    def solve_all(self, tiles: Tiles) -> NDArray[np.bool_]:
        """Return the canonical solutions of levels all of which must be solvable, (N, H, W) bool.

        Raises:
            ValueError: a level is unsolvable or malformed.
        """
        targets = self.solve(tiles)
        solvable = targets.any(axis=(1, 2))
        if not solvable.all():
            reason = "no path joins source and target" if self.has_endpoints else "it has no free tile"
            raise ValueError(f"level {int(np.argmin(solvable))} of {len(tiles)} is unsolvable: {reason}")
        return targets


SHORTEST_PATH = Task("shortest-path", len(Tile), 11, solvers.shortest_path, has_endpoints=True)
"""The shortest path from source to target (paper, "Computing the shortest path")."""
DIAMETER = Task("diameter", 2, 31, solvers.diameter, has_endpoints=False)
"""The longest of the shortest paths between any two tiles (paper, "Computing the diameter")."""

TASKS = {task.name: task for task in (SHORTEST_PATH, DIAMETER)}


def find_task(name: str) -> Task:
    """Return the task of that name.

    Raises:
        ValueError: unknown name.
    """
    if name not in TASKS:
        raise ValueError(unknown_name("task", name, TASKS))
    return TASKS[name]
