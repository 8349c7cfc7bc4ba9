from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from tables import for_each, refused

from maze_nca_gym import ENVIRONMENTS, EVOLVING_ENVIRONMENTS
from maze_nca_gym.cli import main
from maze_nca_gym.mazes.levels import Tile
from maze_nca_gym.rendering import Action, NoScreenError, Request, Snapshot, Window
from maze_nca_gym.rendering.edits import Paint

FPS = 40
"""Frames per second: fast, but every step is drawn."""


@pytest.fixture
def snapshot(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, step=1)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Window]:
    """A fast window without a screen, in an empty directory."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    window = Window(FPS, "test", {Action.POLICY: ("a", "b")}, restarts=True)
    yield window
    window.close()


@pytest.fixture
def stepped(window: Window, snapshot: Snapshot) -> Window:
    """The window after its first step."""
    assert window.show(snapshot) is Request.CONTINUE
    pygame.event.clear()
    return window


def press(*keys: int, unicode: str | None = None) -> None:
    for key in keys:
        letter = chr(key) if key < 128 else ""
        event = pygame.event.Event(pygame.KEYDOWN, key=key, unicode=letter if unicode is None else unicode, mod=0)
        pygame.event.post(event)


def screen() -> np.ndarray:
    """Return the (h, w, 3) pixels of the window."""
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def place_of(window: Window, row: int, col: int) -> tuple[int, int]:
    """Return the mouse position (right, down) of the middle of a tile."""
    maze = window._interface._layout().maze
    return maze.left + col * maze.cell + maze.cell // 2, maze.top + row * maze.cell + maze.cell // 2


def mouse(kind: int, position: tuple[int, int], button: int = 1) -> None:
    more = {"buttons": (1, 0, 0), "rel": (0, 0)} if kind == pygame.MOUSEMOTION else {"button": button}
    pygame.event.post(pygame.event.Event(kind, pos=position, **more))


def test_running_shows_every_step_and_asks_for_the_next(stepped: Window, snapshot: Snapshot) -> None:
    before = screen().copy()
    assert stepped.show(replace(snapshot, step=9_999)) is Request.CONTINUE
    later = screen()
    assert not np.array_equal(before, later)
    assert np.array_equal(later[: stepped._interface.picture().shape[0]], stepped._interface.picture())
    assert not pygame.mixer.get_init()  # only the display of pygame is started
    assert not pygame.joystick.get_init()


def test_a_window_in_memory_is_not_visible(stepped: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stepped.is_seen
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "x11")
    assert stepped.is_seen
    stepped.close()
    assert not stepped.is_seen


def test_speed_is_capped(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window(20, "slow")
    start = time.monotonic()
    for _ in range(5):
        window.show(snapshot)
    window.close()
    assert time.monotonic() - start >= 4 / 20 - 0.01


def test_fast_steps_are_not_all_drawn(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window, frames = Window(100_000, "fast"), []
    picture = window._interface.picture
    monkeypatch.setattr(window._interface, "picture", lambda: (frames.append(1), picture())[1])
    start = time.monotonic()
    for step in range(300):
        assert window.show(replace(snapshot, step=step + 1)) is Request.CONTINUE
    elapsed = time.monotonic() - start
    window.close()
    assert 1 <= len(frames) <= 60 * elapsed + 2


@for_each(
    "end",
    [
        lambda window: press(pygame.K_q),
        lambda window: pygame.event.post(pygame.event.Event(pygame.QUIT)),
        lambda window: pygame.display.quit(),
        lambda window: window.close(),
    ],
)
def test_a_window_is_closed_for_good(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot, end: Any) -> None:
    """The window closes by a key, by its button, by another program that closes the display, and by a call."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window(FPS, "test")
    assert window.show(snapshot) is Request.CONTINUE
    end(window)
    for _ in range(2):
        assert window.show(snapshot) is Request.QUIT
        assert not pygame.display.get_init()
        window.close()


