"""Snapshots of an automaton's steps, and the bounded memory of them that a window looks back into."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles

HISTORY_BYTES = 256 * 2**20
"""Memory for snapshots, about 18,000 steps of 11 channels at size 16; the oldest are forgotten first."""


@dataclass(frozen=True)
class Snapshot:
    """One step as `frame.draw_frame` draws it.

    Attributes:
        tiles: (H, W) uint8.
        channels: (C, H, W) float32.
        target: (H, W) bool, the exact solution.
        channel_names: names of the first channels.
        step: iterations so far.
        accuracy: the accuracy of the prediction, at most 1; not-a-number where the level has no solution.
        title: a line above the maze.
        front: number of the channel that tints the maze; None for no tint.
        verdict: a few words about the path, empty for none.
        solved: whether they are good news.
    """

    tiles: Tiles
    channels: NDArray[np.float32]
    target: NDArray[np.bool_]
    channel_names: tuple[str, ...] | None = None
    step: int = 0
    accuracy: float = 0.0
    title: str = ""
    front: int | None = None
    verdict: str = ""
    solved: bool = False

    def copy(self) -> Snapshot:
        """Return the same with its own arrays."""
        return replace(self, tiles=self.tiles.copy(), channels=self.channels.copy(), target=self.target.copy())

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays."""
        return self.tiles.nbytes + self.channels.nbytes + self.target.nbytes


class History:
    """The latest snapshots, at least one and no more than fit into some bytes, and the one in view."""

    def __init__(self, max_bytes: int = HISTORY_BYTES) -> None:
        self._snapshots: deque[Snapshot] = deque()
        self._bytes = 0
        self._max_bytes = max_bytes
        self.back = 0

    def __len__(self) -> int:
        return len(self._snapshots)

    @property
    def viewed(self) -> Snapshot:
        """The snapshot in view, `back` steps before the newest."""
        return self._snapshots[-1 - self.back]

    def append(self, snapshot: Snapshot) -> None:
        """Remember a snapshot and view it."""
        self._snapshots.append(snapshot)
        self._bytes += snapshot.n_bytes
        self.back = 0
        while self._bytes > self._max_bytes and len(self) > 1:
            self._bytes -= self._snapshots.popleft().n_bytes

    def replace_newest(self, snapshot: Snapshot) -> None:
        """Put a snapshot in the newest one's place."""
        self._bytes -= self._snapshots.pop().n_bytes
        self.append(snapshot)

    def drop_newest(self) -> bool:
        """Drop the newest snapshot, unless it is the only one; return whether there was another."""
        if len(self) < 2:
            return False
        self._bytes -= self._snapshots.pop().n_bytes
        self.back = 0
        return True

    def clear(self) -> None:
        """Remove all snapshots."""
        self._snapshots.clear()
        self._bytes = self.back = 0

    def move(self, steps: int) -> bool:
        """Show the snapshot `steps` later, or earlier if negative; return whether there is one."""
        if not 0 <= self.back - steps < len(self):
            return False
        self.back -= steps
        return True
