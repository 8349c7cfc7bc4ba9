"""A picture of one episode of a policy, animated or its last frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles, one_hot
from maze_nca_gym.rendering import draw_frame, save_gif, save_png
from maze_nca_gym.scoring import score
from maze_nca_gym.tasks import Task

from ..policy import Policy
from .stepping import trace
from .visits import one_thread

LARGEST_ANIMATION = 100
"""Frames of an animation at the most; of a longer episode, evenly spaced steps are shown."""
_FPS = 10
_LAST_FRAME = 20
"""Times that the last frame is shown, for the eye."""


@one_thread()
@torch.no_grad()
def draw_episode(path: Path, policy: Policy, task: Task, tiles: Tiles, n_steps: int, title: str) -> Path:
    """Write a `.gif` of `n_steps` iterations on one (H, W) level, or a `.png` of the last one; returns the path."""
    animated = path.suffix == ".gif"
    shown = _spread(n_steps, LARGEST_ANIMATION) if animated else {n_steps}
    target = task.solve_all(tiles[None])
    frames = [
        draw_frame(
            tiles,
            state,
            target[0],
            channel_names=policy.channel_names,
            step=step,
            accuracy=float(score(tiles[None], state[None, 0], target).accuracy[0]),
            title=title,
        )
        for step, state in _states(policy, task, tiles, n_steps)
        if step in shown
    ]
    if animated:
        return save_gif(path, frames + [frames[-1]] * (_LAST_FRAME - 1), _FPS)
    return save_png(path, frames[-1])


def _spread(n_steps: int, most: int) -> set[int]:
    """Return steps from 0 to `n_steps`, both included, evenly spaced where they are too many."""
    return {int(step) for step in np.linspace(0, n_steps, min(n_steps + 1, most)).round()}


def _states(policy: Policy, task: Task, tiles: Tiles, n_steps: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (step, (C, H, W) state) from 0 to `n_steps`."""
    maze = torch.from_numpy(one_hot(tiles[None], task.n_tiles)).to(policy.device)
    for step, state in enumerate(trace(policy, maze, n_steps)):
        yield step, state[0].cpu().numpy()
