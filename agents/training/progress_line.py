"""The line that a person watches while a run goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from .config import TrainingConfig
from .report import Line, Silence

PLAIN_EVERY = 10.0
"""Seconds from line to line where there is no terminal."""
RECENT = 20
"""Lines from which the time that is left is estimated."""
WIDE = 100
"""Columns of a terminal that has room for a bar."""


class ProgressLine(Silence):
    """On a terminal one line that changes, elsewhere (a file, a pipe) a line now and then."""

    def __init__(self, config: TrainingConfig, earlier: Sequence[Line] = (), update: int = 0) -> None:
        """Show the line.

        Args:
            config: of the run.
            earlier: lines of earlier sessions.
            update: where this session begins.
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
        update, last, size = int(line["update"]), self._config.n_updates, self._config.sizes[0]
        parts = [f"update {update:,} of {last:,}", f"loss {line['loss']:.4f}"]
        if self._complete is not None:
            parts.append(f"{size}x{size} complete {self._complete:.1%}".replace("%", " %"))
        if "mean_solution_length" in line:
            parts.append(f"path {line['mean_solution_length']:.1f}")
        parts.append(f"{line['levels_per_second']:,.0f} levels/s")
        return ", ".join(parts if update == last else [*parts, f"{duration(self._left())} left"])

    def _left(self) -> float:
        """Seconds to the last update, at the pace of the last lines."""
        (began, first), (now, update) = self._marks[0], self._marks[-1]
        return (self._config.n_updates - update) * (now - began) / max(update - first, 1)

    def close(self) -> None:
        """Take the line off the terminal."""
        self._live.stop()


def duration(seconds: float) -> str:
    """In words: 40 s, 12 min, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
