"""Environments for policies: of the policy's task, with its channels, for as many steps as it needs.

Nothing here imports torch; a policy that is given by name does when it is made.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from maze_nca_gym import environment_id

from .registry import load

if TYPE_CHECKING:
    from maze_nca_gym.envs.level_source import LevelSource

    from .policy import Policy


def make_env(policy: str | Policy, num_envs: int | None = None, **options: Any) -> Any:
    """Make an environment in which a policy can run.

    It has the policy's task, number of channels and names of channels. A policy that is built for one size gets levels
    of that size. Episodes last at least as long as the policy may need, and never longer than it has weights for.

    Args:
        policy: a policy, its name in `list_policies()`, or the path of a model file.
        num_envs: the number of environments to step as a batch, by `gymnasium.make_vec`; None for a single environment,
            by `gymnasium.make`.
        options: what else these functions take, such as `size`, `generator`, `levels` or `render_mode`. An option
            replaces what the policy would choose.

    Returns:
        A `gymnasium.Env` or, with `num_envs`, a `gymnasium.vector.VectorEnv`.

    Raises:
        ValueError: an unknown name, or a bad option.
    """
    found = load(policy) if isinstance(policy, str) else policy
    make = gym.make if num_envs is None else partial(gym.make_vec, num_envs=num_envs)
    options = {**_choices(found), **options}
    env: Any = make(environment_id(found.task), **options)
    source = env.unwrapped.source
    if found.needs_border and not source.has_border:
        name = policy if isinstance(policy, str) else type(found).__name__
        warnings.warn(border_warning(name), UserWarning, stacklevel=2)
    if "max_episode_steps" in options:
        return env
    env.close()  # it only told the size of its levels
    steps = _episode_steps(found, source, env.spec.max_episode_steps)
    return make(environment_id(found.task), **options, max_episode_steps=steps)


def border_warning(name: str) -> str:
    """Return what to say where a policy of this name needs a border and levels have none."""
    return f"the policy {name} needs a wall around every level, and some levels have none: expect wrong paths"


def _choices(policy: Policy) -> dict[str, Any]:
    """Return the options of an environment that the policy decides; lists, because a spec is stored as JSON."""
    fixed = {} if policy.size is None else {"size": policy.size}
    return {"n_channels": policy.n_channels, "channel_names": list(policy.channel_names), **fixed}


def _episode_steps(policy: Policy, source: LevelSource, usual: int) -> int:
    """Return the steps of an episode, `usual` or as many more as the policy may need on levels of this source."""
    if policy.most_iterations is not None:
        return policy.most_iterations
    height, width = source.shape
    frame = 2 if source.has_border else 0
    most_moves = max(0, (height - frame) * (width - frame) - 1)
    return max(usual, policy.max_steps(height, width, most_moves) or 0)
