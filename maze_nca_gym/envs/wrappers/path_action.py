"""`PathAction`: a wrapper with actions in [-1, 1], as reinforcement-learning libraries expect them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from maze_nca_gym.envs.level_source import LevelSource
from maze_nca_gym.envs.maze import Observation
from maze_nca_gym.support.arrays import as_array


class PathSpace(Dict):
    """A space of observations of one task's mazes: `maze` (T, H, W), and `state` (C, H, W) with a path in [0, 1].

    Attributes:
        task: name of the task for which policies are trained on these mazes, or None if it is unknown.
    """

    def __init__(self, maze: gym.Space[Any], state: gym.Space[Any], task: str | None) -> None:
        super().__init__({"maze": maze, "state": state})
        self.task = task

    def __eq__(self, other: object) -> bool:
        """Return whether both spaces have equal parts, and the other space has the same task or an unknown task."""
        return super().__eq__(other) and getattr(other, "task", None) in (None, self.task)

    def __repr__(self) -> str:
        """Return the parts and the task."""
        return f"PathSpace({self['maze']}, {self['state']}, {self.task!r})"


class PathAction(
    gym.Wrapper[Observation, NDArray[np.float32], Observation, NDArray[np.float32]], RecordConstructorArgs
):
    """A wrapper in which actions in [-1, 1] write the path; further state channels are written as they are.

    An action a becomes the path (a + 1) / 2 in [0, 1], so that a Gaussian policy around 0 starts undecided. The path in
    the observation's `state` is bounded by [0, 1] accordingly. Reinforcement learning usually needs `n_channels=1`.
    """

    def __init__(self, env: gym.Env[Observation, NDArray[np.float32]]) -> None:
        """Wrap an environment.

        Raises:
            ValueError: the environment is not a maze, or its answers have several channels.
        """
        RecordConstructorArgs.__init__(self)
        spaces = path_spaces("PathAction", env, env.observation_space if isinstance(env, gym.Env) else None)
        super().__init__(env)
        self.observation_space, self.action_space = spaces

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Make one step with the action as the path; return the same values as the environment's `step`.

        Args:
            action: (C, H, W) floats. In channel 0, -1 means that a tile is not on the path, and 1 that it is.

        Raises:
            ValueError: the same errors as from the environment.
        """
        return self.env.step(paths_of(as_array(action, "the action")))


def path_spaces(wrapper: str, env: object, space: object) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return the space of observations, with paths in [0, 1], and the space of actions, with paths in [-1, 1].

    Args:
        wrapper: the name of the wrapper, for messages.
        env: the environment.
        space: the space of its observations.

    Raises:
        ValueError: the environment is not a maze, or its answers have several channels.
    """
    if not isinstance(space, Dict) or set(space) != {"maze", "state"}:
        raise ValueError(f"{wrapper} wraps the environments of maze_nca_gym, not {env}")
    source: LevelSource | None = getattr(getattr(env, "unwrapped", None), "source", None)
    if source is not None:
        source.task.check_one_channel(f"{wrapper} writes one")
    observed = PathSpace(space["maze"], _bounded(space["state"], 0.0), None if source is None else source.task.name)
    return observed, _bounded(space["state"], -1.0)


def _bounded(space: Any, least: float) -> Box:
    """Return the (C, H, W) space of states with a path, channel 0, from `least` to 1."""
    low, high = np.array(space.low), np.array(space.high)
    low[0], high[0] = least, 1.0
    return Box(low, high, dtype=np.float32)


def paths_of(actions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the states that actions mean, (..., C, H, W) float32: channel 0 becomes (a + 1) / 2, clipped to [0, 1].

    Values that are not finite remain, so that the environment refuses them.
    """
    path = (..., slice(1), slice(None), slice(None)) if np.ndim(actions) > 2 else ...  # others are refused later
    states, written = actions.astype(np.float32), actions[path]
    states[path] = np.where(np.isfinite(written), (np.clip(written, -1.0, 1.0) + 1.0) / 2.0, written)
    return states
