"""The picture of example rollouts: what a policy makes of levels that it never trains on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.families import validation_levels
from maze_nca_gym.levels import Tiles, one_hot
from maze_nca_gym.rendering import contact_sheet, draw_level, save_png
from maze_nca_gym.rendering.palette import FAINT_INK, INK, PAPER, Frame
from maze_nca_gym.rendering.text import put_text, text_height
from maze_nca_gym.scoring import Scores, score

from ..iterations import default_steps
from ..policy import PATH, Policy, trace
from .config import TrainingConfig
from .data import solutions

ROWS = 4
CANDIDATES = 64
"""Levels of a family from which those with longer and longer solutions are taken."""
MOMENTS = (0.125, 0.25, 0.5, 1.0)
"""Parts of the iterations after which the path is shown."""
PICTURE = 240
"""Pixels along a level's side, about."""
CAPTION, TITLE = 14, 20


class _Row(NamedTuple):
    """A level: (H, W) uint8 tiles and its (H, W) bool solution."""

    tiles: Tiles
    target: NDArray[np.bool_]


@torch.no_grad()
def draw_rollouts(policy: Policy, config: TrainingConfig, title: str, path: Path) -> Path:
    """Write a PNG file with a level a row: the path channel after some iterations, then the solution; returns its path.

    Args:
        policy: what to run.
        config: its training's; the levels are held out ones of its families and its first size.
        title: a line above them.
        path: the file.
    """
    rows = _rows(config)
    n_steps = default_steps(policy, np.stack([row.target for row in rows]))
    frames = list(_frames(policy, rows, n_steps))
    sheet = contact_sheet(frames, columns=len(frames) // len(rows), gap=12)
    return save_png(path, _titled(sheet, title))


def _rows(config: TrainingConfig) -> list[_Row]:
    """Levels of each family in turn, the last of each with the longest solution of all candidates."""
    n_each = -(-ROWS // len(config.families))
    rows = []
    for family in config.families:
        tiles = validation_levels(family, config.sizes[0], config.task, CANDIDATES).tiles
        target = solutions(tiles, config.task)
        order = target.sum(axis=(1, 2)).argsort(kind="stable")
        rows += [_Row(tiles[i], target[i]) for i in order[np.arange(1, n_each + 1) * len(order) // n_each - 1]]
    return rows


def _frames(policy: Policy, rows: list[_Row], n_steps: int) -> Iterator[Frame]:
    """Captioned pictures, row by row."""
    tiles, target = (np.stack(arrays) for arrays in zip(*rows, strict=True))
    steps = sorted({max(1, round(part * n_steps)) for part in MOMENTS})
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles)).to(policy.device)
    states = (state for step, state in enumerate(trace(policy, maze, n_steps)) if step in steps)
    paths = [state[:, PATH].float().cpu().numpy() for state in states]
    scores = [score(tiles, path, target) for path in paths]
    cell = max(3, PICTURE // tiles.shape[1])
    for i, row in enumerate(rows):
        for step, path, scored in zip(steps, paths, scores, strict=True):
            words = f"{step} iteration{'s' if step > 1 else ''}"
            yield _captioned(draw_level(row.tiles, path[i], cell), words, _verdict(scored, i))
        yield _captioned(draw_level(row.tiles, row.target, cell), "solution", f"{int(row.target.sum())} tiles")


def _verdict(scores: Scores, i: int) -> str:
    if scores.complete[i]:
        return "complete"
    return "optimal" if scores.optimal[i] else f"accuracy {scores.accuracy[i]:.2f}"


def _captioned(picture: Frame, left: str, right: str) -> Frame:
    """A line of text above a picture."""
    frame = _with_room_above(picture, text_height(CAPTION) + 2)
    put_text(frame, 0, 0, left, CAPTION, INK)
    put_text(frame, 0, frame.shape[1], right, CAPTION, FAINT_INK, "right")
    return frame


def _titled(sheet: Frame, title: str) -> Frame:
    frame = _with_room_above(sheet, text_height(TITLE) + 6)
    put_text(frame, 12, 12, title, TITLE, INK)
    return frame


def _with_room_above(picture: Frame, n: int) -> Frame:
    room = np.empty((n, *picture.shape[1:]), np.uint8)
    room[...] = PAPER
    return np.concatenate([room, picture])
