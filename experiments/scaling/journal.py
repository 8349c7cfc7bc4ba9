"""What has been measured, kept in a file line by line, so that a run that was cut off goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from .measure import Cell, Effort, Mazes

Record = TypeVar("Record", Mazes, Cell)


class Journal:
    """Records in a file of JSON lines; what a run had begun to write when it was cut off is dropped.

    Raises:
        ValueError: a line before the last is no record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        if complete != text:
            path.write_text(complete, encoding="utf-8")
        self._records = [_read(line) for line in complete.splitlines()]

    def find_or(self, make: Callable[..., Record], kind: type[Record], *key: object) -> Record:
        """The record of this kind whose first fields are `key`, or the one that `make(*key)` makes."""
        for record in self._records:
            if isinstance(record, kind) and tuple(vars(record).values())[: len(key)] == key:
                return record
        record = make(*key)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
        self._records.append(record)
        return record


def _read(line: str) -> Mazes | Cell:
    try:
        fields = json.loads(line)
        fields["effort"] = Effort(**fields["effort"])
        return Cell(**fields) if "automaton" in fields else Mazes(**fields)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"not a record of this benchmark: {line[:80]!r} ({error})") from error
