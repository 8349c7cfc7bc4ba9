"""Pictures of a level and of an automaton's state, with the text around them: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maze_nca_gym.mazes.levels import KINDS, Kind, Tile, Tiles, as_tiles
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.files import as_frame
from maze_nca_gym.rendering.layout import HEADER, KEY_LINE, MARGIN, Layout, Panel, frame_layout
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.panels import (
    OVERHANG,
    blank,
    caption_of,
    draw_channels,
    draw_maze,
    draw_maze_key,
    draw_name,
    names_of,
    outline,
)
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width
from maze_nca_gym.support.arrays import as_array, is_sequence
from maze_nca_gym.support.names import is_integer

_TITLE, _STATUS, _TEXT, _SMALL = 22, 18, 14, 12
_GAP = 20
_BAR_LABEL = "each channel"
_BAR_WIDTH, _BAR_HEIGHT = 160, 12
_TICKS = ("lowest", "0", "highest")
_PALEST = 0.25
"""Strength of the tint of the smallest magnitude that is not near zero."""


@dataclass(frozen=True)
class Snapshot:
    """One step of an automaton on a level, with the texts of its picture.

    Attributes:
        tiles: (H, W) `Tile` values.
        channels: (C, H, W), any float; channel 0 is the predicted path, clipped to [0, 1] in the maze.
        target: (H, W) bool, the exact solution; or (K, H, W), and then the first K channels are predictions.
        channel_names: names of the first channels; the others are numbered.
        step: number of iterations of the automaton so far.
        accuracy: the accuracy of the prediction, at most 1; NaN if the level has no solution.
        title: a line above the maze, shortened if it is too long.
        highlight: number of the channel that tints the maze's free tiles, on a scale that ends at its largest
            magnitude, or None for no tint.
        verdict: a few words about the path, which the window shows; empty for none.
        solved: whether the level is solved, which decides the colour of the verdict.
        kinds: the kinds of tile, as in the level's task.

    Raises:
        ValueError: invalid tiles, shapes that do not match, more names than channels, or a highlight that is not the
            number of a channel.
    """

    tiles: Tiles
    channels: NDArray[np.float32]
    target: NDArray[np.bool_]
    channel_names: Sequence[str] | None = None
    step: int = 0
    accuracy: float = 0.0
    title: str = ""
    highlight: int | None = None
    verdict: str = ""
    solved: bool = False
    kinds: tuple[Kind, ...] = KINDS

    def __post_init__(self) -> None:
        tiles = as_tiles(self.tiles, ndim=(2,), n_kinds=max(len(Tile), len(self.kinds)))
        channels, target = as_array(self.channels, "channels", np.float32), as_array(self.target, "target", np.bool_)
        if channels.ndim != 3 or not len(channels) or channels.shape[1:] != tiles.shape:
            raise ValueError(f"channels must have shape (C, {tiles.shape[0]}, {tiles.shape[1]}), got {channels.shape}")
        if target.shape[-2:] != tiles.shape or target.shape[:-2] not in {
            (),
            *((k,) for k in range(1, len(channels) + 1)),
        }:
            raise ValueError(f"target must have the tiles' shape {tiles.shape}, got {target.shape}")
        if self.highlight is not None and not 0 <= self.highlight < len(channels):
            raise ValueError(f"highlight must be a channel from 0 to {len(channels) - 1}, got {self.highlight}")
        for name, array in (("tiles", tiles), ("channels", channels), ("target", target)):
            object.__setattr__(self, name, array)  # the only way in a frozen dataclass
        names_of(self.channel_names, len(channels))

    def copy(self) -> Snapshot:
        """Return a copy with its own arrays."""
        return replace(self, tiles=self.tiles.copy(), channels=self.channels.copy(), target=self.target.copy())

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return self.tiles.nbytes + self.channels.nbytes + self.target.nbytes

    @property
    def names(self) -> tuple[str, ...]:
        """One name per channel."""
        return names_of(self.channel_names, len(self.channels))

    @property
    def predicted(self) -> NDArray[np.float32]:
        """The channels with the predicted answer, (H, W) or (K, H, W) like the target."""
        return self.channels[0] if self.target.ndim == 2 else self.channels[: len(self.target)]

    @property
    def answers(self) -> tuple[str, ...]:
        """Names of the channels with the predicted answer."""
        return self.names[: 1 if self.target.ndim == 2 else len(self.target)]

    @property
    def shown_kinds(self) -> tuple[Kind, ...]:
        """The kinds of tile that the key explains; source and target are left out if the level has neither."""
        return KINDS[:2] if self.kinds == KINDS and not (self.tiles >= Tile.SOURCE).any() else self.kinds

    @property
    def tinted_by(self) -> str | None:
        """Name of the channel that tints the maze, or None for no tint."""
        return None if self.highlight is None else self.names[self.highlight]

    @property
    def tint(self) -> NDArray[np.float32] | None:
        """The strength of each free tile's tint, (H, W) float32 from 0 to 1, or None for no tint.

        The smallest magnitude above zero gets a pale tint, and larger magnitudes are spread linearly, so that large
        numbers that differ little can be distinguished. Zero and NaN get no tint.
        """
        if self.highlight is None:
            return None
        values = self.channels[self.highlight]
        magnitude = np.minimum(np.abs(np.nan_to_num(values)), palette.peaks(values)[0, 0])
        inked = magnitude[magnitude > 0]
        if not len(inked) or inked.min() == inked.max():
            return (magnitude > 0).astype(np.float32)
        least, most = inked.min(), inked.max()
        pale = min(_PALEST, least / most)
        return np.where(magnitude > 0, pale + (1 - pale) * (magnitude - least) / (most - least), 0).astype(np.float32)

    def draw(self, show_channels: bool = True, size: tuple[int, int] | None = None) -> Frame:
        """Return a picture of the maze with the predicted and the exact path, and of every channel as a heat map.

        The prediction is blue, stronger for larger values (on a wall: a square inside the black). The exact path is
        outlined in orange. Each heat map has its own scale, white at 0, with its bounds written above it.

        Args:
            show_channels: whether to draw the heat maps; they are also left out if the frame is too small for them.
            size: (height, width) of the frame in pixels, or None for the default of `layout.frame_layout`.

        Returns:
            (h, w, 3) uint8; the shape depends on H, W, C, the channels' names, `show_channels` and `size` alone.

        Raises:
            ValueError: a size without pixels.
        """
        (rows, cols), names = self.tiles.shape, self.names
        layout = frame_layout(rows, cols, len(self.channels), show_channels, size, caption_of(names))
        frame = _background(layout, names, self.shown_kinds, self.tinted_by, len(self.answers)).copy()
        draw_maze(frame, layout.maze, self.tiles, self.predicted, self.target, OVERHANG, self.tint, self.kinds)
        draw_header(frame, self, self.title, HEADER, MARGIN, (_TITLE, _STATUS))
        if layout.channels:
            draw_channels(frame, layout, self.channels, self.tiles == Tile.WALL)
        height, width = layout.canvas if size is None else size
        return np.ascontiguousarray(frame[:height, :width])


def draw_level(
    tiles: ArrayLike,
    path: ArrayLike | None = None,
    cell: int = 16,
    solution: ArrayLike | None = None,
    overhang: int = 0,
    kinds: tuple[Kind, ...] = KINDS,
) -> Frame:
    """Return a picture of a level alone.

    Args:
        tiles: (H, W) `Tile` values.
        path: (H, W) or (K, H, W), a solution (bool) or a prediction (clipped to [0, 1]), drawn in blue, with further
            channels in other colours within the tiles.
        cell: pixels along a tile's side.
        solution: bool of that shape, the exact path, outlined in orange.
        overhang: pixels by which the markers of source and target may exceed a small tile, so that they stay visible.
        kinds: the kinds of tile, as in the level's task.

    Returns:
        (H * cell, W * cell, 3) uint8.

    Raises:
        ValueError: tiles that are not a level, a path or solution of another shape, or a cell without pixels.
    """
    tiles = as_tiles(tiles, ndim=(2,), n_kinds=max(len(Tile), len(kinds)))
    layers = {"path": path, "solution": solution}
    shapes = {name: np.shape(array) for name, array in layers.items() if array is not None}
    shape = next(iter(shapes.values()), tiles.shape)
    for name, own in shapes.items():
        if own[-2:] != tiles.shape or own != shape or len(own) > 3:
            raise ValueError(f"{name} must have the tiles' shape {tiles.shape}, got {own}")
    values = np.zeros(shape, np.float32) if path is None else as_array(path, "path", np.float32)
    exact = np.zeros(shape, np.bool_) if solution is None else as_array(solution, "solution", np.bool_)
    if cell < 1:
        raise ValueError(f"cell must be at least 1 pixel, got {cell}")
    rows, cols = tiles.shape
    panel = Panel(0, 0, rows, cols, cell)
    frame = np.empty((panel.height, panel.width, 3), dtype=np.uint8)
    draw_maze(frame, panel, tiles, values, exact, overhang, kinds=kinds)
    return frame


def captioned(picture: Frame, left: str, right: str = "", size: int = 14, margin: int = 0) -> Frame:
    """Return an (h, w, 3) uint8 picture with a line of text above it.

    Args:
        picture: (h, w, 3) uint8.
        left: text at the left edge of the line.
        right: text at the right edge, paler and no larger than 14 pixels.
        size: the font's size in pixels.
        margin: pixels between the line and the edges, like the gap around the pictures of a sheet.
    """
    room, small = blank(margin + text_height(size) + 2, picture.shape[1]), min(size, _TEXT)
    put_text(room, margin, margin, left, size)
    put_text(room, margin + size - small, room.shape[1] - margin, right, small, palette.FAINT_INK, "right")
    return np.concatenate([room, picture])


def contact_sheet(frames: Sequence[Frame], columns: int, gap: int = 16) -> Frame:
    """Return one (h, w, 3) uint8 picture with several pictures in rows, each in the middle of its cell, on white.

    Args:
        frames: at least one (h, w, 3) uint8 picture; the sizes may differ.
        columns: number of pictures in a row.
        gap: pixels around and between the pictures.

    Raises:
        ValueError: no picture, or less than one column.
    """
    n = len(frames) if is_sequence(frames) else 0
    if not n or not is_integer(columns, 1):
        raise ValueError(f"a contact sheet needs at least one frame and one column, got {n} and {columns}")
    frames = [as_frame(frame) for frame in frames]
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


@lru_cache(maxsize=8)
def _background(
    layout: Layout, names: tuple[str, ...], kinds: tuple[Kind, ...], tinted: str | None, n_answers: int
) -> Frame:
    """Return the part that all frames of an episode share; callers copy the array and never draw on it."""
    frame = blank(*layout.canvas)
    for channel, panel in layout.channels:
        draw_name(frame, panel, names[channel], layout.caption)
    right = frame.shape[1]
    if layout.channels:  # the shades of every heat map's scale, beside the maze's key or on a line of their own
        top = layout.footer + KEY_LINE * (layout.key_lines - 1)
        label_width = text_width(_BAR_LABEL, _TEXT) + _GAP
        left = MARGIN
        if layout.key_lines == 1:
            right = left = right - MARGIN - label_width - _BAR_WIDTH - text_width(_TICKS[-1], _SMALL) // 2
        put_text(frame, top - 3, left, _BAR_LABEL, _TEXT)
        left += label_width
        bar = Panel(top, left, _BAR_HEIGHT, min(_BAR_WIDTH, frame.shape[1] - MARGIN - left), 1)  # shorter if narrow
        if bar.cols > 1:
            values = np.linspace(-1, 1, bar.width, dtype=np.float32)
            frame[bar.area] = palette.heat_colours(values[None], np.zeros((1, bar.width), dtype=bool))
            outline(frame, bar.box, palette.RULE)
            for part, label in enumerate(_TICKS):
                col = left + part * (bar.width - 1) // (len(_TICKS) - 1)
                frame[top + _BAR_HEIGHT : top + _BAR_HEIGHT + 4, col] = palette.FAINT_INK
                put_text(frame, top + _BAR_HEIGHT + 4, col, label, _SMALL, palette.FAINT_INK, "centre")
    draw_maze_key(frame[:, :right], layout.footer, kinds, tinted, names[:n_answers])
    return frame


def draw_header(
    frame: Frame, snapshot: Snapshot, title: str, height: int, margin: int, sizes: tuple[int, int], verdict: str = ""
) -> None:
    """Draw a title on the left, and step, accuracy and verdict on the right, in places that do not depend on their
    digits.

    Args:
        frame: (h, w, 3) uint8, drawn on in place.
        snapshot: the step.
        title: the title, shortened if it is too long.
        height: pixels of the header.
        margin: pixels on both sides, and between the items on the right.
        sizes: text sizes of the title and of the other items, in pixels.
        verdict: a few words; empty for none.
    """
    of_title, size = sizes
    top, right = (height - text_height(of_title)) // 2, frame.shape[1] - margin
    base = top + of_title - size
    accuracy = "-" if np.isnan(snapshot.accuracy) else f"{round(snapshot.accuracy, 3) + 0.0:.3f}"  # no -0
    facts = [("accuracy", accuracy, "-00.000", palette.INK), ("step", f"{snapshot.step:,}", "00000", palette.INK)]
    if verdict:
        facts.insert(0, ("", verdict, verdict, palette.TARGET if snapshot.solved else palette.EXACT_PATH))
    for label, value, widest, colour in facts:
        put_text(frame, base, right, value, size, colour, "right")
        right -= max(text_width(widest, size), text_width(value, size)) + text_width(" ", size)
        put_text(frame, base, right, label, size, palette.FAINT_INK, "right")
        right -= text_width(label, size) + margin
    put_text(frame, top, margin, shorten(title, of_title, max(0, right - margin)), of_title)
