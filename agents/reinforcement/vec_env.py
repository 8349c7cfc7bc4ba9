"""Many mazes stepped by one call, with the `VecEnv` interface of Stable-Baselines3."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from maze_nca_gym.envs.path_arrays import PathArray
from maze_nca_gym.envs.wrappers import PathAction
from maze_nca_gym.envs.wrappers.path_action import path_spaces, paths_of
from maze_nca_gym.mazes.levels import read_tiles, stack_levels

Observation: TypeAlias = dict[str, NDArray[np.float32]] | NDArray[np.float32]
Infos: TypeAlias = list[dict[str, Any]]


def make_path_vec(id: str, num_envs: int, n_channels: int = 1, **options: Any) -> VecMonitor:
    """Return N mazes for Stable-Baselines3 in a `VecMonitor`, which adds `info["episode"]` when an episode ends.

    Args:
        id: "MazeShortestPathRL-v0", "MazeShortestPath-v0", or another environment with answers of a single channel.
        num_envs: the number N of mazes.
        n_channels: number of channels of the state: the path, and the channels that the policy keeps between steps. A
            new policy needs 1.
        options: other options of `gym.make_vec`, such as `size`, `generator`, `levels` and `max_episode_steps`.

    Raises:
        ValueError: an invalid option, as for `MazeVectorEnv`.
    """
    env = gym.make_vec(id, num_envs=num_envs, n_channels=n_channels, autoreset_mode="SameStep", **options)
    return VecMonitor(PathVecEnv(env))


class PathVecEnv(VecEnv):
    """A batched environment as a `VecEnv` of N environments wrapped in `PathAction`, with actions in [-1, 1] that set
    the path.

    The results equal those from a `DummyVecEnv` of N single environments bit for bit, without a loop over environments.
    As in Stable-Baselines3, `seed(s)` gives environment i the seed s + i at the next `reset`. When an episode ends, the
    next episode starts in the same step, and the last observation is in `info["terminal_observation"]`.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Wrap an environment made by `gym.make_vec`, or a wrapper around it.

        Args:
            env: an environment with mazes, made with `autoreset_mode="SameStep"`, that returns NumPy arrays.

        Raises:
            ValueError: the environment has another autoreset mode, or is not an environment with mazes.
        """
        spaces = env.single_observation_space, env.single_action_space
        self._is_array = isinstance(spaces[0], PathArray)
        if not self._is_array:
            spaces = path_spaces("PathVecEnv", env, spaces[0])
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError('PathVecEnv needs an environment made with autoreset_mode="SameStep"')
        self.env = env
        self._actions = np.empty(0, np.float32)
        super().__init__(env.num_envs, *spaces)

    def reset(self) -> Observation:
        """Begin an episode in all environments, and return the N first observations.

        The episodes have the seeds of the last `seed` and the options of the last `set_options`.

        Raises:
            ValueError: the options are not empty, and are neither a `level` for every environment nor an `index` into
                the set of levels for every environment; or a level or an index is invalid.
        """
        seeds: Any = list(self._seeds)  # a seed for each, which Gymnasium accepts, but does not declare
        stated = [{name: value for name, value in env.items() if value is not None} for env in self._options]
        names, others = [*stated[0]], [env for env in stated if env.keys() != stated[0].keys()]
        if others or names not in ([], ["level"], ["index"]):
            wanted = "options must give every environment a level, or every environment an index, and nothing else"
            raise ValueError(f"{wanted}, got {' and '.join(map(str, [stated[0], *others[:1]]))}")
        options: dict[str, Any] = {name: [env[name] for env in stated] for name in names}
        if "level" in options:
            letters = cast(Any, self.env.unwrapped).source.task.letters
            options["level"] = stack_levels([read_tiles(level, letters) for level in options["level"]])
        observation, infos = self.env.reset(seed=seeds, options=options or None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [_of_one(infos, i) for i in range(self.num_envs)]
        return observation

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Store the (N, C, H, W) actions for `step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Observation, NDArray[np.float32], NDArray[np.bool_], Infos]:
        """Step all environments with the actions that `step_async` has stored.

        Returns:
            The N observations, (N,) float32 rewards, (N,) bool whether each episode has ended, and N infos.

        Raises:
            ValueError: the actions have another shape or are not finite. The environments are unchanged.
        """
        actions = self._actions if self._is_array else paths_of(self._actions)
        observation, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = terminated | truncated
        of_each = [_of_one(infos, i) for i in range(self.num_envs)]
        for i in np.flatnonzero(ended).tolist():
            self.reset_infos[i] = of_each[i]
            of_each[i] = _of_one(infos["final_info"], i) | {"terminal_observation": infos["final_obs"][i]}
        for info, late in zip(of_each, truncated & ~terminated, strict=True):
            info["TimeLimit.truncated"] = bool(late)
        return observation, rewards.astype(np.float32), ended, of_each

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_images(self) -> list[NDArray[np.uint8] | None]:
        """Return the (h, w, 3) uint8 pictures of environments made with `render_mode="rgb_array"`."""
        pictures: Any = self.env.render()
        return list(pictures)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the batched environment, repeated for each of the requested environments."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Raise an error: the environments have no attributes of their own.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("environments in a batch have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Raise an error: the environments have no methods of their own.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("environments in a batch have no methods of their own")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return whether each environment behaves as if wrapped in a class, which is the case for `PathAction`."""
        return [wrapper_class is PathAction] * len(list(self._get_indices(indices)))


def _of_one(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """Return the info of environment i from Gymnasium's batched infos, without `final_obs` and `final_info`."""
    public = [name for name in infos if not name.startswith("_") and name not in ("final_obs", "final_info")]
    return {name: infos[name][i] for name in public if infos[f"_{name}"][i]}
