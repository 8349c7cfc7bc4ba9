"""The results of a benchmark, as a table, a page and a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from maze_nca_gym.files import validated_read, write_all
from maze_nca_gym.tables import Table

from ..runs import versions
from .report import markdown, scores_of
from .rows import Row

BOARD, PAGE = "leaderboard.json", "leaderboard.md"


@dataclass(frozen=True)
class Board:
    """The results of a benchmark.

    Attributes:
        rows: a row for each set and policy or file, set by set.
    """

    rows: tuple[Row, ...]

    def markdown(self) -> str:
        """Return a page with a table for each set, the published figures included."""
        return markdown(self.rows)

    def table(self) -> Table:
        """Return a table of what was measured, a row a policy and set, in percent with 95 % intervals."""
        scores = scores_of(self.rows, ())
        rows = [
            (row.set, row.name, f"{row.n:,}", *(row.scores[s].percent(1) if s in row.scores else "" for s in scores))
            for row in self.rows
        ]
        return Table(("set", "policy", "mazes", *scores), rows, numbers=("mazes", *scores))

    def _repr_html_(self) -> str:
        return self.table().html()

    def save(self, folder: str | Path) -> list[Path]:
        """Write `leaderboard.json` and `leaderboard.md`; rows of other sets or names that the folder has stay.

        Returns:
            The two files.

        Raises:
            ValueError: `leaderboard.json` is there and is no leaderboard.
            OSError: a file could not be written; both are as before.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        old = Board.load(folder).rows if (folder / BOARD).exists() else ()
        merged = {(row.set, row.name): row for row in (*old, *self.rows)}
        board = Board(tuple(merged.values()))
        content = {"versions": versions(), "rows": [row.to_json() for row in board.rows]}
        texts = {folder / BOARD: json.dumps(content, indent=2) + "\n", folder / PAGE: board.markdown()}
        write_all({path: text.encode() for path, text in texts.items()})
        return list(texts)

    @classmethod
    def load(cls, folder: str | Path) -> Board:
        """Read what `save` wrote.

        Raises:
            ValueError: `leaderboard.json` is no leaderboard.
            OSError: it is missing or cannot be read.
        """
        path = Path(folder) / BOARD
        with validated_read(path, "is no leaderboard"):
            return cls(tuple(Row.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]))
