"""Positions of the parts of a frame: the maze, the heat maps of the channels, the header and the footer.

A layout depends only on shapes and options, never on values. So all frames of an episode have one shape, and a pixel
under the mouse has one tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

MARGIN = 24
HEADER = 56
KEY_LINE = 46
_MAZE_GAP = 32
_PANEL_GAP = 10
_LOOSEST_GAP = 56
_LARGEST_CELL = 64
_KEY_WIDTH = 1140
"""Smallest width at which the maze's key and the colour bar share one line."""
_MAZE_KEY_WIDTH = 640
_SMALLEST_CANVAS = (240, 320)
_DEFAULT_CANVASES = ((720, 1280), (1100, 1400))
_COARSE = 64
"""Strides up to twice that are tried one by one."""
_READABLE = 88
"""Pixels that the longer side of a heat map should have before the default frame stops growing."""


@dataclass(frozen=True)
class Caption:
    """Room above every heat map for its name and its bounds.

    Attributes:
        height: pixels from the caption's top to the map.
        width: pixels that the longest line takes; maps that are narrower stand further apart.
    """

    height: int = 31
    width: int = 0


@dataclass(frozen=True)
class Panel:
    """A grid of tiles on a frame.

    Attributes:
        top: pixel row of its upper edge.
        left: pixel column of its left edge.
        rows: tiles from top to bottom.
        cols: tiles from left to right.
        cell: pixels along a tile's side.
        stride: every how many-th tile is shown; more than 1 only where the frame has too few pixels.
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
        return -(-self.rows // self.stride) * self.cell

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return -(-self.cols // self.stride) * self.cell

    @property
    def area(self) -> tuple[slice, slice]:
        """The panel's pixels, as an index into the frame."""
        return slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)

    def tile_at(self, pixel_row: int, pixel_col: int) -> tuple[int, int] | None:
        """Return (row, col) of the tile shown at a pixel of the frame, None outside of the panel."""
        down, right = pixel_row - self.top, pixel_col - self.left
        if not (0 <= down < self.height and 0 <= right < self.width):
            return None
        return down // self.cell * self.stride, right // self.cell * self.stride


@dataclass(frozen=True)
class Layout:
    """Places on a frame.

    Attributes:
        height: pixels of the frame.
        width: pixels of the frame.
        canvas: (height, width) that the places refer to. It is larger than the frame only where a very small window
            cuts it off on the right and at the bottom.
        maze: the maze.
        channels: one panel a channel; none where they are switched off or there is no room for them.
        footer: pixel row where the keys begin.
        caption: the room above each of the channels' panels.
    """

    height: int
    width: int
    canvas: tuple[int, int]
    maze: Panel
    channels: tuple[Panel, ...]
    footer: int
    caption: Caption

    @property
    def key_lines(self) -> int:
        """Lines that the keys below the maze take: one, or two where maze and heat maps need one each."""
        return _key_lines(self.canvas[1], bool(self.channels))


