"""The result tables of the paper as data: what each row trains, and the values that it published.

The data is in `tables.json`. `configurations` turns a row into runs: the preset `paper-...` of its task with the row's
options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from maze_nca_gym.support.names import unknown_name

if TYPE_CHECKING:
    from ...training.config import TrainingConfig

ALL = "all"


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a table.

    Attributes:
        table, number: the numbers of the table and of the row in it, both from 1.
        options: options of `TrainingConfig` by name. A list of values means that the row averages over runs with each.
        n_weights: published number of weights; the mean if the row pools several.
        published: column -> (mean, sample standard deviation) over 5 trials, in percent or tiles.
    """

    table: int
    number: int
    options: Mapping[str, Any]
    n_weights: int
    published: Mapping[str, tuple[float, float]]

    @property
    def label(self) -> str:
        """The row as it is typed: 3.2 for the second row of table 3."""
        return f"{self.table}.{self.number}"


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the paper.

    Attributes:
        number: its number in the paper, from 1.
        title: what it compares.
        columns: names in `columns.COLUMNS`.
        rows: its rows in the order of the paper.
    """

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@cache
def tables() -> dict[int, Table]:
    """Return the tables by number."""
    text = (resources.files(__package__) / "tables.json").read_text(encoding="utf-8")
    return {table["table"]: _table(table) for table in json.loads(text)["tables"]}


def _table(values: Mapping[str, Any]) -> Table:
    rows = tuple(
        Row(
            table=values["table"],
            number=number,
            options=row["options"],
            n_weights=row["n_weights"],
            published={column: (mean, sd) for column, (mean, sd) in row["published"].items()},
        )
        for number, row in enumerate(values["rows"], start=1)
    )
    return Table(values["table"], values["title"], tuple(values["columns"]), rows)


def find_rows(words: Iterable[str]) -> list[Row]:
    """Return the rows that words name, in the order of the tables, each once.

    Args:
        words: "all", the number of a table such as "3", or a row such as "3.2".

    Raises:
        ValueError: no word, an unknown table, or an unknown row.
    """
    found: set[Row] = set()
    for word in words:
        found.update(_rows_of(word))
    if not found:
        raise ValueError(f"name at least one table: {ALL}, 1 to {len(tables())}, or a row such as 3.2")
    return sorted(found, key=lambda row: (row.table, row.number))


def _rows_of(word: str) -> Sequence[Row]:
    if word == ALL:
        return [row for table in tables().values() for row in table.rows]
    match = re.fullmatch(r"(\d{1,4})(?:\.(\d{1,4}))?", word)
    table = tables().get(int(match[1])) if match else None
    if match is None or table is None:
        raise ValueError(unknown_name("table", word, [*map(str, tables()), ALL], ", or a row such as 3.2"))
    if match[2] is None:
        return table.rows
    if not 1 <= int(match[2]) <= len(table.rows):
        raise ValueError(f"table {table.number} has rows 1 to {len(table.rows)}, got {word}")
    return [table.rows[int(match[2]) - 1]]


def configurations(row: Row) -> list[TrainingConfig]:
    """Return the configurations of a row at full scale, with seed 0: one, or one for each pooled value.

    Each is the preset `paper-shortest-path` or `paper-diameter`, or its variant `-evolved`, with the paper's recipe for
    the row's model, and then the row's options.
    """
    from ...training.config import changed
    from ...training.presets import published_recipe

    base = f"paper-{row.options['task']}{'-evolved' if row.options['evolve'] else ''}"
    recipe = published_recipe(row.options["model"])
    return [changed(base, **recipe, **options) for options in _unpooled(row.options)]


def _unpooled(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one dict of options for each value of the option that has a list of them."""
    pooled = next((name for name, value in options.items() if isinstance(value, list)), None)
    if pooled is None:
        return [dict(options)]
    return [{**options, pooled: value} for value in options[pooled]]


def run_name(config: TrainingConfig) -> str:
    """Return a name for the runs of a configuration of a row: equal for equal configurations, whatever the seed."""
    model = config.model
    parts = [config.task, model.model.lower(), f"{model.n_channels}-channels", f"{model.n_iterations}-iterations"]
    if "kernel_size" in model.options:
        parts.append(f"kernel-{model.options['kernel_size']}")
    parts += [word for name, word in _WORDS.items() if model.options.get(name)]
    parts += [word for name, word in _WORDS_IF_NOT.items() if model.options.get(name) is False]
    return "-".join([*parts, *(["evolved"] if config.evolve else [])])


_WORDS = {"cut_corners": "cut", "max_pool": "pool", "edge_features": "edges"}
_WORDS_IF_NOT = {"shared_weights": "separate", "traversable_edges_only": "grid"}
