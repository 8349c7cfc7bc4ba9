"""Text on frames, in Pillow's built-in font; rendered strings are cached as bitmaps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from maze_nca_gym.rendering.palette import INK, RGB

_ELLIPSIS = "…"


@lru_cache(maxsize=32)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return Pillow's own font at a size in pixels."""
    return ImageFont.load_default(size=size)


@lru_cache(maxsize=4096)
def _coverage(text: str, size: int) -> NDArray[np.uint16]:
    """Return the text as a (height, width) mask, from 0 to 256 where it covers a pixel; the height depends on the size
    alone."""
    image = Image.new("L", (max(1, text_width(text, size)), text_height(size)))
    ImageDraw.Draw(image).text((0, 0), text, fill=255, font=font(size))
    coverage = np.asarray(image, dtype=np.uint16)
    return coverage + (coverage >> 7)


@lru_cache(maxsize=4096)
def text_width(text: str, size: int) -> int:
    """Return the width in pixels of one line of text."""
    return int(np.ceil(font(size).getlength(text)))


@lru_cache(maxsize=32)
def text_height(size: int) -> int:
    """Return the height in pixels of any line of text at this size."""
    return int(np.ceil(size * 1.3))


@lru_cache(maxsize=4096)
def shorten(text: str, size: int, width: int) -> str:
    """Return a text, shortened with an ellipsis if it is wider than `width` pixels."""
    if text_width(text, size) <= width:
        return text
    n_shown = len(text)
    while n_shown and text_width(text[:n_shown] + _ELLIPSIS, size) > width:
        n_shown -= 1
    return text[:n_shown] + _ELLIPSIS if n_shown else ""


def put_text(
    frame: NDArray[np.uint8], row: int, col: int, text: str, size: int, colour: RGB = INK, align: str = "left"
) -> None:
    """Write one line of text into a frame, in place; the part outside of the frame is cut off.

    Args:
        frame: (h, w, 3) uint8.
        row: pixel row of the line's top.
        col: pixel column of the line's start, middle or end, as `align` defines.
        text: one line.
        size: the font's size in pixels.
        colour: red, green, blue.
        align: "left", "centre" or "right".
    """
    if not text:
        return
    coverage = _coverage(text, size)
    col -= {"left": 0, "centre": coverage.shape[1] // 2, "right": coverage.shape[1]}[align]
    coverage = coverage[max(0, -row) :, max(0, -col) :]
    area = frame[max(0, row) :, max(0, col) :][: coverage.shape[0], : coverage.shape[1]]
    weight = coverage[: area.shape[0], : area.shape[1], None]
    area[...] = (area * (256 - weight) + np.array(colour, dtype=np.uint16) * weight) >> 8
