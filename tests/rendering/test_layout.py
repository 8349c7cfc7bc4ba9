"""Layouts of frames and of the window: nothing overlaps, and the pixels determine every element."""

from __future__ import annotations

import time
from itertools import combinations, product

import numpy as np
from tables import for_each, refused

from maze_nca_gym.rendering.layout import (
    EDGE,
    WINDOW_HEADER,
    Box,
    Caption,
    Layout,
    Panel,
    frame_layout,
    menu_layout,
    window_layout,
)

CAPTION = Caption(30, 80)
BUTTONS = (90, 50, 60, 50, 60, 70, 85, 60, 55, 90, 70, 80, 50, 65, 50)
SHAPES = [(18, 18, 11), (66, 66, 31), (18, 18, 75), (1, 1, 1), (1, 40, 11), (40, 1, 75), (900, 3, 2), (12, 30, 64)]
WINDOWS = [(1, 1), (240, 320), (620, 800), (900, 500), (950, 1500), (1400, 2500)]
WINDOW = (900, 1440)


def window(
    shape: tuple[int, int, int] = (18, 18, 11), size: tuple[int, int] = WINDOW, show: bool = True, row: int = 0
) -> Layout:
    return window_layout(size, *shape, show, row, CAPTION, BUTTONS)


def assert_apart(layout: Layout, top: int) -> None:
    """Check that maze, heat maps with captions, buttons and scrollbar lie side by side between a row and the footer."""
    boxes = [layout.maze.box, *layout.buttons, *([layout.scrollbar] if layout.scrollbar else [])]
    room = layout.caption
    for _, panel in layout.channels:
        width = max(panel.width, room.width)
        boxes.append(Box(panel.top - room.height, panel.left, panel.height + room.height, width))
    for box in boxes:
        assert top <= box.top < box.top + box.height <= layout.footer
        assert 0 <= box.left < box.left + box.width <= layout.canvas[1]
    for one, other in combinations(boxes, 2):
        along_axes = zip(one.area, other.area, strict=True)
        assert any(a.stop <= b.start or b.stop <= a.start for a, b in along_axes)


class TestFrame:
    @for_each("caption", [Caption(), Caption(44, 150)])
    @for_each("size", [None, (1, 1), (240, 320), (900, 420), (620, 800), (1080, 1920)])
    @for_each("shape", SHAPES)
    def test_nothing_overlaps_or_leaves_the_canvas(
        self, shape: tuple[int, int, int], size: tuple[int, int] | None, caption: Caption
    ) -> None:
        layout = frame_layout(*shape, size=size, caption=caption)
        assert len(layout.channels) in (0, shape[2])
        assert_apart(layout, top=1)

    @for_each("shape", SHAPES)
    def test_default_size_is_even_and_fit_for_video(self, shape: tuple[int, int, int]) -> None:
        layout = frame_layout(*shape)
        height, width = layout.canvas
        assert height % 2 == width % 2 == 0
        assert 1140 <= width <= 1400
        assert height <= 1100
        assert layout.channels

    @for_each(("shape", "maze", "channel"), [((18, 18, 11), 24, 8), ((18, 18, 31), 24, 5), ((66, 66, 31), 7, 2)])
    def test_default_is_readable(self, shape: tuple[int, int, int], maze: int, channel: int) -> None:
        layout = frame_layout(*shape)
        assert layout.maze.cell >= maze
        assert all(panel.cell >= channel for _, panel in layout.channels)

    def test_channels_can_be_hidden_and_are_omitted_in_a_tiny_frame(self) -> None:
        layout = frame_layout(18, 18, 11, show_channels=False)
        assert layout.channels == frame_layout(18, 18, 300, size=(150, 200)).channels == ()
        assert layout.canvas[1] < 1140

    def test_a_maze_larger_than_the_frame_is_strided(self) -> None:
        maze = frame_layout(2000, 1500, 1, size=(400, 600)).maze
        assert maze.cell == 1 < maze.stride
        assert maze.height <= 400
        assert maze.tile_at(maze.top, maze.left) == (0, 0)

    def test_a_size_without_pixels_is_refused(self) -> None:
        refused(r"at least 1 x 1 pixels, got \(0, 300\)", frame_layout, 5, 5, 1, size=(0, 300))

    @for_each("shape", [(100_001, 3), (3, 100_001), (5000, 5000)])
    def test_a_huge_maze_is_laid_out_at_once(self, shape: tuple[int, int]) -> None:
        start = time.perf_counter()
        layout = frame_layout(*shape, 11)
        assert time.perf_counter() - start < 10  # usually about a second
        assert layout.maze.height <= 1100
        assert layout.maze.width <= 1400


