"""Pictures of an environment's state in each render mode, and the window of render mode "human"."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium import logger
from numpy.typing import NDArray

from maze_nca_gym.envs.dynamics import State
from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.names import unknown_name

if TYPE_CHECKING:
    from maze_nca_gym.rendering.controls import Request
    from maze_nca_gym.rendering.edits import Edit
    from maze_nca_gym.rendering.frame import Snapshot
    from maze_nca_gym.rendering.snapshots import History
    from maze_nca_gym.rendering.window import Window

    MakeEdit: TypeAlias = Callable[[Edit], tuple[State, str]]
    """A function of a change that returns the state after it, and the reason if the change was refused, else ""."""

_SHEET_PIXELS = 160
"""Pixels along the longer side of a level on a sheet, rounded down to whole tiles."""


class View:
    """Draws episodes of a batch of `dynamics.State`; opens the window when the first step is shown."""

    def __init__(
        self,
        render_mode: str | None,
        metadata: dict[str, Any],
        channel_names: Sequence[str] | None,
        n_channels: int,
        highlight: str | None,
        task: Task,
    ) -> None:
        """Check the mode and the names.

        Args:
            render_mode: a mode in `metadata`, or None for no pictures.
            metadata: the environment's metadata, with its render modes and its speed.
            channel_names: names of the first channels, or None for the task's answers.
            n_channels: the number of channels of a state.
            highlight: the name of the channel that tints the maze, or None for no tint.
            task: the task of the levels.

        Raises:
            ValueError: an unknown render mode, more names than channels, or a highlight that is not one of the names.
        """
        modes = metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(unknown_name("render_mode", render_mode, modes))
        if channel_names is not None and len(channel_names) > n_channels:
            raise ValueError(f"got {len(channel_names)} channel_names for n_channels={n_channels}")
        names = task.answers if channel_names is None else tuple(channel_names)
        if highlight is not None and highlight not in names:
            raise ValueError(unknown_name("highlight", highlight, names))
        self._highlight = None if highlight is None else names.index(highlight) or None  # the path is drawn anyway
        self._mode = render_mode
        self._fps = metadata["render_fps"]
        self._names = names
        self._task = task
        self._window: Window | None = None
        self._history: History | None = None
        self.window_closed = False

    def show(self, state: State, n_steps: int, edit: MakeEdit) -> bool:
        """Show episode 0 in the window, in "human" mode; return whether the user wants a new level.

        Args:
            state: the episodes.
            n_steps: the number of steps of the episode so far.
            edit: makes a change that the user drew, and returns the state after it.
        """
        if self._mode != "human":
            return False
        from maze_nca_gym.rendering import Request, Window
        from maze_nca_gym.rendering.snapshots import History

        if self._window is None or self._history is None:
            self._window, self._history = Window(self._fps, self._task.name, needs_screen=False), History()
        self._history.append(self._snapshot(state, 0, n_steps).copy())
        return self._ask(self._window, self._history, n_steps, edit) is Request.NEW_LEVEL

    def wait(self, state: State, n_steps: int) -> None:
        """Keep the window open, paused, until the user closes it or presses the key of a step.

        If no user can see a window, the method returns at once.
        """
        if self._window is not None and self._history is not None and self._window.is_seen:
            self._window.pause()
            last = "the episode has ended"
            self._ask(self._window, self._history, n_steps, lambda _: (state, last), f"{last}: press space, or q")

    def _ask(self, window: Window, history: History, n_steps: int, edit: MakeEdit, notice: str = "") -> Request:
        """Show the newest step, and earlier steps to which the user goes back, until the user wants the next step."""
        from maze_nca_gym.rendering import Request

        request = window.show(history.viewed, notice)
        while request in (Request.BACK, Request.STEP, Request.EDIT):
            if request is Request.STEP and not history.move(1):
                break
            if request is Request.EDIT and not history.back:
                state, notice = edit(window.edit)
                history.replace_newest(self._snapshot(state, 0, n_steps).copy())
            elif request is Request.EDIT:
                notice = "edits are made at the newest step"
            elif request is Request.BACK and not history.move(-1):
                notice = "no earlier step"
            else:
                notice = f"{history.back} of {len(history) - 1} steps back" if history.back else ""
            request = window.show(history.viewed, notice)
        self.window_closed = request is Request.QUIT
        return request

    def render(self, state: State, index: int, n_steps: int) -> NDArray[np.uint8] | str | None:
        """Return one episode's picture: (h, w, 3) uint8, or text; None in "human" mode.

        Args:
            state: the episodes.
            index: the index of the episode.
            n_steps: the number of steps of the episode so far.
        """
        if self._mode is None:
            logger.warn("render() does nothing without a render_mode; pass one to gymnasium.make")
        if self._mode == "ansi":
            return self._task.to_text(state.tiles[index], state.channels[index][self._task.drawn] > 0.5)
        if self._mode == "rgb_array":
            return self._snapshot(state, index, n_steps).draw()
        return None

    def png(self, state: State, index: int, n_steps: int) -> bytes:
        """Return one episode's picture as a PNG file, in any render mode."""
        from maze_nca_gym.rendering import png_bytes

        return png_bytes(self._snapshot(state, index, n_steps).draw())

    def sheet(self, tiles: Tiles, paths: NDArray[np.float32]) -> bytes:
        """Return the content of a PNG file that shows (N, H, W) levels with their paths, (N, ...) float32, side by
        side."""
        from maze_nca_gym.rendering import contact_sheet, draw_level, png_bytes

        cell = max(1, _SHEET_PIXELS // max(tiles.shape[1:]))
        frames = [draw_level(*level, cell, kinds=self._task.kinds) for level in zip(tiles, paths, strict=True)]
        return png_bytes(contact_sheet(frames, columns=math.ceil(math.sqrt(len(frames)))))

    def _snapshot(self, state: State, index: int, n_steps: int) -> Snapshot:
        """Return one episode's step, whose arrays are the state's own."""
        from maze_nca_gym.rendering import Snapshot

        return Snapshot(
            state.tiles[index],
            state.channels[index],
            state.target[index],
            self._names,
            n_steps,
            float(state.scores.accuracy[index]),
            self._task.name,
            self._highlight,
            kinds=self._task.kinds,
        )

    def close(self) -> None:
        """Close the window if it is open."""
        if self._window is not None:
            self._window.close()
            self._window = None
