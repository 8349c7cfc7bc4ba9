"""The figure `rollouts.png` of a run: example rollouts on levels on which the run never trains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from maze_nca_gym.mazes.families import validation_levels
from maze_nca_gym.mazes.scoring import lengths_of, score
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level, save_png

from ..policies.policy import Policy
from ..rollouts.iterating import iterate
from ..rollouts.scores import Batch, encode, path_of
from ..rollouts.solving import default_steps
from .data import LevelStream, concatenate, with_solutions
from .losses import counted_iterations

ROWS = 4
CANDIDATES = 64
"""Number of levels of each family from which the rows are chosen, by the length of their solutions."""
MOMENTS = (0.125, 0.25, 0.5, 1.0)
"""Moments at which the path is shown, as fractions of the iterations."""
PICTURE = 240
"""Approximate side of a level's picture, in pixels."""
GAP = 12
"""Pixels between the pictures and around them."""


@torch.no_grad()
def draw_rollouts(policy: Policy, stream: LevelStream, title: str, path: Path) -> Path:
    """Draw rollouts to a PNG file, and return its path. Each row shows the path on a level after some iterations, and
    the solution.

    Args:
        policy: the policy to run.
        stream: the levels of the policy's training. The drawn levels belong to the validation set in the configuration
            or, without such a set, are held-out levels of the families and the first size of the training.
        title: a line above the rows.
        path: the file.
    """
    rows, task = _rows(stream), policy.problem
    tiles, target = rows.tiles, rows.target
    n_steps = default_steps(policy, target)
    steps = counted_iterations(MOMENTS, n_steps)
    paths = [path_of(policy, state) for state in iterate(policy, encode(policy, tiles), steps)]
    scores = [score(tiles, path_after, target, task.judge) for path_after in paths]
    cell, frames = max(3, PICTURE // tiles.shape[1]), []
    for i in range(len(rows)):
        for step, path_after, scored in zip(steps, paths, scores, strict=True):
            verdict = "optimal" if scored.optimal[i] else f"accuracy {scored.accuracy[i]:.2f}"
            words = (f"{step} iteration{'s' if step > 1 else ''}", "complete" if scored.complete[i] else verdict)
            frames.append(captioned(draw_level(tiles[i], path_after[i], cell, kinds=task.kinds), *words))
        solution = draw_level(tiles[i], target[i], cell, kinds=task.kinds)
        frames.append(captioned(solution, "solution", f"{int(target[i].sum())} tiles"))
    sheet = contact_sheet(frames, columns=len(frames) // len(rows), gap=GAP)
    return save_png(path, captioned(sheet, title, size=20, margin=GAP))


def _rows(stream: LevelStream) -> Batch:
    """Return the levels to draw, from the run's own validation set or in equal parts from each family. Their solutions
    range from short to the longest of all candidates."""
    config = stream.config
    if config.validation_set is not None:
        sources = [stream.validation[:CANDIDATES]]
    else:
        named = (config.sizes[0], config.problem, CANDIDATES)
        of_families = (validation_levels(family, *named).tiles for family in config.families)
        sources = [with_solutions(tiles, config.problem) for tiles in of_families]
    n_each, chosen = -(-ROWS // len(sources)), []
    for levels in sources:
        order, n = lengths_of(levels.target).argsort(kind="stable"), min(n_each, len(levels))
        chosen.append(levels[order[np.arange(1, n + 1) * len(order) // n - 1]])
    return concatenate(chosen)
