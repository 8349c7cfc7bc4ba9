"""Delta debugging of a maze: rows, columns and walls are removed and ends moved while a policy still fails.

Every change makes the maze smaller, so shrinking ends. Mazes are compared by three numbers, and a later number matters
only if the earlier numbers are equal: the number of tiles, the number of tiles that are not empty, and the length of
the solution.

Zeller, Hildebrandt, *Simplifying and Isolating Failure-Inducing Input* (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from maze_nca_gym.mazes.levels import Tile, Tiles
from maze_nca_gym.mazes.scoring import lengths_of
from maze_nca_gym.mazes.small import allowed, kinds_once

from ..rollouts.scores import label
from .examining import solvable
from .record import Failure
from .searching import Search

TILES_AT_ONCE = 1 << 14
"""Approximate number of tiles of the changed mazes that are examined at once."""
Changes: TypeAlias = Iterator[Tiles]
"""Changed mazes without their border, (H, W) uint8 each."""


@dataclass
class Shrinking:
    """A maze that becomes smaller while a policy fails on it in the same way: by a wrong answer, or by an error of one
    class.

    Attributes:
        search: the search that found the maze. It states whether the border of walls has to stay, and the smallest
            number of tiles of a maze.
        tiles: (H, W) uint8, the smallest maze so far, with its border.
        error: the error on this maze; empty for a wrong answer.
        n_tried: the number of changed mazes that were examined.
        is_minimal: whether the policy is correct after every further change.
    """

    search: Search
    tiles: Tiles
    error: str
    n_tried: int = 0
    is_minimal: bool = False

    @classmethod
    def of(cls, search: Search) -> Shrinking:
        """Return a shrinking that begins with the maze on which the policy failed in a search."""
        assert search.failed is not None
        return cls(search, *search.failed)

    def failure(self) -> Failure:
        """Return the maze with the policy's answer on it."""
        search, examiner, maze = self.search, self.search.examiner, self.tiles
        assert search.failed is not None
        levels = label(examiner.policy, maze[None], search.task.solve(maze[None]))
        return Failure(
            tiles=maze,
            correct=levels.wanted[0],
            shown=examiner.last_answer(levels),
            iterations=int(examiner.limits(levels)[0]),
            error=self.error,
            unshrunk=search.failed.tiles,
            found_in=search.place,
            n_tried=self.n_tried,
            is_minimal=self.is_minimal,
        )

    @property
    def body(self) -> Tiles:
        """The (H, W) maze without the border that has to stay."""
        return self.tiles[1:-1, 1:-1] if self.search.has_border else self.tiles

    def run(self, report: Callable[[int, str], Any]) -> None:
        """Shrink the maze until the policy is correct after every further change.

        Args:
            report: called after every batch of changed mazes with the number of tiles that were removed, and with a
                description of the progress in words. An exception that it raises ends the work.
        """
        size = self.tiles.size
        changes = (self.without_lines, self.without_walls, self.with_moved_ends)

        def note() -> None:
            shape = " x ".join(map(str, self.tiles.shape))
            report(size - self.tiles.size, f"{shape} left, {self.n_tried:,} smaller mazes tried")

        while any(self._accept(change(), note) for change in changes):
            pass  # the changes begin again with the removal of rows, which shrinks the most
        self.is_minimal = True

    def _accept(self, changes: Changes, report: Callable[[], Any]) -> bool:
        """Replace the maze by the first changed maze on which the policy still fails; return whether there is such a
        maze."""
        at_once = max(4, TILES_AT_ONCE // self.tiles.size)
        waiting = list[Tiles]()
        for change in changes:
            if waiting and (change.shape != waiting[0].shape or len(waiting) == at_once):
                if self._try(np.stack(waiting), report):
                    return True
                waiting = []
            waiting.append(change)
        return bool(waiting) and self._try(np.stack(waiting), report)

    def _try(self, bodies: Tiles, report: Callable[[], Any]) -> bool:
        """Replace the maze by the first of (N, H, W) mazes on which the policy fails; return whether there is such a
        maze."""
        search = self.search
        bodies = bodies[allowed(search.task, bodies) & (bodies[0].size >= search.least)]
        tiles, targets = solvable(search.task, search.bordered(bodies)) if len(bodies) else (bodies, None)
        while targets is not None and len(tiles):
            examined = search.examiner(tiles, targets)
            self.n_tried += len(examined.failed)
            report()
            last = len(examined.failed) - 1
            for index in np.flatnonzero(examined.failed).tolist():
                error = examined.error if index == last else ""
                if error.partition(":")[0] == self.error.partition(":")[0]:
                    self.tiles, self.error = tiles[index], error
                    return True
            tiles, targets = tiles[last + 1 :], targets[last + 1 :]  # after an error of another class, if there was one
        return False

    def without_lines(self) -> Changes:
        """Yield the maze without some adjacent rows or columns, first without many of them.

        Ends in these rows or columns are moved to the row or column before or after them.
        """
        body = self.body
        longest, n_lines = max(body.shape), set[int]()
        while longest > 1:
            longest //= 2
            n_lines.add(longest)
        for n in sorted({*n_lines, 1, 2}, reverse=True):
            for maze, turned in ((body, False), (body.T, True)):
                if n >= len(maze):
                    continue
                for start in range(0, len(maze) - n + 1, max(1, n // 2)):
                    for left in self._without(maze, start, n):
                        yield left.T if turned else left

    def _without(self, maze: Tiles, start: int, n: int) -> Changes:
        """Yield an (H, W) maze without n rows from `start` on. Ends in these rows are moved to the row above, then to
        the row below."""
        band, left = maze[start : start + n], np.delete(maze, slice(start, start + n), axis=0)
        is_end = np.isin(band, kinds_once(self.search.task))
        ends = [(int(col), int(band[row, col])) for row, col in np.argwhere(is_end)]
        yield left
        for row in {start - 1, start} if ends else ():
            if 0 <= row < len(left):
                moved = left.copy()
                for col, kind in ends:
                    moved[row, col] = kind
                yield moved

    def without_walls(self) -> Changes:
        """Yield the maze after walls became empty tiles: first many walls at once, finally each wall alone.

        Other kinds of tile that may occur several times in a maze are replaced in the same way.
        """
        body = self.body
        places = np.argwhere((body != Tile.EMPTY) & ~np.isin(body, kinds_once(self.search.task)))
        n = len(places)
        while n:
            for start in range(0, len(places), n):
                changed = body.copy()
                changed[tuple(places[start : start + n].T)] = Tile.EMPTY
                yield changed
            n = 0 if n == 1 else -(-n // 2)

    def with_moved_ends(self) -> Changes:
        """Yield the maze after an end was moved so that the solution became shorter; the shortest solution first.

        An end is moved to an empty tile of the solution, or to an empty tile beside the end.
        """
        body, moved, search = self.body, list[Tiles](), self.search
        around = (slice(1, -1), slice(1, -1)) if search.has_border else (slice(None), slice(None))
        target = search.task.solve(self.tiles[None])
        of_maze = np.asarray(target.reshape(-1, *self.tiles.shape).any(axis=0))[around]
        for row, col in np.argwhere(np.isin(body, kinds_once(search.task))):
            beside = np.abs(np.indices(body.shape) - np.array([row, col])[:, None, None]).sum(axis=0) == 1
            for place in np.argwhere((of_maze | beside) & (body == Tile.EMPTY)):
                changed = body.copy()
                changed[tuple(place)], changed[row, col] = body[row, col], Tile.EMPTY
                moved.append(changed)
        if not moved:
            return
        mazes, targets = solvable(search.task, search.bordered(np.stack(moved)))
        lengths = lengths_of(targets)
        shorter = np.flatnonzero(lengths < lengths_of(target)[0])
        for index in shorter[np.argsort(lengths[shorter], kind="stable")]:
            yield mazes[index][around]
