"""The window's controls and settings, such as the speed, the tool and the enlarged channel.

This module does not need pygame: keys are names, and the mouse is a (row, col) pixel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from maze_nca_gym.rendering.controls import MOUSE, Action, Request
from maze_nca_gym.rendering.edits import DAMAGE_RADIUS, Edit, Place, Stroke, Tool, begin_stroke
from maze_nca_gym.rendering.files import save_png
from maze_nca_gym.rendering.frame import Snapshot
from maze_nca_gym.rendering.layout import Layout, menu_layout, window_layout
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.panels import bounds, caption_of
from maze_nca_gym.rendering.screen import Display, button_width, draw_window, menu_width
from maze_nca_gym.rendering.snapshots import Recorder, free_path

_SLOWEST, _FASTEST = 0.5, 1000.0


class Interface:
    """The controls of a window and their settings; it stores no episode.

    Attributes:
        fps: the largest number of steps per second while running.
        paused: whether no step is made unless the user requests one.
        request: the user's current request, or None if there is none.
        edit: the last change that the user made to level or state.
        choice: the last choice: the list's action, and the name chosen from the list.
        size: (height, width) of the window in pixels.
        pointer: (row, col) of the pixel under the mouse, or None while the mouse is outside of the window.

    Args:
        fps: the initial speed.
        menus: names to choose from, for `Action.POLICY` and `Action.LEVEL`; a control without names is left out.
        restarts: whether there are controls for `Request.RESTART` and `Request.EDGES`.
    """

    def __init__(self, fps: float, menus: Mapping[Action, Sequence[str]], restarts: bool) -> None:
        left_out = {action for action in (Action.POLICY, Action.LEVEL) if not menus.get(action)}
        left_out |= set() if restarts else {Action.RESTART, Action.EDGES}
        self.fps, self.paused = fps, False
        self.request: Request | None = None
        self.edit: Edit | None = None
        self.choice = (Action.POLICY, "")
        self._menus = dict(menus)
        self._actions = [action for action in Action if action not in left_out]
        self._buttons = [action for action in self._actions if action.label]
        self._keys = {key: action for action in self._actions for key in action.keys}
        self._snapshot: Snapshot | None = None
        self.size = (1, 1)
        self._stroke: Stroke | None = None  # while the button is down on the maze
        self._last: Place = (0, 0)
        self.pointer: tuple[int, int] | None = None
        self._notice = ""
        self._tool = Tool.WALLS
        self._row_in_view = self._chosen = 0
        self._highlight: int | None = None  # None: the snapshot's own
        self._enlarged: int | None = None
        self._menu: Action | None = None
        self._running: Mapping[Action, str] = {}
        self._recorder: Recorder | None = None
        self._saving: list[Future[str]] = []
        self._pool = ThreadPoolExecutor(1)  # one after the other: a GIF takes seconds
        self._show_channels, self._show_help = True, False

    # ---- what is shown

    def take(self, snapshot: Snapshot, notice: str, running: Mapping[Action, str] = MappingProxyType({})) -> None:
        """Put a snapshot in view; if its channels have other names than before, settings about channels are reset.

        Args:
            snapshot: the step.
            notice: a few words for the status line; empty to leave the line unchanged.
            running: the name in use of each list of names.
        """
        self._running = running
        if self._snapshot is not None and self._snapshot.names != snapshot.names:
            self._highlight = self._enlarged = None
            self._row_in_view = 0
        self._snapshot = snapshot if self._highlight is None else replace(snapshot, highlight=self._highlight)
        self._notice = notice or self._notice
        if self._recorder is not None and not self._recorder.add(self._snapshot):
            self.end_recording()

    def picture(self) -> Frame:
        """Return the current picture of the window, (h, w, 3) uint8, at least as large as the window."""
        return draw_window(self._viewed, self._layout(), self._display())

    @property
    def _viewed(self) -> Snapshot:
        assert self._snapshot is not None, "a step must be shown before anything is pressed"
        return self._snapshot

    def _layout(self) -> Layout:
        shown = self._viewed
        widths = tuple(button_width(action.label) for action in self._buttons)
        rows, cols, n_channels = *shown.tiles.shape, len(shown.channels)
        room = caption_of(shown.names)
        return window_layout(self.size, rows, cols, n_channels, self._show_channels, self._row_in_view, room, widths)

    @property
    def has_news(self) -> bool:
        """Whether the picture may change without a key or a step, because a recording is being saved."""
        return bool(self._saving)

    def _display(self) -> Display:
        if self._saving and self._saving[0].done():
            self._notice = self._saving.pop(0).result()
        snapshot, layout, tile = self._viewed, self._layout(), self._tile_under_pointer()
        pressed = {
            Action.WALLS: self._tool is Tool.WALLS,
            Action.DAMAGE: self._tool is Tool.DAMAGE,
            Action.CHANNELS: self._show_channels,
            Action.RECORD: self._recorder is not None,
            Action.PAUSE: self.paused,
        }
        state = "paused" if self.paused else f"running, at most {self.fps:g} a second"
        if self._recorder is not None:
            state = f"recording, {len(self._recorder)} steps   {state}"
        # A line about what is under the pointer.
        hint = "?: keys"
        button = None if self.pointer is None else layout.button_at(*self.pointer)
        channel = None if self.pointer is None else layout.channel_at(*self.pointer)
        if button is not None:
            hint = f"{self._buttons[button].hint} ({self._buttons[button].keys_label})"
        elif channel is not None:
            ends = bounds(snapshot.channels[channel][None])[0]
            hint = f"{snapshot.names[channel]}, {ends}: press to enlarge, right button to tint"
        elif tile is not None:
            shown = next((index for index in (self._enlarged, snapshot.highlight) if index is not None), 0)
            hint = f"row {tile[0]}, column {tile[1]}: {snapshot.names[shown]} {snapshot.channels[shown][tile]:.7g}"
            for index, (name, values) in enumerate(zip(snapshot.answers, snapshot.channels, strict=False)):
                hint += f", {name} {values[tile]:.4g}" if index != shown else ""
        reach = DAMAGE_RADIUS if self._tool is Tool.DAMAGE else 0
        return Display(
            buttons=tuple((action.label, pressed.get(action, False)) for action in self._buttons),
            status=self._notice or hint,
            state=state,
            enlarged=self._enlarged,
            cursor=None if tile is None or self._menu or self._show_help else (*tile, reach),
            help=(*((action.keys_label, action.hint) for action in self._actions), *MOUSE) if self._show_help else (),
            menu="" if self._menu is None else f"{self._menu.name.lower()}: press one, or Esc",
            entries=tuple(self._menus.get(self._menu, ())) if self._menu else (),
            chosen=self._chosen,
            running=None if self._menu is None else self._in_use(self._menu),
        )

    def _tile_under_pointer(self) -> Place | None:
        return None if self.pointer is None else self._layout().maze.tile_at(*self.pointer)

    # ---- keys and mouse

    def is_key(self, key: str) -> bool:
        """Return whether a key of this name or character has an action."""
        return key in self._keys

    def point(self, row: int, col: int) -> None:
        """Move the pointer to a pixel; while the mouse button is down, this continues the stroke."""
        self.pointer = row, col
        tile = self._tile_under_pointer()
        if self._stroke is not None and tile is not None and tile != self._last:
            self._edit(tile)

    def release(self) -> None:
        """End the stroke, if there is one."""
        self._stroke = None

    def scroll(self, rows: int) -> None:
        """Move the view of the channels by a number of rows, down if it is positive."""
        self._row_in_view = min(max(self._row_in_view + rows, 0), self._layout().last_row)

    def press(self, key: str) -> None:
        """Perform the action of a key; in a list, the arrow keys move the mark and return chooses the marked name."""
        self._notice = ""
        if self._menu is not None and key in ("up", "down", "return"):
            entries = self._menus[self._menu]
            if key == "return":
                self._choose(self._chosen)
            else:
                self._chosen = (self._chosen + (1 if key == "down" else -1)) % len(entries)
        elif key in self._keys:
            self._act(self._keys[key])

    def click(self, row: int, col: int, tints: bool = False) -> None:
        """Perform the action of a click on a list, a button, a thumbnail or the maze.

        Args:
            row: the pixel's row.
            col: the pixel's column.
            tints: whether it is the right button, which tints the maze by a channel.
        """
        self.pointer, self._notice = (row, col), ""
        if self._menu is not None:
            entries = self._menus[self._menu]
            _, places = menu_layout(self.size, len(entries), menu_width(entries))
            hit = next((index for index, box in enumerate(places) if box.holds(row, col)), None)
            self._menu = self._menu if hit is not None else None
            if hit is not None:
                self._choose(hit)
            return
        if self._show_help:
            self._show_help = False
            return
        layout = self._layout()
        button, channel = layout.button_at(row, col), layout.channel_at(row, col)
        if channel is not None and tints:
            self._highlight, self._snapshot = channel, replace(self._viewed, highlight=channel)
        elif channel is not None:
            self._enlarged = None if channel == self._enlarged else channel
        elif button is not None and not tints:
            self._act(self._buttons[button])
        elif not tints and (tile := layout.maze.tile_at(row, col)) is not None:
            self._stroke, self._last = begin_stroke(self._viewed.tiles, tile, self._tool), tile
            self._edit(tile)

    def _edit(self, tile: Place) -> None:
        assert self._stroke is not None
        self.edit = self._stroke(self._last, tile)
        self._last = tile
        self.request = Request.EDIT

    # ---- actions

    def _act(self, action: Action) -> None:
        """Perform an action; `CLOSE` closes the topmost of list, help and enlarged channel."""
        match action:
            case Action.RESTART | Action.NEW_LEVEL | Action.EDGES | Action.QUIT:
                self.request = Request[action.name]
            case Action.STEP | Action.BACK:
                self.paused, self.request = True, Request[action.name]
            case Action.PAUSE:
                self.paused = not self.paused
            case Action.SLOWER | Action.FASTER:
                faster = self.fps * (0.5 if action is Action.SLOWER else 2.0)
                self.fps = min(max(faster, _SLOWEST), max(_FASTEST, self.fps))
            case Action.WALLS | Action.DAMAGE:
                self._tool, self._stroke = Tool[action.name], None
            case Action.CHANNELS:
                self._show_channels, self._enlarged = not self._show_channels, None
            case Action.SCROLL_UP | Action.SCROLL_DOWN:
                self.scroll(-1 if action is Action.SCROLL_UP else 1)
            case Action.POLICY | Action.LEVEL:
                self._menu, self._show_help = (None if self._menu is action else action), False
                self._chosen = self._in_use(action) or 0
            case Action.HELP:
                self._show_help, self._menu = not self._show_help, None
            case Action.SAVE:
                try:
                    picture = self._viewed.draw(self._show_channels)
                    self._notice = f"saved {save_png(free_path(Path.cwd(), '.png'), picture)}"
                except OSError as error:
                    self._notice = f"not saved: {error}"
            case Action.RECORD if self._recorder is None:
                self._recorder = Recorder(self._show_channels)
                self._recorder.add(self._viewed)
                self._notice = "recording: press Record or G again to save it"
            case Action.RECORD:
                self.end_recording()
            case Action.CLOSE if self._menu is not None or self._show_help:
                self._menu, self._show_help = None, False
            case Action.CLOSE if self._enlarged is not None:
                self._enlarged = None
            case Action.CLOSE:
                self.request = Request.QUIT

    def _in_use(self, menu: Action) -> int | None:
        """Return the index of the name in use of a list, or None if the list does not contain it."""
        names = tuple(self._menus[menu])
        return names.index(self._running[menu]) if self._running.get(menu) in names else None

    def _choose(self, index: int) -> None:
        assert self._menu is not None
        self.choice = self._menu, self._menus[self._menu][index]
        self._menu, self.request = None, Request.CHOOSE

    def end_recording(self) -> None:
        """Save the recording, if there is one, on another thread."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            self._saving.append(self._pool.submit(recorder.save, Path.cwd(), self.fps))
            self._notice = f"saving {len(recorder)} steps"

    def finish(self) -> None:
        """Save the recording, if there is one, and wait until all recordings are written."""
        self.end_recording()
        wait(self._saving)
