"""Ctrl-C and the signals of schedulers, turned into a question that a run asks between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]
"""Ctrl-C, what ends a job, and what schedulers send before a time limit: submitit SIGUSR2, others often SIGUSR1."""


class Pause(Exception):
    """Raised by a training's `on_update`: the run is saved and ends, as by Ctrl-C, and the same call goes on."""


_asked: list[Callable[[], bool]] = []
"""The function that the active block of `asked_to_stop` yields; empty outside of such blocks."""


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or one of a scheduler's `SIGNALS` came; a further Ctrl-C raises
    KeyboardInterrupt.

    A further SIGTERM does not, since a scheduler and `torchrun` may each send one. Only the main thread gets signals;
    in other threads the function always returns False. A block within another yields the same function. So a whole run,
    the reading of its checkpoint included, can be in a block, and no KeyboardInterrupt comes at an unexpected place. A
    handler that a scheduler's signal had before the block is called after it: submitit's queues the job again, and ends
    the process.
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
        # a plain entry: setting a `threading.Event` takes a lock, which a second signal within this would wait for
        # forever if it came meanwhile, and `timeout`, for example, sends two at once
        received[number] = True

    def asked() -> bool:
        return bool(received)

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    # None is native code's; what is ignored, as Ctrl-C is in a shell script's background, stays so
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
    """Return whether the signal whose handler calls this came within a block of `asked_to_stop`, which it has ended."""
    return bool(_asked)
