"""Messages of the commands about the levels that a policy gets."""

from __future__ import annotations

from maze_nca_gym.agents import Policy
from maze_nca_gym.agents.environments import border_warning
from maze_nca_gym.cli.output import complain
from maze_nca_gym.levels import Tiles, has_border


def warn_without_border(policy: Policy, name: str, tiles: Tiles) -> None:
    """Complain on stderr if a policy that needs a wall around each level gets some of the (N, H, W) levels without."""
    if policy.needs_border and not has_border(tiles).all():
        complain(border_warning(name))
