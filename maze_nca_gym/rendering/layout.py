"""Layout of a frame and of the window: the places of the maze, of the channels' heat maps and of the items around them.

A layout depends on shapes, sizes and options, never on values. Therefore all frames of an episode have one shape, and a
pixel under the mouse always means the same tile. Frames and the window both place the maze and the heat maps by
`_arrange`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

MARGIN, HEADER = 24, 56
KEY_LINE = 46
_KEY_WIDTH, _MAZE_KEY_WIDTH = 1140, 640
"""Smallest width of a frame in which the maze's key and the colour bar share a line, and smallest width of a frame
without heat maps."""
_SMALLEST_CANVAS = (240, 320)
_DEFAULT_CANVASES = ((720, 1280), (1100, 1400))
_READABLE = 88
"""Pixels that the longer side of a heat map should have before the default frame stops growing."""

EDGE, WINDOW_HEADER, STATUS = 14, 40, 26
BUTTON, BUTTON_GAP = 28, 6
SCROLLBAR = 8
_THUMBNAIL, _LARGEST_THUMBNAIL = 104, 280
"""Smallest and largest number of pixels along the longer side of a heat map in the window; if fewer would be left, the
heat maps scroll instead."""
_LEAST_COLUMNS, _LARGEST_SHARE = 2, 0.5
"""Smallest number of columns of heat maps that scroll, and largest fraction of the window's width for these columns."""
_ROW, _MENU_PADDING = 24, 12

_MAZE_GAP, _PANEL_GAP, _LOOSEST_GAP = 32, 10, 56
_LARGEST_CELL = 64
_COARSE = 64
"""Strides up to twice this number are tried one by one, larger strides in growing steps."""


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels.

    Attributes:
        top: pixel row of the upper edge.
        left: pixel column of the left edge.
        height: pixels from top to bottom.
        width: pixels from left to right.
    """

    top: int
    left: int
    height: int
    width: int

    @property
    def area(self) -> tuple[slice, slice]:
        """The box's pixels, as an index into the frame."""
        return slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)

    def holds(self, row: int, col: int) -> bool:
        """Return whether a pixel lies within the box."""
        return 0 <= row - self.top < self.height and 0 <= col - self.left < self.width

    def grown(self, by: int) -> Box:
        """Return the box enlarged by `by` pixels on every side."""
        return Box(self.top - by, self.left - by, self.height + 2 * by, self.width + 2 * by)


@dataclass(frozen=True)
class Caption:
    """The size of the space above every heat map for its name and its bounds.

    Attributes:
        height: pixels from the caption's top to the map.
        width: pixels that the longest line takes; columns of heat maps are at least this wide.
    """

    height: int = 31
    width: int = 0


