"""Pictures of the ancestry of a level of a population: its family tree, and the line of its ancestors.

Each shows every level with its solution, its edits and its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles
from maze_nca_gym.population import LevelPopulation, Record
from maze_nca_gym.rendering import palette
from maze_nca_gym.rendering.files import save_gif, save_png
from maze_nca_gym.rendering.frame import captioned, draw_level
from maze_nca_gym.rendering.layout import Box
from maze_nca_gym.rendering.palette import Frame
from maze_nca_gym.rendering.panels import blank, fill_box
from maze_nca_gym.rendering.text import put_text, text_height, text_width
from maze_nca_gym.tasks import find_task

SIDE, LEAST_CELL = 176, 4
"""Approximate pixels along a picture's side, and smallest number along a tile's."""
GAP, DROP, MARGIN = 26, 44, 24
"""Pixels between neighbours, between generations, and around the tree."""
TITLE, CAPTION = 20, 13
_RIM, _LINE = 4, 2
_OVERHANG = 6
_KEY = "blue: the solution; outlined: changed by the mutation; pale: no longer in the population"
MOST_ANCESTORS, MOST_SIBLINGS, MOST_CHILDREN = 5, 4, 5
"""Most ancestors, siblings and children in a tree, besides the root and the level itself: the latest ancestors, and the
others of highest regret."""
_FPS, _LAST_FRAME, _LINE_SIDE = 1.5, 4, 400


class Kin(NamedTuple):
    """One level of a family.

    Attributes:
        id: its number.
        parent: the number of its nearest ancestor in the picture, or None for the first of all.
        tiles: (H, W) uint8.
        solution: (H, W) bool.
        edits: (k, 3) integers, row, col and new tile: the changes from its real parent.
        captions: lines of text, each in two parts, for the left and for the right.
        n_skipped: number of generations left out between the level and its parent in the picture.
        lives: whether it is still in the population; other levels are drawn pale.
    """

    id: int
    parent: int | None
    tiles: Tiles
    solution: NDArray[np.bool_]
    edits: NDArray[np.int16]
    captions: Sequence[tuple[str, str]]
    n_skipped: int = 0
    lives: bool = True


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
    frames = [draw_kin(kin, _LINE_SIDE) for kin in _kin(population, population.lineage.ancestors(id))]
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


def draw_kin(kin: Kin, side: int = SIDE) -> Frame:
    """Return one level of a family with its captions above.

    Args:
        kin: what to draw.
        side: approximate pixels along the level's longer side.

    Returns:
        (h, w, 3) uint8; the shape depends on the level's size, the number of captions and `side` alone.
    """
    cell = max(LEAST_CELL, side // max(kin.tiles.shape))
    picture = draw_level(kin.tiles, kin.solution, cell, overhang=_OVERHANG)
    thickness = max(1, -(-cell // 5))
    for row, col, _ in kin.edits.tolist():
        tile = picture[row * cell : (row + 1) * cell, col * cell : (col + 1) * cell]
        tile[:thickness] = tile[-thickness:] = palette.EXACT_PATH
        tile[:, :thickness] = tile[:, -thickness:] = palette.EXACT_PATH
    for left, right in reversed(kin.captions):
        picture = captioned(picture, left, right, CAPTION)
    return picture if kin.lives else (0.6 * picture + 0.4 * np.array(palette.PAPER)).astype(np.uint8)


def draw_family_tree(family: Sequence[Kin], chosen: int, title: str) -> Frame:
    """Draw a family tree, the oldest level at the top.

    The solution is blue; tiles that differ from the parent's are outlined in orange. The line from the first level to
    the chosen one is dark, and the chosen one has a blue rim.

    Args:
        family: one level without a parent, then levels with one, parents before their children. All have the same size
            and the same number of captions.
        chosen: the id of one of them.
        title: a line above.

    Returns:
        (h, w, 3) uint8.

    Raises:
        ValueError: no such level, or a family that is no tree.
    """
    _check(family, chosen)
    pictures = {kin.id: _rimmed(draw_kin(kin), kin.id == chosen) for kin in family}
    height, width, _ = pictures[chosen].shape
    places = _places(family, height, width, top=MARGIN + text_height(TITLE) + text_height(CAPTION) + 14)
    words = MARGIN + max(text_width(title, TITLE), text_width(_KEY, CAPTION))
    right = max(words, *(box.left + width for box in places.values()))
    frame = blank(max(box.top for box in places.values()) + height + MARGIN, right + MARGIN)
    put_text(frame, MARGIN - 8, MARGIN, title, TITLE)
    put_text(frame, MARGIN + text_height(TITLE) - 4, MARGIN, _KEY, CAPTION, palette.FAINT_INK)
    line = {chosen}
    for kin in reversed(family):  # children before their parents
        line |= {kin.parent} if kin.id in line and kin.parent is not None else set()
    for kin in sorted(family, key=lambda kin: kin.id in line):  # the dark line over the others
        if kin.parent is not None:
            _connect(frame, places[kin.parent], places[kin.id], kin.id in line, kin.n_skipped)
    for id, box in places.items():
        frame[box.area] = pictures[id]
    return frame


def _check(family: Sequence[Kin], chosen: int) -> None:
    ids = [kin.id for kin in family]
    if chosen not in ids:
        raise ValueError(f"no level {chosen} is in this family, only {', '.join(map(str, ids))}")
    for i, kin in enumerate(family):
        if kin.parent not in ids[:i] if i else kin.parent is not None:
            raise ValueError(f"level {kin.id} comes before its parent {kin.parent} or is a second root")


def _rimmed(picture: Frame, is_chosen: bool) -> Frame:
    """Return a picture with a rim, which is blue around the chosen level and white around others."""
    height, width, _ = picture.shape
    frame = blank(height + 4 * _RIM, width + 4 * _RIM, palette.SOURCE if is_chosen else palette.PAPER)
    frame[_RIM:-_RIM, _RIM:-_RIM] = palette.PAPER
    frame[2 * _RIM : -2 * _RIM, 2 * _RIM : -2 * _RIM] = picture
    return frame


def _places(family: Sequence[Kin], height: int, width: int, top: int) -> dict[int, Box]:
    """Return boxes of pictures: those without children side by side, parents above the middle of their children."""
    children: dict[int, list[Kin]] = {kin.id: [] for kin in family}
    for kin in family[1:]:
        assert kin.parent is not None
        children[kin.parent].append(kin)
    places: dict[int, Box] = {}
    n_leaves = 0

    def place(kin: Kin, top: int) -> int:
        """Place a level and all its descendants; return its left edge."""
        nonlocal n_leaves
        below = [place(child, top + height + DROP) for child in children[kin.id]]
        left = (below[0] + below[-1]) // 2 if below else MARGIN + n_leaves * (width + GAP)
        n_leaves += not below
        places[kin.id] = Box(top, left, height, width)
        return left

    place(family[0], top)
    return places


def _connect(frame: Frame, above: Box, below: Box, dark: bool, n_skipped: int) -> None:
    """Draw a line from the middle of a picture's lower edge to the middle of another's upper edge."""
    begin, end, middle = above.top + above.height, below.top, below.top - DROP // 2
    start, stop = (box.left + box.width // 2 for box in (above, below))
    colour = palette.INK if dark else palette.RULE
    for top, left, bottom, right in (
        (begin, start, middle, start),
        (middle, min(start, stop), middle, max(start, stop)),
        (middle, stop, end, stop),
    ):
        fill_box(frame, Box(top, left, bottom - top + _LINE, right - left + _LINE), colour)
    if n_skipped:
        words = f"{n_skipped} generation{'s' if n_skipped > 1 else ''} between"
        gap = text_width(words, CAPTION) // 2 + 6
        top = middle - text_height(CAPTION) // 2
        fill_box(frame, Box(top, stop - gap, text_height(CAPTION), 2 * gap), palette.PAPER)
        put_text(frame, top, stop, words, CAPTION, palette.FAINT_INK, "centre")
