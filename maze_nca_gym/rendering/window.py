"""The window: shows an automaton's steps and lets the user pause, step, look back and edit walls.

pygame is imported by the window's constructor, not with this module.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from enum import Enum, auto
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from maze_nca_gym.levels import Tile, parse
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.files import save_png
from maze_nca_gym.rendering.frame import draw_frame, draw_level
from maze_nca_gym.rendering.history import History, Snapshot
from maze_nca_gym.rendering.layout import Layout, frame_layout
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.text import put_text, shorten, text_height, text_width

HELP = (
    "space: pause    right: step    left: back    r: new level    c: channels    s: save PNG    "
    "mouse: edit walls    h: help    q: quit"
)
_ICON = "S.#.\n#.#.\n#...\n..#T"
_HINT = "h: help"
_STATUS_HEIGHT, _STATUS_MARGIN, _STATUS_SIZE = 26, 12, 14
_SHARE_OF_SCREEN = 0.9
"""The window's first size at most."""
_IDLE_MILLISECONDS = 100
"""While paused, the window sleeps until an event or for so long."""


class Request(Enum):
    """The user's next wish."""

    CONTINUE = auto()
    """The next step."""
    NEW_LEVEL = auto()
    """Another level."""
    EDIT = auto()
    """No step: toggle the walls that `Window.take_edits` lists, then show the changed state."""
    QUIT = auto()
    """No window any more."""


