"""How a command fails, and its messages on stderr."""

from __future__ import annotations

import sys


class JobError(Exception):
    """What was asked for is legal, but could not be done."""


def complain(message: str) -> None:
    """One line on stderr."""
    print(f"maze-nca-gym: {message}", file=sys.stderr)
