"""Models with random weights, under names that `load` accepts."""

from __future__ import annotations

from maze_nca_gym.agents.policies.learned import MLP

FRESH_MLP = "fresh_models:fresh_mlp"
"""No MLP is included, because the paper's MLP completes nothing."""


def fresh_mlp() -> MLP:
    """Return an MLP for 16x16."""
    return MLP(4, 4, size=16, n_nodes=8, n_iterations=16)
