"""The report of a run to whoever started it: files in its folder, and a line to watch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType

from ..policy import Policy
from .config import TrainingConfig
from .metrics_file import MetricsFile
from .pictures import Pictures
from .progress_line import ProgressLine
from .report import Line, Report
from .tensorboard_events import TensorBoardEvents

METRICS, EVENTS = "metrics.jsonl", "tb"


class RunReport:
    """`metrics.jsonl`, `curves.png`, `rollouts.png`, a progress line and, if asked for, TensorBoard's events in `tb/`.

    A context manager. A run that goes on from a checkpoint appends to what there is, after dropping what was written
    since that checkpoint.
    """

    def __init__(self, folder: Path, config: TrainingConfig, update: int = 0, *, tensorboard: bool = False) -> None:
        """Prepare; files are opened when the context is entered.

        Args:
            folder: of the run; exists.
            config: of the run.
            update: of the checkpoint from which it goes on, or 0.
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

    def look(self, policy: Policy) -> None:
        """Draw the pictures, if it is time.

        Raises:
            OSError: a file could not be written.
        """
        for sink in self._sinks:
            sink.look(policy)
