"""Colours: the maze's (the paper's figures, adjusted for colour blindness) and the heat maps' fixed scale.

The maze: white empty tiles, black walls, blue source, green target, dark blue path, as in the paper. Blue
and green are Okabe and Ito's. The exact path is outlined in their vermilion, far from the path's hue.

The heat maps share one scale, so that a value has the same colour in every channel, frame and episode. It is white
at 0. Half of the ramp is for magnitudes up to 1 (linear), the other half for 1 to `HEAT_LIMIT` (logarithmic,
saturating). Zeros, ones and counters in the hundreds thus stay apart. Positive values run through blue,
negative ones through brown, both with lightness falling linearly (in the OKLab colour space).
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
"""A path predicted on a wall is a mistake worth seeing, and dark blue on black would hide it."""
EXACT_PATH: RGB = (213, 94, 0)

FRONT: RGB = (84, 199, 194)
"""Free tiles where the front, the channel that shows the automaton at work, is largest."""

HEAT_LIMIT = 10_000.0
"""Magnitude from which the colour no longer changes."""
NOT_A_NUMBER: RGB = (255, 0, 255)
_POSITIVE = (
    (255, 255, 255),
    (186, 238, 217),
    (117, 214, 205),
    (43, 185, 201),
    (0, 152, 193),
    (26, 116, 175),
    (51, 82, 142),
    (53, 53, 99),
    (39, 31, 53),
)
_NEGATIVE = (
    (255, 255, 255),
    (255, 217, 176),
    (243, 179, 122),
    (226, 143, 79),
    (202, 108, 48),
    (172, 78, 32),
    (137, 54, 29),
    (97, 38, 28),
    (55, 27, 25),
)
_SHADES = 255
_WALL_GREY, _WALL_OPACITY = 150.0, 0.65


def _ramp(points: tuple[RGB, ...]) -> NDArray[np.float64]:
    """Return (_SHADES + 1, 3) colours, linear between equally spaced control points."""
    at = np.linspace(0, len(points) - 1, _SHADES + 1)
    return np.stack([np.interp(at, np.arange(len(points)), band) for band in zip(*points, strict=True)], axis=-1)


def _heat_tables() -> NDArray[np.uint8]:
    """Return (2, 2 * _SHADES + 2, 3): colours on a free tile and on a wall; the last shade is not-a-number's."""
    free = np.concatenate([_ramp(_NEGATIVE)[:0:-1], _ramp(_POSITIVE), [NOT_A_NUMBER]])
    wall = free + _WALL_OPACITY * (_WALL_GREY - free)
    return np.round(np.stack([free, wall])).astype(np.uint8)


_HEAT = _heat_tables()


def heat_position(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the place of (...) values on the scale, from -1 to 1: linear to magnitude 1 (at 1/2), then logarithmic."""
    magnitude = np.minimum(np.abs(values), np.float32(HEAT_LIMIT))
    tail = np.log10(np.maximum(magnitude, np.float32(1)))
    position = np.minimum(magnitude, np.float32(1)) + tail / np.float32(np.log10(HEAT_LIMIT))
    return np.copysign(position / np.float32(2), values)


def heat_value(position: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the (...) values at places of the scale from -1 to 1: the inverse of `heat_position`."""
    magnitude = np.float32(2) * np.abs(position)
    tail = np.float32(HEAT_LIMIT) ** np.maximum(magnitude - np.float32(1), np.float32(0))
    return np.copysign(np.where(magnitude <= 1, magnitude, tail), position)


def heat_colours(values: NDArray[np.float32], walls: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return colours of channel values on the fixed scale.

    Args:
        values: (..., H, W) float32, any value; not-a-number is shown in magenta.
        walls: (H, W) bool; there the colours are dimmed towards grey, which keeps the maze recognisable.

    Returns:
        (..., H, W, 3) uint8.
    """
    unknown = np.isnan(values)
    position = heat_position(np.where(unknown, np.float32(0), values))
    shade = np.rint(position * np.float32(_SHADES)).astype(np.intp) + _SHADES
    shade[unknown] = 2 * _SHADES + 1
    colours: Frame = _HEAT[walls.astype(np.intp), shade]
    return colours


def mix(start: NDArray[np.float32], end: RGB, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Blend (..., 3) colours with one colour by (...) weights from 0 (start) to 1 (end)."""
    return start + (np.array(end, dtype=np.float32) - start) * weight[..., None]
