"""Pictures of where a level of a population comes from: its family tree, and the line of its ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maze_nca_gym.population import LevelPopulation, Record
from maze_nca_gym.rendering.family_tree import Kin, draw_family_tree, draw_kin
from maze_nca_gym.rendering.files import save_gif, save_png
from maze_nca_gym.tasks import find_task

MOST_ANCESTORS, MOST_SIBLINGS, MOST_CHILDREN = 5, 4, 5
"""Shown in a tree at the most, the root and the level itself left aside; the latest, and those of most regret."""
_FPS, _LAST_FRAME, _SIDE = 1.5, 4, 400


def save_tree(population: LevelPopulation, id: int, path: Path) -> Path:
    """Write the family tree of a level as a PNG file; returns its path."""
    family = population.lineage.family(id)
    line = population.lineage.ancestors(id)
    siblings = [r for r in family if r.tiles is None and r.parent == line[-1].parent and r.id != id]
    children = [r for r in family if r.tiles is None and r.parent == id]
    recent = line[1:-1][-MOST_ANCESTORS:]
    shown = [line[0], *recent, *_hardest(siblings, MOST_SIBLINGS), *line[1:][-1:], *_hardest(children, MOST_CHILDREN)]
    shown.sort(key=lambda record: record.id)
    kin = _kin(population, shown)
    if len(line) > 2 + len(recent):
        at = shown.index(recent[0])
        kin[at] = kin[at]._replace(parent=line[0].id, n_skipped=len(line) - 2 - len(recent))
    title = f"level {id} and its family, of {len(family):,} levels"
    return save_png(path, draw_family_tree(kin, id, title))


def save_line(population: LevelPopulation, id: int, path: Path) -> Path:
    """Write the line from the root to a level as a GIF file, a generation a frame; returns its path."""
    frames = [draw_kin(kin, _SIDE) for kin in _kin(population, population.lineage.ancestors(id))]
    return save_gif(path, frames + [frames[-1]] * (_LAST_FRAME - 1), _FPS)


def _hardest(records: Sequence[Record], n: int) -> list[Record]:
    return sorted(records, key=lambda record: (-record.fitness, record.id))[:n]


def _kin(population: LevelPopulation, records: Sequence[Record]) -> list[Kin]:
    """Return the levels of records, with the captions of their pictures."""
    tiles = np.stack([population.lineage.tiles(record.id) for record in records])
    solutions = find_task(population.config.task).solve_all(tiles)
    lives = population.indices_of([record.id for record in records]) >= 0
    return [
        Kin(
            record.id,
            record.parent if record.tiles is None else None,
            level,
            solution,
            np.zeros((0, 3), np.int16) if record.edits is None else record.edits,
            (
                (f"level {record.id}", f"generation {record.generation}"),
                (f"regret {record.fitness:.3g}", f"{int(solution.sum())} tiles"),
            ),
            lives=bool(living),
        )
        for record, level, solution, living in zip(records, tiles, solutions, lives, strict=True)
    ]
