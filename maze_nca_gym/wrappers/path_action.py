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
        space = env.observation_space if isinstance(env, gym.Env) else None
        if not isinstance(space, Dict) or set(space) != {"maze", "state"}:
            raise ValueError(f"PathAction wraps the environments of maze_nca_gym, not {env}")
        shape = space["state"].shape
        if shape is None or shape[0] != 1:
            raise ValueError(f"PathAction needs an environment made with n_channels=1, this one has state {shape}")
        super().__init__(env)
        self.action_space = Box(-1.0, 1.0, shape, np.float32)
        self.observation_space = Dict({"maze": space["maze"], "state": Box(0.0, 1.0, shape, np.float32)})

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Make one step with the path that the action, (1, H, W) floats, means.

        Raises:
            ValueError: the same errors as from the environment.
        """
        action = as_array(action)
        path = (np.clip(action, -1.0, 1.0) + 1.0) / 2.0
        return self.env.step(np.where(np.isfinite(action), path, action).astype(np.float32))
