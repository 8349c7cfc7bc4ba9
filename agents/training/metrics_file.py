"""Every line of metrics in a file of JSON lines, which a run that goes on appends to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from maze_nca_gym.atomic import replacing

from .report import Line, Silence


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
        self._file = path.open("a", encoding="utf-8")

    def log(self, line: Line) -> None:
        """Append it."""
        self.lines.append(line)
        self._file.write(_to_text(line))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path) -> list[Line]:
    """The lines of a metrics file, none if it does not exist. One that a crash cut off at the end is left out.

    Raises:
        ValueError: any other line that cannot be read.
    """
    if not path.exists():
        return []
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
    except ValueError:
        return None
    if not isinstance(values, dict) or not isinstance(values.get("update"), int):
        return None
    return {name: math.nan if value is None else value for name, value in values.items()}