def test_keys_send_requests_and_characters_work_on_any_keyboard(stepped: Window, snapshot: Snapshot) -> None:
    """All keys are pressed at once, and each `show` answers one."""
    keys = (pygame.K_n, pygame.K_r, pygame.K_RIGHT, pygame.K_PERIOD, pygame.K_LEFT, pygame.K_COMMA)
    press(*keys)
    press(pygame.K_7, unicode=".")
    press(pygame.K_q)
    level, back, step = Request.NEW_LEVEL, Request.BACK, Request.STEP
    answers = [stepped.show(snapshot) for _ in range(8)]
    assert answers == [level, Request.RESTART, step, step, back, back, step, Request.QUIT]


def test_space_and_steps_pause_and_choices_are_reported(stepped: Window, snapshot: Snapshot) -> None:
    press(pygame.K_SPACE, pygame.K_SPACE)
    assert stepped.show(snapshot) is Request.CONTINUE
    press(pygame.K_SPACE, pygame.K_RIGHT, pygame.K_RIGHT, pygame.K_SPACE)
    assert [stepped.show(snapshot) for _ in range(3)] == [Request.STEP, Request.STEP, Request.CONTINUE]
    assert pygame.event.poll().type == pygame.NOEVENT
    press(pygame.K_p, pygame.K_DOWN, pygame.K_RETURN, pygame.K_RIGHT)
    assert (stepped.show(snapshot), stepped.choice) == (Request.CHOOSE, (Action.POLICY, "b"))
    assert stepped.show(snapshot) is Request.STEP
    pygame.time.set_timer(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_n, unicode="n"), 90, loops=1)
    start = time.monotonic()
    assert stepped.show(snapshot) is Request.NEW_LEVEL  # the step paused the window until the key was pressed
    assert time.monotonic() - start > 0.06


def test_a_stroke_is_a_sequence_of_edits(stepped: Window, snapshot: Snapshot) -> None:
    """A stroke from the empty (1, 2) over the empty (1, 3) and the wall (1, 4) draws walls and erases none."""
    mouse(pygame.MOUSEBUTTONDOWN, place_of(stepped, 1, 2))
    for col in (2, 3, 4):
        mouse(pygame.MOUSEMOTION, place_of(stepped, 1, col))
    mouse(pygame.MOUSEBUTTONUP, place_of(stepped, 1, 4))
    mouse(pygame.MOUSEMOTION, place_of(stepped, 3, 2))
    edits = []
    while stepped.show(snapshot) is Request.EDIT:
        edits.append(stepped.edit)
    assert edits == [Paint(places, Tile.WALL) for places in (((1, 2),), ((1, 2), (1, 3)), ((1, 3), (1, 4)))]


@pytest.mark.parametrize("key", [pygame.K_n, pygame.K_r])
def test_no_click_reaches_another_level(stepped: Window, snapshot: Snapshot, key: int) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, place_of(stepped, 1, 2))
    assert stepped.show(snapshot) is Request.EDIT
    press(key)
    mouse(pygame.MOUSEMOTION, place_of(stepped, 1, 3))
    mouse(pygame.MOUSEBUTTONDOWN, place_of(stepped, 3, 2))
    assert stepped.show(snapshot) in (Request.NEW_LEVEL, Request.RESTART)
    assert stepped.show(replace(snapshot, step=0)) is Request.CONTINUE
    mouse(pygame.MOUSEMOTION, place_of(stepped, 1, 2))  # the button is still pressed, but its stroke has ended
    assert stepped.show(snapshot) is Request.CONTINUE


def test_no_click_reaches_a_level_that_began_automatically(stepped: Window, snapshot: Snapshot) -> None:
    mouse(pygame.MOUSEBUTTONDOWN, place_of(stepped, 1, 2))
    assert stepped.show(replace(snapshot, step=0)) is Request.CONTINUE


