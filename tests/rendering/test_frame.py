from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scenes import Scene
from tables import for_each

from maze_nca_gym import levels
from maze_nca_gym.rendering import Panel, contact_sheet, draw_frame, draw_level, palette
from maze_nca_gym.rendering.layout import Layout, frame_layout
from maze_nca_gym.rendering.panels import bounds, caption_of, name_lines, names_of
from maze_nca_gym.rendering.text import text_width


def layout_of(scene: Scene, names: tuple[str, ...] | None = None) -> Layout:
    """The layout of a frame with channels called so."""
    n_channels = len(scene.channels)
    return frame_layout(*scene.tiles.shape, n_channels, caption=caption_of(names_of(names, n_channels)))


def tile_pixels(frame: NDArray[np.uint8], panel: Panel, row: int, col: int) -> NDArray[np.uint8]:
    """(cell, cell, 3) pixels of one tile."""
    return frame[panel.area][row * panel.cell :, col * panel.cell :][: panel.cell, : panel.cell]


def middle(pixels: NDArray[np.uint8]) -> tuple[int, ...]:
    return tuple(pixels[len(pixels) // 2, len(pixels) // 2].tolist())


def has_colour(pixels: NDArray[np.uint8], colour: tuple[int, ...]) -> bool:
    return bool((pixels == colour).all(axis=-1).any())


def heat_map(frame: NDArray[np.uint8], scene: Scene, channel: int) -> NDArray[np.uint8]:
    """(H, W, 3): one pixel a tile of a channel's heat map."""
    panel = layout_of(scene).channels[channel][1]
    return frame[panel.area][:: panel.cell, :: panel.cell]


@pytest.fixture
def panel(scene: Scene) -> Panel:
    return layout_of(scene).maze


def test_frame_is_rgb_and_equal_input_gives_an_equal_frame(scene: Scene) -> None:
    frame = draw_frame(*scene, step=3, accuracy=0.5, title="a")
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.shape[2] == 3
    assert frame.flags.c_contiguous
    frame_of_old = frame.copy()
    frame[...] = 7  # a frame is the caller's: drawing on it must not spoil the next
    assert np.array_equal(draw_frame(*scene, step=3, accuracy=0.5, title="a"), frame_of_old)


def test_arguments_stay_as_they_are(scene: Scene) -> None:
    before = [array.copy() for array in scene]
    draw_frame(*scene)
    assert all(np.array_equal(old, new) for old, new in zip(before, scene, strict=True))


def test_shape_depends_on_neither_values_nor_the_title(scene: Scene) -> None:
    plain = draw_frame(*scene)
    other = draw_frame(
        1 - (scene.tiles == levels.Tile.WALL),
        -1e6 * scene.channels,
        ~scene.target,
        step=123_456,
        accuracy=-98.7654,
        title="a title that does not fit " * 20,
    )
    assert other.shape == plain.shape


@pytest.mark.parametrize("size", [(1, 1), (33, 47), (240, 320), (777, 1001)])
@pytest.mark.parametrize("show_channels", [True, False])
def test_frame_fits_a_given_size(scene: Scene, size: tuple[int, int], show_channels: bool) -> None:
    assert draw_frame(*scene, size=size, show_channels=show_channels).shape == (*size, 3)


@for_each("shape", [(1, 1), (1, 9), (9, 1), (2, 30)])
@for_each("n_channels", [1, 31])
def test_odd_mazes_and_any_number_of_channels(shape: tuple[int, int], n_channels: int) -> None:
    tiles = np.zeros(shape, np.uint8)
    frame = draw_frame(tiles, np.full((n_channels, *shape), 0.3), np.ones(shape, bool))
    panel = frame_layout(*shape, n_channels, caption=caption_of(names_of(None, n_channels))).maze
    assert has_colour(tile_pixels(frame, panel, shape[0] - 1, shape[1] - 1), palette.EXACT_PATH)


def test_walls_empty_tiles_and_predictions_have_their_colours(scene: Scene, panel: Panel) -> None:
    frame = draw_frame(*scene)
    assert middle(tile_pixels(frame, panel, 4, 4)) == palette.WALL
    assert middle(tile_pixels(frame, panel, 2, 4)) == palette.EMPTY
    assert middle(tile_pixels(frame, panel, 1, 2)) == palette.PATH
    half = np.add(palette.EMPTY, palette.PATH) / 2
    assert np.abs(middle(tile_pixels(frame, panel, 2, 2)) - half).max() <= 1


def test_a_path_on_a_wall_is_a_square_inside_the_wall(scene: Scene, panel: Panel) -> None:
    pixels = tile_pixels(draw_frame(*scene), panel, 0, 0)
    assert middle(pixels) == palette.PATH_ON_WALL
    assert tuple(pixels[0, 0].tolist()) == palette.WALL


def test_predictions_are_clipped_for_display(scene: Scene) -> None:
    bold = scene.channels.copy()
    bold[0] = np.where(bold[0] == 1, 50, np.where(bold[0] == 0, -50, bold[0]))
    area = layout_of(scene).maze.area
    assert np.array_equal(draw_frame(scene.tiles, bold, scene.target)[area], draw_frame(*scene)[area])


def test_source_and_target_differ_by_more_than_colour(scene: Scene, panel: Panel) -> None:
    frame = draw_frame(*scene)
    source, target = tile_pixels(frame, panel, 1, 1), tile_pixels(frame, panel, 3, 3)
    is_source, is_target = ((p == c).all(-1) for p, c in ((source, palette.SOURCE), (target, palette.TARGET)))
    assert is_source.sum() > panel.cell**2 / 6
    assert is_target.sum() > panel.cell**2 / 6
    assert (is_source != is_target).sum() > panel.cell**2 / 20


def test_markers_are_found_in_a_large_maze() -> None:
    tiles = np.zeros((120, 120), np.uint8)
    tiles[10, 20], tiles[110, 60] = levels.Tile.SOURCE, levels.Tile.TARGET
    frame = draw_frame(tiles, np.zeros((1, 120, 120)), tiles == 9, size=(500, 900))
    area = frame[frame_layout(120, 120, 1, size=(500, 900)).maze.area]
    for colour in (palette.SOURCE, palette.TARGET):
        assert (np.abs(area.astype(int) - colour).sum(-1) < 30).sum() >= 24


def test_exact_path_is_outlined_and_does_not_hide_the_prediction(scene: Scene, panel: Panel) -> None:
    frame = draw_frame(*scene)
    corridor = tile_pixels(frame, panel, 2, 2)  # the path comes from above and goes on below
    assert (corridor[:, [0, -1]] == palette.EXACT_PATH).all()
    assert not has_colour(corridor[:, panel.cell // 3 : -panel.cell // 3], palette.EXACT_PATH)
    assert not has_colour(tile_pixels(frame, panel, 1, 3), palette.EXACT_PATH)


def test_outline_closes_at_inner_corners(scene: Scene, panel: Panel) -> None:
    corner = tile_pixels(draw_frame(*scene), panel, 1, 2)  # from the left to below: the lower left is inner
    assert tuple(corner[-1, 0].tolist()) == palette.EXACT_PATH
    assert tuple(corner[-1, panel.cell // 2].tolist()) == palette.PATH


def test_tiny_tiles_show_the_exact_path_as_a_tint() -> None:
    tiles, target = np.zeros((300, 300), np.uint8), np.zeros((300, 300), bool)
    target[150] = True
    channels = np.zeros((1, 300, 300))
    channels[0, 150, 200:] = 1
    frame = draw_frame(tiles, channels, target, size=(720, 1280))
    maze = frame_layout(300, 300, 1, size=(720, 1280)).maze
    assert maze.cell < 4
    row = frame[maze.area][150 * maze.cell]
    assert len({tuple(pixel) for pixel in row.tolist()}) == 2
    assert tuple(row[-1].tolist()) == palette.PATH


def test_the_largest_value_of_each_channel_has_the_same_colour(scene: Scene) -> None:
    late = scene.channels * 40
    first, second = draw_frame(*scene), draw_frame(scene.tiles, late, scene.target, step=99)
    colour = heat_map(first, scene, 1)[1, 2].tolist()
    assert colour == heat_map(first, scene, 0)[1, 2].tolist()
    assert colour == heat_map(second, scene, 1)[1, 3].tolist()
    assert colour != heat_map(second, scene, 1)[3, 1].tolist()


def test_heat_maps_show_every_tile_of_their_channel(scene: Scene) -> None:
    frame = draw_frame(*scene)
    for channel in (0, 1):
        wanted = palette.heat_colours(scene.channels[channel], scene.tiles == levels.Tile.WALL)
        assert np.array_equal(heat_map(frame, scene, channel), wanted)


def test_values_that_are_no_numbers_are_drawn_without_a_warning(scene: Scene) -> None:
    scene.channels[:, 1, 3] = np.nan, np.inf
    frame = draw_frame(*scene)
    assert tuple(heat_map(frame, scene, 0)[1, 3].tolist()) == palette.NOT_A_NUMBER
    assert np.array_equal(heat_map(frame, scene, 1)[1, 3], palette.heat_colours(np.ones((1, 1)), np.eye(1) < 0)[0, 0])


@pytest.mark.parametrize("change", [{"step": 5}, {"accuracy": 0.123}, {"title": "other"}])
def test_step_accuracy_and_title_are_shown_above_the_maze(scene: Scene, change: dict[str, object]) -> None:
    plain, changed = draw_frame(*scene), draw_frame(*scene, **change)
    top = layout_of(scene).maze.top
    assert not np.array_equal(plain[:top], changed[:top])
    assert np.array_equal(plain[top:], changed[top:])


def test_an_accuracy_that_rounds_to_zero_has_no_sign(scene: Scene) -> None:
    assert np.array_equal(draw_frame(*scene, accuracy=-1e-5), draw_frame(*scene, accuracy=0.0))


def test_names_and_bounds_are_shown_above_the_heat_maps(scene: Scene) -> None:
    layout = layout_of(scene)
    panel = layout.channels[1][1]
    caption = (slice(panel.top - layout.caption.height, panel.top - 1), panel.area[1])
    plain = draw_frame(*scene)[caption]
    assert not np.array_equal(plain, draw_frame(*scene, channel_names=("path", "age"))[caption])
    larger = scene.channels.copy()
    larger[1, 1, 2] = 251
    assert not np.array_equal(plain, draw_frame(scene.tiles, larger, scene.target)[caption])


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
    both = np.array([[values], [[0, 1]]], np.float32)
    assert bounds(both) == [text, "0 to 1"]


@for_each("name", ["path", "stack_direction", "was_wall_high", "a long name of a channel", "x" * 24])
def test_names_are_not_cut(name: str) -> None:
    caption = caption_of(("path", name))
    assert "".join(name_lines(name)) == name
    assert all(text_width(line, 12) <= caption.width for line in name_lines(name))
    small = frame_layout(18, 18, 75, caption=caption)
    columns = sorted({panel.left for _, panel in small.channels})
    assert min(np.diff(columns)) > caption.width


def test_a_name_beyond_reason_is_cut_and_leaves_room(scene: Scene) -> None:
    names = ("path", "a name that is much longer than any heat map is wide, by any measure " * 3)
    assert caption_of(names).width < 200
    assert draw_frame(*scene, channel_names=names).shape[1] <= 1400


def test_the_key_names_the_highlight(scene: Scene) -> None:
    footer = layout_of(scene).footer
    assert np.array_equal(draw_frame(*scene)[footer:], draw_frame(*scene, highlight=None)[footer:])
    assert has_colour(draw_frame(*scene, highlight=1)[footer:], palette.HIGHLIGHT)
    assert not has_colour(draw_frame(*scene)[footer:], palette.HIGHLIGHT)


def test_key_names_source_and_target_only_where_there_are_any(scene: Scene) -> None:
    footer = layout_of(scene).footer
    with_ends = draw_frame(*scene)[footer:]
    without = draw_frame(levels.clear_endpoints(scene.tiles), scene.channels, scene.target)[footer:]
    assert has_colour(with_ends, palette.SOURCE)
    assert not has_colour(without, palette.SOURCE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((5, 6)), np.zeros((5, 6), bool)), r"channels must have shape \(C, 5, 6\), got \(5, 6\)"),
        ((np.zeros((0, 5, 6)), np.zeros((5, 6), bool)), r"got \(0, 5, 6\)"),
        ((np.zeros((2, 5, 5)), np.zeros((5, 6), bool)), r"got \(2, 5, 5\)"),
        ((np.zeros((2, 5, 6)), np.zeros((6, 5), bool)), r"target .* \(5, 6\), got \(6, 5\)"),
    ],
)
def test_shapes_that_do_not_belong_together_are_refused(scene: Scene, arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_frame(scene.tiles, *arguments)


def test_more_names_than_channels_are_refused(scene: Scene) -> None:
    with pytest.raises(ValueError, match="got 3 channel names for 2 channels"):
        draw_frame(*scene, channel_names=("a", "b", "c"))


@for_each("n_channels", [11, 31])
def test_drawing_is_fast_enough_for_a_window(n_channels: int) -> None:
    """Generous for a busy machine: drawn tile by tile, a frame would take longer by far."""
    rng = np.random.default_rng(0)
    tiles = (rng.random((18, 18)) < 0.4).astype(np.uint8)
    channels = rng.integers(0, 300, (n_channels, 18, 18)).astype(np.float32)
    durations = []
    for step in range(12):
        start = time.perf_counter()
        draw_frame(tiles, channels, tiles == 9, step=step)
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.030


@pytest.mark.parametrize("cell", [1, 3, 16])
def test_level_picture_has_a_tile_a_cell(scene: Scene, cell: int) -> None:
    frame = draw_level(scene.tiles, cell=cell)
    assert frame.shape == (5 * cell, 6 * cell, 3)
    assert tuple(frame[-1, 0].tolist()) == palette.WALL
    assert middle(frame[2 * cell : 3 * cell, 4 * cell : 5 * cell]) == palette.EMPTY


def test_level_picture_shows_a_path(scene: Scene) -> None:
    frame = draw_level(scene.tiles, scene.target)
    assert middle(frame[32:48, 32:48]) == palette.PATH


def test_level_picture_refuses_what_it_cannot_draw(scene: Scene) -> None:
    with pytest.raises(ValueError, match=r"path must have the tiles' shape \(5, 6\), got \(6, 5\)"):
        draw_level(scene.tiles, scene.target.T)
    with pytest.raises(ValueError, match="at least 1 pixel, got 0"):
        draw_level(scene.tiles, cell=0)


def test_contact_sheet_places_pictures_in_rows() -> None:
    red, green, blue = (np.full((4, 6, 3), colour, np.uint8) for colour in np.eye(3) * 255)
    sheet = contact_sheet([red, green, blue[:2]], columns=2, gap=5)
    assert sheet.shape == (2 * 4 + 3 * 5, 2 * 6 + 3 * 5, 3)
    assert sheet[5, 5].tolist() == [255, 0, 0]
    assert sheet[5, 16].tolist() == [0, 255, 0]
    assert sheet[15, 5].tolist() == [0, 0, 255]
    assert sheet[0, 0].tolist() == sheet[14, 5].tolist() == [255, 255, 255]
    assert contact_sheet([red], columns=9, gap=0).shape == red.shape


def test_contact_sheet_needs_frames_and_columns() -> None:
    with pytest.raises(ValueError, match="got 0 and 3"):
        contact_sheet([], columns=3)
    with pytest.raises(ValueError, match="got 1 and 0"):
        contact_sheet([np.zeros((1, 1, 3), np.uint8)], columns=0)


def test_the_highlight_tints_free_tiles_on_a_scale_of_its_own(scene: Scene, panel: Panel) -> None:
    channels = np.zeros_like(scene.channels)
    channels[1] = np.linspace(1, 9, scene.tiles.size).reshape(scene.tiles.shape)
    plain, tinted = (
        draw_frame(scene.tiles, channels, scene.target),
        draw_frame(scene.tiles, channels, scene.target, highlight=1),
    )
    row, col = np.argwhere(scene.tiles == levels.Tile.EMPTY)[-1]
    here = middle(tile_pixels(tinted, panel, row, col))
    strength = channels[1, row, col] / 9
    expected = 255 + (np.array(palette.HIGHLIGHT) - 255) * strength
    assert np.abs(np.array(here) - expected).max() <= 1
    assert middle(tile_pixels(plain, panel, row, col)) == palette.EMPTY
    wall = np.argwhere(scene.tiles == levels.Tile.WALL)[-1]
    assert middle(tile_pixels(tinted, panel, *wall)) == palette.WALL
    larger = draw_frame(scene.tiles, 1000 * channels, scene.target, highlight=1)
    assert np.array_equal(larger[panel.area], tinted[panel.area])


def test_a_highlight_of_zeros_or_unknown_numbers_is_no_tint(scene: Scene, panel: Panel) -> None:
    channels = np.zeros_like(scene.channels)
    plain = draw_frame(scene.tiles, channels, scene.target)[panel.area]
    assert np.array_equal(draw_frame(scene.tiles, channels, scene.target, highlight=1)[panel.area], plain)
    channels[1] = np.nan
    assert np.array_equal(draw_frame(scene.tiles, channels, scene.target, highlight=1)[panel.area], plain)


@pytest.mark.parametrize("highlight", [-1, 99])
def test_a_highlight_is_a_channel(scene: Scene, highlight: int) -> None:
    with pytest.raises(ValueError, match=rf"highlight .* {highlight}"):
        draw_frame(*scene, highlight=highlight)
