"""Frames as PNG and GIF pictures, and as files written atomically: a reader never sees half a file.

A GIF has one palette for all frames, and stores of each frame only the pixels that changed. Pillow's own `save_all`
takes eight times as long for an episode, and its files are 1.6 to 1.9 times as large. With a given palette it is as
fast as this module, but its files are 4 times as large. Therefore only the compression of a frame's pixels is left to
Pillow.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from io import BytesIO
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.support.arrays import as_array, is_sequence
from maze_nca_gym.support.files import path_of_format, write_file

_COLOURS = 255
"""Number of colours, one less than the palette's size, because the last index marks pixels that did not change."""
_UNCHANGED = _COLOURS
_EXACT_COLOURS = 160
_TICK = 10
"""Milliseconds of a GIF's unit of time, a hundredth of a second."""
_MOST_TICKS = 2**16 - 1
_HEADER = struct.Struct("<6s2H3B")
_COLOUR_TABLE = 0b1111_0111
"""The header's flags: a table of 256 colours for all frames, 8 bits a band."""
_FOREVER = b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
"""The block that lets viewers repeat the frames without end."""
_CONTROL = struct.Struct("<3sBHBB")
"""The block before a frame: flags, ticks that it is shown, the transparent index."""
_TRANSPARENT = 0b1
_DESCRIPTOR = struct.Struct("<c4HB")
"""A frame's block: its place, its size, flags."""


def as_frame(frame: Any) -> Frame:
    """Return a picture that a user passes as an (h, w, 3) uint8 array.

    Raises:
        ValueError: the value is not an (h, w, 3) uint8 array with at least one pixel.
    """
    array = as_array(frame, "a frame")
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise ValueError(f"a frame must be (h, w, 3) uint8, got {array.dtype} {array.shape}")
    return array


def save_png(path: str | Path, frame: Frame) -> Path:
    """Write one (h, w, 3) uint8 frame as a PNG file; return its path.

    Raises:
        ValueError: another suffix, or a value that is not a frame.
        OSError: the file could not be written.
    """
    return write_file(path_of_format(path, ".png"), png_bytes(frame))


def png_bytes(frame: Frame) -> bytes:
    """Return the content of a PNG file of one (h, w, 3) uint8 frame.

    Raises:
        ValueError: the value is not a frame.
    """
    file = BytesIO()
    Image.fromarray(as_frame(frame)).save(file, format="PNG", optimize=True)
    return file.getvalue()


def save_gif(path: str | Path, frames: Sequence[Frame], fps: float = 10.0) -> Path:
    """Write frames as a GIF file that repeats forever, with one palette for all of them; return its path.

    Args:
        path: the file.
        frames: at least one (h, w, 3) uint8 frame, all of one shape. Repeat the last frame to show it for longer.
        fps: frames per second, at most 50. A GIF counts in hundredths of a second, and viewers slow down frames that
            are shorter than two of them.

    Raises:
        ValueError: no frames, frames of several shapes, or a speed outside of (0, 50].
        OSError: the file could not be written.
    """
    return write_file(path_of_format(path, ".gif"), gif_bytes(frames, fps))


