"""Environments for policies: an environment of the policy's task, with its channels, for as many steps as it needs.

Importing this module does not import torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import gymnasium as gym

from maze_nca_gym import ENVIRONMENTS, environment_id
from maze_nca_gym.envs.level_source import shape_and_border
from maze_nca_gym.mazes.families import FAMILIES
from maze_nca_gym.mazes.orders import USUAL_ORDER, split_order

from .guarantees import Guarantees


class Runs(Protocol):
    """Protocol for the part of a `Policy` that its environment needs."""

    @property
    def task(self) -> str:
        """The task's name."""

    n_channels: int
    channel_names: tuple[str, ...]
    highlight: str
    size: tuple[int, int] | None
    max_steps: int | None
    guarantees: Guarantees


def make_env(policy: Runs, num_envs: int | None = None, name: str | None = None, **options: Any) -> Any:
    """Return an environment that a policy can run in.

    The environment has the policy's task, number of channels and names of channels. Its pictures are tinted by the
    channel that the policy highlights, and its levels have the family and size that the policy is meant for. Episodes
    are long enough for the policy to finish, and never longer than the number of iterations that the policy has weights
    for.

    Args:
        policy: a policy.
        num_envs: the number of environments to step as a batch, by `gymnasium.make_vec`, or None for a single
            environment, by `gymnasium.make`.
        name: the policy's name in warnings, by default its class name.
        options: further arguments of these functions, such as `size`, `generator`, `levels` or `render_mode`; they
            replace the values that the policy chooses.

    Returns:
        A `gymnasium.Env` or, with `num_envs`, a `gymnasium.vector.VectorEnv`.

    Raises:
        ValueError: a bad option, or a policy for a family that is not registered.
    """
    make = gym.make if num_envs is None else partial(gym.make_vec, num_envs=num_envs)
    # a list, because a spec is stored as JSON; other names of channels may lack the one that the policy highlights
    chosen = {"n_channels": policy.n_channels, "channel_names": list(policy.channel_names), **order_option(policy.task)}
    highlight = {} if "channel_names" in options else {"highlight": policy.highlight}
    options = {**chosen, **highlight, **level_options(policy, options), **options}
    shape, has_border = shape_and_border(**options)
    (height, width), frame, id = shape, 2 if has_border else 0, environment_id(policy.task)
    most_moves = max(0, (height - frame) * (width - frame) - 1)
    needed = policy.max_steps or max(
        ENVIRONMENTS[id][1], policy.guarantees.enough_steps(height, width, most_moves) or 0
    )
    env: Any = make(id, **{"max_episode_steps": needed, **options})
    if policy.guarantees.needs_border and not has_border:
        warnings.warn(border_warning(name or type(policy).__name__), UserWarning, stacklevel=3)
    return env


def border_warning(name: str) -> str:
    """Return a warning that a policy needs a border of walls, which some levels do not have."""
    return f"the policy {name} needs a wall around every level, and some levels have none: expect wrong paths"


def order_option(task: str) -> dict[str, str]:
    """Return the keyword `order` for the registered environment of a task, or no keyword if the task has the usual
    order."""
    order = split_order(task)[1]
    return {} if order == USUAL_ORDER else {"order": order}


def level_options(policy: Runs, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment options that select the levels for which a policy is meant: size, generator and generator
    options.

    For example, a policy for perfect mazes of inner size 31 gets this size and the generator of perfect mazes.

    Args:
        policy: a policy.
        options: options that the user has chosen. With `levels` the result is empty; with `generator` it contains at
            most the size.

    Raises:
        ValueError: the policy is meant for a family that is not registered.
    """
    if options.get("levels") is not None:
        return {}
    size = policy.size or policy.guarantees.size
    chosen: dict[str, Any] = {} if size is None else {"size": size}
    if policy.guarantees.family is not None and "generator" not in options:
        family = FAMILIES.find(policy.guarantees.family)
        chosen |= {"generator": family.generator, **family.variants[0]}
    return chosen