class TestWindow:
    @for_each("size", WINDOWS)
    @for_each("shape", SHAPES)
    def test_every_size_can_be_laid_out_and_nothing_overlaps(
        self, shape: tuple[int, int, int], size: tuple[int, int]
    ) -> None:
        layout = window(shape, size)
        assert np.all(np.array(layout.canvas) >= size)
        assert layout.maze.cell >= 1
        if size in WINDOWS[2:]:  # smaller windows cut boxes off
            assert_apart(layout, WINDOW_HEADER)

    @for_each("side", [18, 34, 101])
    def test_the_maze_fills_the_window(self, side: int) -> None:
        """A larger cell would not fit between header and buttons."""
        layout = window((side, side, 11), (972, 1728))
        room = layout.buttons[0].top - WINDOW_HEADER
        assert layout.maze.height + side > room - 12
        assert layout.maze.height > 0.85 * room

    def test_scrolling_shows_all_75_channels(self) -> None:
        shape = (18, 18, 75)
        last_row, visible = window(shape).last_row, set()
        assert last_row > 0
        for row in range(last_row + 1):
            layout = window(shape, row=row)
            visible |= {channel for channel, _ in layout.channels}
            assert layout.scrollbar is not None
            assert layout.thumb is not None
            assert layout.scrollbar.holds(layout.thumb.top, layout.thumb.left)
            assert layout.thumb.top + layout.thumb.height <= layout.scrollbar.top + layout.scrollbar.height
        assert visible == set(range(75))
        assert window(shape, row=999).channels == window(shape, row=last_row).channels

    def test_few_channels_are_larger_and_need_no_scrolling(self) -> None:
        few, many = window((18, 18, 4)), window((18, 18, 75))
        assert (few.last_row, few.scrollbar) == (0, None)
        assert few.channels[0][1].cell > 2 * many.channels[0][1].cell

    def test_channels_are_omitted_in_a_small_window_or_if_hidden(self) -> None:
        assert window(size=(300, 260)).channels == window(show=False).channels == ()

    @for_each(("width", "n_rows"), [(1200, 1), (1100, 1), (1000, 2), (700, 2), (400, 3), (60, 15)])
    def test_rows_of_buttons_are_few_and_similar_in_length(self, width: int, n_rows: int) -> None:
        """Fifteen buttons of 64 pixels need 1,072 pixels with the gaps and edges."""
        buttons = window_layout((900, width), 18, 18, 4, True, 0, Caption(), (64,) * 15).buttons
        rows = [[box for box in buttons if box.top == top] for top in sorted({box.top for box in buttons})]
        assert [box for row in rows for box in row] == list(buttons)
        assert len(rows) == n_rows
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
        assert all(row[0].left == EDGE for row in rows)

    def test_a_pixel_belongs_to_one_thing(self) -> None:
        layout = window()
        for channel, panel in layout.channels:
            for top in (panel.top + 1, panel.top - 5):
                assert layout.channel_at(top, panel.left + 1) == channel
                assert layout.maze.tile_at(top, panel.left + 1) is None
        for index, box in enumerate(layout.buttons):
            assert layout.button_at(box.top, box.left) == index
            assert layout.button_at(box.top - 1, box.left) is None
        assert layout.channel_at(layout.maze.top, layout.maze.left) is None


@for_each(("size", "n"), [(WINDOW, 6), (WINDOW, 24), ((300, 800), 24), ((100, 100), 3)])
def test_a_list_has_room_for_every_name(size: tuple[int, int], n: int) -> None:
    card, entries = menu_layout(size, n, 120)
    assert len(set(entries)) == n
    for entry in entries:
        assert card.holds(entry.top, entry.left)
        assert card.holds(entry.top + entry.height - 1, entry.left + entry.width - 1)
    assert not any(one.holds(other.top, other.left) for one, other in combinations(entries, 2))


def test_pixels_of_panels_and_boxes_belong_to_one_tile() -> None:
    panel, pixels = Panel(top=10, left=20, rows=2, cols=3, cell=4), list(product(range(30), range(40)))
    inside = {(row, col) for row in range(10, 18) for col in range(20, 32)}
    assert {pixel for pixel in pixels if panel.box.holds(*pixel)} == inside
    assert panel.box.grown(1) == Box(9, 19, 10, 14)
    for row, col in pixels:
        assert panel.tile_at(row, col) == (((row - 10) // 4, (col - 20) // 4) if (row, col) in inside else None)
