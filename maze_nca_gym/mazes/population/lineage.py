"""The ancestry of the levels of a population: the family trees of its members.

The record of a level is stored as long as the level or one of its descendants is a member. So memory grows with the
population, and not with its history. The tiles of a level are computed from the oldest stored ancestor, by the edits of
every level after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.mazes.levels import Tiles
from maze_nca_gym.mazes.mutation import apply_edits
from maze_nca_gym.mazes.population.members import MEMBER

FRESH = -1
"""The value of a record's parent and seed if the level was generated and has no parent."""


class Record(NamedTuple):
    """The record of a level that entered a population.

    A root is a fresh level, or a level whose parent was removed before it entered.

    Attributes:
        id: the level's number, in the order of entry.
        parent: the id of its parent, or `FRESH` if it has none.
        generation: 0 for a level without a parent, and otherwise its parent's generation + 1.
        seed: the seed of the mutation that made it from its parent, or `FRESH` if it has no parent.
        born: the tick at which it entered.
        fitness: its regret at this tick.
        edits: (k, 3) int16, row, col and new tile: its differences from its parent, or None for a root.
        tiles: (H, W) uint8 for a root, or None for other levels.
    """

    id: int
    parent: int
    generation: int
    seed: int
    born: int
    fitness: float
    edits: NDArray[np.int16] | None
    tiles: Tiles | None


NUMBERS = Record._fields[:6]
"""Fields of a record that are numbers: all are integers except the last, `fitness`. `MEMBER` has the same fields."""


class Lineage:
    """Records of all members and of their ancestors."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}  # in the order of their ids
        self._n_children: dict[int, int] = {}
        self._living: set[int] = set()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id: int) -> bool:
        return id in self._records

    def __getitem__(self, id: int) -> Record:
        """Return the record of a level.

        Raises:
            ValueError: the level is neither a member nor an ancestor of a member.
        """
        if id not in self._records:
            raise ValueError(f"level {id} is neither a member nor an ancestor of one")
        return self._records[id]

    def add(self, record: Record) -> None:
        """Add a new member. Its id must be higher than all others, and its parent must have a record unless it is a
        root."""
        self._records[record.id] = record
        self._n_children[record.id] = 0
        self._living.add(record.id)
        if record.tiles is None:
            self._n_children[record.parent] += 1

    def remove(self, id: int) -> None:
        """Remove a member. Its record, and the records of its ancestors, stay only if some of their descendants are
        members."""
        self._living.remove(id)
        while id not in self._living and not self._n_children[id]:
            record = self._records.pop(id)
            del self._n_children[id]
            if record.tiles is not None:
                return
            id = record.parent
            self._n_children[id] -= 1

    def ancestors(self, id: int) -> list[Record]:
        """Return the records from a level's root to the level itself.

        Raises:
            ValueError: there is no record of the level.
        """
        line = [self[id]]
        while line[-1].tiles is None:
            line.append(self._records[line[-1].parent])
        return line[::-1]

    def tiles(self, id: int) -> Tiles:
        """Return the (H, W) uint8 tiles of a level, computed from its root by the edits of its ancestors and its own.

        Raises:
            ValueError: there is no record of the level.
        """
        root, *others = self.ancestors(id)
        assert root.tiles is not None
        level = root.tiles.copy()
        for record in others:
            assert record.edits is not None
            level = apply_edits(level, record.edits)
        return level

    def replay(self) -> dict[int, Tiles]:
        """Return the (H, W) uint8 tiles of every level that has a record, by id."""
        levels: dict[int, Tiles] = {}
        for id, record in self._records.items():
            if record.edits is None:
                assert record.tiles is not None
                levels[id] = record.tiles
            else:
                levels[id] = apply_edits(levels[record.parent], record.edits)
        return levels

    def to_arrays(self, shape: tuple[int, int]) -> dict[str, NDArray[Any]]:
        """Return all records as flat arrays, by names that start with `record_`.

        Args:
            shape: (H, W) of the levels.
        """
        records = list(self._records.values())
        edits = [record.edits for record in records if record.edits is not None]
        roots = [record.tiles for record in records if record.tiles is not None]
        return {
            **{f"record_{name}": np.array([getattr(r, name) for r in records], MEMBER[name]) for name in NUMBERS},
            "record_is_root": np.array([record.tiles is not None for record in records], np.bool_),
            "record_n_edits": np.array([0 if r.edits is None else len(r.edits) for r in records], np.int64),
            "record_edits": np.concatenate([*edits, np.zeros((0, 3), np.int16)]),
            "record_root_tiles": np.stack(roots) if roots else np.zeros((0, *shape), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], living: list[int]) -> Lineage:
        """Return the lineage whose `to_arrays` returned these arrays.

        Args:
            arrays: arrays with the names, data types and numbers of dimensions of `to_arrays`.
            living: the ids of the members.

        Raises:
            ValueError: the arrays describe no lineage; the message says why.
        """
        counts, is_root = arrays["record_n_edits"], arrays["record_is_root"]
        if (counts < 0).any() or counts[is_root].any() or counts.sum() != len(arrays["record_edits"]):
            raise ValueError(f"record_n_edits does not count the {len(arrays['record_edits'])} edits")
        if is_root.sum() != len(arrays["record_root_tiles"]):
            raise ValueError(f"{is_root.sum()} roots have {len(arrays['record_root_tiles'])} levels")
        ids = arrays["record_id"].tolist()
        if any(later <= earlier for earlier, later in zip([-1, *ids], ids, strict=False)):
            raise ValueError("the ids of the lineage do not ascend from 0")
        numbers = zip(*(arrays[f"record_{name}"].tolist() for name in NUMBERS), strict=True)
        edits = iter(np.split(arrays["record_edits"], counts[~is_root].cumsum()))
        roots = iter(arrays["record_root_tiles"])
        lineage = cls()
        for (id, parent, generation, seed, born, fitness), root in zip(numbers, is_root.tolist(), strict=True):
            if not 0 <= generation <= id:
                raise ValueError(f"the generation of level {id} is {generation}")
            fresh = parent == FRESH
            if fresh != (generation == 0) or fresh != (seed == FRESH) or seed < FRESH:
                entry = (id, parent, generation, seed)
                must = f"level {id} must have a parent, a seed and a generation above 0, or none of the three"
                raise ValueError(f"{must}, got {entry}")
            if not np.isfinite(fitness):
                raise ValueError(f"the fitness of level {id} in the lineage is {fitness}")
            if root and not FRESH <= parent < id:
                raise ValueError(f"the parent of level {id} is {parent}")
            if not root and (parent not in lineage or lineage[parent].generation + 1 != generation):
                raise ValueError(f"the parent of level {id}, {parent}, is unknown or of another generation")
            of_child, of_root = (None, next(roots).copy()) if root else (next(edits).copy(), None)
            lineage.add(Record(id, parent, generation, seed, born, fitness, of_child, of_root))
        unknown = [id for id in living if id not in lineage]
        if unknown:
            raise ValueError(f"level {unknown[0]} is unknown to the lineage")
        lineage._living = set(living)
        extinct = [id for id, n in lineage._n_children.items() if not n and id not in lineage._living]
        if extinct:
            raise ValueError(f"level {extinct[0]} of the lineage is neither a member nor an ancestor of one")
        return lineage