def gif_bytes(frames: Sequence[Frame], fps: float = 10.0) -> bytes:
    """Return the content of a GIF file of (h, w, 3) uint8 frames; see `save_gif`.

    Raises:
        ValueError: no frames, frames of several shapes, or a speed outside of (0, 50].
    """
    if not is_sequence(frames):
        raise ValueError(f"a GIF needs a sequence of frames, got {type(frames).__name__}")
    frames = [as_frame(frame) for frame in frames]
    shapes = sorted({frame.shape for frame in frames})
    if len(shapes) != 1:
        raise ValueError(f"a GIF needs frames of one shape, got {shapes or 'no frames'}")
    if not isinstance(fps, Real) or not 0 < fps <= 50:
        raise ValueError(f"a GIF shows more than 0 and at most 50 frames a second, got fps={fps}")
    ticks, (height, width, _) = round(1000 / fps / _TICK), shapes[0]
    # Of each frame that differs from the one before: the smallest box around the changes, which of its pixels changed,
    # and their new colours, packed, row by row; and by how many frames the result is shown.
    changes: list[tuple[tuple[slice, slice], NDArray[np.bool_], NDArray[np.uint32]]] = []
    lengths: list[int] = []
    before = None
    for frame in frames:
        packed = frame[..., 0].astype(np.uint32)
        for band in (1, 2):
            packed <<= np.uint32(8)
            packed |= frame[..., band]
        changed = np.ones((height, width), np.bool_) if before is None else packed != before
        before = packed
        if changed.any():
            rows, cols = (np.flatnonzero(changed.any(axis=axis)) for axis in (1, 0))
            box = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)
            changes.append((box, changed[box], packed[changed]))
            lengths.append(1)
        else:
            lengths[-1] += 1

    # A colour counts in every frame to come, unless another takes its place, as the first frame does of a black one.
    counts, shown, to_come = np.zeros(1 << 24, np.int64), np.zeros((height, width), np.uint32), len(frames)
    counts[0] = height * width * len(frames)
    for (box, changed, colours), length in zip(changes, lengths, strict=True):
        part = shown[box]
        np.subtract.at(counts, part[changed], to_come)
        np.add.at(counts, colours, to_come)
        part[changed] = colours
        to_come -= length
    packed = np.flatnonzero(counts).astype(np.uint32)
    packed = packed[np.argsort(-counts[packed], kind="stable")]

    # The most frequent colours stay as they are, and the others are merged. When merging, a colour weighs by the
    # logarithm of its pixels, since small details matter too.
    palette = (packed[:, None] >> np.array([16, 8, 0], dtype=np.uint32)).astype(np.uint8)
    nearest = np.arange(len(palette))
    if len(palette) > _COLOURS:
        exact, weights = palette[:_EXACT_COLOURS], 1 + np.log2(counts[packed[_EXACT_COLOURS:]]).astype(int)
        others = Image.fromarray(np.repeat(palette[_EXACT_COLOURS:], weights, axis=0)[None])
        merged = others.quantize(_COLOURS - _EXACT_COLOURS).getpalette() or []
        every, palette = palette, np.concatenate([exact, np.array(merged, np.uint8).reshape(-1, 3)])
        distances = (every[:, None].astype(np.float32) - palette.astype(np.float32)) ** 2
        nearest = distances.sum(axis=-1).argmin(axis=1)
    lookup = np.zeros(1 << 24, dtype=np.uint8)  # one entry per colour: 16 MB, and no search per pixel
    lookup[packed] = nearest

    parts = [_HEADER.pack(b"GIF89a", width, height, _COLOUR_TABLE, 0, 0), palette.tobytes().ljust(3 * 256, b"\0")]
    parts.append(_FOREVER)
    indices = np.full((height, width), _UNCHANGED, np.uint8)
    for (box, changed, colours), length in zip(changes, lengths, strict=True):
        pixels = np.full(changed.shape, _UNCHANGED, np.uint8)
        known, new = indices[box], lookup[colours]
        # Two colours may have become one. Then the pixel is unchanged, and runs of equal indices take less space.
        pixels[changed] = np.where(new == known[changed], np.uint8(_UNCHANGED), new)
        known[changed] = new
        duration = min(ticks * length, _MOST_TICKS)
        parts.append(_CONTROL.pack(b"!\xf9\x04", _TRANSPARENT, duration, _UNCHANGED, 0))
        parts.append(_DESCRIPTOR.pack(b",", box[1].start, box[0].start, changed.shape[1], changed.shape[0], 0))
        # bits of an index, LZW in blocks, an empty block
        parts.append(b"\x08" + Image.fromarray(pixels).tobytes("gif", "L", 8, 0) + b"\0")
    return b"".join([*parts, b";"])
