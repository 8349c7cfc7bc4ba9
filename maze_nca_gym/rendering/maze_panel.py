"""The maze of a frame: tiles, the predicted path, the outline of the exact path, source and target."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from maze_nca_gym.levels import Tile, Tiles
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.layout import Panel
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.text import font

_READABLE_MARKER = 15
"""Pixels of a source's or target's marker with a readable letter."""
_SMALLEST_RING = 4
"""Pixels of a tile from which on the exact path is an outline; below, its tiles are tinted."""
_SMALLEST_GRID = 12
"""Pixels of a tile from which on thin lines part the empty tiles."""


def draw_maze(
    area: Frame,
    panel: Panel,
    tiles: Tiles,
    path: NDArray[np.float32],
    solution: NDArray[np.bool_],
    overhang: int = 0,
    front: NDArray[np.float32] | None = None,
) -> None:
    """Draw a maze into its panel's pixels, in place.

    Args:
        area: (panel.height, panel.width, 3) uint8, the panel's part of a frame.
        panel: the scale; its place does not matter here.
        tiles: (H, W) uint8.
        path: (H, W) prediction, shown from 0 (no path) to 1.
        solution: (H, W) bool, the exact path, outlined.
        overhang: pixels by which source's and target's markers may be larger than a small tile, to be found.
        front: (H, W) how strongly free tiles are tinted, from 0 to 1; None for no tint.
    """
    every, cell = slice(None, None, panel.stride), panel.cell
    wall, path, solution = tiles[every, every] == Tile.WALL, path[every, every], solution[every, every]
    outlined = cell >= _SMALLEST_RING
    tint = np.zeros(wall.shape, np.float32) if front is None else front[every, every]
    fill(area, _tile_colours(wall, path, solution & (not outlined), tint), cell)
    if outlined:
        grid = _by_tile(area, cell)
        _draw_lines(grid, wall, path > 0)
        _draw_outline(grid, solution, min(-(-cell // 8), 3))
    draw_ends(area, panel, tiles, overhang)


def draw_ends(area: Frame, panel: Panel, tiles: Tiles, overhang: int = 0) -> None:
    """Draw source and target into a maze's pixels, in place.

    Args:
        area: (panel.height, panel.width, 3) uint8, the panel's part of a frame.
        panel: the scale; its place does not matter here.
        tiles: (H, W) uint8.
        overhang: pixels by which the markers may be larger than a small tile, to be found.
    """
    cell = panel.cell
    for tile in (Tile.SOURCE, Tile.TARGET):
        for row, col in np.argwhere(tiles == tile) // panel.stride * cell:
            size = max(round(cell * 0.74), min(_READABLE_MARKER, cell + overhang))
            _put_marker(area, _marker(tile, size), row + (cell - size) // 2, col + (cell - size) // 2)


def _tile_colours(
    wall: NDArray[np.bool_], path: NDArray[np.float32], tinted: NDArray[np.bool_], front: NDArray[np.float32]
) -> Frame:
    """Return (H, W, 3) colours of tiles under the predicted path; `tinted` tiles show a pale exact path."""
    weight = np.clip(np.nan_to_num(path), 0, 1)
    base = np.where(wall[..., None], palette.WALL, palette.EMPTY).astype(np.float32)
    base = palette.mix(base, palette.FRONT, front * ~wall)
    base = palette.mix(base, palette.EXACT_PATH, np.float32(0.5) * tinted)
    colours = palette.mix(base, palette.PATH, weight * ~wall)
    return np.rint(palette.mix(colours, palette.PATH_ON_WALL, weight * wall)).astype(np.uint8)


def fill(area: Frame, colours: Frame, cell: int) -> None:
    """Paint (H, W, 3) colours into (H * cell, W * cell, 3) pixels, copying whole pixel rows for speed."""
    rows, cols = colours.shape[:2]
    area.reshape(rows, cell, cols * cell * 3)[...] = np.repeat(colours, cell, axis=1).reshape(rows, 1, -1)


def _by_tile(area: Frame, cell: int) -> Frame:
    """Return (H * cell, W * cell, 3) pixels as an (H, W, cell, cell, 3) view."""
    height, width, _ = area.shape
    return area.reshape(height // cell, cell, width // cell, cell, 3).swapaxes(1, 2)


def _draw_lines(grid: Frame, wall: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> None:
    """Thin lines between blank tiles, and black around a path on a wall, which is no free tile."""
    cell = grid.shape[2]
    if cell >= _SMALLEST_GRID:
        blank = ~(wall | predicted)
        grid[blank, 0] = grid[blank, :, 0] = palette.GRID
    mistaken, rim = wall & predicted, -(-cell // 6)
    for strip in (slice(0, rim), slice(-rim, None)):
        grid[mistaken, strip] = grid[mistaken, :, strip] = palette.WALL


def _draw_outline(grid: Frame, inside: NDArray[np.bool_], thickness: int) -> None:
    """Outline a set of tiles, inside it: each tile's sides and corners towards tiles that are not in it."""
    padded = np.pad(inside, 1)
    strip = {-1: slice(0, thickness), 0: slice(None), 1: slice(-thickness, None)}
    rows, cols = inside.shape
    for down, right in product((-1, 0, 1), repeat=2):
        neighbour = padded[1 + down : 1 + down + rows, 1 + right : 1 + right + cols]
        grid[inside & ~neighbour, strip[down], strip[right]] = palette.EXACT_PATH


def _put_marker(area: Frame, marker: Frame, top: int, left: int) -> None:
    """Blend a marker into the maze; what lies outside is cut off."""
    marker = marker[max(0, -top) :, max(0, -left) :]
    pixels = area[max(0, top) :, max(0, left) :][: marker.shape[0], : marker.shape[1]]
    marker = marker[: pixels.shape[0], : pixels.shape[1]].astype(np.uint16)
    colour, weight = marker[..., :3], marker[..., 3:]
    pixels[...] = (pixels * (255 - weight) + colour * weight) // 255


@lru_cache(maxsize=64)
def _marker(tile: Tile, size: int) -> Frame:
    """Return (size, size, 4) uint8 with coverage: blue disc with an S or green square with a T, rimmed in white.

    A marker too small for a letter has no rim, and one too small for a shape is a blue or green square.
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
