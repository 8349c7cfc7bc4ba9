"""Drawing on a grid of tiles: the maze with its paths and ends, the heat map of a channel with its caption, and the
key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from maze_nca_gym.mazes.levels import KINDS, Kind, Tile, Tiles
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.layout import MARGIN, Box, Caption, Layout, Panel
from maze_nca_gym.rendering.palette import RGB, Frame
from maze_nca_gym.rendering.text import font, put_text, shorten, text_height, text_width

OVERHANG = 5
"""Pixels by which the markers may exceed a small tile, so that a source is visible in a maze of 4,000 tiles."""
_READABLE_MARKER = 15
"""Pixels of a marker of a source or target with a readable letter."""
_SMALLEST_RING = 4
"""Smallest tile, in pixels, on which the exact path is an outline; on smaller ones it is a tint."""
_SMALLEST_GRID = 12
"""Smallest tile, in pixels, with thin lines between empty tiles."""
NAME_SIZE, BOUNDS_SIZE = 12, 11
_BROAD = 96
"""Largest width in pixels of a name on one line; longer names are broken into two."""
_BROADEST = 160
"""Width in pixels at which a line of a name is cut off; all names of this package are shorter."""
_BOUNDS = "-0.00 to 0.00"
"""The widest bounds for which every caption has room."""
_KEY_TEXT, _SWATCH, _WORD_GAP, _ENTRY_GAP = 14, 20, 7, 20


def blank(height: int, width: int, colour: RGB = palette.PAPER) -> Frame:
    """Return a frame of one colour, (h, w, 3) uint8."""
    frame = np.empty((height, width, 3), np.uint8)
    frame[:1] = colour
    frame[1:] = frame[:1]  # whole rows are copied faster than pixels
    return frame


def fill_box(frame: Frame, box: Box, colour: RGB) -> None:
    """Paint the part of a box that lies within the frame, (h, w, 3) uint8."""
    frame[max(0, box.top) : box.top + box.height, max(0, box.left) : box.left + box.width] = colour


def outline(frame: Frame, box: Box, colour: RGB) -> None:
    """Draw a thin line around a box, as far as it lies within the frame, (h, w, 3) uint8."""
    top, left, bottom, right = box.top - 1, box.left - 1, box.top + box.height, box.left + box.width
    for row in (top, bottom):
        if 0 <= row < frame.shape[0]:
            frame[row, max(0, left) : right + 1] = colour
    for col in (left, right):
        if 0 <= col < frame.shape[1]:
            frame[max(0, top) : bottom + 1, col] = colour


def draw_maze(
    frame: Frame,
    panel: Panel,
    tiles: Tiles,
    path: NDArray[np.float32],
    solution: NDArray[np.bool_],
    overhang: int = 0,
    highlight: NDArray[np.float32] | None = None,
    kinds: tuple[Kind, ...] = KINDS,
) -> None:
    """Draw a maze into its panel of a frame, in place.

    Args:
        frame: (h, w, 3) uint8.
        panel: the panel's place and scale.
        tiles: (H, W) uint8.
        path: (H, W) prediction, shown from 0 (no path) to 1; or (K, H, W), with further channels as smaller squares
            within the tiles, so that channels that overlap can be distinguished.
        solution: bool of that shape, the exact path, outlined.
        overhang: pixels by which the markers of source and target may exceed a small tile, so that they stay visible.
        highlight: (H, W) strengths of the tint of free tiles, from 0 to 1, or None for no tint.
        kinds: the kinds of tile, with their colours.
    """
    every, cell = slice(None, None, panel.stride), panel.cell
    wall, shown, exact = tiles[every, every] == Tile.WALL, path[..., every, every], solution[..., every, every]
    if shown.ndim == 2:
        shown, exact = shown[None], exact[None]
    weights, outlined = np.clip(np.nan_to_num(shown), 0, 1), cell >= _SMALLEST_RING
    grounds = [KINDS[Tile.EMPTY] if kind in KINDS[2:] else kind for kind in kinds]  # ends are markers on empty tiles
    colours = np.array([palette.rgb(kind.colour) for kind in grounds], np.float32)[tiles[every, every]]
    if highlight is not None:
        colours = palette.mix(colours, palette.HIGHLIGHT, highlight[every, every] * ~wall)
    if not outlined:
        colours = palette.mix(colours, palette.EXACT_PATH, np.float32(0.5) * exact[0])
    colours = palette.mix(colours, palette.PATH, weights[0] * ~wall)
    colours = palette.mix(colours, palette.PATH_ON_WALL, weights[0] * wall)
    area = frame[panel.area]
    fill(area, np.rint(colours).astype(np.uint8), cell)
    grid = area.reshape(*wall.shape[:1], cell, wall.shape[1], cell, 3).swapaxes(1, 2)  # (H, W, cell, cell, 3)
    if outlined:
        predicted = shown[0] > 0
        if cell >= _SMALLEST_GRID:  # thin lines between empty tiles
            empty = ~(wall | predicted)
            grid[empty, 0] = grid[empty, :, 0] = palette.GRID
        mistaken, rim = wall & predicted, -(-cell // 6)  # a black rim, so that a path on a wall does not look free
        for strip in (slice(0, rim), slice(-rim, None)):
            grid[mistaken, strip] = grid[mistaken, :, strip] = palette.WALL
        # Within each tile of the exact path, its sides and corners towards tiles that are not on it.
        thickness, padded, (rows, cols) = min(-(-cell // 8), 3), np.pad(exact[0], 1), wall.shape
        strips = {-1: slice(0, thickness), 0: slice(None), 1: slice(-thickness, None)}
        for down, right in product((-1, 0, 1), repeat=2):
            neighbour = padded[1 + down : 1 + down + rows, 1 + right : 1 + right + cols]
            grid[exact[0] & ~neighbour, strips[down], strips[right]] = palette.EXACT_PATH
    for layer in range(1, len(shown)):  # a square within each predicted tile, and a ring where it should be
        inset, on = layer * cell // (2 * len(shown)), weights[layer] > 0
        squares, side = grid[:, :, inset : cell - inset, inset : cell - inset], cell - 2 * inset
        colour = palette.FURTHER[(layer - 1) % len(palette.FURTHER)]
        squares[on] = np.rint(palette.mix(squares[on].astype(np.float32), colour, weights[layer][on, None, None]))
        thickness = min(-(-side // 8), 3)
        for strip in (slice(0, thickness), slice(-thickness, None)) if side >= _SMALLEST_RING else ():
            squares[exact[layer], strip] = squares[exact[layer], :, strip] = palette.EXACT_PATH
    draw_ends(frame, panel, tiles, overhang, kinds)


def draw_ends(frame: Frame, panel: Panel, tiles: Tiles, overhang: int, kinds: tuple[Kind, ...] = KINDS) -> None:
    """Draw the sources and targets of (H, W) tiles; the arguments are the same as for `draw_maze`."""
    area, cell = frame[panel.area], panel.cell
    for tile in (end for end in (Tile.SOURCE, Tile.TARGET) if kinds[end : end + 1] == KINDS[end : end + 1]):
        for row, col in np.argwhere(tiles == tile) // panel.stride * cell:
            size = max(round(cell * 0.74), min(_READABLE_MARKER, cell + overhang))
            top, left, marker = row + (cell - size) // 2, col + (cell - size) // 2, _marker(tile, size)
            marker = marker[max(0, -top) :, max(0, -left) :]  # what lies outside of the maze is cut off
            pixels = area[max(0, top) :, max(0, left) :][: marker.shape[0], : marker.shape[1]]
            marker = marker[: pixels.shape[0], : pixels.shape[1]].astype(np.uint16)
            colour, weight = marker[..., :3], marker[..., 3:]
            pixels[...] = (pixels * (255 - weight) + colour * weight) // 255


def fill(area: Frame, colours: Frame, cell: int) -> None:
    """Paint (H, W, 3) colours into (H * cell, W * cell, 3) pixels, each colour into a square of cell x cell pixels."""
    rows, cols = colours.shape[:2]
    area.reshape(rows, cell, cols * cell * 3)[...] = np.repeat(colours, cell, axis=1).reshape(rows, 1, -1)


@lru_cache(maxsize=64)
def _marker(tile: Tile, size: int) -> Frame:
    """Return the marker of a source, a blue disc with an S, or of a target, a green square with a T: (size, size, 4)
    uint8.

    The last number of a pixel is the coverage. The marker has a white rim. A marker that is too small for a letter has
    no rim, and a marker that is too small for a shape is a blue or green square.
    """
    fine = 8
    image = Image.new("RGBA", (size * fine, size * fine), (*palette.PAPER, 0))
    draw = ImageDraw.Draw(image)
    box = (0, 0, size * fine - 1, size * fine - 1)
    rim = fine if size >= 10 else 0
    if size < _SMALLEST_RING:
        draw.rectangle(box, fill=palette.SOURCE if tile is Tile.SOURCE else palette.TARGET)
    elif tile is Tile.SOURCE:
        draw.ellipse(box, fill=palette.SOURCE, outline=palette.PAPER, width=rim)
    else:
        draw.rounded_rectangle(box, size * fine // 6, fill=palette.TARGET, outline=palette.PAPER, width=rim)
    if size >= 10:
        middle = size * fine / 2
        letter = "S" if tile is Tile.SOURCE else "T"
        draw.text((middle, middle), letter, palette.PAPER, font(round(size * fine * 0.72)), anchor="mm")
    return np.asarray(image.resize((size, size), Image.Resampling.BOX))


def names_of(channel_names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel: the given names, then numbers.

    Raises:
        ValueError: more names than channels.
    """
    names = ("path",) if channel_names is None else tuple(channel_names)
    if len(names) > n_channels:
        raise ValueError(f"got {len(names)} channel names for {n_channels} channels")
    return names + tuple(f"ch {index}" for index in range(len(names), n_channels))


