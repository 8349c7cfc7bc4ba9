"""Places in the window: header, maze, thumbnails of the channels, buttons, status line; and what a pixel belongs to.

As in `layout`, places depend on shapes, sizes and options, never on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from maze_nca_gym.rendering.layout import Caption, Panel, Scale, fit

HEADER, STATUS = 40, 26
BUTTON, GAP = 28, 6
BUTTON_PADDING = 10
EDGE = 14
SCROLLBAR = 8
_SIDE_GAP = 20
_THUMBNAILS = (280, 240, 200, 168, 136, 104)
"""Pixels of a thumbnail's longer side, at most: the largest with which all are in view, else the last."""
_LEAST_COLUMNS = 2
_LARGEST_SHARE = 0.5
"""Part of the window's width that the channels may take from the maze."""
_ROW = 24
_MENU_PADDING = 12


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels.

    Attributes:
        top: pixel row of its upper edge.
        left: pixel column of its left edge.
        height: pixels from top to bottom.
        width: pixels from left to right.
    """

    top: int
    left: int
    height: int
    width: int

    def holds(self, row: int, col: int) -> bool:
        """Return whether a pixel lies within."""
        return 0 <= row - self.top < self.height and 0 <= col - self.left < self.width


@dataclass(frozen=True)
class WindowLayout:
    """Places in a window.

    Attributes:
        height: pixels of the window.
        width: pixels of the window.
        maze: the maze, or the channel that is enlarged in its place.
        thumbnails: number and panel of every channel in view.
        caption: the room above each thumbnail.
        scrollbar: the whole way of the scrollbar; None where all channels are in view.
        thumb: the part of it that stands for the channels in view.
        last_row: the first row of thumbnails after scrolling to the end; 0 where all are in view.
        buttons: the buttons, from left to right, in rows.
        status: pixel row where the status line begins.
    """

    height: int
    width: int
    maze: Panel
    thumbnails: tuple[tuple[int, Panel], ...]
    caption: Caption
    scrollbar: Box | None
    thumb: Box | None
    last_row: int
    buttons: tuple[Box, ...]
    status: int

    def button_at(self, row: int, col: int) -> int | None:
        """Return the index of the button at a pixel, None where there is none."""
        return next((index for index, box in enumerate(self.buttons) if box.holds(row, col)), None)

    def channel_at(self, row: int, col: int) -> int | None:
        """Return the number of the channel whose thumbnail is at a pixel, its caption included."""
        for channel, panel in self.thumbnails:
            top = panel.top - self.caption.height
            if Box(top, panel.left, panel.top + panel.height - top, panel.width).holds(row, col):
                return channel
        return None


class _Grid(NamedTuple):
    """Thumbnails of one size.

    Attributes:
        scale: their scale.
        down: pixels from one to the next below.
        right: pixels from one to the next on its right.
    """

    scale: Scale
    down: int
    right: int

    @classmethod
    def of(cls, side: int, rows: int, cols: int, caption: Caption) -> _Grid:
        """Return the grid of thumbnails whose longer side has at most so many pixels."""
        scale = fit(side, side, rows, cols)
        down, right = caption.height + scale.extent(rows), max(scale.extent(cols), caption.width)
        return cls(scale, down + GAP, right + GAP)

    def holds(self, n: int, height: int, width: int) -> bool:
        """Return whether so many thumbnails fit into height x width pixels."""
        return (height // self.down) * (width // self.right) >= n


@lru_cache(maxsize=64)
def window_layout(
    size: tuple[int, int],
    rows: int,
    cols: int,
    n_channels: int,
    show_channels: bool,
    row_in_view: int,
    caption: Caption,
    button_widths: tuple[int, ...],
) -> WindowLayout:
    """Return the places in a window.

    Args:
        size: (height, width) of the window in pixels; a window too small for all is cut off.
        rows: the maze's height in tiles.
        cols: the maze's width in tiles.
        n_channels: channels of the state.
        show_channels: whether there are thumbnails; they are also left out where there is no room.
        row_in_view: the first row of thumbnails in view.
        caption: the room above each thumbnail.
        button_widths: pixels of each button.
    """
    height, width = max(size[0], 120), max(size[1], 160)
    bar_height, buttons = _flow(button_widths, width)
    status = height - STATUS
    bar = status - bar_height
    boxes = tuple(Box(bar + box.top, box.left, box.height, box.width) for box in buttons)
    body = Box(HEADER, EDGE, max(1, bar - HEADER - GAP), max(1, width - 2 * EDGE))
    least = 0
    if show_channels:
        small = _Grid.of(_THUMBNAILS[-1], rows, cols, caption)
        least = min(n_channels, _LEAST_COLUMNS) * small.right + _SIDE_GAP + SCROLLBAR
        least = least if least <= _LARGEST_SHARE * body.width and body.height >= small.down else 0
    maze = fit(body.height, max(1, body.width - least), rows, cols)
    room = body.width - maze.extent(cols) - _SIDE_GAP - SCROLLBAR
    grids = [_Grid.of(side, rows, cols, caption) for side in _THUMBNAILS]
    grid = next((grid for grid in grids if grid.holds(n_channels, body.height, room)), grids[-1])
    columns = min(n_channels, room // grid.right) if least else 0
    taken = maze.extent(cols) + (_SIDE_GAP + columns * grid.right + SCROLLBAR if columns else 0)
    left = body.left + (body.width - taken) // 2
    top = body.top + (body.height - maze.extent(rows)) // 2
    panel = Panel(top, left, rows, cols, maze.cell, maze.stride)
    if not columns:
        return WindowLayout(height, width, panel, (), caption, None, None, 0, boxes, status)
    side = left + maze.extent(cols) + _SIDE_GAP
    all_rows, seen = -(-n_channels // columns), body.height // grid.down
    last_row = max(0, all_rows - seen)
    first = max(0, min(row_in_view, last_row))
    thumbnails = []
    for channel in range(first * columns, min(n_channels, (first + seen) * columns)):
        down, right = divmod(channel - first * columns, columns)
        at = body.top + down * grid.down + caption.height, side + right * grid.right
        thumbnails.append((channel, Panel(*at, rows, cols, grid.scale.cell, grid.scale.stride)))
    scrollbar = thumb = None
    if last_row:
        scrollbar = Box(body.top, side + columns * grid.right, seen * grid.down - GAP, SCROLLBAR)
        long = scrollbar.height * seen // all_rows
        thumb = Box(scrollbar.top + (scrollbar.height - long) * first // last_row, scrollbar.left, long, SCROLLBAR)
    return WindowLayout(height, width, panel, tuple(thumbnails), caption, scrollbar, thumb, last_row, boxes, status)


def _flow(widths: Sequence[int], width: int) -> tuple[int, list[Box]]:
    """Return pixels that rows of buttons take, and the buttons, in a window of a width."""
    boxes, top, left = [], GAP, EDGE
    for wide in widths:
        if left + wide > width - EDGE and left > EDGE:
            top, left = top + BUTTON + GAP, EDGE
        boxes.append(Box(top, left, BUTTON, wide))
        left += wide + GAP
    return top + BUTTON + GAP, boxes


def menu_layout(size: tuple[int, int], n_entries: int, width: int) -> tuple[Box, tuple[Box, ...]]:
    """Return the box of a list of names in the middle of a window, and those of its entries, in columns.

    Args:
        size: (height, width) of the window in pixels.
        n_entries: the number of names.
        width: pixels of the widest name.
    """
    in_column = max(1, (size[0] - 2 * EDGE - 2 * _MENU_PADDING - _ROW) // _ROW)
    columns = -(-n_entries // in_column)
    in_column = -(-n_entries // max(1, columns))
    wide = width + 2 * _MENU_PADDING
    height, whole = _ROW * (in_column + 1) + 2 * _MENU_PADDING, wide * columns + 2 * _MENU_PADDING
    top, left = max(0, (size[0] - height) // 2), max(0, (size[1] - whole) // 2)
    entries = []
    for index in range(n_entries):
        right, down = divmod(index, in_column)
        at = top + _MENU_PADDING + _ROW * (down + 1), left + _MENU_PADDING + right * wide
        entries.append(Box(*at, _ROW, wide))
    return Box(top, left, height, whole), tuple(entries)
