"""Words above the heat maps: names that are never cut within reason, and the bounds of each channel's own scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.layout import Caption
from maze_nca_gym.rendering.palette import RGB, Frame
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width

NAME_SIZE, BOUNDS_SIZE = 12, 11
_BROAD = 96
"""Pixels from which on a name is broken into two lines."""
_BROADEST = 160
"""Pixels of a line at which a name is cut: none of this package's is so long."""
_BOUNDS = "-0.00 to 0.00"
"""Bounds that every caption has room for."""


def names_of(channel_names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    """Return one name a channel: those given, then numbers.

    Raises:
        ValueError: more names than channels.
    """
    given = ("path",) if channel_names is None else tuple(channel_names)
    if len(given) > n_channels:
        raise ValueError(f"got {len(given)} channel names for {n_channels} channels")
    return given + tuple(f"ch {index}" for index in range(len(given), n_channels))


@lru_cache(maxsize=1024)
def name_lines(name: str) -> tuple[str, ...]:
    """Return a name on one line, or on two where it is long; the break is at an underscore or a space if possible."""
    if text_width(name, NAME_SIZE) <= _BROAD:
        return (name,)
    ends = [at + 1 for at, letter in enumerate(name) if letter in "_ "] or range(1, len(name))
    middle = min(ends, key=lambda at: max(len(name[:at]), len(name[at:])))
    return name[:middle], name[middle:]


@lru_cache(maxsize=64)
def caption_of(names: tuple[str, ...]) -> Caption:
    """Return the room that names and bounds need above each of their heat maps."""
    lines = [name_lines(name) for name in names]
    widest = max(text_width(line, NAME_SIZE) for parts in lines for line in parts)
    width = max(min(widest, _BROADEST), text_width(_BOUNDS, BOUNDS_SIZE))
    height = max(map(len, lines)) * text_height(NAME_SIZE) + text_height(BOUNDS_SIZE)
    return Caption(height, width)


def put_name(frame: Frame, bottom: int, left: int, name: str, width: int, colour: RGB = palette.INK) -> None:
    """Write a channel's name above its bounds, in place.

    Args:
        frame: (h, w, 3) uint8.
        bottom: pixel row where the heat map begins.
        left: pixel column of the heat map.
        name: the channel's name.
        width: pixels that a line may take.
        colour: red, green, blue.
    """
    top = bottom - text_height(BOUNDS_SIZE)
    for line in reversed(name_lines(name)):
        top -= text_height(NAME_SIZE)
        put_text(frame, top, left, shorten(line, NAME_SIZE, width), NAME_SIZE, colour)


def put_bounds(frame: Frame, bottom: int, left: int, text: str) -> None:
    """Write the bounds of a channel's scale, from `bounds`, above its heat map, (h, w, 3) uint8, in place."""
    put_text(frame, bottom - text_height(BOUNDS_SIZE), left, text, BOUNDS_SIZE, palette.FAINT_INK)


def bounds(channels: NDArray[np.float32]) -> list[str]:
    """Return from where to where the scale of each channel runs, 0 included, such as "0 to 57"; "0" if all are 0.

    Args:
        channels: (C, H, W) float32, any value; what is no number does not count.
    """
    lows, highs = channels.min(axis=(1, 2)), channels.max(axis=(1, 2))
    if np.isnan(lows).any():
        known = np.where(np.isnan(channels), np.float32(0), channels)
        lows, highs = known.min(axis=(1, 2)), known.max(axis=(1, 2))
    ends = zip(np.minimum(lows, 0).tolist(), np.maximum(highs, 0).tolist(), strict=True)
    return [f"{compact(low)} to {compact(high)}" if low < high else "0" for low, high in ends]


@lru_cache(maxsize=4096)
def compact(value: float) -> str:
    """Return a number in few characters: 57, 0.25, -3.1, 16.8M."""
    magnitude = abs(value)
    for limit, letter in ((1e6, "M"), (1e4, "k")):
        if limit <= magnitude < math.inf:
            return f"{value / (1e6 if letter == 'M' else 1e3):.3g}{letter}"
    if value.is_integer():
        return f"{value + 0.0:.0f}"
    return f"{round(value, 2) + 0.0:.2f}" if magnitude < 10 else f"{value:.1f}"
