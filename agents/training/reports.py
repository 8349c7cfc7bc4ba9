"""The report of a run to whoever started it: files in its folder, and a line to watch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any

from maze_nca_gym.files import os_error_context

from ..policy import Policy
from ..runs import Line, ProgressBar, RunFolder
from .config import TrainingConfig
from .loop import COLUMNS

EVENTS, EVENT_FILES = "tb", "events.out.tfevents.*"
"""Folder and files of TensorBoard."""
CURVES, ROLLOUTS = "curves.png", "rollouts.png"
EVERY = 60.0
"""Seconds from drawing to drawing, at the least: it takes about one."""


class RunReport:
    """`metrics.jsonl`, `curves.png`, `rollouts.png`, a progress line and, if asked for, TensorBoard's events in `tb/`.

    A context manager, for a folder whose run has begun.
    """

    def __init__(self, run: RunFolder, config: TrainingConfig, update: int = 0, *, tensorboard: bool = False) -> None:
        """Prepare; files are opened when the context is entered.

        Args:
            run: the folder of the run.
            config: the configuration of the run.
            update: the update of the checkpoint from which it continues, or 0.
            tensorboard: whether to write events.
        """
        self._run, self._config, self._update, self._tensorboard = run, config, update, tensorboard
        self._events: TensorBoardEvents | None = None
        self._pictures = Pictures(run.path, config, run.lines)
        self._complete = next((line["complete"] for line in reversed(run.lines) if "complete" in line), None)

    def __enter__(self) -> RunReport:
        with ExitStack() as stack:
            if self._tensorboard:
                self._events = stack.enter_context(closing(TensorBoardEvents(self._run.path / EVENTS, self._run.lines)))
            progress = ProgressBar("update", self._config.n_updates, self._update, stderr=False, quiet=False)
            self._progress = stack.enter_context(progress)
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if kind is None or not issubclass(kind, OSError):  # a full disk has no room for pictures either
                self._pictures.draw_curves()

    def log(self, line: Line) -> None:
        """Write the line to all files and show it.

        Raises:
            OSError: a file could not be written.
        """
        self._run.log(line)
        if self._events is not None:
            self._events.log(line)
        self._complete = line.get("complete", self._complete)
        self._progress.show(int(line["update"]), self._note(line))

    def on_validation(self, policy: Policy) -> None:
        """Draw the pictures, if it is time.

        Raises:
            OSError: a file could not be written.
        """
        self._pictures.on_validation(policy)

    def _note(self, line: Line) -> str:
        size, parts = self._config.levels.sizes[0], [f"loss {line['loss']:.4f}"]
        if self._complete is not None:
            parts.append(f"{size}x{size} complete {self._complete:.1%}".replace("%", " %"))
        if "mean_solution_length" in line:
            parts.append(f"path {line['mean_solution_length']:.1f}")
        return ", ".join([*parts, f"{line['levels_per_second']:,.0f} levels/s"])


class Pictures:
    """`curves.png` and `rollouts.png`, drawn after a validation if the last ones are a minute old, and at the end.

    Drawing libraries are loaded when the first picture is drawn.
    """

    def __init__(self, folder: Path, config: TrainingConfig, lines: Sequence[Line]) -> None:
        """Store what to draw, and where.

        Args:
            folder: receives the pictures.
            config: the configuration of the run.
            lines: all lines so far; their owner appends the new ones.
        """
        self._folder, self._config, self._lines = folder, config, lines
        self._drawn_at, self._n_drawn = -EVERY, 0

    def on_validation(self, policy: Policy) -> None:
        """Draw both if it is time."""
        finished = self._lines[-1]["update"] == self._config.n_updates
        if not finished and time.monotonic() - self._drawn_at < EVERY:
            return
        from .figures import draw_rollouts

        draw_rollouts(policy, self._config, self._title(), self._folder / ROLLOUTS)
        self.draw_curves()
        self._drawn_at = time.monotonic()

    def draw_curves(self) -> None:
        """Draw the curves as they are now, if there is anything new."""
        if len(self._lines) == self._n_drawn:
            return
        from .figures import draw_curves

        draw_curves(self._lines, self._title(), self._folder / CURVES)
        self._n_drawn = len(self._lines)

    def _title(self) -> str:
        config, line = self._config, self._lines[-1]
        return (
            f"{config.model.model}, {config.model.n_channels} channels, {config.task}: "
            f"update {int(line['update']):,} of {config.n_updates:,}, {line['seconds'] / 60:,.1f} minutes"
        )


class TensorBoardEvents:
    """Scalars `training/...` and `validation/...` by update, in one file: those of earlier sessions are written anew.

    So every update has one value, whatever was written after the checkpoint from which the run goes on.
    """

    def __init__(self, folder: Path, earlier: Sequence[Line] = ()) -> None:
        """Open a file of events in the folder, in place of those that are there.

        Args:
            folder: the folder for `tensorboard --logdir`; it is made if missing.
            earlier: the lines of earlier sessions.

        Raises:
            ValueError: TensorBoard is not installed.
            OSError: the file could not be written; the message names the folder.
        """
        make = find_tensorboard()
        self._folder = folder
        with os_error_context(folder):
            for path in folder.glob(EVENT_FILES):
                path.unlink()
            self._writer = make(folder)
        began = time.time() - (earlier[-1]["seconds"] if earlier else 0)
        for line in earlier:
            self.log(line, began + line["seconds"])

    def log(self, line: Line, at: float | None = None) -> None:
        """Add its figures, by default as of now.

        Raises:
            OSError: the file could not be written; the message names the folder.
        """
        with os_error_context(self._folder):
            for name, value in line.items():
                if name != "update":
                    group = "validation" if name in COLUMNS else "training"
                    self._writer.add_scalar(f"{group}/{name}", value, int(line["update"]), at)

    def close(self) -> None:
        """Write what is left and close the file.

        Raises:
            OSError: it could not be written; the message names the folder.
        """
        with os_error_context(self._folder):
            self._writer.close()


def find_tensorboard() -> Any:
    """Return the class that writes events.

    Raises:
        ValueError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            '--tensorboard needs TensorBoard: run `pip install "maze-nca-gym[train]"`, or leave it out'
        ) from error
    return SummaryWriter
