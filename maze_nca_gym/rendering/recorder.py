"""Recording of what a window shows, step by step, as a GIF file."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from maze_nca_gym.rendering.files import save_gif
from maze_nca_gym.rendering.frame import draw_frame
from maze_nca_gym.rendering.history import Snapshot
from maze_nca_gym.rendering.palette import Frame

MOST_FRAMES = 200
"""Steps of a recording, at most."""
_SIZES = {True: (580, 1000), False: (600, 600)}
"""(height, width) of a recording in pixels, with the channels and without; files and memory stay small."""
_FASTEST = 50.0
_LAST_SECONDS = 2


class Recorder:
    """Frames of the steps since the recording began.

    Args:
        show_channels: whether the frames have heat maps of the channels.
        front: number of the channel that tints the maze; None for the snapshot's own.
    """

    def __init__(self, show_channels: bool, front: int | None = None) -> None:
        self._show_channels = show_channels
        self._front = front
        self._frames: list[Frame] = []
        self._shown: tuple[tuple[int, ...], tuple[str, ...] | None] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, snapshot: Snapshot) -> bool:
        """Record a step; return False, without recording it, where the recording is full or shows other levels."""
        now = (snapshot.tiles.shape, snapshot.channel_names)
        if len(self) >= MOST_FRAMES or now != (self._shown or now):
            return False
        self._shown = now
        frame = picture_of(snapshot, self._show_channels, self._front, _SIZES[self._show_channels])
        self._frames.append(frame)
        return True

    def save(self, folder: Path, fps: float) -> Path:
        """Write the frames as a numbered GIF file, whose last frame stays for two seconds; return its path.

        Raises:
            ValueError: nothing is recorded.
            OSError: the file cannot be written.
        """
        fps = min(fps, _FASTEST)
        frames = self._frames + self._frames[-1:] * round(_LAST_SECONDS * fps)
        return save_gif(free_path(folder, ".gif"), frames, fps)


class Saver:
    """Recordings that are written on another thread, one after the other: a GIF takes seconds."""

    def __init__(self) -> None:
        self._jobs: list[Future[str]] = []
        self._pool = ThreadPoolExecutor(1)

    @property
    def busy(self) -> bool:
        """Whether a recording is being written, or the message about one has not been taken."""
        return bool(self._jobs)

    def begin(self, recorder: Recorder, folder: Path, fps: float) -> None:
        """Begin to write a recording into a folder."""
        self._jobs.append(self._pool.submit(_saved, recorder, folder, fps))

    def take_message(self) -> str:
        """Return what has become of the oldest recording, once; empty while nothing is new."""
        return self._jobs.pop(0).result() if self._jobs and self._jobs[0].done() else ""

    def finish(self) -> None:
        """Continue until all recordings are written."""
        wait(self._jobs)


def _saved(recorder: Recorder, folder: Path, fps: float) -> str:
    """Write a recording and return a line about it."""
    try:
        return f"saved {recorder.save(folder, fps)}, {len(recorder)} steps"
    except OSError as error:
        return f"not saved: {error}"


def picture_of(
    snapshot: Snapshot, show_channels: bool, front: int | None = None, size: tuple[int, int] | None = None
) -> Frame:
    """Return the (h, w, 3) uint8 frame of a snapshot, as `draw_frame`, tinted by a channel or by its own front."""
    return draw_frame(
        snapshot.tiles,
        snapshot.channels,
        snapshot.target,
        channel_names=snapshot.channel_names,
        step=snapshot.step,
        accuracy=snapshot.accuracy,
        title=snapshot.title,
        show_channels=show_channels,
        front=snapshot.front if front is None else front,
        size=size,
    )


def free_path(folder: Path, suffix: str) -> Path:
    """Return the first numbered name that is not taken, such as maze-0001.png."""
    number = 1
    while (path := folder / f"maze-{number:04d}{suffix}").exists():
        number += 1
    return path
