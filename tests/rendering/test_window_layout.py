from __future__ import annotations

from itertools import combinations

from tables import for_each

from maze_nca_gym.rendering.layout import WINDOW_HEADER, Box, Caption, Layout, Panel, menu_layout, window_layout

CAPTION = Caption(30, 80)
BUTTONS = (90, 50, 60, 50, 60, 70, 85, 60, 55, 90, 70, 80, 50, 65, 50)
SHAPES = [(18, 18, 11), (34, 34, 41), (101, 101, 11), (18, 18, 75), (1, 1, 1), (1, 40, 11), (40, 1, 75), (900, 3, 2)]
SIZES = [(1, 1), (240, 320), (620, 800), (900, 500), (950, 1500), (1400, 2500)]


def laid_out(shape: tuple[int, int, int], size: tuple[int, int], show_channels: bool = True, row: int = 0) -> Layout:
    return window_layout(size, *shape, show_channels, row, CAPTION, BUTTONS)


def box_of(panel: Panel, above: int = 0) -> tuple[int, int, int, int]:
    return panel.top - above, panel.left, panel.top + panel.height, panel.left + panel.width


@for_each("size", SIZES[2:])
@for_each("shape", SHAPES)
def test_nothing_overlaps_or_leaves_the_window(shape: tuple[int, int, int], size: tuple[int, int]) -> None:
    layout = laid_out(shape, size)
    boxes = [box_of(layout.maze)]
    boxes += [box_of(panel, CAPTION.height) for _, panel in layout.channels]
    parts = [*layout.buttons, *([layout.scrollbar] if layout.scrollbar else [])]
    boxes += [(box.top, box.left, box.top + box.height, box.left + box.width) for box in parts]
    for top, left, bottom, right in boxes:
        assert WINDOW_HEADER <= top < bottom <= layout.footer
        assert 0 <= left < right <= layout.canvas[1]
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@for_each("size", SIZES)
@for_each("shape", SHAPES)
def test_every_size_can_be_laid_out(shape: tuple[int, int, int], size: tuple[int, int]) -> None:
    layout = laid_out(shape, size)
    assert layout.canvas[0] >= size[0]
    assert layout.canvas[1] >= size[1]
    assert layout.maze.cell >= 1


@for_each("side", [18, 34, 101])
def test_the_maze_fills_the_window(side: int) -> None:
    """A cell more would not fit between header and buttons."""
    layout = laid_out((side, side, 11), (972, 1728))
    room = layout.buttons[0].top - WINDOW_HEADER
    assert layout.maze.height + side > room - 12
    assert layout.maze.height > 0.85 * room


def test_all_of_75_channels_come_into_view_by_scrolling() -> None:
    shape, size = (18, 18, 75), (900, 1440)
    first = laid_out(shape, size)
    assert first.last_row > 0
    seen = set()
    for row in range(first.last_row + 1):
        layout = laid_out(shape, size, row=row)
        seen |= {channel for channel, _ in layout.channels}
        assert layout.scrollbar is not None
        assert layout.thumb is not None
        assert layout.scrollbar.top <= layout.thumb.top
        assert layout.thumb.top + layout.thumb.height <= layout.scrollbar.top + layout.scrollbar.height
    assert seen == set(range(75))
    assert laid_out(shape, size, row=999).channels == laid_out(shape, size, row=first.last_row).channels


def test_few_channels_are_larger_and_need_no_scrolling() -> None:
    few, many = laid_out((18, 18, 4), (900, 1440)), laid_out((18, 18, 75), (900, 1440))
    assert few.last_row == 0
    assert few.scrollbar is None
    assert few.channels[0][1].cell > 2 * many.channels[0][1].cell


def test_channels_give_way_in_a_small_window_and_when_they_are_hidden() -> None:
    assert laid_out((18, 18, 11), (300, 260)).channels == ()
    assert laid_out((18, 18, 11), (900, 1440), show_channels=False).channels == ()


def test_a_pixel_belongs_to_one_thing() -> None:
    layout = laid_out((18, 18, 11), (900, 1440))
    for channel, panel in layout.channels:
        assert layout.channel_at(panel.top + 1, panel.left + 1) == channel
        assert layout.channel_at(panel.top - 5, panel.left + 1) == channel
        assert layout.maze.tile_at(panel.top + 1, panel.left + 1) is None
    for index, box in enumerate(layout.buttons):
        assert layout.button_at(box.top, box.left) == index
        assert layout.button_at(box.top - 1, box.left) is None
    assert layout.channel_at(layout.maze.top, layout.maze.left) is None


@for_each(("size", "n"), [((900, 1440), 6), ((900, 1440), 24), ((300, 800), 24), ((100, 100), 3)])
def test_a_list_has_a_place_for_every_name(size: tuple[int, int], n: int) -> None:
    card, entries = menu_layout(size, n, 120)
    assert len(set(entries)) == n
    for entry in entries:
        assert card.holds(entry.top, entry.left)
        assert card.holds(entry.top + entry.height - 1, entry.left + entry.width - 1)
    for one, other in combinations(entries, 2):
        assert not one.holds(other.top, other.left)


def test_a_box_holds_its_pixels_alone() -> None:
    box = Box(2, 3, 2, 4)
    held = {(row, col) for row in range(9) for col in range(9) if box.holds(row, col)}
    assert held == {(row, col) for row in (2, 3) for col in (3, 4, 5, 6)}
