"""How good a policy is while it trains: scores on levels that it never trains on."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles, one_hot
from maze_nca_gym.scoring import score

from ..iterations import default_steps
from ..learned.fused import unroll
from ..policy import PATH, Policy
from .data import Batch

BATCH = 256
COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")


@torch.no_grad()
def validate(policy: Policy, batch: Batch) -> dict[str, float]:
    """Return the means of `valid_loss`, `accuracy`, `complete` and `optimal` after `default_steps` iterations."""
    n_steps = default_steps(policy, batch.target)
    table = [
        score(part.tiles, _paths(policy, part.tiles, n_steps), part.target).table
        for part in (batch[start : start + BATCH] for start in range(0, len(batch), BATCH))
    ]
    return dict(zip(COLUMNS, np.concatenate(table).mean(axis=0).tolist(), strict=True))


def _paths(policy: Policy, tiles: Tiles, n_steps: int) -> NDArray[np.float32]:
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles)).to(policy.device)
    path = unroll(policy, maze, n_steps, [n_steps])[0][:, PATH]
    return cast(NDArray[np.float32], path.float().cpu().numpy())
