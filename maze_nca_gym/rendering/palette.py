"""Colours of the maze (the paper's figures, adjusted for colour blindness), of its tint, and of the heat maps.

The maze has white empty tiles, black walls, a blue source, a green target and a dark blue path, as in the paper. Blue
and green are Okabe and Ito's colours. The exact path is outlined in their vermilion, which differs clearly from the
path's hue.

Each heat map has its own scale: white at 0, and the darkest shade at the channel's largest magnitude. Therefore a
counter shows its steps, however far it counts. Positive values run through blue, negative values through brown, and
lightness falls linearly in both (in the OKLab colour space).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RGB: TypeAlias = tuple[int, int, int]
Frame: TypeAlias = NDArray[np.uint8]
"""(h, w, 3) uint8 pixels, red, green, blue."""

PAPER: RGB = (255, 255, 255)
INK: RGB = (33, 37, 41)
FAINT_INK: RGB = (108, 117, 125)
RULE: RGB = (206, 212, 218)

EMPTY: RGB = (255, 255, 255)
WALL: RGB = (28, 28, 32)
GRID: RGB = (233, 236, 239)
SOURCE: RGB = (0, 114, 178)
TARGET: RGB = (0, 158, 115)
PATH: RGB = (24, 60, 150)
PATH_ON_WALL: RGB = (128, 150, 255)
"""Colour of a path predicted on a wall: a mistake that would be invisible in dark blue on black."""
EXACT_PATH: RGB = (213, 94, 0)
FURTHER: tuple[RGB, ...] = ((204, 121, 167), (230, 159, 0), (86, 180, 233))
"""Colours of the further channels of an answer, Okabe and Ito's purple, orange and sky blue, which repeat in this
order."""

STRONG: RGB = (11, 114, 133)
"""Colour of pressed buttons and chosen channels in the window."""

HIGHLIGHT: RGB = (84, 199, 194)
"""Colour of free tiles at which the highlighted channel is largest; this channel shows how the automaton works."""

NOT_A_NUMBER: RGB = (255, 0, 255)
_SHADES = 255
_WALL_GREY, _WALL_OPACITY = 150.0, 0.65


def rgb(colour: str) -> RGB:
    """Return a colour as (red, green, blue) from 0 to 255, from a text such as "#0072b2"."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


_POSITIVE = tuple(map(rgb, ["#ffffff", "#baeed9", "#75d6cd", "#2bb9c9", "#0098c1", "#1a74af", "#33528e"]))
_NEGATIVE = tuple(map(rgb, ["#ffffff", "#ffd9b0", "#f3b37a", "#e28f4f", "#ca6c30", "#ac4e20", "#89361d"]))


def _ramp(points: tuple[RGB, ...]) -> NDArray[np.float64]:
    """Return (_SHADES + 1, 3) colours, linear between equally spaced control points."""
    at = np.linspace(0, len(points) - 1, _SHADES + 1)
    return np.stack([np.interp(at, np.arange(len(points)), band) for band in zip(*points, strict=True)], axis=-1)


_FREE = np.concatenate([_ramp(_NEGATIVE)[:0:-1], _ramp(_POSITIVE), [NOT_A_NUMBER]])
_HEAT = np.round(np.stack([_FREE, _FREE + _WALL_OPACITY * (_WALL_GREY - _FREE)])).astype(np.uint8)
"""(2, 2 * _SHADES + 2, 3): colours on a free tile and on a wall; the last shade is for not-a-number."""


def peaks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest finite magnitude in each (..., H, W) map, (..., 1, 1), at least the smallest normal number."""
    magnitude = np.abs(values)
    largest = magnitude.max(axis=(-2, -1), keepdims=True)
    if not np.isfinite(largest).all():
        largest = np.where(np.isfinite(magnitude), magnitude, np.float32(0)).max(axis=(-2, -1), keepdims=True)
    return np.maximum(largest, np.finfo(np.float32).tiny)


def heat_colours(values: NDArray[np.float32], walls: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return colours of channel values, with a separate scale for each map.

    Args:
        values: (..., H, W) float32, any value; infinity has the last shade, and not-a-number is shown in magenta.
        walls: (H, W) bool; there the colours are dimmed towards grey, which keeps the maze recognisable.

    Returns:
        (..., H, W, 3) uint8.
    """
    position = np.clip(values / peaks(values), -1, 1)
    unknown = np.isnan(position)
    position[unknown] = 0
    shade = np.rint(position * np.float32(_SHADES)).astype(np.intp)
    shade += _SHADES
    shade[unknown] = 2 * _SHADES + 1
    shade += walls * np.intp(_HEAT.shape[1])
    colours: Frame = _HEAT.reshape(-1, 3)[shade]
    return colours


def mix(start: NDArray[np.float32], end: RGB, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (..., 3) float32 mixtures of two colours, by (...) weights from 0 (start) to 1 (end)."""
    return start + (np.array(end, dtype=np.float32) - start) * weight[..., None]
