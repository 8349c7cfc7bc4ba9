"""What the tests of commands share: the command as a process, and the files that it leaves."""

from __future__ import annotations

import sys
from pathlib import Path

RUN = [sys.executable, "-c", "from maze_nca_gym.cli import main; raise SystemExit(main())"]
"""The command in a process of its own, to which its arguments are added."""


def files(folder: str | Path = ".") -> list[str]:
    """All files in a folder and below, by their paths from there."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())