@lru_cache(maxsize=1024)
def name_lines(name: str) -> tuple[str, ...]:
    """Return a name on one line, or on two lines if it is long, broken at an underscore or a space if possible."""
    if text_width(name, NAME_SIZE) <= _BROAD:
        return (name,)
    ends = [at + 1 for at, letter in enumerate(name) if letter in "_ "] or range(1, len(name))
    middle = min(ends, key=lambda at: max(len(name[:at]), len(name[at:])))
    return name[:middle], name[middle:]


@lru_cache(maxsize=64)
def caption_of(names: tuple[str, ...]) -> Caption:
    """Return the height and width that the names and bounds above heat maps need."""
    lines = [name_lines(name) for name in names]
    widest = max(text_width(line, NAME_SIZE) for parts in lines for line in parts)
    width = max(min(widest, _BROADEST), text_width(_BOUNDS, BOUNDS_SIZE))
    height = max(map(len, lines)) * text_height(NAME_SIZE) + text_height(BOUNDS_SIZE)
    return Caption(height, width)


def bounds(channels: NDArray[np.float32]) -> list[str]:
    """Return the range of each channel's values including 0, such as "0 to 57"; "0" if all are 0.

    Args:
        channels: (C, H, W) float32, any value; NaN is ignored.
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


def draw_heat(frame: Frame, panels: Sequence[Panel], values: NDArray[np.float32], walls: NDArray[np.bool_]) -> None:
    """Draw (C, H, W) float32 channels into their panels of a frame, dimmed at the (H, W) bool walls."""
    every = slice(None, None, panels[0].stride)
    colours = palette.heat_colours(values, walls)[:, every, every]  # of all at once, which is faster
    for panel, of_channel in zip(panels, colours, strict=True):
        fill(frame[panel.area], of_channel, panel.cell)


def draw_name(frame: Frame, panel: Panel, name: str, caption: Caption, marked: bool = False) -> None:
    """Draw a line around a heat map, and its name above it.

    Args:
        frame: (h, w, 3) uint8, drawn on in place.
        panel: the panel of the heat map.
        name: the channel's name.
        caption: the space above every heat map; a line of the name may have its width.
        marked: whether the channel is selected.
    """
    outline(frame, panel.box, palette.STRONG if marked else palette.RULE)
    top = panel.top - text_height(BOUNDS_SIZE)
    for line in reversed(name_lines(name)):
        top -= text_height(NAME_SIZE)
        line = shorten(line, NAME_SIZE, max(panel.width, caption.width))
        put_text(frame, top, panel.left, line, NAME_SIZE, palette.STRONG if marked else palette.INK)


def draw_channels(frame: Frame, layout: Layout, channels: NDArray[np.float32], walls: NDArray[np.bool_]) -> None:
    """Draw the heat maps of a layout, and the bounds of each channel above its heat map.

    Args:
        frame: (h, w, 3) uint8, drawn on in place.
        layout: the layout, with at least one heat map.
        channels: (C, H, W) float32.
        walls: (H, W) bool.
    """
    shown, panels = zip(*layout.channels, strict=True)
    values = channels[shown[0] : shown[-1] + 1]
    draw_heat(frame, panels, values, walls)
    for panel, text in zip(panels, bounds(values), strict=True):
        put_text(frame, panel.top - text_height(BOUNDS_SIZE), panel.left, text, BOUNDS_SIZE, palette.FAINT_INK)


def draw_maze_key(
    frame: Frame, top: int, kinds: tuple[Kind, ...], tinted: str | None, answers: tuple[str, ...] = ("path",)
) -> None:
    """Draw the key: a sample tile and a label for each item that the maze shows, as long as there is room.

    Args:
        frame: (h, w, 3) uint8, drawn on in place.
        top: pixel row where the key begins.
        kinds: the kinds of tile of the level.
        tinted: name of the channel that tints the maze, or None for no tint.
        answers: names of the channels of an answer.
    """
    n, none, ramp = len(answers), np.zeros((len(answers), 1, 1), np.float32), np.array([[0, 0.5, 1]], np.float32)
    # label, kind of tile, predictions, whether it is exact, tints: of a row of one tile or three
    entries = [(kind.name, tile, none, False, none[0]) for tile, kind in enumerate(kinds) if tile >= Tile.SOURCE]
    for layer, label in enumerate(answers if n > 1 else ("predicted path, 0 to 1",)):
        paths = np.zeros((n, 1, 3), np.float32)
        paths[layer] = ramp
        entries.append((label, Tile.EMPTY, paths, False, 0 * ramp))
    if tinted is not None:
        entries.append((tinted, Tile.EMPTY, np.zeros((n, 1, 3), np.float32), False, ramp))
    entries.append(("exact path" if n == 1 else "exact", Tile.EMPTY, none, True, none[0]))
    entries.append(("wall", Tile.WALL, none, False, none[0]))
    left = MARGIN
    for label, tile, paths, exact, tints in entries:
        panel = Panel(top, left, 1, tints.shape[1], _SWATCH)
        left += panel.width + _WORD_GAP + text_width(label, _KEY_TEXT) + _ENTRY_GAP
        if left > frame.shape[1]:
            left = panel.left
            continue
        draw_maze(
            frame, panel, np.full(tints.shape, tile, np.uint8), paths, np.full(paths.shape, exact), 0, tints, kinds
        )
        outline(frame, panel.box, palette.RULE)
        put_text(frame, top + 1, panel.left + panel.width + _WORD_GAP, label, _KEY_TEXT)
