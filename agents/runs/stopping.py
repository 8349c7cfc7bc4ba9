"""A check for a run, between two steps, whether Ctrl-C or a scheduler's signal has told it to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]
"""Signals that tell a run to stop: SIGINT (Ctrl-C), SIGTERM (sent to end a job), and the signals that schedulers send
before a time limit, SIGUSR2 with submitit and often SIGUSR1 elsewhere."""


class Pause(Exception):
    """Raised by the `on_update` of a training to save and end the run, as Ctrl-C does. The same call resumes it."""


_asked: list[Callable[[], bool]] = []
"""The function that the active block of `asked_to_stop` yields; empty outside of such blocks."""


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether this process has received one of `SIGNALS` within the block.

    - A Ctrl-C after another signal raises KeyboardInterrupt. A further SIGTERM does not, because a scheduler and
      `torchrun` may each send SIGTERM.
    - Only the main thread receives signals. In other threads, the function always returns False.
    - A block within another block yields the same function. A whole run, including the reading of its checkpoint, can
      therefore be in a block, and no first Ctrl-C raises an error at an unexpected place.
    - A scheduler's signal may have had a handler before the block. This handler is called after the block. For example,
      submitit's handler queues the job again and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    if _asked:
        yield _asked[0]
        return
    received = dict[int, bool]()

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and received:
            raise KeyboardInterrupt
        # A dictionary instead of a `threading.Event`, because setting an event takes a lock: a second signal that comes
        # in the meantime would wait for the lock forever. For example, `timeout` sends two signals at once.
        received[number] = True

    def asked() -> bool:
        return bool(received)

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    # None means a handler in native code. Signals that are ignored, such as Ctrl-C in the background of a shell script,
    # remain ignored.
    before = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
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
    """Return, to a signal handler from before a block of `asked_to_stop`, whether the signal came within the block."""
    return bool(_asked)
