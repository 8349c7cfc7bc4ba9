"""Pictures of a level and of an automaton's state, with the words around them: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.levels import Tile, Tiles, as_tiles
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.layout import HEADER, KEY_LINE, MARGIN, Layout, Panel, frame_layout
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.panels import (
    OVERHANG,
    blank,
    bounds,
    caption_of,
    draw_bounds,
    draw_maze,
    draw_maze_key,
    draw_name,
    fill,
    names_of,
    outline,
    tint_of,
)
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width

_TITLE, _STATUS, _TEXT, _SMALL = 22, 18, 14, 12
_GAP = 20
_BAR_LABEL = "each channel"
_BAR_WIDTH, _BAR_HEIGHT = 160, 12
_TICKS = ("lowest", "0", "highest")


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
    highlight: int | None = None,
    size: tuple[int, int] | None = None,
) -> Frame:
    """Draw the maze with the predicted and the exact path, and every channel of the state as a heat map.

    The prediction is blue, stronger for larger values (on a wall: a square inside the black); the exact
    path is outlined in orange. Each heat map has a scale of its own, white at 0, whose bounds are written above
    it.

    Args:
        tiles: (H, W) `Tile` values.
        channels: (C, H, W), any float; channel 0 is the predicted path, clipped to [0, 1] in the maze.
        target: (H, W) bool, the exact solution.
        channel_names: names of the first channels; the others are numbered.
        step: iterations of the automaton so far.
        accuracy: the prediction's accuracy.
        title: a line above the maze, cut off where it is too long.
        show_channels: whether to draw the heat maps; they are also left out of a window too small for them.
        highlight: number of the channel that tints the maze's free tiles; None for no tint. Its scale ends at its
            largest magnitude.
        size: (height, width) in pixels that the frame is fitted into; `layout.frame_layout` has the default.

    Returns:
        (h, w, 3) uint8; the shape depends on H, W, C, the channels' names, `show_channels` and `size` alone.

    Raises:
        ValueError: shapes that do not belong together, more names than channels, a highlight that is no channel, a size
            without pixels.
    """
    tiles = as_tiles(tiles, ndim=(2,))
    values = np.asarray(channels, dtype=np.float32)
    solution = np.asarray(target, dtype=bool)
    names = names_of(channel_names, _check_shapes(tiles, values, solution))
    if highlight is not None and not 0 <= highlight < len(values):
        raise ValueError(f"highlight must be a channel from 0 to {len(values) - 1}, got {highlight}")
    tint = None if highlight is None else tint_of(values[highlight])
    rows, cols = tiles.shape
    layout = frame_layout(rows, cols, len(values), show_channels, size, caption_of(names))
    tinted = None if highlight is None else names[highlight]
    frame = _background(layout, names, bool((tiles >= Tile.SOURCE).any()), tinted).copy()
    draw_maze(frame[layout.maze.area], layout.maze, tiles, values[0], solution, OVERHANG, tint)
    _draw_header(frame, title, step, accuracy)
    if layout.channels:
        _draw_channels(frame, layout, values, tiles == Tile.WALL)
    height, width = layout.canvas if size is None else size
    return np.ascontiguousarray(frame[:height, :width])


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
    sheet = blank(rows * (height + gap) + gap, columns * (width + gap) + gap)
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


@lru_cache(maxsize=8)
def _background(layout: Layout, names: tuple[str, ...], has_endpoints: bool, tinted: str | None) -> Frame:
    """Return what all frames of an episode share; it is copied, never drawn on."""
    frame = blank(*layout.canvas)
    for channel, panel in layout.channels:
        draw_name(frame, panel, names[channel], layout.caption)
    _draw_keys(frame, layout, has_endpoints, tinted)
    return frame


def _draw_keys(frame: Frame, layout: Layout, has_endpoints: bool, tinted: str | None) -> None:
    """Draw the maze's key and, where there are heat maps, their colour bar: on one line, or on two."""
    right = frame.shape[1]
    if layout.channels:
        top = layout.footer + KEY_LINE * (layout.key_lines - 1)
        whole = text_width(_BAR_LABEL, _TEXT) + _GAP + _BAR_WIDTH + text_width(_TICKS[-1], _SMALL) // 2
        left = MARGIN if layout.key_lines > 1 else right - MARGIN - whole
        right = right if layout.key_lines > 1 else left
        _draw_colour_bar(frame, top, left)
    draw_maze_key(frame[:, :right], layout.footer, has_endpoints, tinted)


def _draw_colour_bar(frame: Frame, top: int, left: int) -> None:
    """Draw the shades of every heat map's scale; a narrow frame makes the bar shorter."""
    put_text(frame, top - 3, left, _BAR_LABEL, _TEXT)
    left += text_width(_BAR_LABEL, _TEXT) + _GAP
    panel = Panel(top, left, _BAR_HEIGHT, min(_BAR_WIDTH, frame.shape[1] - MARGIN - left), 1)
    if panel.cols < 2:
        return
    values = np.linspace(-1, 1, panel.width, dtype=np.float32)
    frame[panel.area] = palette.heat_colours(values[None], np.zeros((1, panel.width), dtype=bool))
    outline(frame, panel.box, palette.RULE)
    for part, label in enumerate(_TICKS):
        col = left + part * (panel.width - 1) // (len(_TICKS) - 1)
        frame[top + _BAR_HEIGHT : top + _BAR_HEIGHT + 4, col] = palette.FAINT_INK
        put_text(frame, top + _BAR_HEIGHT + 4, col, label, _SMALL, palette.FAINT_INK, "centre")


def _draw_header(frame: Frame, title: str, step: int, accuracy: float) -> None:
    """Draw the title on the left, and step and accuracy on the right, in places that do not move with their digits."""
    top, right = (HEADER - text_height(_TITLE)) // 2, frame.shape[1] - MARGIN
    base = top + _TITLE - _STATUS
    rounded = "-" if np.isnan(accuracy) else f"{round(accuracy, 3) + 0.0:.3f}"  # adding zero takes the sign off -0
    for label, value, widest in (("accuracy", rounded, "-00.000"), ("step", f"{step}", "00000")):
        put_text(frame, base, right, value, _STATUS, align="right")
        right -= text_width(widest, _STATUS)
        put_text(frame, base, right, label, _STATUS, palette.FAINT_INK, "right")
        right -= text_width(label, _STATUS) + MARGIN
    put_text(frame, top, MARGIN, shorten(title, _TITLE, right - MARGIN), _TITLE)


def _draw_channels(frame: Frame, layout: Layout, values: NDArray[np.float32], walls: NDArray[np.bool_]) -> None:
    """Draw every channel's heat map and the bounds of its scale."""
    every = slice(None, None, layout.channels[0][1].stride)
    colours = palette.heat_colours(values, walls)[:, every, every]  # of all at once, which is faster
    for (channel, panel), text in zip(layout.channels, bounds(values), strict=True):
        fill(frame[panel.area], colours[channel], panel.cell)
        draw_bounds(frame, panel, text)
