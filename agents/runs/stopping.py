"""Ctrl-C and the signals of schedulers, turned into a flag that a run checks between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]
"""Ctrl-C, what ends a job, and what schedulers send before a time limit: submitit SIGUSR2, others often SIGUSR1."""


class Flag:
    """Whether a stop was asked for.

    A plain attribute, since setting a `threading.Event` takes a lock. A second signal may interrupt the handler of the
    first while it holds that lock, and would then wait for it forever. `timeout`, for example, sends two at once.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Set the flag."""
        self._set = True

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._set


_asked: list[Flag] = []
"""The flag that signals set, while a block is active; else empty."""


@contextmanager
def asked_to_stop() -> Iterator[Flag]:
    """Yield a flag that Ctrl-C or one of a scheduler's `SIGNALS` sets; a further Ctrl-C raises KeyboardInterrupt.

    A further SIGTERM does not, since a scheduler and `torchrun` may each send one. Only the main thread gets signals;
    in other threads nothing sets the flag. A block within another yields the same flag. So a whole run, the reading of
    its checkpoint included, can be in a block, and no KeyboardInterrupt comes at an unexpected place. A handler that a
    scheduler's signal had before the block is called after it: submitit's queues the job again, and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Flag()
        return
    if _asked:
        yield _asked[0]
        return
    asked, received = Flag(), dict[int, bool]()

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        received[number] = True  # no call, for the reason that `Flag` gives

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None is native code's
    for number in before:
        signal.signal(number, ask)
    _asked.append(asked)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        try:
            for number in received:
                handler = before[number]
                if number != signal.SIGINT and callable(handler):
                    handler(number, None)
        finally:
            _asked.clear()


def has_stopped() -> bool:
    """Return, in a handler of a signal, whether a block has ended for it; otherwise it came where nothing is saved."""
    return bool(_asked)
