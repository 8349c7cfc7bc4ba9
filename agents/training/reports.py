"""The report of a run to whoever started it: files in its folder, and a line to watch."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from maze_nca_gym.files import naming, reading, replacing

from ..policy import Policy
from .config import TrainingConfig
from .loop import COLUMNS, Line, NullReport, Report

METRICS, EVENTS = "metrics.jsonl", "tb"


class RunReport:
    """`metrics.jsonl`, `curves.png`, `rollouts.png`, a progress line and, if asked for, TensorBoard's events in `tb/`.

    A context manager. A run that goes on from a checkpoint appends to what there is, after dropping what was written
    since that checkpoint.
    """

    def __init__(self, folder: Path, config: TrainingConfig, update: int = 0, *, tensorboard: bool = False) -> None:
        """Prepare; files are opened when the context is entered.

        Args:
            folder: the folder of the run, which exists.
            config: the configuration of the run.
            update: the update of the checkpoint from which it continues, or 0.
            tensorboard: whether to write events.
        """
        self._folder, self._config, self._update, self._tensorboard = folder, config, update, tensorboard
        self._sinks: list[Report] = []

    def __enter__(self) -> RunReport:
        with ExitStack() as stack:
            self._metrics = stack.enter_context(closing(MetricsFile(self._folder / METRICS, self._update)))
            self._sinks.append(self._metrics)
            if self._tensorboard:
                self._sinks.append(stack.enter_context(closing(TensorBoardEvents(self._folder / EVENTS, self._update))))
            self._pictures = Pictures(self._folder, self._config, self._metrics.lines)
            progress = ProgressLine(self._config, self._metrics.lines, self._update)
            self._sinks += [self._pictures, stack.enter_context(closing(progress))]
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if kind is None or not issubclass(kind, OSError):  # a full disk has no room for pictures either
                self._pictures.draw_curves()

    @property
    def lines(self) -> Sequence[Line]:
        """All lines of the run, those of earlier sessions first."""
        return self._metrics.lines

    def log(self, line: Line) -> None:
        """Write the line to all files and show it.

        Raises:
            OSError: a file could not be written.
        """
        for sink in self._sinks:
            sink.log(line)

    def on_validation(self, policy: Policy) -> None:
        """Draw the pictures, if it is time.

        Raises:
            OSError: a file could not be written.
        """
        for sink in self._sinks:
            sink.on_validation(policy)


NEEDED = {"update", "seconds", "loss", "learning_rate"}
"""Metrics that every line has."""


class MetricsFile(NullReport):
    """A file that receives each line at once, so that it is complete for a reader that follows it, or after a crash.

    Attributes:
        lines: all lines in the file, those of earlier sessions first.
    """

    def __init__(self, path: Path, update: int = 0) -> None:
        """Open the file, and drop what was written after the checkpoint from which the run continues.

        Args:
            path: the file; it need not exist.
            update: the update of the checkpoint.

        Raises:
            ValueError: a line that cannot be read, other than the end of the last one.
            OSError: it could not be written; it is then as it was.
        """
        self.lines: list[Line] = [line for line in read_metrics(path) if line["update"] <= update]
        with replacing(path) as file:
            file.write("".join(map(_to_text, self.lines)).encode())
        self._path, self._file = path, path.open("a", encoding="utf-8")

    def log(self, line: Line) -> None:
        """Append it.

        Raises:
            OSError: it could not be written; the message names the file.
        """
        self.lines.append(line)
        with naming(self._path):
            self._file.write(_to_text(line))
            self._file.flush()

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: the end could not be written; the message names the file.
        """
        with naming(self._path):
            self._file.close()


def read_metrics(path: Path) -> list[Line]:
    """Return the lines of a metrics file, none if it does not exist. One that a crash cut off at the end is left out.

    Raises:
        ValueError: any other line that cannot be read.
    """
    if not path.exists():
        return []
    with reading(path, "has no lines of metrics"):
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [_from_text(text) for text in texts]
    if None in lines[:-1]:
        raise ValueError(f"{path}, line {lines.index(None) + 1} is no line of metrics; mend or remove the file")
    return [line for line in lines if line is not None]


def read_last(path: Path) -> Line:
    """Return the last line of the metrics file of a run that has ended, whatever it has besides update and seconds."""
    line: Line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return line


def _to_text(line: Line) -> str:
    """Return a line as JSON, which has no infinity: values that are not finite become null."""
    return json.dumps({name: value if math.isfinite(value) else None for name, value in line.items()}) + "\n"