@dataclass(frozen=True)
class Scale:
    """Pixels along a shown tile's side, and every how many-th tile is shown."""

    cell: int
    stride: int

    def extent(self, tiles: int) -> int:
        """Return pixels that a row of tiles takes."""
        return -(-tiles // self.stride) * self.cell

    @property
    def pixels_per_tile(self) -> float:
        """Pixels along a tile's side, less than 1 where tiles are left out."""
        return self.cell / self.stride


@dataclass(frozen=True)
class _Mosaic:
    """The maze in the upper left corner and the heat maps in a grid to its right, below it, or around it.

    Attributes:
        rows: the maze's height in tiles.
        cols: the maze's width in tiles.
        n_panels: the number of heat maps.
        maze: the maze's scale.
        panel: the heat maps' scale.
        caption: the room above each of them.
        columns: the number of columns of the grid; 0 where the maze stands alone.
        offset: pixels from the maze's left edge to the grid's; 0 where the grid flows around the maze.
        span_rows: rows at the grid's top whose first places the maze covers; 0 where it stands beside.
        span_cols: places in each of these rows that it covers.
    """

    rows: int
    cols: int
    n_panels: int
    maze: Scale
    panel: Scale
    caption: Caption
    columns: int = 0
    offset: int = 0
    span_rows: int = 0
    span_cols: int = 0

    @property
    def panel_width(self) -> int:
        """Pixels of a heat map or of the widest name, whichever is more."""
        return max(self.panel.extent(self.cols), self.caption.width)

    @property
    def pitch(self) -> tuple[int, int]:
        """Pixels (down, right) from one heat map to the next; beside a taller maze they stand looser."""
        height, width = self.caption.height + self.panel.extent(self.rows), self.panel_width
        down = height + _PANEL_GAP
        if self.offset and self.n_panels > self.columns:
            gaps = -(-self.n_panels // self.columns) - 1
            down = max(down, min((self.maze.extent(self.rows) - height) // gaps, height + _LOOSEST_GAP))
        return down, width + _PANEL_GAP

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        grid = 0
        if self.columns:
            grid = self.place(self.n_panels - 1)[0] + self.caption.height + self.panel.extent(self.rows)
        return max(self.maze.extent(self.rows), grid)

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return max(self.maze.extent(self.cols), self.offset + self.columns * self.pitch[1] - _PANEL_GAP)

    def place(self, index: int) -> tuple[int, int]:
        """Return pixels (down, right) from the maze's corner to that of a heat map's caption."""
        beside = self.columns - self.span_cols
        if index < self.span_rows * beside:
            row, col = index // beside, self.span_cols + index % beside
        else:
            row, col = divmod(index - self.span_rows * beside, self.columns)
            row += self.span_rows
        down, right = self.pitch
        return row * down, self.offset + col * right


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
        size: (height, width) in pixels of the frame. By default it is 1140 to 1400 wide (640 to 1280 without heat
            maps) and as high as needed. Both are even, as video encoders want them.
        caption: the room above each heat map.

    Raises:
        ValueError: a size without pixels.
    """
    n_panels = n_channels if show_channels else 0
    if size is not None:
        if min(size) < 1:
            raise ValueError(f"size must be (height, width) of at least 1 x 1 pixels, got {size}")
        canvas = (max(size[0], _SMALLEST_CANVAS[0]), max(size[1], _SMALLEST_CANVAS[1]))
        return _place(_arrange(rows, cols, n_panels, canvas, caption), canvas, size)
    for canvas in _DEFAULT_CANVASES:
        mosaic = _arrange(rows, cols, n_panels, canvas, caption)
        if mosaic.panel.extent(max(rows, cols)) >= _READABLE:
            break
    canvas = _trim(mosaic)
    return _place(mosaic, canvas, canvas)


def _key_lines(width: int, has_channels: bool) -> int:
    return 2 if has_channels and width < _KEY_WIDTH else 1


def _body(canvas: tuple[int, int], has_channels: bool) -> tuple[int, int]:
    """Return (height, width) in pixels that is left for maze and heat maps."""
    height, width = canvas
    return height - HEADER - MARGIN - KEY_LINE * _key_lines(width, has_channels), width - 2 * MARGIN


def fit(height: int, width: int, rows: int, cols: int) -> Scale:
    """Return the largest scale at which rows x cols tiles fit into height x width pixels."""
    cell = min(height // rows, width // cols, _LARGEST_CELL)
    return Scale(cell, 1) if cell else Scale(1, max(-(-rows // height), -(-cols // width)))


def _arrange(rows: int, cols: int, n_panels: int, canvas: tuple[int, int], caption: Caption) -> _Mosaic:
    """Return the mosaic with the best scales, the smallest of these; the maze alone where heat maps find no room."""
    body = _body(canvas, bool(n_panels))
    largest = fit(*body, rows, cols)
    scales = [Scale(cell, largest.stride) for cell in range(largest.cell, 0, -1)]
    scales += [Scale(1, largest.stride + more) for more in _thinned(max(rows, cols) // 8)]
    pairs = [pair for pair in product(scales, repeat=2) if n_panels and _quality(*pair)]
    for maze, panel in sorted(pairs, key=lambda pair: -_quality(*pair)):
        scaled = _Mosaic(rows, cols, n_panels, maze, panel, caption)
        mosaics = [mosaic for mosaic in _mosaics(scaled, body[1]) if mosaic.height <= body[0]]
        if mosaics:
            return min(mosaics, key=lambda mosaic: mosaic.height * mosaic.width)
    return _Mosaic(rows, cols, n_panels, largest, largest, caption)


def _thinned(end: int) -> Iterator[int]:
    """Yield the numbers from 1 to before `end`, the large ones in steps of 2 %: pairs of them are compared."""
    number = 1
    while number < end:
        yield number
        number += max(1, number // _COARSE)


def _quality(maze: Scale, panel: Scale) -> float:
    """Return how good two scales are: neither may be tiny, and the maze is the main thing; 0 rules them out."""
    large, small = maze.pixels_per_tile, panel.pixels_per_tile
    return large * math.pow(small, 1.1) if small <= min(large, max(1, large / 2)) else 0.0


def _mosaics(scaled: _Mosaic, body_width: int) -> Iterator[_Mosaic]:
    """Yield the mosaics of these scales that fit into a width: heat maps beside the maze, around it or below it."""
    offset = scaled.maze.extent(scaled.cols) + _MAZE_GAP
    down, right = scaled.pitch
    for columns in range(1, (body_width + _PANEL_GAP - offset) // right + 1):
        yield replace(scaled, columns=columns, offset=offset)
    span_rows = -(-(scaled.maze.extent(scaled.rows) + _PANEL_GAP) // down)
    for columns in range(1, (body_width + _PANEL_GAP) // right + 1):
        span_cols = min(-(-offset // right), columns)
        yield replace(scaled, columns=columns, span_rows=span_rows, span_cols=span_cols)


def _trim(mosaic: _Mosaic) -> tuple[int, int]:
    """Return (height, width), both even, of the smallest frame that holds the mosaic, header and keys."""
    height = HEADER + mosaic.height + MARGIN + KEY_LINE
    width = max(_KEY_WIDTH if mosaic.columns else _MAZE_KEY_WIDTH, mosaic.width + 2 * MARGIN)
    return height + height % 2, width + width % 2


def _place(mosaic: _Mosaic, canvas: tuple[int, int], size: tuple[int, int]) -> Layout:
    """Lay a mosaic out in the middle of the canvas."""
    rows, cols = mosaic.rows, mosaic.cols
    body = _body(canvas, bool(mosaic.n_panels))
    top, left = HEADER + (body[0] - mosaic.height) // 2, MARGIN + (body[1] - mosaic.width) // 2
    maze = Panel(top, left, rows, cols, mosaic.maze.cell, mosaic.maze.stride)
    panels = []
    for index in range(mosaic.n_panels if mosaic.columns else 0):
        down, right = mosaic.place(index)
        at = top + down + mosaic.caption.height, left + right
        panels.append(Panel(*at, rows, cols, mosaic.panel.cell, mosaic.panel.stride))
    footer = canvas[0] - KEY_LINE * _key_lines(canvas[1], bool(panels))
    return Layout(*size, canvas, maze, tuple(panels), footer, mosaic.caption)
