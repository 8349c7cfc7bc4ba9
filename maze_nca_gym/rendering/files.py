"""Frames as PNG and GIF pictures, and as files written atomically: a reader never sees half a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maze_nca_gym.files import replacing
from maze_nca_gym.rendering.palette import Frame

_GIF_COLOURS = 255
"""One less than a GIF's palette holds: the last stands for pixels that did not change."""
_EXACT_COLOURS = 160
_GIF_TICK = 10
"""Milliseconds of a GIF's unit of time, a hundredth of a second."""


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


def gif_bytes(frames: Sequence[Frame], fps: float = 10.0) -> bytes:
    """Return the content of a GIF file of (h, w, 3) uint8 frames; see `save_gif`.

    Raises:
        ValueError: no frames, frames of several shapes, or a speed outside of (0, 50].
    """
    shapes = sorted({frame.shape for frame in frames})
    if len(shapes) != 1:
        raise ValueError(f"a GIF needs frames of one shape, got {shapes or 'no frames'}")
    if not 0 < fps <= 50:
        raise ValueError(f"a GIF shows more than 0 and at most 50 frames a second, got fps={fps}")
    indexed = _index_colours(frames)
    duration = round(1000 / fps / _GIF_TICK) * _GIF_TICK
    file = BytesIO()
    # `optimize` makes Pillow store the pixels that changed alone
    next(indexed).save(
        file, format="GIF", save_all=True, append_images=indexed, duration=duration, loop=0, optimize=True
    )
    return file.getvalue()


def _index_colours(frames: Sequence[Frame]) -> Iterator[Image.Image]:
    """Yield the frames as images of one palette."""
    packed, counts = _count_colours(frames)
    colours = (packed[:, None] >> np.array([16, 8, 0], dtype=np.uint32)).astype(np.uint8)
    palette = _shared_palette(colours, counts)
    distance = (colours[:, None].astype(np.float32) - palette.astype(np.float32)) ** 2
    nearest = distance.sum(axis=-1).argmin(axis=1).astype(np.uint8)
    lookup = np.zeros(1 << 24, dtype=np.uint8)
    lookup[packed] = nearest
    for frame in frames:
        image = Image.fromarray(lookup[_pack(frame)])
        image.putpalette(palette.tobytes())
        yield image


def _pack(frame: Frame) -> NDArray[np.uint32]:
    """Return (h, w): one number a colour."""
    red, green, blue = (frame[..., band].astype(np.uint32) for band in range(3))
    packed: NDArray[np.uint32] = red << np.uint32(16) | green << np.uint32(8) | blue
    return packed


def _count_colours(frames: Sequence[Frame]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return (K,) packed colours of all frames and how many pixels have each, the most frequent first."""
    parts = [np.unique(_pack(frame), return_counts=True) for frame in frames]
    packed, part = np.unique(np.concatenate([colours for colours, _ in parts]), return_inverse=True)
    counts = np.zeros(len(packed), dtype=np.int64)
    np.add.at(counts, part, np.concatenate([count for _, count in parts]))
    order = np.argsort(-counts, kind="stable")
    return packed[order], counts[order]


def _shared_palette(colours: Frame, counts: NDArray[np.int64]) -> Frame:
    """Return (at most _GIF_COLOURS, 3): the frequent ones of (K, 3) colours as they are, the others merged.

    Among the others, a colour counts with the logarithm of its pixels, for what is small matters too.
    """
    if len(colours) <= _GIF_COLOURS:
        return colours
    others = np.repeat(colours[_EXACT_COLOURS:], 1 + np.log2(counts[_EXACT_COLOURS:]).astype(int), axis=0)
    merged = Image.fromarray(others[None]).quantize(_GIF_COLOURS - _EXACT_COLOURS).getpalette() or []
    return np.concatenate([colours[:_EXACT_COLOURS], np.array(merged, np.uint8).reshape(-1, 3)])