class Window:
    """A window on an automaton, and its controls.

    The keys:

    - Space pauses and continues; right makes one step and pauses.
    - Left goes back, to view only; right then comes forward again before it asks for a new step.
    - r asks for a new level; c shows and hides the channels; s saves a PNG into the current directory.
    - h or ? shows the keys; q, Escape and the close button quit.
    - The left mouse button, pressed or dragged over the newest step's maze, draws and erases walls.

    Only pygame's display is started; it opens at the first `show`. A process has one such window at a time.

    Args:
        fps: the largest number of steps per second while running.
        title: the title of the window.

    Raises:
        gymnasium.error.DependencyNotInstalled: pygame is missing.
        ValueError: fps is not positive.
    """

    def __init__(self, fps: float, title: str) -> None:
        if not fps > 0:
            raise ValueError(f"fps must be positive, got {fps}")
        self._pygame = _import_pygame()
        self._actions = self._bind_keys()
        self._interval, self._title = 1 / fps, title
        self._history = History()
        self._screen: Any = None
        self._request: Request | None = None
        self._edits: list[tuple[int, int]] = []
        self._stroke: bool | None = None  # while the button is down: whether it draws walls or erases them
        self._due = 0.0
        self._message = ""
        self._show_channels = self._stale = True
        self._closed = self._paused = self._show_help = False

    def show(self, snapshot: Snapshot) -> Request:
        """Show a step; returns when the next one is due, or when the user wants something else.

        Blocks while paused. After an `EDIT` the next snapshot takes the last one's place in the history.
        Once the user has quit, or `close` was called, this does nothing and returns `QUIT`.
        """
        if self._screen is not None and self._pygame.display.get_surface() is None:
            self.close()  # another environment's window took the display with it
        if self._closed:
            return Request.QUIT
        self._remember(snapshot.copy())
        self._edits.clear()
        self._request, self._stale = None, True
        self._open()
        while self._request is None:
            self._redraw()
            self._handle_events()
            self._continue_if_due()
        if self._request is Request.QUIT:
            self.close()
        return self._request

    def take_edits(self) -> list[tuple[int, int]]:
        """Return the (row, col) of tiles to toggle between wall and empty, after an `EDIT`; the next call starts a new
        list.

        They are always inner tiles, never source or target.
        """
        edits, self._edits = self._edits, []
        return edits

    def close(self) -> None:
        """Close the window; a second call does nothing."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None
        self._closed = True

    def _remember(self, snapshot: Snapshot) -> None:
        if self._request is Request.EDIT:
            self._history.replace_newest(snapshot)
        else:
            self._history.append(snapshot)
            self._due = max(time.monotonic(), self._due + self._interval)

    def _open(self) -> None:
        """Open the window at the default frame's size, or what the screen has room for."""
        if self._screen is not None:
            return
        display = self._pygame.display
        display.init()
        layout = self._layout(None)
        screen_width, screen_height = display.get_desktop_sizes()[0]
        width = min(layout.width, int(screen_width * _SHARE_OF_SCREEN))
        height = min(layout.height + _STATUS_HEIGHT, int(screen_height * _SHARE_OF_SCREEN))
        icon = draw_level(parse(_ICON), cell=8)
        display.set_icon(self._pygame.image.frombuffer(icon.tobytes(), icon.shape[1::-1], "RGB"))
        self._screen = display.set_mode((width, height), self._pygame.RESIZABLE)
        display.set_caption(self._title)

    def _layout(self, size: tuple[int, int] | None) -> Layout:
        viewed = self._history.viewed
        rows, cols = viewed.tiles.shape
        return frame_layout(rows, cols, len(viewed.channels), self._show_channels, size)

    def _frame_size(self) -> tuple[int, int]:
        """Return (height, width) in pixels of the frame, the window without its status line."""
        width, height = self._screen.get_size()
        return max(1, height - _STATUS_HEIGHT), width

    def _frame(self) -> Frame:
        """Return the snapshot in view at the window's size."""
        viewed = self._history.viewed
        return draw_frame(
            viewed.tiles,
            viewed.channels,
            viewed.target,
            channel_names=viewed.channel_names,
            step=viewed.step,
            accuracy=viewed.accuracy,
            title=viewed.title,
            front=viewed.front,
            show_channels=self._show_channels,
            size=self._frame_size(),
        )

    def _redraw(self) -> None:
        """Bring what has changed to the screen."""
        if not self._stale:
            return
        height, width = self._frame_size()
        picture = np.empty((height + _STATUS_HEIGHT, width, 3), dtype=np.uint8)
        picture[:height] = self._frame()
        picture[height:] = palette.GRID
        self._draw_status(picture[height:])
        image = self._pygame.image.frombuffer(picture.tobytes(), (width, len(picture)), "RGB")
        self._screen.blit(image, (0, 0))
        self._pygame.display.flip()
        self._stale = False

    def _draw_status(self, line: Frame) -> None:
        """Draw whether it runs, the last action and the key for help; or the keys."""
        top, right = (_STATUS_HEIGHT - text_height(_STATUS_SIZE)) // 2, line.shape[1] - _STATUS_MARGIN
        text = HELP
        if not self._show_help:
            put_text(line, top, right, _HINT, _STATUS_SIZE, palette.FAINT_INK, "right")
            right -= text_width(_HINT, _STATUS_SIZE) + _STATUS_MARGIN
            text = "    ".join(part for part in (self._progress(), self._message) if part)
        put_text(line, top, _STATUS_MARGIN, shorten(text, _STATUS_SIZE, right - _STATUS_MARGIN), _STATUS_SIZE)

    def _progress(self) -> str:
        if self._history.back:
            return f"paused, {self._history.back} of {len(self._history) - 1} steps back"
        return "paused" if self._paused else "running"

    def _handle_events(self) -> None:
        """Sleep until an event or the next step, then handle events until one of them ends `show`."""
        pygame = self._pygame
        rest = _IDLE_MILLISECONDS if self._paused else int((self._due - time.monotonic()) * 1000)
        event = pygame.event.wait(max(1, rest)) if self._paused or rest > 0 else pygame.event.poll()
        while event.type != pygame.NOEVENT:
            self._handle(event)
            if self._request is not None:
                return
            event = pygame.event.poll()

    def _continue_if_due(self) -> None:
        if self._request is None and not self._paused and time.monotonic() >= self._due:
            self._request = Request.CONTINUE

    def _handle(self, event: Any) -> None:
        """Do what an event asks for."""
        pygame = self._pygame
        if event.type == pygame.QUIT:
            self._request = Request.QUIT
        elif event.type == pygame.KEYDOWN:
            self._press("?" if event.unicode == "?" else event.key)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self._begin_stroke(event.pos)
        elif event.type == pygame.MOUSEMOTION and self._stroke is not None:
            self._draw_stroke(event.pos)
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            self._stroke = None
        elif event.type in (pygame.VIDEORESIZE, pygame.VIDEOEXPOSE):
            self._stale = True

    def _bind_keys(self) -> dict[int | str, Callable[[], None]]:
        pygame = self._pygame
        return {
            pygame.K_SPACE: self._pause_or_continue,
            pygame.K_RIGHT: self._go_forward,
            pygame.K_LEFT: self._go_back,
            pygame.K_r: self._ask_new_level,
            pygame.K_c: self._toggle_channels,
            pygame.K_s: self._save,
            pygame.K_h: self._toggle_help,
            "?": self._toggle_help,
            pygame.K_q: self._quit,
            pygame.K_ESCAPE: self._quit,
        }

    def _press(self, key: int | str) -> None:
        if key in self._actions:
            self._message, self._stale = "", True
            self._actions[key]()

    def _pause_or_continue(self) -> None:
        self._paused = not self._paused
        if not self._paused:
            self._history.back = 0

    def _go_forward(self) -> None:
        self._paused = True
        if not self._history.move(1):
            self._request = Request.CONTINUE

    def _go_back(self) -> None:
        self._paused = True
        if not self._history.move(-1):
            self._message = "no earlier step"

    def _ask_new_level(self) -> None:
        self._request = Request.NEW_LEVEL

    def _toggle_channels(self) -> None:
        self._show_channels = not self._show_channels

    def _toggle_help(self) -> None:
        self._show_help = not self._show_help

    def _quit(self) -> None:
        self._request = Request.QUIT

    def _save(self) -> None:
        try:
            self._message = f"saved {save_png(_free_path(Path.cwd()), self._frame())}"
        except OSError as error:
            self._message = f"not saved: {error}"

    def _begin_stroke(self, pos: tuple[int, int]) -> None:
        """Toggle the tile under the mouse; until the button is released, the stroke goes on as it began."""
        tile = self._editable_tile(pos)
        if tile is not None and self._history.back:
            self._message, self._stale = "walls are edited at the newest step", True
        elif tile is not None:
            self._stroke = self._history.viewed.tiles[tile] != Tile.WALL
            self._draw_stroke(pos)

    def _draw_stroke(self, pos: tuple[int, int]) -> None:
        tile = self._editable_tile(pos)
        if tile is not None and (self._history.viewed.tiles[tile] != Tile.WALL) == self._stroke:
            self._edits.append(tile)
            self._request = Request.EDIT

    def _editable_tile(self, pos: tuple[int, int]) -> tuple[int, int] | None:
        """Return (row, col) of the inner, empty or wall tile under the mouse."""
        tiles = self._history.viewed.tiles
        tile = self._layout(self._frame_size()).maze.tile_at(pos[1], pos[0])
        if tile is None or tiles[tile] in (Tile.SOURCE, Tile.TARGET):
            return None
        inner = all(0 < at < last for at, last in zip(tile, (n - 1 for n in tiles.shape), strict=True))
        return tile if inner else None


def _import_pygame() -> ModuleType:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # its greeting would spoil piped output
    try:
        return import_module("pygame")
    except ImportError as error:
        raise DependencyNotInstalled(
            "the window needs pygame: run `pip install pygame-ce`, or render_mode='rgb_array'"
        ) from error


def _free_path(folder: Path) -> Path:
    """Return the first numbered picture's name that is not taken."""
    number = 1
    while (path := folder / f"maze-{number:04d}.png").exists():
        number += 1
    return path
