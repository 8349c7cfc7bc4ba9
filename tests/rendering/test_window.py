from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pygame
import pytest
from conftest import Scene
from gymnasium.error import DependencyNotInstalled
from PIL import Image

from maze_nca_gym.levels import Tile
from maze_nca_gym.rendering import Request, Snapshot, Window, draw_frame, frame_layout, palette
from maze_nca_gym.rendering.history import History

STATUS = 26


@pytest.fixture
def snapshot(scene: Scene) -> Snapshot:
    return Snapshot(*scene, channel_names=("path", "age"), title="test")


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Window]:
    """A fast window without a screen, in an empty directory."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    window = Window(fps=1000, title="test")
    yield window
    window.close()


@pytest.fixture
def opened(window: Window, snapshot: Snapshot) -> Window:
    """The window after its first step."""
    assert window.show(snapshot) is Request.CONTINUE
    pygame.event.clear()
    return window


def press(*keys: int) -> None:
    for key in keys:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key, unicode=chr(key) if key < 128 else "", mod=0))


def screen() -> np.ndarray:
    """(h, w, 3) pixels of the window."""
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def picture() -> np.ndarray:
    """The window without its status line."""
    return screen()[:-STATUS]


def steps(snapshot: Snapshot, *numbers: int) -> list[Snapshot]:
    return [replace(snapshot, step=number) for number in numbers]


def frame_of(snapshot: Snapshot, **options: bool) -> np.ndarray:
    return draw_frame(
        snapshot.tiles,
        snapshot.channels,
        snapshot.target,
        channel_names=snapshot.channel_names,
        step=snapshot.step,
        title=snapshot.title,
        size=picture().shape[:2],
        **options,
    )


def tile_position(snapshot: Snapshot, row: int, col: int) -> tuple[int, int]:
    """Mouse position (right, down) of the middle of a tile."""
    maze = frame_layout(*snapshot.tiles.shape, len(snapshot.channels), size=picture().shape[:2]).maze
    return maze.left + col * maze.cell + maze.cell // 2, maze.top + row * maze.cell + maze.cell // 2


def mouse(kind: int, position: tuple[int, int]) -> None:
    more = {"buttons": (1, 0, 0), "rel": (0, 0)} if kind == pygame.MOUSEMOTION else {"button": 1}
    pygame.event.post(pygame.event.Event(kind, pos=position, **more))


def test_running_shows_the_frame_and_asks_for_the_next_step(opened: Window, snapshot: Snapshot) -> None:
    assert np.array_equal(picture(), frame_of(snapshot))
    later = replace(snapshot, step=1)
    assert opened.show(later) is Request.CONTINUE
    assert np.array_equal(picture(), frame_of(later))


def test_only_the_display_is_started(opened: Window) -> None:
    assert pygame.display.get_init()
    assert not pygame.mixer.get_init()
    assert not pygame.joystick.get_init()


def test_speed_is_capped(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window(fps=20, title="slow")
    window.show(snapshot)
    start = time.monotonic()
    for _ in range(4):
        window.show(snapshot)
    window.close()
    assert time.monotonic() - start >= 4 / 20 - 0.01


@pytest.mark.parametrize("key", [pygame.K_q, pygame.K_ESCAPE])
def test_quit_keys_close_the_window_for_good(opened: Window, snapshot: Snapshot, key: int) -> None:
    press(key)
    assert opened.show(snapshot) is Request.QUIT
    assert not pygame.display.get_init()
    assert opened.show(snapshot) is Request.QUIT
    assert not pygame.display.get_init()
    opened.close()


def test_close_button_quits(opened: Window, snapshot: Snapshot) -> None:
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert opened.show(snapshot) is Request.QUIT


def test_close_is_legal_before_opening_and_twice(window: Window, snapshot: Snapshot) -> None:
    window.close()
    window.close()
    assert window.show(snapshot) is Request.QUIT


def test_a_display_that_someone_else_closed_is_a_closed_window(opened: Window, snapshot: Snapshot) -> None:
    pygame.display.quit()
    assert opened.show(snapshot) is Request.QUIT


def test_new_level_key(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_r)
    assert opened.show(snapshot) is Request.NEW_LEVEL


def test_right_makes_one_step_and_pauses(opened: Window, snapshot: Snapshot) -> None:
    first, second = steps(snapshot, 1, 2)
    press(pygame.K_RIGHT)
    assert opened.show(first) is Request.CONTINUE
    pygame.time.set_timer(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_r, unicode="r"), 60, loops=1)
    start = time.monotonic()
    assert opened.show(second) is Request.NEW_LEVEL  # paused: only the key, later, ended the wait
    assert time.monotonic() - start > 0.04


def test_space_pauses_and_continues(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_SPACE, pygame.K_SPACE)
    assert opened.show(snapshot) is Request.CONTINUE
    press(pygame.K_SPACE, pygame.K_RIGHT, pygame.K_RIGHT, pygame.K_SPACE)
    assert [opened.show(snapshot) for _ in range(3)] == [Request.CONTINUE] * 3
    assert pygame.event.poll().type == pygame.NOEVENT


def test_keys_pressed_at_once_are_answered_one_show_at_a_time(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_RIGHT, pygame.K_r, pygame.K_RIGHT, pygame.K_q)
    answers = [opened.show(snapshot) for _ in range(4)]
    assert answers == [Request.CONTINUE, Request.NEW_LEVEL, Request.CONTINUE, Request.QUIT]


def test_left_looks_back_and_right_comes_forward_before_a_new_step(window: Window, snapshot: Snapshot) -> None:
    shots = steps(snapshot, 1, 2, 3)
    for shot in shots:
        window.show(shot)
    seen: list[int] = []
    redraw = window._redraw

    def spy() -> None:
        redraw()
        seen.extend(shot.step for shot in shots if np.array_equal(picture(), frame_of(shot)))
        keys = [pygame.K_LEFT, pygame.K_LEFT, pygame.K_RIGHT, pygame.K_RIGHT, pygame.K_RIGHT]
        if len(seen) <= len(keys):
            press(keys[len(seen) - 1])

    window._redraw = spy  # type: ignore[method-assign]
    pygame.event.clear()
    shots[:] = steps(snapshot, 1, 2, 3, 4)
    assert window.show(shots[3]) is Request.CONTINUE
    assert seen == [4, 3, 2, 3, 4]


def test_history_holds_copies(opened: Window, snapshot: Snapshot) -> None:
    before = frame_of(snapshot)
    snapshot.channels[:] = 5
    press(pygame.K_LEFT, pygame.K_c, pygame.K_c, pygame.K_s, pygame.K_q)
    opened.show(replace(snapshot, step=1))
    with Image.open("maze-0001.png") as image:
        assert np.array_equal(np.asarray(image), before)


def test_left_at_the_oldest_step_stays_there(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_LEFT, pygame.K_LEFT, pygame.K_LEFT, pygame.K_RIGHT, pygame.K_RIGHT)
    assert opened.show(replace(snapshot, step=1)) is Request.CONTINUE
    assert pygame.event.poll().type == pygame.NOEVENT


def test_space_continues_from_the_newest_step(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_LEFT, pygame.K_SPACE)
    assert opened.show(replace(snapshot, step=1)) is Request.CONTINUE
    assert opened.show(replace(snapshot, step=2)) is Request.CONTINUE
    assert np.array_equal(picture(), frame_of(replace(snapshot, step=2)))


def test_channels_are_switched_off_and_on(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_c)
    opened.show(snapshot)
    opened.show(snapshot)
    assert np.array_equal(picture(), frame_of(snapshot, show_channels=False))


@pytest.mark.parametrize("event", [{"key": pygame.K_h, "unicode": "h"}, {"key": pygame.K_SLASH, "unicode": "?"}])
def test_help_is_shown_below_the_picture(opened: Window, snapshot: Snapshot, event: dict[str, object]) -> None:
    without = screen()[-STATUS:].copy()
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, **event))
    opened.show(snapshot)
    opened.show(snapshot)
    assert (screen()[-STATUS:] != without).any(axis=(0, 2)).sum() > 300
    assert np.array_equal(picture(), frame_of(snapshot))


def test_pictures_get_numbers_and_overwrite_nothing(opened: Window, snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "maze-0001.png").write_bytes(b"mine")
    press(pygame.K_s, pygame.K_s, pygame.K_q)
    opened.show(snapshot)
    assert (tmp_path / "maze-0001.png").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"maze-000{n}.png" for n in (1, 2, 3)]
    with Image.open(tmp_path / "maze-0003.png") as image:
        assert image.mode == "RGB"


def test_a_picture_that_cannot_be_saved_is_no_crash(
    opened: Window, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("maze_nca_gym.rendering.window.save_png", refuse)
    before = screen()[-STATUS:].copy()
    press(pygame.K_s)
    assert opened.show(snapshot) is Request.CONTINUE
    opened.show(snapshot)
    assert not np.array_equal(screen()[-STATUS:], before)


def test_resized_window_lays_the_frame_out_anew(opened: Window, snapshot: Snapshot) -> None:
    pygame.display.set_mode((700, 500), pygame.RESIZABLE)
    pygame.event.post(pygame.event.Event(pygame.VIDEORESIZE, size=(700, 500), w=700, h=500))
    opened.show(snapshot)
    assert screen().shape == (500, 700, 3)
    assert np.array_equal(picture(), frame_of(snapshot))
    for size in ((60, 30), (1, 1), (400, 900)):
        pygame.display.set_mode(size, pygame.RESIZABLE)
        assert opened.show(snapshot) is Request.CONTINUE


@pytest.mark.parametrize("tile", [(1, 2), (2, 4), (2, 1), (3, 1)])
def test_a_click_edits_the_tile_under_it(opened: Window, snapshot: Snapshot, tile: tuple[int, int]) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, *tile))
    assert opened.show(snapshot) is Request.EDIT
    assert opened.take_edits() == [tile]
    assert opened.take_edits() == []


@pytest.mark.parametrize("tile", [(0, 2), (4, 1), (2, 0), (2, 5), (1, 1), (3, 3), (-1, 2), (2, 7)])
def test_border_source_target_and_outside_are_not_edited(
    opened: Window, snapshot: Snapshot, tile: tuple[int, int]
) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, *tile))
    assert opened.show(snapshot) is Request.CONTINUE
    assert opened.take_edits() == []


def test_other_buttons_edit_nothing(opened: Window, snapshot: Snapshot) -> None:
    position = tile_position(snapshot, 1, 2)
    pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=position, button=3))
    mouse(pygame.MOUSEMOTION, position)
    assert opened.show(snapshot) is Request.CONTINUE


def test_a_stroke_goes_on_as_it_began(opened: Window, snapshot: Snapshot) -> None:
    """From the empty (1, 2) over the empty (1, 3) and the wall (1, 4): it draws walls, and erases none."""
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, 1, 2))
    for col in (2, 3, 4):
        mouse(pygame.MOUSEMOTION, tile_position(snapshot, 1, col))
    mouse(pygame.MOUSEBUTTONUP, tile_position(snapshot, 1, 4))
    mouse(pygame.MOUSEMOTION, tile_position(snapshot, 3, 2))
    edited, tiles = [], snapshot.tiles.copy()
    while opened.show(replace(snapshot, tiles=tiles)) is Request.EDIT:
        for tile in opened.take_edits():
            edited.append(tile)
            tiles = tiles.copy()
            tiles[tile] = Tile.WALL - tiles[tile]
    assert edited == [(1, 2), (1, 3)]


def test_an_edited_snapshot_replaces_the_newest(opened: Window, snapshot: Snapshot) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, 1, 2))
    assert opened.show(replace(snapshot, step=1)) is Request.EDIT
    press(pygame.K_LEFT, pygame.K_s, pygame.K_q)
    opened.show(replace(snapshot, step=1, title="edited"))
    with Image.open("maze-0001.png") as image:  # one step back lies step 0, not the unedited step 1
        assert np.array_equal(np.asarray(image), draw_frame_like(image, snapshot))


def draw_frame_like(image: Image.Image, snapshot: Snapshot) -> np.ndarray:
    return draw_frame(
        snapshot.tiles,
        snapshot.channels,
        snapshot.target,
        channel_names=snapshot.channel_names,
        title=snapshot.title,
        size=image.size[::-1],
    )


def test_old_steps_are_not_edited(opened: Window, snapshot: Snapshot) -> None:
    press(pygame.K_LEFT)
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, 1, 2))
    press(pygame.K_q)
    assert opened.show(replace(snapshot, step=1)) is Request.QUIT


def test_edits_that_were_not_taken_are_dropped(opened: Window, snapshot: Snapshot) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, tile_position(snapshot, 1, 2))
    assert opened.show(snapshot) is Request.EDIT
    assert opened.show(snapshot) is Request.CONTINUE
    assert opened.take_edits() == []


def test_level_of_another_size_is_shown(opened: Window, snapshot: Snapshot) -> None:
    tiles = np.zeros((9, 4), np.uint8)
    larger = replace(snapshot, tiles=tiles, channels=np.zeros((5, 9, 4), np.float32), target=tiles > 0)
    assert opened.show(larger) is Request.CONTINUE
    assert np.array_equal(picture(), frame_of(larger))


def test_missing_pygame_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match="pip install pygame-ce"):
        Window(fps=10, title="test")


def test_pygame_is_imported_by_the_window_alone() -> None:
    program = "import sys, maze_nca_gym.rendering; sys.exit('pygame' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("fps", [0, -1, float("nan")])
def test_a_speed_that_is_not_positive_is_refused(fps: float) -> None:
    with pytest.raises(ValueError, match="fps must be positive"):
        Window(fps=fps, title="test")


def test_history_forgets_the_oldest_beyond_its_memory(snapshot: Snapshot) -> None:
    history = History(max_bytes=snapshot.n_bytes * 3)
    for shot in steps(snapshot, *range(10)):
        history.append(shot)
    assert len(history) == 3
    assert history.move(-2)
    assert history.viewed.step == 7
    assert not history.move(-1)
    assert history.move(2)
    assert not history.move(1)
    assert history.viewed.step == 9


def test_history_keeps_at_least_the_newest(snapshot: Snapshot) -> None:
    history = History(max_bytes=1)
    for shot in steps(snapshot, 0, 1):
        history.append(shot)
    assert len(history) == 1
    assert history.viewed.step == 1


def test_status_line_is_no_part_of_the_maze(opened: Window) -> None:
    assert tuple(screen()[-2, -2].tolist()) == palette.GRID
