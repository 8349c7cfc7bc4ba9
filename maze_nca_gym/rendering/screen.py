"""Pictures of the window: maze, thumbnails, buttons, status line, and the help or a list on top; pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.frame import Snapshot, draw_header
from maze_nca_gym.rendering.layout import EDGE, STATUS, WINDOW_HEADER, Box, Layout, menu_layout
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.panels import (
    OVERHANG,
    blank,
    bounds,
    draw_channels,
    draw_ends,
    draw_heat,
    draw_maze,
    draw_maze_key,
    draw_name,
    fill_box,
    outline,
)
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width

TEXT = 14
_TITLE = 18
_GAP = 22
_LINE = 22
_MARK = 6
"""Pixels along the side of the square that marks the name in use."""


@dataclass(frozen=True)
class Display:
    """The content of the window in addition to the snapshot.

    Attributes:
        buttons: label of each button, and whether it looks pressed.
        status: the status line's left part.
        state: the status line's right part: whether the automaton runs.
        enlarged: number of the channel that is shown instead of the maze, or None for the maze.
        cursor: (row, col, radius): the tile under the mouse, and the number of tiles around it that a brush reaches;
            None for no cursor.
        help: rows of the help, (key, explanation); empty while the help is hidden.
        menu: the heading of a list of names; empty while there is no list.
        entries: the names in the list.
        chosen: index of the marked name.
        running: index of the name that is in use, or None if the list does not contain it.
    """

    buttons: tuple[tuple[str, bool], ...] = ()
    status: str = ""
    state: str = ""
    enlarged: int | None = None
    cursor: tuple[int, int, int] | None = None
    help: tuple[tuple[str, str], ...] = ()
    menu: str = ""
    entries: tuple[str, ...] = ()
    chosen: int = 0
    running: int | None = None


def button_width(label: str) -> int:
    """Return the width of a button with a label, in pixels."""
    return text_width(label, TEXT) + 20


def menu_width(entries: Sequence[str]) -> int:
    """Return the width of the widest name in a list, in pixels."""
    return max((text_width(entry, TEXT) for entry in entries), default=0)


def draw_window(snapshot: Snapshot, layout: Layout, display: Display) -> Frame:
    """Return the picture of the window.

    Args:
        snapshot: the step in view.
        layout: the layout, for the snapshot's shapes.
        display: the content in addition to the snapshot.

    Returns:
        (h, w, 3) uint8 of the layout's canvas.
    """
    # the maze, or the channel that is enlarged in its place
    frame = blank(*layout.canvas)
    names, walls = snapshot.names, snapshot.tiles == Tile.WALL
    maze, enlarged = layout.maze, display.enlarged
    if enlarged is None:
        draw_maze(
            frame, maze, snapshot.tiles, snapshot.predicted, snapshot.target, OVERHANG, snapshot.tint, snapshot.kinds
        )
    else:
        draw_heat(frame, [maze], snapshot.channels[enlarged : enlarged + 1], walls)
        draw_ends(frame, maze, snapshot.tiles, OVERHANG, snapshot.kinds)
        outline(frame, maze.box, palette.RULE)
    # the channels, with their scrollbar
    if layout.channels:
        draw_channels(frame, layout, snapshot.channels, walls)
    for channel, panel in layout.channels:
        marked = channel in (enlarged, snapshot.highlight)
        draw_name(frame, panel, names[channel], layout.caption, marked)
        if channel == enlarged:
            outline(frame, panel.box.grown(1), palette.STRONG)
    if layout.scrollbar is not None and layout.thumb is not None:
        fill_box(frame, layout.scrollbar, palette.GRID)
        fill_box(frame, layout.thumb, palette.FAINT_INK)
    if display.cursor is not None:  # the tile under the mouse, or those that a brush reaches
        (*tile, radius), shape = display.cursor, (maze.rows, maze.cols)
        first = [max(0, at - radius) // maze.stride * maze.cell for at in tile]
        ends = [(min(n - 1, at + radius) // maze.stride + 1) * maze.cell for at, n in zip(tile, shape, strict=True)]
        box = Box(maze.top + first[0], maze.left + first[1], ends[0] - first[0], ends[1] - first[1])
        outline(frame, box, palette.STRONG)
        outline(frame, box.grown(-1), palette.STRONG)
    # the header, the buttons and the line of the state
    title = snapshot.title
    if enlarged is not None:
        title = f"{names[enlarged]}, {bounds(snapshot.channels[enlarged][None])[0]}"
    draw_header(frame, snapshot, title, WINDOW_HEADER, EDGE, (_TITLE, TEXT), snapshot.verdict)
    for box, (label, pressed) in zip(layout.buttons, display.buttons, strict=True):
        fill_box(frame, box, palette.STRONG if pressed else palette.GRID)
        colour, top = palette.PAPER if pressed else palette.INK, box.top + (box.height - text_height(TEXT)) // 2
        put_text(frame, top, box.left + box.width // 2, label, TEXT, colour, "centre")
    line = frame[layout.footer :]
    line[...] = palette.GRID
    top, right = (STATUS - text_height(TEXT)) // 2, line.shape[1] - EDGE
    put_text(line, top, right, display.state, TEXT, palette.FAINT_INK, "right")
    room = right - text_width(display.state, TEXT) - 2 * EDGE
    put_text(line, top, EDGE, shorten(display.status, TEXT, max(0, room)), TEXT)
    # what lies over all of it
    if display.help:
        _draw_help(frame, display.help, snapshot)
    if display.menu:
        _draw_menu(frame, display)
    return frame


def _draw_card(frame: Frame, box: Box) -> None:
    """Draw an empty card on top, and dim everything around it."""
    frame[...] = frame // 2 + 110
    fill_box(frame, box, palette.PAPER)
    outline(frame, box, palette.FAINT_INK)


def _draw_help(frame: Frame, rows: Sequence[tuple[str, str]], snapshot: Snapshot) -> None:
    """Draw the explanations of keys and mouse, and the key of the maze's colours."""
    first = max(text_width(key, TEXT) for key, _ in rows) + _GAP
    width = min(frame.shape[1], max(820, first + max(text_width(text, TEXT) for _, text in rows)) + 2 * EDGE)
    height = min(frame.shape[0], _LINE * (len(rows) + 3) + 2 * EDGE)
    box = Box((frame.shape[0] - height) // 2, (frame.shape[1] - width) // 2, height, width)
    _draw_card(frame, box)
    card = frame[box.top : box.top + height, box.left : box.left + width]
    put_text(card, EDGE, EDGE, "Keys and mouse", _TITLE)
    for index, (key, text) in enumerate(rows):
        top = EDGE + _LINE * index + 30
        put_text(card, top, EDGE, key, TEXT, palette.STRONG)
        put_text(card, top, EDGE + first, shorten(text, TEXT, width - first - 2 * EDGE), TEXT)
    key_top = EDGE + _LINE * len(rows) + 40
    if key_top + _LINE <= height:
        draw_maze_key(card, key_top, snapshot.shown_kinds, snapshot.tinted_by, snapshot.answers)


def _draw_menu(frame: Frame, display: Display) -> None:
    """Draw a list of names: a bar marks the chosen name, and a small square the name in use."""
    box, entries = menu_layout(frame.shape[:2], len(display.entries), menu_width(display.entries))
    _draw_card(frame, box)
    put_text(frame, box.top + EDGE // 2, box.left + EDGE, display.menu, TEXT, palette.FAINT_INK)
    for index, (place, name) in enumerate(zip(entries, display.entries, strict=True)):
        marked = index == display.chosen
        if marked:
            fill_box(frame, place, palette.STRONG)
        top = place.top + (place.height - text_height(TEXT)) // 2
        colour = palette.PAPER if marked else palette.INK
        put_text(frame, top, place.left + EDGE // 2, name, TEXT, colour)
        if index == display.running:
            middle, right = place.top + place.height // 2, place.left + place.width
            fill_box(frame, Box(middle - _MARK // 2, right - 2 * _MARK, _MARK, _MARK), colour)
