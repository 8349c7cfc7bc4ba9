"""How good a policy is while it trains: scores on levels that it never trains on."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from maze_nca_gym.levels import Tiles, one_hot
from maze_nca_gym.scoring import score

from ..learned.fused import unroll
from ..policy import PATH, Policy
from .config import TrainingConfig
from .data import Batch

BATCH = 256
VALIDATION_STEPS = 64
"""Of models whose episodes have no last iteration."""
COLUMNS = ("valid_loss", "accuracy", "complete", "optimal")


@torch.no_grad()
def validate(policy: Policy, batch: Batch, config: TrainingConfig) -> dict[str, float]:
    """Mean `valid_loss`, `accuracy`, `complete` and `optimal` at the end of an episode."""
    n_steps = config.n_layers or VALIDATION_STEPS
    table = [
        score(part.tiles, _paths(policy, part.tiles, n_steps), part.target).table
        for part in (batch[start : start + BATCH] for start in range(0, len(batch), BATCH))
    ]
    return dict(zip(COLUMNS, np.concatenate(table).mean(axis=0).tolist(), strict=True))


def _paths(policy: Policy, tiles: Tiles, n_steps: int) -> NDArray[np.float32]:
    maze = torch.from_numpy(one_hot(tiles, policy.n_tiles)).to(policy.device)
    path = unroll(policy, maze, n_steps, [n_steps])[0][:, PATH]
    return cast(NDArray[np.float32], path.float().cpu().numpy())