class Scale(NamedTuple):
    """A scale of drawing.

    Attributes:
        cell: pixels along a tile's side.
        stride: every `stride`-th tile is shown.
    """

    cell: int
    stride: int

    def extent(self, tiles: int) -> int:
        """Return the number of pixels that a row of tiles takes."""
        return -(-tiles // self.stride) * self.cell

    @property
    def pixels_per_tile(self) -> float:
        """Pixels along a tile's side, less than 1 if tiles are left out."""
        return self.cell / self.stride


@dataclass(frozen=True)
class Panel:
    """A grid of tiles on a frame.

    Attributes:
        top: pixel row of the upper edge.
        left: pixel column of the left edge.
        rows: tiles from top to bottom.
        cols: tiles from left to right.
        cell: pixels along a tile's side.
        stride: every `stride`-th tile is shown; more than 1 only if the frame has too few pixels.
    """

    top: int
    left: int
    rows: int
    cols: int
    cell: int
    stride: int = 1

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return Scale(self.cell, self.stride).extent(self.rows)

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return Scale(self.cell, self.stride).extent(self.cols)

    @property
    def box(self) -> Box:
        """The panel's rectangle."""
        return Box(self.top, self.left, self.height, self.width)

    @property
    def area(self) -> tuple[slice, slice]:
        """The panel's pixels, as an index into the frame."""
        return self.box.area

    def tile_at(self, pixel_row: int, pixel_col: int) -> tuple[int, int] | None:
        """Return (row, col) of the tile shown at a pixel of the frame, or None outside of the panel."""
        if not self.box.holds(pixel_row, pixel_col):
            return None
        down, right = pixel_row - self.top, pixel_col - self.left
        return down // self.cell * self.stride, right // self.cell * self.stride


@dataclass(frozen=True)
class Layout:
    """The places of all items on a frame.

    Attributes:
        canvas: (height, width) in pixels in which the items are placed. A very small window or frame shows less of it,
            cut off on the right and at the bottom.
        maze: the panel of the maze, or of the channel that is enlarged instead of it.
        channels: number and panel of every heat map in view; empty if they are switched off or do not fit.
        caption: the space above each of these panels.
        footer: pixel row where the keys begin or, in the window, the status line.
        scrollbar: the track of the scrollbar, or None if all channels are in view.
        thumb: the part of the track that represents the channels in view, or None without a scrollbar.
        last_row: the first row of heat maps after scrolling to the end, or 0 if all are in view.
        buttons: the window's buttons, from left to right, in rows.
    """

    canvas: tuple[int, int]
    maze: Panel
    channels: tuple[tuple[int, Panel], ...]
    caption: Caption
    footer: int
    scrollbar: Box | None = None
    thumb: Box | None = None
    last_row: int = 0
    buttons: tuple[Box, ...] = ()

    @property
    def key_lines(self) -> int:
        """Number of lines of the keys below the maze: one, or two if the keys of maze and heat maps do not fit on one
        line."""
        return _key_lines(self.canvas[1], bool(self.channels))

    def button_at(self, row: int, col: int) -> int | None:
        """Return the index of the button at a pixel, or None if there is none."""
        return next((index for index, box in enumerate(self.buttons) if box.holds(row, col)), None)

    def channel_at(self, row: int, col: int) -> int | None:
        """Return the number of the channel with its heat map or caption at a pixel, or None if there is none."""
        for channel, panel in self.channels:
            top = panel.top - self.caption.height
            if Box(top, panel.left, panel.top + panel.height - top, panel.width).holds(row, col):
                return channel
        return None


@dataclass(frozen=True)
class _Mosaic:
    """The maze in the upper left corner, and the heat maps in a grid: on its right, or around and below it.

    Attributes:
        rows: the maze's height in tiles.
        cols: the maze's width in tiles.
        n_panels: the number of heat maps.
        caption: the space above each of them.
        maze: the maze's scale.
        panel: the heat maps' scale.
        columns: the number of columns of the grid, or 0 for the maze without heat maps.
        seen: rows of the grid in view, including the rows beside the maze.
        covered: (rows, columns) of places in the grid's corner that the maze covers; (0, 0) if the grid is beside the
            maze.
    """

    rows: int
    cols: int
    n_panels: int
    caption: Caption
    maze: Scale
    panel: Scale
    columns: int = 0
    seen: int = 0
    covered: tuple[int, int] = (0, 0)

    @property
    def pitch(self) -> tuple[int, int]:
        """Pixels (down, right) from one heat map to the next; beside a taller maze, rows are spaced further apart."""
        height = self.caption.height + self.panel.extent(self.rows)
        down = height + _PANEL_GAP
        if self.seen > 1 and not self.covered[0]:
            down = max(down, min((self.maze.extent(self.rows) - height) // (self.seen - 1), height + _LOOSEST_GAP))
        return down, max(self.panel.extent(self.cols), self.caption.width) + _PANEL_GAP

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the mosaic in pixels."""
        height, width = self.maze.extent(self.rows), self.maze.extent(self.cols)
        if not self.columns:
            return height, width
        down, right = self.pitch
        grid = (self.seen - 1) * down + self.caption.height + self.panel.extent(self.rows)
        beside = (0 if self.covered[0] else width + _MAZE_GAP) + (SCROLLBAR + _PANEL_GAP if self.last_row else 0)
        return max(height, grid), max(width, beside + self.columns * right - _PANEL_GAP)

    @property
    def last_row(self) -> int:
        """First row of the grid after scrolling to the end: the number of rows not in view."""
        return 0 if self.covered[0] else -(-self.n_panels // self.columns) - self.seen

    def spot(self, index: int) -> tuple[int, int]:
        """Return (row, column) in the grid of the heat map of an index; places that the maze covers are left out."""
        n_rows, n_covered = self.covered
        beside = self.columns - n_covered
        if index < n_rows * beside:
            return index // beside, n_covered + index % beside
        row, column = divmod(index - n_rows * beside, self.columns)
        return n_rows + row, column

    def place(self, body: Box, row_in_view: int = 0) -> dict[str, Any]:
        """Return the fields of a `Layout` that the mosaic determines, with the mosaic in the middle of a box."""
        height, width = self.size
        top, left = body.top + (body.height - height) // 2, body.left + (body.width - width) // 2
        maze = Panel(top, left, self.rows, self.cols, *self.maze)
        if not self.columns:
            return {"maze": maze, "channels": (), "caption": self.caption}
        (down, right), left = self.pitch, left + (0 if self.covered[0] else maze.width + _MAZE_GAP)
        first = max(0, min(row_in_view, self.last_row))
        panels = []
        for channel in range(self.n_panels):
            row, column = self.spot(channel)
            if first <= row < first + self.seen:
                at = top + (row - first) * down + self.caption.height, left + column * right
                panels.append((channel, Panel(*at, self.rows, self.cols, *self.panel)))
        parts = {"maze": maze, "channels": tuple(panels), "caption": self.caption, "last_row": self.last_row}
        if not self.last_row:
            return parts
        bar = Box(top, left + self.columns * right, self.seen * down - _PANEL_GAP, SCROLLBAR)
        long = bar.height * self.seen // (self.last_row + self.seen)
        thumb = Box(bar.top + (bar.height - long) * first // self.last_row, bar.left, long, SCROLLBAR)
        return {**parts, "scrollbar": bar, "thumb": thumb}


_Quality: TypeAlias = Callable[[Scale, Scale], tuple[float, ...]]
"""A function of the scales of the maze and of the heat maps that rates them: the largest rating wins, and an empty
rating rules the scales out."""


def fit(height: int, width: int, rows: int, cols: int) -> Scale:
    """Return the largest scale at which rows x cols tiles fit into height x width pixels."""
    cell = min(height // rows, width // cols, _LARGEST_CELL)
    return Scale(cell, 1) if cell else Scale(1, max(-(-rows // height), -(-cols // width)))


def _arrange(body: Box, rows: int, cols: int, n_panels: int, caption: Caption, quality: _Quality) -> _Mosaic:
    """Return the mosaic of best quality that fits into a box; of equal ones the smallest. Without room, return the maze
    alone."""
    largest = fit(body.height, body.width, rows, cols)
    scales, more = [Scale(cell, largest.stride) for cell in range(largest.cell, 0, -1)], 1
    # At less than a pixel per tile, scales that differ by little look alike, so the steps grow.
    while more < max(rows, cols) // 8:
        scales.append(Scale(1, largest.stride + more))
        more += max(1, more // _COARSE)
    best = alone = _Mosaic(rows, cols, n_panels, caption, largest, largest)
    most: tuple[tuple[float, ...], int] = ((), 0)
    for panel in scales if n_panels else ():
        small, mosaics = replace(alone, panel=panel), []
        down, right = small.pitch
        n_rows, n_columns = (body.height + _PANEL_GAP) // down, (body.width + _PANEL_GAP) // right
        # Heat maps to the right of the largest maze that leaves room for them ...
        columns = -(-n_panels // n_rows) if n_rows else 0
        room = body.width - columns * right + _PANEL_GAP - _MAZE_GAP
        if columns and room > 0:
            maze, seen = fit(body.height, room, rows, cols), -(-n_panels // columns)
            mosaics.append(replace(small, maze=maze, columns=columns, seen=seen))
        # ... and around and below the largest maze for which the grid has places enough.
        for maze in scales if n_rows * n_columns >= n_panels else ():
            height, width = maze.extent(rows) + _PANEL_GAP, maze.extent(cols) + _MAZE_GAP
            covered = min(n_rows, -(-height // down)), min(n_columns, -(-width // right))
            # A maze taller than all rows of the grid would cover more than is counted here.
            if n_columns * n_rows - covered[0] * covered[1] >= n_panels and covered[0] * down >= height:
                around = replace(small, maze=maze, columns=n_columns, covered=covered)
                mosaics.append(replace(around, seen=around.spot(n_panels - 1)[0] + 1))
                break
        for mosaic in mosaics:
            rating = quality(mosaic.maze, panel), -mosaic.size[0] * mosaic.size[1]
            if rating[0] and rating > most:
                best, most = mosaic, rating
    return best


def _key_lines(width: int, has_channels: bool) -> int:
    return 2 if has_channels and width < _KEY_WIDTH else 1


@lru_cache(maxsize=64)
def frame_layout(
    rows: int,
    cols: int,
    n_channels: int,
    show_channels: bool = True,
    size: tuple[int, int] | None = None,
    caption: Caption = Caption(),
) -> Layout:
    """Return the layout of a frame.

    Args:
        rows: the maze's height in tiles.
        cols: the maze's width in tiles.
        n_channels: channels of the state.
        show_channels: whether heat maps of the channels are shown.
        size: (height, width) of the frame in pixels. By default it is 1140 to 1400 wide (640 to 1280 without heat maps)
            and as high as needed. Both numbers are then even, as video encoders require.
        caption: the space above each heat map.

    Raises:
        ValueError: a size without pixels.
    """
    n_panels = n_channels if show_channels else 0
    if size is not None and min(size) < 1:
        raise ValueError(f"size must be (height, width) of at least 1 x 1 pixels, got {size}")
    canvases: tuple[tuple[int, int], ...] = _DEFAULT_CANVASES
    if size is not None:
        canvases = ((max(size[0], _SMALLEST_CANVAS[0]), max(size[1], _SMALLEST_CANVAS[1])),)

    def body(canvas: tuple[int, int]) -> Box:
        """Return what header and keys leave for the maze and the heat maps."""
        keys = KEY_LINE * _key_lines(canvas[1], bool(n_panels))
        return Box(HEADER, MARGIN, canvas[0] - HEADER - MARGIN - keys, canvas[1] - 2 * MARGIN)

    def quality(maze: Scale, panel: Scale) -> tuple[float, ...]:
        """Rate two scales by a product, so that neither is tiny; the maze keeps twice the scale."""
        large, small = maze.pixels_per_tile, panel.pixels_per_tile
        return (large * small**1.1,) if small <= min(large, max(1, large / 2)) else ()

    # The larger default canvas is used only if heat maps on the smaller one would be too small to read.
    for canvas in canvases:
        mosaic = _arrange(body(canvas), rows, cols, n_panels, caption, quality)
        if mosaic.panel.extent(max(rows, cols)) >= _READABLE:
            break
    if size is None:  # the smallest even size that holds the mosaic, header and keys
        height, width = (pixels + 2 * MARGIN for pixels in mosaic.size)
        height += HEADER - MARGIN + KEY_LINE
        width = max(_KEY_WIDTH if mosaic.columns else _MAZE_KEY_WIDTH, width)
        canvas = (height + height % 2, width + width % 2)
    footer = canvas[0] - KEY_LINE * _key_lines(canvas[1], bool(mosaic.columns))
    return Layout(canvas=canvas, footer=footer, **mosaic.place(body(canvas)))


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
) -> Layout:
    """Return the layout of a window: the maze as large as possible, and heat maps beside or below it, which may scroll.

    Args:
        size: (height, width) of the window in pixels; if it is too small for all items, the layout is cut off.
        rows: the maze's height in tiles.
        cols: the maze's width in tiles.
        n_channels: channels of the state.
        show_channels: whether there are heat maps; they are also left out if there is no room.
        row_in_view: the first row of heat maps in view.
        caption: the space above each heat map.
        button_widths: pixels of each button.
    """
    # A user can make a window smaller than any layout; then the layout is cut off.
    height, width = max(size[0], 120), max(size[1], 160)
    # as few rows of buttons as fit, and these of much the same width, so that no button is alone in the last
    last = _in_rows(button_widths, width)[1]
    width_of_rows = bisect_left(range(width), -last, key=lambda narrow: -_in_rows(button_widths, narrow)[1])
    places, _ = _in_rows(button_widths, width_of_rows)
    bar = height - STATUS - (last + 1) * (BUTTON + BUTTON_GAP) - BUTTON_GAP
    body = Box(WINDOW_HEADER, EDGE, max(1, bar - WINDOW_HEADER - BUTTON_GAP), max(1, width - 2 * EDGE))
    n_panels, side = (n_channels if show_channels else 0), max(rows, cols)
    least = fit(_THUMBNAIL, _THUMBNAIL, rows, cols)

    def quality(maze: Scale, panel: Scale) -> tuple[float, ...]:
        """Rate two scales: a larger maze first, then larger heat maps."""
        large, small = maze.pixels_per_tile, panel.pixels_per_tile
        fits = least.pixels_per_tile <= small <= large and panel.extent(side) <= _LARGEST_THUMBNAIL
        return (large, small) if fits else ()

    mosaic = _arrange(body, rows, cols, n_panels, caption, quality)
    scrolling = _Mosaic(rows, cols, n_panels, caption, mosaic.maze, least)
    down, right = scrolling.pitch
    share = min(n_panels, _LEAST_COLUMNS) * right + _MAZE_GAP + SCROLLBAR
    # Heat maps scroll, beside the maze, only if there is no room for all, or if the maze becomes larger that way.
    if n_panels and share <= _LARGEST_SHARE * body.width and body.height >= down:
        maze = fit(body.height, body.width - share, rows, cols)
        if not mosaic.columns or maze.pixels_per_tile > mosaic.maze.pixels_per_tile:
            columns = min(n_panels, (body.width - maze.extent(cols) - _MAZE_GAP - SCROLLBAR) // right)
            seen = min(-(-n_panels // columns), (body.height + _PANEL_GAP) // down)
            mosaic = replace(scrolling, maze=maze, columns=columns, seen=seen)
    boxes = tuple(
        Box(bar + BUTTON_GAP + row * (BUTTON + BUTTON_GAP), left, BUTTON, wide)
        for (row, left), wide in zip(places, button_widths, strict=True)
    )
    return Layout(canvas=(height, width), footer=height - STATUS, buttons=boxes, **mosaic.place(body, row_in_view))


def _in_rows(button_widths: tuple[int, ...], width: int) -> tuple[list[tuple[int, int]], int]:
    """Return the row and the left pixel of each button in a window of a width, and the number of the last row."""
    places, row, left = [], 0, EDGE
    for wide in button_widths:
        if left + wide > width - EDGE and left > EDGE:
            row, left = row + 1, EDGE
        places.append((row, left))
        left += wide + BUTTON_GAP
    return places, row


def menu_layout(size: tuple[int, int], n_entries: int, width: int) -> tuple[Box, tuple[Box, ...]]:
    """Return the box of a menu in the middle of a window, and the boxes of its entries, in columns.

    Args:
        size: (height, width) of the window in pixels.
        n_entries: the number of names.
        width: pixels of the widest name.
    """
    in_column = max(1, (size[0] - 2 * EDGE - 2 * _MENU_PADDING - _ROW) // _ROW)
    columns = -(-n_entries // in_column)
    in_column = -(-n_entries // max(1, columns))
    wide = width + 2 * _MENU_PADDING
    height, menu_width = _ROW * (in_column + 1) + 2 * _MENU_PADDING, wide * columns + 2 * _MENU_PADDING
    top, left = max(0, (size[0] - height) // 2), max(0, (size[1] - menu_width) // 2)
    entries = []
    for index in range(n_entries):
        right, down = divmod(index, in_column)
        at = top + _MENU_PADDING + _ROW * (down + 1), left + _MENU_PADDING + right * wide
        entries.append(Box(*at, _ROW, wide))
    return Box(top, left, height, menu_width), tuple(entries)
