"""Stable-Baselines3 on the environments: its checker, its PPO, its evaluation."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import started
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env as check_gymnasium_env
from gymnasium.utils.env_checker import data_equivalence
from tables import for_each, refused

import maze_nca_gym
from maze_nca_gym.agents import load
from maze_nca_gym.envs.wrappers import PathAction
from maze_nca_gym.mazes.families import test_levels
from maze_nca_gym.mazes.levels import one_hot

pytest.importorskip("stable_baselines3", reason="install the extra `sb3`")

from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

every_id = pytest.mark.parametrize("id", [*maze_nca_gym.ENVIRONMENTS, *maze_nca_gym.EVOLVING_ENVIRONMENTS])


def make(id: str = "MazeShortestPath-v0", **options: Any) -> PathAction:
    size = {} if "levels" in options else {"size": 3}
    return PathAction(gym.make(id, **{**size, "n_channels": 1, **options}))


@every_id
def test_checker_only_asks_whether_the_grids_are_images(id: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(PathAction(gym.make(id, n_channels=1)), warn=True)
    assert [str(warning.message) for warning in caught if "image" not in str(warning.message)] == []


def test_ppo_learns() -> None:
    level = np.array([[1, 1, 1, 1], [1, 2, 3, 1], [1, 1, 1, 1]])

    def make_envs(n_envs: int) -> Any:
        return make_vec_env(lambda: make(levels=level, max_episode_steps=4), n_envs, seed=0)

    model = PPO("MultiInputPolicy", make_envs(4), n_steps=32, batch_size=64, learning_rate=3e-3, seed=0, device="cpu")
    untrained, _ = evaluate_policy(model, make_envs(1))
    model.learn(768)
    trained, _ = evaluate_policy(model, make_envs(1))
    assert trained > untrained + 0.1


def test_hand_coded_policy_returns_one() -> None:
    env = make_vec_env("MazeShortestPath-v0", n_envs=3, seed=0, env_kwargs={"size": 6})
    returns, lengths = evaluate_policy(
        load("shortest-path-bfs"),
        env,
        n_eval_episodes=6,
        return_episode_rewards=True,  # type: ignore[arg-type]
    )
    assert returns == pytest.approx([1.0] * 6, abs=1e-6)
    assert len(set(lengths)) > 1  # type: ignore[arg-type]


def test_evaluation_sees_each_level_of_a_set_once() -> None:
    policy, levels = load("shortest-path-bfs"), []

    def remember(variables: dict[str, Any], _: Any) -> None:
        if variables["done"]:
            levels.append(variables["observations"]["maze"].tobytes())

    env = gym.make("MazeShortestPath-v0", levels="random-4", in_order=True)
    evaluate_policy(policy, env, n_eval_episodes=64, callback=remember, warn=False)
    tiles = test_levels("random", 4, "shortest-path", 64).tiles
    assert levels == [one_hot(level)[None].tobytes() for level in tiles]


class TestPathAction:
    @every_id
    def test_spaces_and_gymnasiums_checker(self, id: str) -> None:
        """The checker complains only that there is a wrapper."""
        env = make(id, size=(3, 4), render_mode="rgb_array")
        assert env.action_space == gym.spaces.Box(-1.0, 1.0, (1, 5, 6), np.float32)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Dict)
        assert space["state"] == gym.spaces.Box(0.0, 1.0, (1, 5, 6), np.float32)
        assert space["maze"] == env.unwrapped.observation_space["maze"]  # type: ignore[index]
        with pytest.warns(UserWarning, match="is different from the unwrapped version"):
            check_gymnasium_env(env, skip_render_check=True)

    def test_actions_from_minus_1_to_1_are_paths_from_0_to_1(self) -> None:
        env = started(make())
        action = np.resize(np.array([-1, -0.5, 0, 0.5, 1, -7, 7], np.float32), (1, 5, 5))
        observation, *_ = env.step(action)
        np.testing.assert_array_equal(observation["state"].flat[:7], [0, 0.25, 0.5, 0.75, 1, 0, 1])
        assert observation["state"].dtype == np.float32

    def test_an_undecided_action_is_no_path_and_the_solution_ends_the_episode(self) -> None:
        env = make()
        _, info = env.reset(seed=0)
        *_, terminated, _, undecided = env.step(np.zeros((1, 5, 5), np.float32))
        assert not terminated
        assert not undecided["complete"]
        *_, terminated, _, info = env.step(2 * info["target"][None].astype(np.float32) - 1)
        assert (terminated, info["accuracy"]) == (True, 1.0)

    @for_each(
        ("action", "message"),
        [
            *((np.full((1, 5, 5), value, np.float32), "must be finite") for value in (np.nan, np.inf, -np.inf)),
            (np.zeros((5, 5), np.float32), "must have shape"),
        ],
    )
    def test_bad_actions(self, action: Any, message: str) -> None:
        env = started(make())
        refused(message, env.step, action)

    def test_it_survives_json(self) -> None:
        env = make()
        assert env.spec is not None
        same = gym.make(EnvSpec.from_json(env.spec.to_json()))
        assert isinstance(same, PathAction)
        assert data_equivalence(env.reset(seed=0), same.reset(seed=0), exact=True)

    def test_further_channels_are_written_unchanged(self) -> None:
        env = started(make(n_channels=2))
        observation, *_ = env.step(np.full((2, 5, 5), 3, np.float32))
        assert observation in env.observation_space
        assert (observation["state"].min(axis=(1, 2)) == [1, 3]).all()

    def test_other_environments_are_not_wrapped(self) -> None:
        with pytest.raises(ValueError, match="PathAction wraps the environments of maze_nca_gym, not"):
            PathAction(gym.make("CartPole-v1"))  # type: ignore[arg-type]
