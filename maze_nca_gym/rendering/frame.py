"""Pictures of a level and of an automaton's state: pure functions of arrays, uint8 RGB out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.levels import Tile, Tiles, as_tiles
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.keys import draw_captions, draw_keys
from maze_nca_gym.rendering.layout import CAPTION, HEADER, MARGIN, Layout, Panel, frame_layout
from maze_nca_gym.rendering.maze_panel import draw_maze, fill
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width

_TITLE, _STATUS, _SMALL = 22, 18, 12
_WORD_GAP = 6
_OVERHANG = 5
"""Pixels by which the markers may exceed a small tile: a source must be found in a maze of 4,000 tiles."""


def draw_frame(
    tiles: ArrayLike,
    channels: ArrayLike,
    target: ArrayLike,
    *,
    channel_names: Sequence[str] | None = None,
    step: int = 0,
    accuracy: float = 0.0,
    title: str = "",
    show_channels: bool = True,
    size: tuple[int, int] | None = None,
) -> Frame:
    """Draw the maze with the predicted and the exact path, and every channel of the state as a heat map.

    The prediction is blue, stronger for larger values (on a wall: a square inside the black); the exact
    path is outlined in orange. The heat maps share the fixed scale of `palette` (linear to 1, then
    logarithmic), so that a value has one colour in every channel and frame; the number above each, where
    there is room for it beside the name, is its value of largest magnitude.

    Args:
        tiles: (H, W) `Tile` values.
        channels: (C, H, W), any float; channel 0 is the predicted path, clipped to [0, 1] in the maze.
        target: (H, W) bool, the exact solution.
        channel_names: names of the first channels; the others are numbered.
        step: iterations of the automaton so far.
        accuracy: the prediction's accuracy.
        title: a line above the maze, cut off where it is too long.
        show_channels: whether to draw the heat maps; they are also left out of a window too small for them.
        size: (height, width) in pixels that the frame is fitted into; `layout.frame_layout` has the default.

    Returns:
        (h, w, 3) uint8; the shape depends on H, W, C, `show_channels` and `size` alone.

    Raises:
        ValueError: shapes that do not belong together, more names than channels, a size without pixels.
    """
    tiles = as_tiles(tiles, ndim=(2,))
    values = np.asarray(channels, dtype=np.float32)
    solution = np.asarray(target, dtype=bool)
    names = _names(channel_names, _check_shapes(tiles, values, solution))
    rows, cols = tiles.shape
    layout = frame_layout(rows, cols, len(values), show_channels, size)
    frame = _background(layout, names, bool((tiles >= Tile.SOURCE).any())).copy()
    draw_maze(frame[layout.maze.area], layout.maze, tiles, values[0], solution, _OVERHANG)
    _draw_header(frame, title, step, accuracy)
    if layout.channels:
        _draw_channels(frame, layout, names, values, tiles == Tile.WALL)
    return np.ascontiguousarray(frame[: layout.height, : layout.width])


def draw_level(tiles: ArrayLike, path: ArrayLike | None = None, cell: int = 16) -> Frame:
    """Draw a level and nothing else.

    Args:
        tiles: (H, W) `Tile` values.
        path: (H, W), a solution (bool) or a prediction (clipped to [0, 1]), drawn in blue.
        cell: pixels along a tile's side.

    Returns:
        (H * cell, W * cell, 3) uint8.

    Raises:
        ValueError: no level, a path of another shape, or a cell without pixels.
    """
    tiles = as_tiles(tiles, ndim=(2,))
    values = np.zeros(tiles.shape, np.float32) if path is None else np.asarray(path, dtype=np.float32)
    if values.shape != tiles.shape:
        raise ValueError(f"path must have the tiles' shape {tiles.shape}, got {values.shape}")
    if cell < 1:
        raise ValueError(f"cell must be at least 1 pixel, got {cell}")
    rows, cols = tiles.shape
    panel = Panel(0, 0, rows, cols, cell)
    frame = np.empty((panel.height, panel.width, 3), dtype=np.uint8)
    draw_maze(frame, panel, tiles, values, np.zeros(tiles.shape, dtype=bool))
    return frame


def contact_sheet(frames: Sequence[Frame], columns: int, gap: int = 16) -> Frame:
    """Put pictures into one, in rows from left to right, each in the middle of its place, on white.

    Args:
        frames: at least one (h, w, 3) uint8 picture; the sizes may differ.
        columns: pictures in a row.
        gap: pixels around and between them.

    Raises:
        ValueError: no picture, or less than one column.
    """
    if not len(frames) or columns < 1:
        raise ValueError(f"a contact sheet needs at least one frame and one column, got {len(frames)} and {columns}")
    columns = min(columns, len(frames))
    height, width = (max(frame.shape[axis] for frame in frames) for axis in (0, 1))
    rows = -(-len(frames) // columns)
    sheet = np.empty((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), dtype=np.uint8)
    sheet[...] = palette.PAPER
    for index, frame in enumerate(frames):
        row, col = divmod(index, columns)
        top = gap + row * (height + gap) + (height - frame.shape[0]) // 2
        left = gap + col * (width + gap) + (width - frame.shape[1]) // 2
        sheet[top : top + frame.shape[0], left : left + frame.shape[1]] = frame
    return sheet


def _check_shapes(tiles: Tiles, values: NDArray[np.float32], solution: NDArray[np.bool_]) -> int:
    """Return the number of channels of a state that belongs to the tiles."""
    if values.ndim != 3 or not len(values) or values.shape[1:] != tiles.shape:
        raise ValueError(f"channels must have shape (C, {tiles.shape[0]}, {tiles.shape[1]}), got {values.shape}")
    if solution.shape != tiles.shape:
        raise ValueError(f"target must have the tiles' shape {tiles.shape}, got {solution.shape}")
    return len(values)


def _names(channel_names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    """Return one name a channel."""
    given = ("path",) if channel_names is None else tuple(channel_names)
    if len(given) > n_channels:
        raise ValueError(f"got {len(given)} channel names for {n_channels} channels")
    return given + tuple(f"ch {index}" for index in range(len(given), n_channels))


@lru_cache(maxsize=8)
def _background(layout: Layout, names: tuple[str, ...], has_endpoints: bool) -> Frame:
    """Return what all frames of an episode share; it is copied, never drawn on."""
    frame = np.empty((*layout.canvas, 3), dtype=np.uint8)
    frame[...] = palette.PAPER
    draw_captions(frame, layout, names)
    draw_keys(frame, layout, has_endpoints)
    return frame


def _draw_header(frame: Frame, title: str, step: int, accuracy: float) -> None:
    """Draw the title on the left, and step and accuracy on the right, in places that do not move with their digits."""
    top, right = (HEADER - text_height(_TITLE)) // 2, frame.shape[1] - MARGIN
    base = top + _TITLE - _STATUS
    rounded = f"{round(accuracy, 3) + 0.0:.3f}"  # adding zero takes the sign off a negative zero
    for label, value, widest in (("accuracy", rounded, "-00.000"), ("step", f"{step}", "00000")):
        put_text(frame, base, right, value, _STATUS, align="right")
        right -= text_width(widest, _STATUS)
        put_text(frame, base, right, label, _STATUS, palette.FAINT_INK, "right")
        right -= text_width(label, _STATUS) + MARGIN
    put_text(frame, top, MARGIN, shorten(title, _TITLE, right - MARGIN), _TITLE)


def _draw_channels(
    frame: Frame,
    layout: Layout,
    names: tuple[str, ...],
    values: NDArray[np.float32],
    walls: NDArray[np.bool_],
) -> None:
    """Draw every channel's heat map and, where there is room beside its name, its value of largest magnitude."""
    panel = layout.channels[0]
    every = slice(None, None, panel.stride)
    colours = palette.heat_colours(values[:, every, every], walls[every, every])
    flat = values.reshape(len(values), -1)
    peaks = np.take_along_axis(flat, np.abs(flat).argmax(axis=1)[:, None], axis=1)[:, 0] + 0.0
    for panel, name, colour, peak in zip(layout.channels, names, colours, peaks, strict=True):
        fill(frame[panel.area], colour, panel.cell)
        number = _compact(float(peak))
        if text_width(name, _SMALL) + text_width(number, _SMALL) + _WORD_GAP <= panel.width:
            top, right = panel.top - CAPTION, panel.left + panel.width
            put_text(frame, top, right, number, _SMALL, palette.FAINT_INK, "right")


def _compact(value: float) -> str:
    """Return a number in few characters: 57, 0.25, -3.1, 16777k."""
    if 10_000 <= abs(value) < math.inf:
        return f"{value / 1000:.0f}k"
    if value.is_integer():
        return f"{value:.0f}"
    return f"{round(value, 2) + 0.0:.2f}" if abs(value) < 10 else f"{value:.1f}"
