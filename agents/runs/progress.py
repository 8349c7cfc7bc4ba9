"""Progress of a job: a live bar on a terminal, and elsewhere, such as in a log file, a new line every few seconds."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType

PLAIN_EVERY = 10.0
"""Least number of seconds between two lines if the output is not a terminal."""
RECENT = 20
"""Number of latest calls from which the remaining time is estimated."""
WIDE = 100
"""Least width of a terminal, in columns, that has room for a bar."""


class ProgressBar:
    """A bar with a text: `update 10 of 100, loss 0.1000, 36 s left`."""

    def __init__(self, label: str, total: int, done: int = 0, *, stderr: bool = True, quiet: bool = True) -> None:
        """Prepare the bar, which appears when the context is entered.

        Args:
            label: name of a step, such as "update".
            total: number of steps at the end.
            done: number of steps at the beginning.
            stderr: whether to print to stderr instead of stdout.
            quiet: whether work that ends within `PLAIN_EVERY` seconds prints nothing if the output is not a terminal.
                Longer work always prints the final count.
        """
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._label, self._total, self._quiet = label, total, quiet
        self._printed_at = time.monotonic() if quiet else -PLAIN_EVERY
        self._printed = ""
        self._marks = deque([(time.monotonic(), done)], maxlen=RECENT)
        self._console = Console(stderr=stderr, highlight=False)
        self._live = Progress(
            *([BarColumn(20)] if self._console.width >= WIDE else []),
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            refresh_per_second=4,
            disable=not self._console.is_terminal,
        )
        self._job = self._live.add_task(label, total=total, completed=done)

    def __enter__(self) -> ProgressBar:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._live.disable:  # rich 13.7 prints an empty line even so
            self._live.stop()

    def advance(self, n: int) -> None:
        """Show that n more steps are done. A long step calls this with n = 0 to update the time that is left."""
        self.show(self._marks[-1][1] + n)

    def show(self, done: int, note: str = "") -> None:
        """Show the number of steps done, with a note."""
        now, is_last = time.monotonic(), done >= self._total
        self._marks.append((now, done))
        if not self._live.disable:
            self._live.update(self._job, completed=done, description=self._text(note))
        elif (not self._quiet or self._printed) if is_last else now - self._printed_at >= PLAIN_EVERY:
            text = self._text(note)
            if text != self._printed:  # work may show its end twice
                self._console.print(text, soft_wrap=True)
            self._printed_at, self._printed = now, text

    def _text(self, note: str) -> str:
        (began, first), (now, done) = self._marks[0], self._marks[-1]
        parts = [f"{self._label} {done:,} of {self._total:,}", *([note] if note else [])]
        if first < done < self._total:
            parts.append(f"{duration((self._total - done) * (now - began) / (done - first))} left")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration as text: 40 s, 12 min, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