def _from_text(text: str) -> Line | None:
    """Return none for what is no line of metrics."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not values.keys() >= NEEDED or type(values["update"]) is not int:
        return None
    if not values.keys().isdisjoint(COLUMNS) and not values.keys() >= set(COLUMNS):
        return None
    line = {name: math.nan if value is None else value for name, value in values.items()}
    return line if all(map(_is_number, line.values())) else None


def _is_number(value: Any) -> bool:
    """Return whether it is one that a float holds, or none."""
    return type(value) in (int, float) and not abs(value) > sys.float_info.max


PLAIN_EVERY = 10.0
"""Seconds from line to line where there is no terminal."""
RECENT = 20
"""Lines from which the time that is left is estimated."""
WIDE = 100
"""Columns of a terminal that has room for a bar."""


class ProgressLine(NullReport):
    """A line of progress: on a terminal one line that changes, elsewhere (a file, a pipe) a new line now and then."""

    def __init__(self, config: TrainingConfig, earlier: Sequence[Line] = (), update: int = 0) -> None:
        """Show the line.

        Args:
            config: the configuration of the run.
            earlier: lines of earlier sessions.
            update: the first update of this session.
        """
        self._config = config
        self._complete = next((line["complete"] for line in reversed(earlier) if "complete" in line), None)
        self._marks = deque([(time.monotonic(), update)], maxlen=RECENT)
        self._printed_at = -PLAIN_EVERY
        self._console = Console(highlight=False)
        bar = [BarColumn(20)] if self._console.width >= WIDE else []
        self._live = Progress(
            *bar,
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            refresh_per_second=4,
            disable=not self._console.is_terminal,
        )
        self._live.start()
        self._job = self._live.add_task("starting", total=config.n_updates, completed=update)

    def log(self, line: Line) -> None:
        """Show it."""
        now, update = time.monotonic(), int(line["update"])
        self._marks.append((now, update))
        self._complete = line.get("complete", self._complete)
        if not self._live.disable:
            self._live.update(self._job, completed=update, description=self._text(line))
        elif update == self._config.n_updates or now - self._printed_at >= PLAIN_EVERY:
            self._console.print(self._text(line), soft_wrap=True)
            self._printed_at = now

    def _text(self, line: Line) -> str:
        update, last, size = int(line["update"]), self._config.n_updates, self._config.levels.sizes[0]
        parts = [f"update {update:,} of {last:,}", f"loss {line['loss']:.4f}"]
        if self._complete is not None:
            parts.append(f"{size}x{size} complete {self._complete:.1%}".replace("%", " %"))
        if "mean_solution_length" in line:
            parts.append(f"path {line['mean_solution_length']:.1f}")
        parts.append(f"{line['levels_per_second']:,.0f} levels/s")
        return ", ".join(parts if update == last else [*parts, f"{duration(self._left())} left"])

    def _left(self) -> float:
        """Return seconds to the last update, at the pace of the last lines."""
        (began, first), (now, update) = self._marks[0], self._marks[-1]
        return (self._config.n_updates - update) * (now - began) / max(update - first, 1)

    def close(self) -> None:
        """Take the line off the terminal."""
        self._live.stop()


def duration(seconds: float) -> str:
    """Return a duration in words: 40 s, 12 min, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


CURVES, ROLLOUTS = "curves.png", "rollouts.png"
EVERY = 60.0
"""Seconds from drawing to drawing, at the least: it takes about one."""


class Pictures(NullReport):
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


class TensorBoardEvents(NullReport):
    """Scalars `training/...` and `validation/...` by update."""

    def __init__(self, folder: Path, update: int = 0) -> None:
        """Open a file of events in the folder.

        Args:
            folder: the folder for `tensorboard --logdir`; it is made if missing.
            update: the update of the checkpoint from which the run continues: events of later ones are hidden.

        Raises:
            ValueError: TensorBoard is not installed.
            OSError: the file could not be written; the message names the folder.
        """
        make = find_tensorboard()
        self._folder = folder
        with naming(folder):
            self._writer = make(folder, purge_step=update + 1 if update else None)

    def log(self, line: Line) -> None:
        """Add its figures.

        Raises:
            OSError: the file could not be written; the message names the folder.
        """
        with naming(self._folder):
            for name, value in line.items():
                if name != "update":
                    group = "validation" if name in COLUMNS else "training"
                    self._writer.add_scalar(f"{group}/{name}", value, int(line["update"]))

    def close(self) -> None:
        """Write what is left and close the file.

        Raises:
            OSError: it could not be written; the message names the folder.
        """
        with naming(self._folder):
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
