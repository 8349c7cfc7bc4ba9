"""Frames as PNG and GIF pictures, and as files written atomically: a reader never sees half a file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from maze_nca_gym.files import replacing
from maze_nca_gym.rendering.gif import gif_bytes
from maze_nca_gym.rendering.palette import Frame


def save_png(path: str | Path, frame: Frame) -> Path:
    """Write one (h, w, 3) uint8 frame as a PNG file; returns its path."""
    path = Path(path)
    with replacing(path) as file:
        file.write(png_bytes(frame))
    return path


def png_bytes(frame: Frame) -> bytes:
    """Return the content of a PNG file of one (h, w, 3) uint8 frame."""
    file = BytesIO()
    Image.fromarray(frame).save(file, format="PNG", optimize=True)
    return file.getvalue()


def save_gif(path: str | Path, frames: Sequence[Frame], fps: float = 10.0) -> Path:
    """Write frames as a GIF file that repeats forever, with one palette for all of them; returns its path.

    Args:
        path: the file.
        frames: at least one (h, w, 3) uint8 frame, all of one shape. Repeat the last one to make it stay.
        fps: frames a second. A GIF counts in hundredths of a second, and viewers slow down what is shorter
            than two of them: 50 is the most.

    Raises:
        ValueError: no frames, frames of several shapes, or a speed outside of (0, 50].
    """
    path, content = Path(path), gif_bytes(frames, fps)
    with replacing(path) as file:
        file.write(content)
    return path
