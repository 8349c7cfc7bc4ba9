"""Pictures of steps and of levels: positions and colours."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tables import for_each, refused

from maze_nca_gym.mazes import levels
from maze_nca_gym.rendering import Panel, Snapshot, captioned, contact_sheet, draw_level, palette
from maze_nca_gym.rendering import frame as frame_module
from maze_nca_gym.rendering.layout import Box, Layout, frame_layout
from maze_nca_gym.rendering.panels import blank, bounds, caption_of, name_lines
from maze_nca_gym.rendering.panels import outline as draw_outline
from maze_nca_gym.rendering.text import text_width

Pixels = NDArray[np.uint8]


def layout_of(snapshot: Snapshot, **options: Any) -> Layout:
    """Return the layout of the frame."""
    return frame_layout(
        *snapshot.channels.shape[1:], len(snapshot.channels), caption=caption_of(snapshot.names), **options
    )


def tile_pixels(frame: Pixels, panel: Panel, row: int, col: int) -> Pixels:
    """Return the (cell, cell, 3) pixels of one tile."""
    return frame[panel.area][row * panel.cell :, col * panel.cell :][: panel.cell, : panel.cell]


def middle(pixels: Pixels) -> tuple[int, ...]:
    return tuple(pixels[len(pixels) // 2, len(pixels) // 2].tolist())


def has_colour(pixels: Pixels, colour: tuple[int, ...]) -> bool:
    return bool((pixels == colour).all(axis=-1).any())


def changed(snapshot: Snapshot, channel: int, at: Any, value: Any) -> Snapshot:
    """Return the step with other numbers in a channel."""
    channels = snapshot.channels.copy()
    channels[channel][at] = value
    return replace(snapshot, channels=channels)


@pytest.fixture
def panel(snapshot: Snapshot) -> Panel:
    return layout_of(snapshot).maze


def test_a_frame_belongs_to_the_caller_and_arrays_stay_unchanged(snapshot: Snapshot) -> None:
    before, frame = snapshot.copy(), snapshot.draw()
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    copied = frame.copy()
    frame[...] = 7  # a changed frame must not change the next one
    assert np.array_equal(snapshot.draw(), copied)
    for name in ("tiles", "channels", "target"):
        assert np.array_equal(getattr(before, name), getattr(snapshot, name))


@for_each("size", [(1, 1), (33, 47), (240, 320), (777, 1001)])
@for_each("show_channels", [True, False])
def test_frame_fits_a_given_size(snapshot: Snapshot, size: tuple[int, int], show_channels: bool) -> None:
    assert snapshot.draw(show_channels, size).shape == (*size, 3)


@for_each("shape", [(1, 1), (1, 9), (9, 1), (2, 30)])
@for_each("n_channels", [1, 31])
def test_odd_mazes_and_any_number_of_channels(shape: tuple[int, int], n_channels: int) -> None:
    step = Snapshot(np.zeros(shape, np.uint8), np.full((n_channels, *shape), 0.3), np.ones(shape, bool))
    pixels = tile_pixels(step.draw(), layout_of(step).maze, shape[0] - 1, shape[1] - 1)
    assert has_colour(pixels, palette.EXACT_PATH)


def test_walls_empty_tiles_and_predictions_have_their_colours(snapshot: Snapshot, panel: Panel) -> None:
    frame = snapshot.draw()
    for place, colour in (((4, 4), palette.WALL), ((2, 4), palette.EMPTY), ((1, 2), palette.PATH)):
        assert middle(tile_pixels(frame, panel, *place)) == colour
    half = np.add(palette.EMPTY, palette.PATH) / 2
    assert np.abs(middle(tile_pixels(frame, panel, 2, 2)) - half).max() <= 1
    on_wall = tile_pixels(frame, panel, 0, 0)  # a square inside the wall
    assert middle(on_wall) == palette.PATH_ON_WALL
    assert tuple(on_wall[0, 0].tolist()) == palette.WALL


def test_predictions_are_clipped_for_display(snapshot: Snapshot, panel: Panel) -> None:
    path = snapshot.channels[0]
    bold = changed(snapshot, 0, ..., np.where(path == 1, 50, np.where(path == 0, -50, path)))
    assert np.array_equal(bold.draw()[panel.area], snapshot.draw()[panel.area])


def test_source_and_target_differ_by_more_than_colour(snapshot: Snapshot, panel: Panel) -> None:
    source, target = (tile_pixels(snapshot.draw(), panel, *place) for place in ((1, 1), (3, 3)))
    is_source, is_target = ((p == c).all(-1) for p, c in ((source, palette.SOURCE), (target, palette.TARGET)))
    assert min(is_source.sum(), is_target.sum()) > panel.cell**2 / 6
    assert (is_source != is_target).sum() > panel.cell**2 / 20


def test_markers_are_found_in_a_large_maze() -> None:
    tiles = np.zeros((120, 120), np.uint8)
    tiles[10, 20], tiles[110, 60] = levels.Tile.SOURCE, levels.Tile.TARGET
    step = Snapshot(tiles, np.zeros((1, 120, 120)), tiles > 9)
    area = step.draw(size=(500, 900))[layout_of(step, size=(500, 900)).maze.area]
    for colour in (palette.SOURCE, palette.TARGET):
        assert (np.abs(area.astype(int) - colour).sum(-1) < 30).sum() >= 24


@for_each(
    ("box", "expected"),
    [
        ((1, 1, 2, 1), "###.. #.#.. #.#.. ###.."),
        ((0, 0, 2, 1), ".#... .#... ##... ....."),
        ((2, 3, 2, 2), "..... ..### ..#.. ..#.."),
        ((1, 4, 1, 1), "...## ...#. ...## ....."),
        ((0, 5, 4, 1), "....# ....# ....# ....#"),
        ((0, 6, 4, 1), "..... ..... ..... ....."),
        ((0, -1, 4, 1), "#.... #.... #.... #...."),
        ((0, -2, 4, 1), "..... ..... ..... ....."),
        ((-1, 0, 1, 5), "##### ..... ..... ....."),
    ],
)
def test_an_outline_is_drawn_where_it_lies_within_the_frame(box: tuple[int, int, int, int], expected: str) -> None:
    frame = blank(4, 5, (0, 0, 0))
    draw_outline(frame, Box(*box), (9, 9, 9))
    assert " ".join("".join(".#"[pixel] for pixel in row) for row in frame[..., 0] // 9) == expected


def test_exact_path_is_outlined_and_does_not_hide_the_prediction(snapshot: Snapshot, panel: Panel) -> None:
    frame = snapshot.draw()
    corridor = tile_pixels(frame, panel, 2, 2)  # the path comes from above and goes on below
    assert (corridor[:, [0, -1]] == palette.EXACT_PATH).all()
    assert not has_colour(corridor[:, panel.cell // 3 : -panel.cell // 3], palette.EXACT_PATH)
    assert not has_colour(tile_pixels(frame, panel, 1, 3), palette.EXACT_PATH)
    corner = tile_pixels(frame, panel, 1, 2)  # from the left to below: the outline closes at the lower left
    assert tuple(corner[-1, 0].tolist()) == palette.EXACT_PATH
    assert tuple(corner[-1, panel.cell // 2].tolist()) == palette.PATH


def test_tiny_tiles_show_the_exact_path_as_a_tint() -> None:
    channels, size = np.zeros((1, 300, 300)), (720, 1280)
    channels[0, 150, 200:] = 1
    step = Snapshot(np.zeros((300, 300), np.uint8), channels, np.arange(300)[:, None] * np.ones(300) == 150)
    maze = layout_of(step, size=size).maze
    assert maze.cell < 4
    row = step.draw(size=size)[maze.area][150 * maze.cell]
    assert len({tuple(pixel) for pixel in row.tolist()}) == 2
    assert tuple(row[-1].tolist()) == palette.PATH


def test_heat_maps_show_every_tile_even_nan(snapshot: Snapshot) -> None:
    strange = changed(changed(snapshot, 0, (1, 3), np.nan), 1, (1, 3), np.inf)
    for step in (snapshot, strange):
        frame = step.draw()
        for channel, panel in layout_of(step).channels:
            colours = palette.heat_colours(step.channels[channel], step.tiles == levels.Tile.WALL)
            assert np.array_equal(frame[panel.area][:: panel.cell, :: panel.cell], colours)


@for_each("change", [{"step": 5}, {"accuracy": 0.123}, {"title": "other"}])
def test_step_accuracy_and_title_are_shown_above_the_maze(snapshot: Snapshot, change: dict[str, Any]) -> None:
    top, plain, other = layout_of(snapshot).maze.top, snapshot.draw(), replace(snapshot, **change).draw()
    assert not np.array_equal(plain[:top], other[:top])
    assert np.array_equal(plain[top:], other[top:])


@for_each("size", [None, (400, 600)])
@for_each(("accuracy", "step"), [(1.0, 5), (-57.857, 5), (-16_535.85, 99_999), (np.nan, 12_345_678)])
def test_labels_above_the_maze_do_not_overlap(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, accuracy: float, step: int, size: tuple[int, int] | None
) -> None:
    positions: list[tuple[int, int]] = []

    def put(
        frame: object, row: int, col: int, text: str, size: int, colour: object = None, align: str = "left"
    ) -> None:
        if text:
            width = text_width(text, size)
            positions.append((col - width, col) if align == "right" else (col, col + width))

    picture = replace(snapshot, accuracy=accuracy, step=step, title="a title")
    picture.draw(size=size)  # draws the legend, which is then reused and not part of this test
    monkeypatch.setattr(frame_module, "put_text", put)
    monkeypatch.setattr(frame_module, "draw_channels", lambda *_: None)
    picture.draw(size=size)
    assert len(positions) == 5
    for (_, end), (begin, _) in pairwise(sorted(positions)):
        assert begin - end >= text_width(" ", 14)


def test_an_accuracy_that_rounds_to_zero_has_no_sign(snapshot: Snapshot) -> None:
    assert np.array_equal(replace(snapshot, accuracy=-1e-5).draw(), snapshot.draw())


def test_names_and_bounds_are_shown_above_the_heat_maps(snapshot: Snapshot) -> None:
    layout = layout_of(snapshot)
    panel = layout.channels[1][1]
    caption = (slice(panel.top - layout.caption.height, panel.top - 1), panel.area[1])
    for other in (replace(snapshot, channel_names=("path", "ago")), changed(snapshot, 1, (1, 2), 251)):
        assert not np.array_equal(snapshot.draw()[caption], other.draw()[caption])


@for_each(
    ("values", "text"),
    [
        ([0, 0], "0"),
        ([0, 57], "0 to 57"),
        ([3, 5], "0 to 5"),
        ([-3, 250], "-3 to 250"),
        ([-0.004, 0.25], "0.00 to 0.25"),
        ([0, 2**24], "0 to 16.8M"),
        ([0, 12_345], "0 to 12.3k"),
        ([np.nan, 2], "0 to 2"),
        ([np.nan, np.nan], "0"),
        ([-np.inf, 1], "-inf to 1"),
    ],
)
def test_bounds_are_short_and_include_zero(values: list[float], text: str) -> None:
    channels = np.array([[values], [[0, 1]]], np.float32)
    assert bounds(channels) == [text, "0 to 1"]


@for_each("name", ["path", "stack_direction", "was_wall_high", "a long name of a channel", "x" * 24])
def test_names_are_not_cut(name: str) -> None:
    caption = caption_of(("path", name))
    assert "".join(name_lines(name)) == name
    assert all(text_width(line, 12) <= caption.width for line in name_lines(name))
    small = frame_layout(18, 18, 75, caption=caption)
    columns = sorted({panel.left for _, panel in small.channels})
    assert min(np.diff(columns)) > caption.width


def test_a_very_long_name_is_cut(snapshot: Snapshot) -> None:
    named = replace(snapshot, channel_names=("path", "a name that is much longer than any heat map is wide " * 3))
    assert caption_of(named.names).width < 200
    assert named.draw().shape[1] <= 1400


def test_the_legend_has_the_highlight_and_the_ends_if_there_are_any(snapshot: Snapshot) -> None:
    footer = layout_of(snapshot).footer
    plain, tinted, endless = (
        step.draw()[footer:]
        for step in (
            snapshot,
            replace(snapshot, highlight=1),
            replace(snapshot, tiles=levels.clear_endpoints(snapshot.tiles)),
        )
    )
    colours = [
        (has_colour(key, palette.HIGHLIGHT), has_colour(key, palette.SOURCE)) for key in (plain, tinted, endless)
    ]
    assert colours == [(False, True), (True, True), (False, False)]
    outlined = [int((key == palette.EXACT_PATH).all(axis=-1).sum()) for key in (plain, tinted, endless)]
    assert len(set(outlined)) == 1, "of all samples, that of the exact path alone has its outline"


@for_each(
    ("change", "message"),
    [
        ({"channels": np.zeros((5, 6))}, "channels must have shape (C, 5, 6), got (5, 6)"),
        ({"channels": np.zeros((0, 5, 6))}, "got (0, 5, 6)"),
        ({"channels": np.zeros((2, 5, 5))}, "got (2, 5, 5)"),
        ({"target": np.zeros((6, 5), bool)}, "target must have the tiles' shape (5, 6), got (6, 5)"),
        ({"target": np.zeros((2, 5, 5), bool)}, "target must have the tiles' shape (5, 6), got (2, 5, 5)"),
        ({"target": np.zeros((0, 5, 6), bool)}, "got (0, 5, 6)"),
        ({"target": np.zeros((3, 5, 6), bool)}, "got (3, 5, 6)"),
        ({"target": np.zeros((1, 2, 5, 6), bool)}, "got (1, 2, 5, 6)"),
        ({"tiles": np.full((5, 6), 9)}, "integers from 0 to 3"),
        ({"channel_names": ("a", "b", "c")}, "got 3 channel names for 2 channels"),
        ({"highlight": -1}, "highlight must be a channel from 0 to 1, got -1"),
        ({"highlight": 2}, "got 2"),
    ],
)
def test_inconsistent_snapshots_are_refused(snapshot: Snapshot, change: dict[str, Any], message: str) -> None:
    refused(re.escape(message), replace, snapshot, **change)


def test_a_target_has_up_to_as_many_channels_as_the_state(snapshot: Snapshot) -> None:
    for n in (1, 2):
        target = np.zeros((n, *snapshot.tiles.shape), bool)
        assert replace(snapshot, target=target).answers == ("path", "age")[:n]


def test_the_highlight_tints_free_tiles_on_its_own_scale(snapshot: Snapshot, panel: Panel) -> None:
    ramp = np.linspace(1, 9, snapshot.tiles.size).reshape(snapshot.tiles.shape)
    channels = np.stack([0 * ramp, ramp])
    plain = replace(snapshot, channels=channels).draw()
    tinted, larger = (replace(snapshot, channels=c, highlight=1).draw() for c in (channels, 1000 * channels))
    row, col = np.argwhere(snapshot.tiles == levels.Tile.EMPTY)[-1]
    expected = 255 + (np.array(palette.HIGHLIGHT) - 255) * ramp[row, col] / 9
    assert np.abs(np.array(middle(tile_pixels(tinted, panel, row, col))) - expected).max() <= 1
    assert middle(tile_pixels(plain, panel, row, col)) == palette.EMPTY
    wall = np.argwhere(snapshot.tiles == levels.Tile.WALL)[-1]
    assert middle(tile_pixels(tinted, panel, *wall)) == palette.WALL
    assert np.array_equal(larger[panel.area], tinted[panel.area])


@for_each("value", [0, np.nan])
def test_a_highlight_of_zeros_or_unknown_numbers_is_no_tint(snapshot: Snapshot, panel: Panel, value: float) -> None:
    blank = changed(snapshot, 1, ..., value)
    assert np.array_equal(replace(blank, highlight=1).draw()[panel.area], blank.draw()[panel.area])


@for_each("cell", [1, 3, 16])
def test_a_level_picture_has_one_tile_per_cell(snapshot: Snapshot, cell: int) -> None:
    frame = draw_level(snapshot.tiles, snapshot.target, cell)
    assert frame.shape == (5 * cell, 6 * cell, 3)
    assert tuple(frame[-1, 0].tolist()) == palette.WALL
    assert middle(frame[2 * cell : 3 * cell, 4 * cell : 5 * cell]) == palette.EMPTY
    assert middle(frame[2 * cell : 3 * cell, 2 * cell : 3 * cell]) == palette.PATH


def test_level_picture_outlines_a_solution(snapshot: Snapshot) -> None:
    assert not has_colour(draw_level(snapshot.tiles), palette.EXACT_PATH)
    assert has_colour(draw_level(snapshot.tiles, solution=snapshot.target), palette.EXACT_PATH)


@for_each(
    ("function", "options", "message"),
    [
        (draw_level, {"path": np.zeros((6, 5))}, "path must have the tiles' shape (5, 6), got (6, 5)"),
        (draw_level, {"solution": np.zeros((6, 5))}, "solution must have the tiles' shape (5, 6), got (6, 5)"),
        (draw_level, {"cell": 0}, "at least 1 pixel, got 0"),
        (contact_sheet, {"columns": 0}, "at least one frame and one column, got 5 and 0"),
        (lambda _, columns: contact_sheet([], columns), {"columns": 3}, "got 0 and 3"),
    ],
)
def test_unsuitable_levels_are_refused(snapshot: Snapshot, function: Any, options: Any, message: str) -> None:
    refused(re.escape(message), function, snapshot.tiles, **options)


def test_contact_sheet_places_pictures_in_rows() -> None:
    red, green, blue = (np.full((4, 6, 3), colour, np.uint8) for colour in np.eye(3) * 255)
    sheet = contact_sheet([red, green, blue[:2]], columns=2, gap=5)
    assert sheet.shape == (2 * 4 + 3 * 5, 2 * 6 + 3 * 5, 3)
    assert [sheet[at].tolist() for at in ((5, 5), (5, 16), (15, 5))] == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert sheet[0, 0].tolist() == sheet[14, 5].tolist() == [255, 255, 255]
    assert contact_sheet([red], columns=9, gap=0).shape == red.shape


@for_each("margin", [0, 12])
def test_a_caption_is_above_the_picture_on_both_sides(margin: int) -> None:
    picture = np.zeros((10, 300, 3), np.uint8)
    frame = captioned(picture, "left", "right", size=20, margin=margin)
    assert np.array_equal(frame[-10:], picture)
    inked = np.flatnonzero((frame[:-10] < 200).any(axis=(0, 2)))
    assert margin <= inked[0] < margin + 6
    assert 294 - margin < inked[-1] < 300 - margin
