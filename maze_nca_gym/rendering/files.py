"""Frames as PNG and GIF pictures, and as files written atomically: a reader never sees half a file.

A GIF has one palette for all frames, and of each frame only the pixels that changed. Pillow's own `save_all` takes
eight times as long for an episode, and its files are 1.6 to 1.9 times as large; given one palette, it is as fast, and
its files are 4 times as large. So only the compression of a frame's pixels is left to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.support.files import atomic_write

_COLOURS = 255
"""One less than the palette holds: the last index stands for pixels that did not change."""
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


def save_png(path: str | Path, frame: Frame) -> Path:
    """Write one (h, w, 3) uint8 frame as a PNG file; returns its path."""
    path = Path(path)
    with atomic_write(path) as file:
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
        fps: frames per second, at most 50. A GIF counts in hundredths of a second, and viewers slow down frames shorter
            than two of them.

    Raises:
        ValueError: no frames, frames of several shapes, or a speed outside of (0, 50].
    """
    path, content = Path(path), gif_bytes(frames, fps)
    with atomic_write(path) as file:
        file.write(content)
    return path


@dataclass
class _Change:
    """The pixels in which a frame differs from the one before.

    Attributes:
        box: rows and columns of the smallest box around the changes.
        changed: (h, w) bool, the pixels of the box that changed.
        colours: (K,) uint32, their new colours, packed, row by row.
        n_frames: frames that show the result.
    """

    box: tuple[slice, slice]
    changed: NDArray[np.bool_]
    colours: NDArray[np.uint32]
    n_frames: int = 1


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
    ticks, (height, width, _) = round(1000 / fps / _TICK), shapes[0]
    changes = _changes(frames)
    packed, counts = _count_colours(changes)
    palette, nearest = _shared_palette(packed, counts)
    lookup = np.zeros(1 << 24, dtype=np.uint8)  # one entry per colour: 16 MB, and no search per pixel
    lookup[packed] = nearest
    header = _HEADER.pack(b"GIF89a", width, height, _COLOUR_TABLE, 0, 0)
    table = palette.tobytes().ljust(3 * 256, b"\0")
    return b"".join([header, table, _FOREVER, *_blocks(changes, lookup, ticks), b";"])


def _changes(frames: Sequence[Frame]) -> list[_Change]:
    """Return the change of each frame; a frame without one prolongs the one before."""
    before, whole = _pack(frames[0]), np.ones(frames[0].shape[:2], np.bool_)
    changes = [_Change(_box(whole), whole, before.ravel())]
    for frame in frames[1:]:
        packed = _pack(frame)
        changed = packed != before
        before = packed
        if changed.any():
            box = _box(changed)
            changes.append(_Change(box, changed[box], packed[changed]))
        else:
            changes[-1].n_frames += 1
    return changes


def _box(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    """Return the rows and columns from the first to the last with a pixel of an (h, w) mask that has some."""
    rows, cols = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)


def _blocks(changes: Sequence[_Change], lookup: NDArray[np.uint8], ticks: int) -> Iterator[bytes]:
    """Yield the frames' parts of the file, given the palette's index of every packed colour."""
    shown = np.full(changes[0].changed.shape, _UNCHANGED, np.uint8)
    for change in changes:
        pixels = np.full(change.changed.shape, _UNCHANGED, np.uint8)
        part, new = shown[change.box], lookup[change.colours]
        # Two colours may have become one. Then the pixel is unchanged, and runs of equal indices take less space.
        pixels[change.changed] = np.where(new == part[change.changed], np.uint8(_UNCHANGED), new)
        part[change.changed] = new
        top, left = change.box[0].start, change.box[1].start
        height, width = change.changed.shape
        duration = min(ticks * change.n_frames, _MOST_TICKS)
        yield _CONTROL.pack(b"!\xf9\x04", _TRANSPARENT, duration, _UNCHANGED, 0)
        yield _DESCRIPTOR.pack(b",", left, top, width, height, 0)
        # bits of an index, LZW in blocks, an empty block
        yield b"\x08" + Image.fromarray(pixels).tobytes("gif", "L", 8, 0) + b"\0"


def _pack(frame: Frame) -> NDArray[np.uint32]:
    """Return the frame as (h, w) numbers, red in the highest byte."""
    packed = frame[..., 0].astype(np.uint32)
    for band in (1, 2):
        packed <<= np.uint32(8)
        packed |= frame[..., band]
    return packed


def _count_colours(changes: Sequence[_Change]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return (K,) packed colours of all frames and how many pixels have each, the most frequent first."""
    counts = np.zeros(1 << 24, np.int64)
    first, n_frames = changes[0], sum(change.n_frames for change in changes)
    shown = first.colours.reshape(first.changed.shape).copy()
    np.add.at(counts, first.colours, n_frames)
    for before, change in pairwise(changes):
        n_frames -= before.n_frames  # a colour counts in every frame to come, unless another takes its place
        part = shown[change.box]
        np.subtract.at(counts, part[change.changed], n_frames)
        np.add.at(counts, change.colours, n_frames)
        part[change.changed] = change.colours
    packed = np.flatnonzero(counts).astype(np.uint32)
    order = np.argsort(-counts[packed], kind="stable")
    return packed[order], counts[packed[order]]


def _shared_palette(packed: NDArray[np.uint32], counts: NDArray[np.int64]) -> tuple[Frame, NDArray[np.uint8]]:
    """Return (at most _COLOURS, 3) colours, and the index of the nearest of them for each packed one, (K,).

    The most frequent colours stay as they are, and the others are merged. When merging, a colour weighs by the
    logarithm of its pixels, since small details matter too.
    """
    colours = (packed[:, None] >> np.array([16, 8, 0], dtype=np.uint32)).astype(np.uint8)
    if len(colours) <= _COLOURS:
        return colours, np.arange(len(colours), dtype=np.uint8)
    others = np.repeat(colours[_EXACT_COLOURS:], 1 + np.log2(counts[_EXACT_COLOURS:]).astype(int), axis=0)
    merged = Image.fromarray(others[None]).quantize(_COLOURS - _EXACT_COLOURS).getpalette() or []
    palette = np.concatenate([colours[:_EXACT_COLOURS], np.array(merged, np.uint8).reshape(-1, 3)])
    distance = (colours[:, None].astype(np.float32) - palette.astype(np.float32)) ** 2
    return palette, distance.sum(axis=-1).argmin(axis=1).astype(np.uint8)
