"""The window: it shows an automaton's steps, and returns the user's requests.

It opens the screen, waits, and passes events to an `Interface`. The caller of `show` runs the automaton and fulfils the
requests. pygame is imported by the window's constructor, not with this module.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any

from maze_nca_gym.mazes.levels import parse
from maze_nca_gym.rendering.controls import Action, Request
from maze_nca_gym.rendering.edits import Edit
from maze_nca_gym.rendering.frame import Snapshot, draw_level
from maze_nca_gym.rendering.interface import Interface
from maze_nca_gym.support.doors import needing

_ICON = "S.#.\n#.#.\n#...\n..#T"
_SIZE = (900, 1500)
"""Initial (height, width) of the window, if the screen has room."""
_SHARE_OF_SCREEN = 0.9
_IDLE_MILLISECONDS = 100
"""Longest time for which a paused window sleeps if there is no event."""
_SECONDS_OF_A_FRAME = 1 / 60
"""Shortest time between two drawn frames; if steps are faster, some are not drawn."""
_BUTTONS = {1: False, 3: True}
"""Mouse buttons that have an effect, and whether they tint the maze."""
_DRIVER = "SDL_VIDEODRIVER"
"""Environment variable by which a user chooses how SDL draws."""
_UNSEEN = ("offscreen", "dummy")
"""Drivers of SDL that draw into memory."""
_OTHER_LEVEL = (Request.NEW_LEVEL, Request.RESTART, Request.CHOOSE)


class NoScreenError(OSError):
    """The error if there is no screen on which a window can open."""


class Window:
    """A window on an automaton, and its controls; the key `?` explains them.

    Of pygame, only the display is started, at the first `show`, which opens the window. A process has one such window
    at a time.

    Args:
        fps: the initial limit on steps per second while running.
        title: the title of the window.
        menus: names to choose from, for `Action.POLICY` and `Action.LEVEL`; a control without names is left out.
        restarts: whether the caller fulfils `Request.RESTART`.
        needs_screen: whether `show` fails without a screen; if not, SDL draws into memory.

    Raises:
        gymnasium.error.DependencyNotInstalled: pygame is missing.
        ValueError: fps is not positive.
    """

    def __init__(
        self,
        fps: float,
        title: str,
        menus: Mapping[Action, Sequence[str]] | None = None,
        restarts: bool = False,
        needs_screen: bool = True,
    ) -> None:
        if not fps > 0:
            raise ValueError(f"fps must be positive, got {fps}")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # its greeting would spoil piped output
        with needing("the window needs pygame: run `pip install pygame-ce`, or render_mode='rgb_array'"):
            self._pygame = import_module("pygame")
        self._interface = Interface(fps, menus or {}, restarts)
        self._title = title
        self._needs_screen = needs_screen
        self._screen: Any = None
        self._due = self._drawn_at = 0.0
        self._stale, self._closed = True, False

    def show(
        self, snapshot: Snapshot, notice: str = "", running: Mapping[Action, str] = MappingProxyType({})
    ) -> Request:
        """Show a step; return the user's request, or the request for the next step once its time has come.

        The call waits while the window is paused. Once the user has quit, or `close` was called, it does nothing and
        returns `QUIT`.

        Args:
            snapshot: the step; its arrays must not change before the next call.
            notice: a few words for the status line, such as the reason why the last change was not made.
            running: the name in use of each menu, which the menu marks.

        Raises:
            NoScreenError: there is no screen, and the window needs one.
        """
        if self._screen is not None and self._pygame.display.get_surface() is None:
            self.close()  # another environment closed the display that all windows share
        if self._closed:
            return Request.QUIT
        self._open()
        pygame, interface, last = self._pygame, self._interface, self._interface.request
        if last in _OTHER_LEVEL or (last in (Request.CONTINUE, Request.STEP) and snapshot.step == 0):
            # Mouse events from before a new level was visible are dropped.
            interface.release()
            pygame.event.clear((pygame.MOUSEBUTTONDOWN, pygame.MOUSEMOTION, pygame.MOUSEBUTTONUP))
        if last is not Request.EDIT:
            self._due = max(time.monotonic(), self._due + 1 / interface.fps)
        interface.take(snapshot, notice, running)
        interface.request, self._stale = None, True
        self._redraw_if_needed()
        while interface.request is None:
            # Sleep until an event or the next step, then handle events until one of them ends this.
            wake = min(self._due, self._drawn_at + _SECONDS_OF_A_FRAME) if self._stale else self._due
            rest = _IDLE_MILLISECONDS if interface.paused else int((wake - time.monotonic()) * 1000)
            event = pygame.event.wait(max(1, rest)) if interface.paused or rest > 0 else pygame.event.poll()
            while event.type != pygame.NOEVENT:
                self._handle(event)
                if interface.request is not None:
                    break
                event = pygame.event.poll()
            if interface.request is None:
                self._redraw_if_needed()
                now = time.monotonic()
                self._due = min(self._due, now + 1 / interface.fps)  # the speed may have changed
                if not interface.paused and now >= self._due:
                    interface.request = Request.CONTINUE
        if interface.request is Request.QUIT:
            self.close()
        return interface.request

    @property
    def is_seen(self) -> bool:
        """Whether the window is open on a screen. False if it is closed, or drawn into memory only."""
        return self._screen is not None and self._pygame.display.get_driver() not in _UNSEEN

    @property
    def edit(self) -> Edit:
        """The change to make, after the request `EDIT`."""
        edit = self._interface.edit
        assert edit is not None, "nothing has been edited"
        return edit

    @property
    def choice(self) -> tuple[Action, str]:
        """The user's choice, after the request `CHOOSE`: the list's action, and the name chosen from the list."""
        return self._interface.choice

    def pause(self) -> None:
        """Pause: request no steps until the user wants one."""
        self._interface.paused = True

    def close(self) -> None:
        """Close the window; a second call does nothing. A recording is saved first."""
        if self._screen is not None:
            self._interface.finish()
            self._pygame.display.quit()
            self._screen = None
        self._closed = True

    def _open(self) -> None:
        """Open the window, large, but no larger than the room on the screen.

        Raises:
            NoScreenError: there is no screen, and the window needs one; or the driver in SDL_VIDEODRIVER fails.
        """
        if self._screen is not None:
            return
        display, error = self._pygame.display, self._pygame.error
        try:
            with _silent_stderr():
                try:
                    display.init()
                except error:
                    if self._needs_screen or _DRIVER in os.environ:
                        raise
                    os.environ[_DRIVER] = "dummy"
                    try:
                        display.init()
                    finally:
                        del os.environ[_DRIVER]  # a later window may need a screen
                if self._needs_screen and display.get_driver() in _UNSEEN and _DRIVER not in os.environ:
                    display.quit()  # SDL would draw into memory forever
                    raise NoScreenError("there is no screen for the window")
                screen = display.get_desktop_sizes()[0]
                room = [int(pixels * _SHARE_OF_SCREEN) for pixels in screen]
                icon = draw_level(parse(_ICON), cell=8)
                display.set_icon(self._pygame.image.frombuffer(icon.tobytes(), icon.shape[1::-1], "RGB"))
                size = (min(_SIZE[1], room[0]), min(max(_SIZE[0], room[1]), room[1]))
                self._screen = display.set_mode(size, self._pygame.RESIZABLE)
        except error as reason:
            raise NoScreenError(f"the window cannot open: {reason}") from reason
        display.set_caption(self._title)

    def _redraw_if_needed(self) -> None:
        """Draw the window if its content has changed, at most 60 times a second while running."""
        now = time.monotonic()
        self._stale = self._stale or self._interface.has_news
        if self._stale and (self._interface.paused or now >= self._drawn_at + _SECONDS_OF_A_FRAME):
            width, height = self._screen.get_size()
            self._interface.size = height, width
            picture = self._interface.picture()
            image = self._pygame.image.frombuffer(picture.tobytes(), picture.shape[1::-1], "RGB")
            self._screen.blit(image, (0, 0))
            self._pygame.display.flip()
            self._drawn_at, self._stale = now, False

    def _handle(self, event: Any) -> None:
        pygame, interface = self._pygame, self._interface
        if event.type == pygame.QUIT:
            interface.request = Request.QUIT
        elif event.type == pygame.KEYDOWN:
            interface.press(event.unicode if interface.is_key(event.unicode) else pygame.key.name(event.key))
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button in _BUTTONS:
            interface.click(event.pos[1], event.pos[0], _BUTTONS[event.button])
        elif event.type == pygame.MOUSEMOTION:
            interface.point(event.pos[1], event.pos[0])
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            interface.release()
        elif event.type == pygame.MOUSEWHEEL:
            interface.scroll(-event.y)
        elif event.type == pygame.WINDOWLEAVE:
            interface.pointer = None
        elif event.type not in (pygame.VIDEORESIZE, pygame.VIDEOEXPOSE):
            return
        self._stale = True


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop the messages that display libraries write directly to the process's stderr within the block."""
    try:
        duplicate = os.dup(2)
    except OSError:  # a process without stderr
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(duplicate, 2)
        os.close(duplicate)
        os.close(nowhere)
