from __future__ import annotations

import time
from itertools import combinations

import pytest
from tables import for_each

from maze_nca_gym.rendering.layout import Caption, Layout, Panel, frame_layout

SHAPES = [(18, 18, 11), (18, 18, 31), (66, 66, 11), (66, 66, 31), (1, 1, 1), (1, 40, 11), (40, 1, 11), (12, 30, 64)]
SIZES = [None, (1, 1), (240, 320), (900, 420), (620, 800), (1080, 1920)]


def boxes(layout: Layout) -> list[tuple[int, int, int, int]]:
    """(top, left, bottom, right) of the maze and of every heat map with its caption."""
    maze, *channels = [
        (p.top, p.left, p.top + p.height, p.left + p.width)
        for p in (layout.maze, *(panel for _, panel in layout.channels))
    ]
    return [
        maze,
        *(
            (top - layout.caption.height, left, max(bottom, top), max(right, left + layout.caption.width))
            for top, left, bottom, right in channels
        ),
    ]


@for_each("caption", [Caption(), Caption(44, 150)])
@for_each("size", SIZES)
@for_each("shape", SHAPES)
def test_nothing_overlaps_or_leaves_the_canvas(
    shape: tuple[int, int, int], size: tuple[int, int] | None, caption: Caption
) -> None:
    layout = frame_layout(*shape, size=size, caption=caption)
    assert len(layout.channels) in (0, shape[2])
    for top, left, bottom, right in boxes(layout):
        assert 0 < top < bottom <= layout.footer
        assert 0 < left < right <= layout.canvas[1]
    for one, other in combinations(boxes(layout), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@for_each("shape", SHAPES)
def test_default_size_is_even_and_fit_for_video(shape: tuple[int, int, int]) -> None:
    layout = frame_layout(*shape)
    height, width = layout.canvas
    assert height % 2 == width % 2 == 0
    assert 1140 <= width <= 1400
    assert height <= 1100
    assert layout.channels


@for_each(("shape", "maze_cell", "channel_cell"), [((18, 18, 11), 24, 8), ((18, 18, 31), 24, 5), ((66, 66, 31), 7, 2)])
def test_default_is_readable(shape: tuple[int, int, int], maze_cell: int, channel_cell: int) -> None:
    layout = frame_layout(*shape)
    assert layout.maze.cell >= maze_cell
    assert all(panel.cell >= channel_cell for _, panel in layout.channels)


def test_channels_can_be_switched_off_and_give_way_in_a_tiny_frame() -> None:
    layout = frame_layout(18, 18, 11, show_channels=False)
    assert layout.channels == frame_layout(18, 18, 300, size=(150, 200)).channels == ()
    assert layout.canvas[1] < 1140


def test_a_maze_larger_than_the_frame_is_strided() -> None:
    layout = frame_layout(2000, 1500, 1, size=(400, 600))
    assert layout.maze.cell == 1
    assert layout.maze.stride > 1
    assert layout.maze.height <= 400
    assert layout.maze.tile_at(layout.maze.top, layout.maze.left) == (0, 0)


def test_tile_at_leads_every_pixel_to_its_tile() -> None:
    panel = Panel(top=10, left=20, rows=2, cols=3, cell=4)
    tiles = {panel.tile_at(row, col) for row in range(10, 18) for col in range(20, 32)}
    assert tiles == {(row, col) for row in range(2) for col in range(3)}
    assert panel.tile_at(17, 20) == (1, 0)
    for outside in ((9, 20), (18, 20), (10, 19), (10, 32)):
        assert panel.tile_at(*outside) is None


def test_a_size_without_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 1 x 1 pixels, got \(0, 300\)"):
        frame_layout(5, 5, 1, size=(0, 300))


@for_each("shape", [(100_001, 3), (3, 100_001), (5000, 5000)])
def test_a_huge_maze_is_laid_out_at_once(shape: tuple[int, int]) -> None:
    start = time.perf_counter()
    layout = frame_layout(*shape, 11)
    assert time.perf_counter() - start < 10  # a second or so; it took many minutes once
    assert layout.maze.height <= 1100
    assert layout.maze.width <= 1400
