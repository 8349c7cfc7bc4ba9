"""Messages on stderr, which work even if another program has replaced stderr or the process has none."""

from __future__ import annotations

import sys

from maze_nca_gym.support.names import printable


def say(text: str) -> None:
    """Print a text on stderr at once, with its control characters escaped; without a stderr, drop the text."""
    if sys.stderr is not None:  # as under pythonw: `print` would take stdout in its place
        print(printable(text), file=sys.stderr, flush=True)


def shows_stderr() -> bool:
    """Return whether stderr is a terminal."""
    asks = getattr(sys.stderr, "isatty", None)  # a replaced stderr need not have it
    return asks is not None and bool(asks())
