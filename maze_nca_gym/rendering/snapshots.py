"""Snapshots of an automaton's steps: the history through which a window can go back, and recordings as GIF files."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from maze_nca_gym.rendering.files import save_gif
from maze_nca_gym.rendering.frame import Snapshot
from maze_nca_gym.rendering.palette import Frame

HISTORY_BYTES = 256 * 2**20
"""Default limit of a history's memory, about 18,000 steps of 11 channels at size 16."""
MOST_FRAMES = 200
"""Largest number of steps of a recording."""
_SIZES = {True: (580, 1000), False: (600, 600)}
"""(height, width) of a recording in pixels, with the channels and without; they keep files and memory small."""
_FASTEST = 50.0
_LAST_SECONDS = 2


class History:
    """The latest snapshots and the snapshot in view. The oldest are dropped when all exceed `max_bytes`; the newest
    stays."""

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
        """Add a snapshot as the newest, and view it."""
        self._snapshots.append(snapshot)
        self._bytes += snapshot.n_bytes
        self.back = 0
        while self._bytes > self._max_bytes and len(self) > 1:
            self._bytes -= self._snapshots.popleft().n_bytes

    def replace_newest(self, snapshot: Snapshot) -> None:
        """Replace the newest snapshot by another snapshot, and view it."""
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
        """View the snapshot `steps` later, or earlier if negative; return whether there is such a snapshot."""
        if not 0 <= self.back - steps < len(self):
            return False
        self.back -= steps
        return True


class Recorder:
    """A recording: the frames of all steps since it began.

    Args:
        show_channels: whether the frames contain heat maps of the channels.
    """

    def __init__(self, show_channels: bool) -> None:
        self._show_channels = show_channels
        self._frames: list[Frame] = []
        self._shown: tuple[tuple[int, ...], tuple[str, ...]] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, snapshot: Snapshot) -> bool:
        """Record a step; return False, without recording it, if the recording is full or the step has another shape."""
        now = (snapshot.tiles.shape, snapshot.names)
        if len(self) >= MOST_FRAMES or now != (self._shown or now):
            return False
        self._shown = now
        self._frames.append(snapshot.draw(self._show_channels, _SIZES[self._show_channels]))
        return True

    def save(self, folder: Path, fps: float) -> str:
        """Write the frames as a numbered GIF file, and return a message about it. The last frame is shown for two
        seconds."""
        fps = min(fps, _FASTEST)
        frames = self._frames + self._frames[-1:] * round(_LAST_SECONDS * fps)
        try:
            return f"saved {save_gif(free_path(folder, '.gif'), frames, fps)}, {len(self)} steps"
        except OSError as error:
            return f"not saved: {error}"


def free_path(folder: Path, suffix: str) -> Path:
    """Return the first path in a folder with a numbered name that does not exist, such as maze-0001.png."""
    number = 1
    while (path := folder / f"maze-{number:04d}{suffix}").exists():
        number += 1
    return path
