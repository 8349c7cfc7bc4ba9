"""Ctrl-C, and a scheduler's SIGTERM, as a flag that a run looks at between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Flag:
    """Whether something was asked for.

    Not a `threading.Event`, whose lock a handler would wait for without end that another signal has interrupted while
    it held it: `timeout`, for one, sends two at once.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Set the flag."""
        self._set = True

    def is_set(self) -> bool:
        """Return whether it was."""
        return self._set


_asked: list[Flag] = []
"""The flag that signals set, if there is one."""


@contextmanager
def asked_to_stop() -> Iterator[Flag]:
    """Yield a flag that Ctrl-C, or a scheduler's SIGTERM, sets; a Ctrl-C after it interrupts at once.

    A second SIGTERM does not: a scheduler and `torchrun` may each send one. Outside of the main thread, which alone
    gets signals, nothing sets the flag. Within another such block the flag is the other's. So a run can be prepared in
    a block, by reading its checkpoint for example, without an exception at an unexpected place.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Flag()
        return
    if _asked:
        yield _asked[0]
        return
    asked = Flag()

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    _asked.append(asked)
    try:
        yield asked
    finally:
        _asked.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
