"""`PathAction`: the maze environments as reinforcement-learning libraries expect them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from maze_nca_gym.envs.spaces import as_array

Observation = dict[str, NDArray[np.float32]]


class PathAction(
    gym.Wrapper[Observation, NDArray[np.float32], Observation, NDArray[np.float32]], RecordConstructorArgs
):
    """One state channel, the path, written by actions in [-1, 1].

    An action a becomes the path (a + 1) / 2 in [0, 1], so that a Gaussian policy around 0 starts undecided. The
    observation's `state` is bounded by [0, 1] accordingly.
    """

    def __init__(self, env: gym.Env[Observation, NDArray[np.float32]]) -> None:
        """Wrap an environment that was made with `n_channels=1`.

        Raises:
            ValueError: the environment is no maze, or has another number of state channels.
        """
        RecordConstructorArgs.__init__(self)
        spaces = path_spaces("PathAction", env, env.observation_space if isinstance(env, gym.Env) else None)
        super().__init__(env)
        self.observation_space, self.action_space = spaces

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Make one step with the path that the action, (1, H, W) floats, means.

        Raises:
            ValueError: the same errors as from the environment.
        """
        return self.env.step(paths_of(as_array(action)))


def path_spaces(wrapper: str, env: object, space: object) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return the spaces of observations and of actions that are the path alone.

    Args:
        wrapper: what changes the environment, for messages.
        env: the environment, for messages.
        space: the space of its observations.

    Raises:
        ValueError: the environment is no maze, or has another number of state channels.
    """
    if not isinstance(space, Dict) or set(space) != {"maze", "state"}:
        raise ValueError(f"{wrapper} wraps the environments of maze_nca_gym, not {env}")
    shape = space["state"].shape
    if shape is None or shape[0] != 1:
        raise ValueError(f"{wrapper} needs an environment made with n_channels=1, this one has state {shape}")
    observed = Dict({"maze": space["maze"], "state": Box(0.0, 1.0, shape, np.float32)})
    return observed, Box(-1.0, 1.0, shape, np.float32)


def paths_of(actions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the paths in [0, 1] that (..., H, W) actions in [-1, 1] mean, of the same shape.

    Values that are not finite stay so, for the environment to refuse.
    """
    paths = (np.clip(actions, -1.0, 1.0) + 1.0) / 2.0
    return np.where(np.isfinite(actions), paths, actions).astype(np.float32)
