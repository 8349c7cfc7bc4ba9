"""Every line of metrics in a file of JSON lines, which a run that goes on appends to."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from maze_nca_gym.files import naming, reading, replacing

from .report import Line, Silence
from .validation import COLUMNS

NEEDED = {"update", "seconds", "loss", "learning_rate"}
"""What every line has."""


class MetricsFile(Silence):
    """A line as soon as it is told, so that whoever follows the file, or looks after a crash, finds all of them.

    Attributes:
        lines: all that the file holds, those of earlier sessions first.
    """

    def __init__(self, path: Path, update: int = 0) -> None:
        """Open the file, and drop what was written after the checkpoint from which the run goes on.

        Args:
            path: the file; it need not exist.
            update: of the checkpoint.

        Raises:
            ValueError: a line, and not only the end of the last one, that cannot be read.
            OSError: it could not be written; it is then as it was.
        """
        self.lines: list[Line] = [line for line in read_metrics(path) if line["update"] <= update]
        with replacing(path) as file:
            file.write("".join(map(_to_text, self.lines)).encode())
        self._path, self._file = path, path.open("a", encoding="utf-8")

    def log(self, line: Line) -> None:
        """Append it.

        Raises:
            OSError: it could not be written; the message names the file.
        """
        self.lines.append(line)
        with naming(self._path):
            self._file.write(_to_text(line))
            self._file.flush()

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: the end could not be written; the message names the file.
        """
        with naming(self._path):
            self._file.close()


def read_metrics(path: Path) -> list[Line]:
    """The lines of a metrics file, none if it does not exist. One that a crash cut off at the end is left out.

    Raises:
        ValueError: any other line that cannot be read.
    """
    if not path.exists():
        return []
    with reading(path, "has no lines of metrics"):
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [_from_text(text) for text in texts]
    if None in lines[:-1]:
        raise ValueError(f"{path}, line {lines.index(None) + 1} is no line of metrics; mend or remove the file")
    return [line for line in lines if line is not None]


def _to_text(line: Line) -> str:
    """JSON knows no infinity: what is not finite becomes null."""
    return json.dumps({name: value if math.isfinite(value) else None for name, value in line.items()}) + "\n"


def _from_text(text: str) -> Line | None:
    """None for what is no line of metrics."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not values.keys() >= NEEDED or type(values["update"]) is not int:
        return None
    if not values.keys().isdisjoint(COLUMNS) and not values.keys() >= set(COLUMNS):
        return None
    line = {name: math.nan if value is None else value for name, value in values.items()}
    return line if all(map(_is_number, line.values())) else None


def _is_number(value: Any) -> bool:
    """Whether it is one that a float holds, or none."""
    return type(value) in (int, float) and not abs(value) > sys.float_info.max