def test_other_buttons_edit_nothing(stepped: Window, snapshot: Snapshot) -> None:
    for button in (2, 3):
        mouse(pygame.MOUSEBUTTONDOWN, place_of(stepped, 1, 2), button)
    mouse(pygame.MOUSEMOTION, place_of(stepped, 1, 3))
    assert stepped.show(snapshot) is Request.CONTINUE


def test_windows_and_levels_of_other_sizes_are_laid_out_anew(
    stepped: Window, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maze_nca_gym.rendering.window._SECONDS_OF_A_FRAME", 0)  # so that every step is drawn
    for size in ((700, 500), (60, 30), (1, 1), (400, 900), (1800, 1000)):
        pygame.display.set_mode(size, pygame.RESIZABLE)
        pygame.event.post(pygame.event.Event(pygame.VIDEORESIZE, size=size, w=size[0], h=size[1]))
        assert stepped.show(snapshot) is Request.CONTINUE
        picture = stepped._interface.picture()
        assert np.array_equal(screen(), picture[: size[1], : size[0]])
    for shape, n_channels in (((9, 4), 5), ((1, 1), 1), ((130, 200), 75)):
        tiles = np.zeros(shape, np.uint8)
        channels = np.zeros((n_channels, *shape), np.float32)
        other = replace(snapshot, tiles=tiles, channels=channels, target=tiles > 0, channel_names=None)
        assert stepped.show(other) is Request.CONTINUE
        assert np.array_equal(screen(), stepped._interface.picture())


def test_a_missing_pygame_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match="pip install pygame-ce"):
        Window(fps=10, title="test")


@for_each("fps", [0, -1, float("nan")])
def test_a_speed_that_is_not_positive_is_refused(fps: float) -> None:
    refused("fps must be positive", Window, fps=fps, title="test")


NOISE = b"noise of a library"
NO_SCREEN = ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")
"""Environment variables; if all are missing, there is no screen."""


def test_without_a_screen_one_line_reports_it_and_libraries_print_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in NO_SCREEN:
        monkeypatch.delenv(name, raising=False)
    assert main(["play", "--size", "4"]) == 2
    output = capfd.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert "window" in output.err


def test_a_failing_display_counts_as_no_screen_and_libraries_print_nothing(
    window: Window, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        os.write(2, NOISE)
        raise pygame.error("x11 not available")

    monkeypatch.setattr(pygame.display, "init", fail)
    with pytest.raises(NoScreenError, match="x11 not available"):
        window.show(snapshot)
    os.write(2, b"something of ours")
    assert capfd.readouterr().err == "something of ours"


@pytest.mark.parametrize("id", [*ENVIRONMENTS, *EVOLVING_ENVIRONMENTS])
def test_without_a_screen_the_checker_of_gymnasium_reports_nothing(
    id: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in NO_SCREEN:
        monkeypatch.delenv(name, raising=False)
    check_env(gym.make(id).unwrapped)
    assert "SDL_VIDEODRIVER" not in os.environ
    assert capfd.readouterr().err == ""


def test_without_a_driver_environments_draw_into_memory_and_play_fails(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An SDL in which the driver without a screen works only on request."""
    init = pygame.display.init

    def only_dummy() -> None:
        os.write(2, NOISE)
        if os.environ.get("SDL_VIDEODRIVER") != "dummy":
            raise pygame.error("No available video device")
        init()

    monkeypatch.setattr(pygame.display, "init", only_dummy)
    monkeypatch.delenv("SDL_VIDEODRIVER")
    window = Window(FPS, "test", needs_screen=False)
    assert window.show(snapshot) is Request.CONTINUE
    assert screen().any()
    window.close()
    with pytest.raises(NoScreenError, match="No available video device"):
        Window(FPS, "test").show(snapshot)
    monkeypatch.setenv("SDL_VIDEODRIVER", "x11")  # a driver that the user has chosen is kept
    with pytest.raises(NoScreenError, match="No available video device"):
        Window(FPS, "test", needs_screen=False).show(snapshot)
    assert os.environ["SDL_VIDEODRIVER"] == "x11"
    assert capfd.readouterr().err == ""
