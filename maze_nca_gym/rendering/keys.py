"""The words around maze and heat maps: channel names, the maze's key and the colour bar."""

from __future__ import annotations

import numpy as np

from maze_nca_gym.levels import Tile
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.layout import CAPTION, KEY_LINE, MARGIN, Layout, Panel
from maze_nca_gym.rendering.maze_panel import draw_maze
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.text import put_text, shorten, text_width

_TEXT, _SMALL = 14, 12
_SWATCH = 20
_WORD_GAP, _ENTRY_GAP = 7, 20
_BAR_LABEL = "channels"
_BAR_WIDTH, _BAR_HEIGHT = 400, 12
_TICKS = {
    -10_000: "-10k",
    -100: "-100",
    -1: "-1",
    0: "0",
    1: "1",
    10: "10",
    100: "100",
    1000: "1k",
    10_000: "10k",
}
_SWATCHES = (
    ("source", Tile.SOURCE, (0.0,), False),
    ("target", Tile.TARGET, (0.0,), False),
    ("predicted path, 0 to 1", Tile.EMPTY, (0.0, 0.33, 0.67, 1.0), False),
    ("exact path", Tile.EMPTY, (0.0,), True),
    ("wall", Tile.WALL, (0.0,), False),
)
"""Label, tile, predictions and whether it is on the exact path, of each entry of the maze's key."""


def draw_captions(frame: Frame, layout: Layout, names: tuple[str, ...]) -> None:
    """Draw every heat map's name, and a thin line around the map."""
    for panel, name in zip(layout.channels, names, strict=bool(layout.channels)):
        put_text(frame, panel.top - CAPTION, panel.left, shorten(name, _SMALL, panel.width), _SMALL)
        _frame_panel(frame, panel)


def draw_keys(frame: Frame, layout: Layout, has_endpoints: bool) -> None:
    """Draw the maze's key and, where there are heat maps, their colour bar: on one line, or on two."""
    _draw_maze_key(frame, layout.footer, has_endpoints)
    if layout.channels:
        top = layout.footer + KEY_LINE * (layout.key_lines - 1)
        whole = text_width(_BAR_LABEL, _TEXT) + _ENTRY_GAP + _BAR_WIDTH
        left = MARGIN if layout.key_lines > 1 else frame.shape[1] - MARGIN - whole
        _draw_colour_bar(frame, top, left)


def _frame_panel(frame: Frame, panel: Panel) -> None:
    """Draw a thin line around a panel."""
    rows, cols = panel.area
    frame[rows.start - 1 : rows.stop + 1, [cols.start - 1, cols.stop]] = palette.RULE
    frame[[rows.start - 1, rows.stop], cols.start - 1 : cols.stop + 1] = palette.RULE


def _draw_maze_key(frame: Frame, top: int, has_endpoints: bool) -> None:
    """Sample tiles and a label for everything that the maze shows, as far as there is room."""
    left = MARGIN
    for label, tile, path, exact in _SWATCHES[0 if has_endpoints else 2 :]:
        panel = Panel(top, left, 1, len(path), _SWATCH)
        left += panel.width + _WORD_GAP + text_width(label, _TEXT) + _ENTRY_GAP
        if left > frame.shape[1]:
            left = panel.left
            continue
        tiles, solution = np.full((1, len(path)), tile, np.uint8), np.full((1, len(path)), exact)
        draw_maze(frame[panel.area], panel, tiles, np.array([path], np.float32), solution)
        _frame_panel(frame, panel)
        put_text(frame, top + 1, panel.left + panel.width + _WORD_GAP, label, _TEXT)


def _draw_colour_bar(frame: Frame, top: int, left: int) -> None:
    """Draw the heat maps' scale with its ticks; a narrow frame makes it shorter."""
    put_text(frame, top - 3, left, _BAR_LABEL, _TEXT)
    left += text_width(_BAR_LABEL, _TEXT) + _ENTRY_GAP
    panel = Panel(top, left, _BAR_HEIGHT, min(_BAR_WIDTH, frame.shape[1] - MARGIN - left), 1)
    values = palette.heat_value(np.linspace(-1, 1, panel.width, dtype=np.float32))
    frame[panel.area] = palette.heat_colours(values[None], np.zeros((1, panel.width), dtype=bool))
    _frame_panel(frame, panel)
    end = 0
    for value, label in _TICKS.items():
        position = float(palette.heat_position(np.array(value, dtype=np.float32)))
        col, half = left + round((position + 1) / 2 * (panel.width - 1)), text_width(label, _SMALL) // 2
        if col - half > end + _WORD_GAP // 2:
            frame[top + _BAR_HEIGHT : top + _BAR_HEIGHT + 4, col] = palette.FAINT_INK
            put_text(frame, top + _BAR_HEIGHT + 4, col, label, _SMALL, palette.FAINT_INK, "centre")
            end = col + half
