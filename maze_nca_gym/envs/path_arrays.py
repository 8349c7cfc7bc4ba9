"""Environments on which agents can be trained without wrappers: an action is the path alone, and an observation one
array."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from maze_nca_gym.envs.maze import MazeEnv, Observation
from maze_nca_gym.envs.spaces import check_action
from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.names import check_flag
from maze_nca_gym.support.options import check


class PathArray(Box):
    """A space of observations in [0, 1]: the one-hot maze and, after it, the path so far, as one float32 array.

    Attributes:
        grid: (T + 1, H, W), the shape of an observation that is not flat.
        task: name of the task for which policies are trained on these mazes.
    """

    def __init__(self, grid: tuple[int, int, int], flat: bool, task: str) -> None:
        super().__init__(0.0, 1.0, (int(np.prod(grid)),) if flat else grid, np.float32)
        self.grid, self.task = grid, task


def _spaces(env: Any, task: Task, n_channels: int, flat: bool) -> tuple[PathArray, Box]:
    """Return the spaces of observations and of actions of one environment.

    Raises:
        ValueError: `flat` is not a bool, or the state or the task's answers have several channels.
    """
    check_flag("flat", flat)
    check(n_channels == 1, f"n_channels must be 1 where actions are the path alone, got {n_channels}: see PathAction")
    task.check_one_channel("an action of these environments writes one")
    height, width = env.source.shape
    action = (height * width,) if flat else (1, height, width)
    return PathArray((task.n_tiles + 1, height, width), flat, task.name), Box(-1.0, 1.0, action, np.float32)


class PathMazeEnv(MazeEnv):
    """A maze in which an agent draws the path: `MazeEnv` with one state channel, as libraries for learning expect it.

    **Action**: the path, a number a in [-1, 1] for each tile, which becomes (a + 1) / 2 in the state. Therefore a
    Gaussian around 0 starts undecided. Values beyond the bounds are clipped.

    **Observation**: the one-hot maze (empty, wall and, for the shortest path, source, target), and after it the path so
    far, in [0, 1].

    Both are vectors, float32, or with `flat=False` grids, (1, H, W) and (T + 1, H, W). Everything else is as in
    `MazeEnv`.
    """

    def __init__(self, task: str = "shortest-path", flat: bool = True, n_channels: int = 1, **options: Any) -> None:
        """Check every argument; levels are drawn by `reset`.

        Args:
            task: the name of a task with answers of one channel.
            flat: whether observations and actions are vectors, for networks of dense layers and for libraries that
                refuse actions of three dimensions; False gives grids, for convolutions.
            n_channels: channels of the state, the path alone.
            options: other options of `MazeEnv`.

        Raises:
            ValueError: a bad argument. An unknown keyword is a TypeError too.
        """
        super().__init__(task, n_channels=n_channels, **options)
        self.observation_space, self.action_space = _spaces(self, self._task, n_channels, flat)  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode; return observation and info. Options and errors are the same as for `MazeEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        return _joined(observation, self.observation_space), info

    def step(self, action: NDArray[np.float32]) -> Any:
        """Make the action the path; return the same values as `MazeEnv.step`.

        Args:
            action: (H W,) or (1, H, W) float32 in [-1, 1]: -1 means that a tile is not on the path, 1 that it is.

        Raises:
            ValueError: an action of another shape or dtype, or an action that is not finite; nothing has changed then.
            ResetNeeded: there is no episode, or it has ended.
        """
        path = (check_action(action, self.action_space.shape or ()) + 1) / 2
        observation, *rest = super().step(path.reshape(self._shape))
        return _joined(observation, self.observation_space), *rest


class PathMazeVectorEnv(MazeVectorEnv):
    """N `PathMazeEnv` that step in one call. Everything else is as in `MazeVectorEnv`, including tensors on a
    device."""

    def __init__(
        self, num_envs: int = 1, task: str = "shortest-path", flat: bool = True, n_channels: int = 1, **options: Any
    ) -> None:
        """Check every argument; levels are drawn by `reset`.

        Args:
            num_envs: N.
            task, flat, n_channels: the same as for `PathMazeEnv`.
            options: other options of `MazeVectorEnv`.

        Raises:
            ValueError: a bad argument. An unknown keyword is a TypeError too.
        """
        super().__init__(num_envs, task, n_channels=n_channels, **options)
        self.single_observation_space, self.single_action_space = _spaces(self, self._task, n_channels, flat)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _written(self, actions: Any) -> Any:
        return ((actions + 1) / 2).reshape(self.num_envs, 1, *self.source.shape)

    def _observation(self) -> Any:
        return _joined(super()._observation(), self.single_observation_space)


def _joined(observation: Observation, space: Any) -> Any:
    """Return `maze`, (..., T, H, W), followed by the path of `state`, as one array or tensor, (..., *space.shape)."""
    maze, path = observation["maze"], observation["state"].clip(0, 1)
    if isinstance(maze, np.ndarray):
        joined: Any = np.concatenate([maze, path], -3)
    else:
        import torch  # which is there if there are tensors

        joined = torch.cat([maze, path], -3)
    return joined.reshape(maze.shape[:-3] + space.shape)
