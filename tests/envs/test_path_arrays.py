"""Environments with ordinary arrays for training agents, without a warning of any library's checker."""

from __future__ import annotations

from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from tables import for_each, refused

from maze_nca_gym import LEARNING_ENVIRONMENTS
from maze_nca_gym.envs.wrappers import PathAction

every_id = pytest.mark.parametrize("id", list(LEARNING_ENVIRONMENTS))
MODES = ["NextStep", "SameStep", "Disabled"]


@every_id
@for_each("flat", [True, False])
def test_checkers_report_nothing(id: str, flat: bool) -> None:
    """Grids are left out, because Stable-Baselines3 takes every array of three dimensions for a picture."""
    check_env(gym.make(id, flat=flat, render_mode="rgb_array").unwrapped)
    if flat:
        pytest.importorskip("stable_baselines3", reason="install the extra `sb3`")
        from stable_baselines3.common.env_checker import check_env as check_for_sb3

        check_for_sb3(gym.make(id), warn=True)


@every_id
@for_each("flat", [True, False])
@for_each("mode", MODES)
@for_each("output", ["numpy", "torch"])
def test_single_and_vector_environments_agree_with_path_action(id: str, flat: bool, mode: str, output: str) -> None:
    """All results of a step are equal bit for bit, also with actions beyond the bounds."""
    plain, options = id.replace("RL", ""), {"size": (3, 4), "max_episode_steps": 4}
    many = gym.make_vec(id, 2, flat=flat, autoreset_mode=mode, output=output, **options)
    ones = [gym.make(id, flat=flat, **options) for _ in range(2)]
    theirs = [PathAction(gym.make(plain, n_channels=1, **options)) for _ in range(2)]
    space: Any = ones[0].observation_space

    def expected(observation: Any) -> Any:
        return np.concatenate([observation["maze"], observation["state"]]).reshape(space.shape)

    def same(results: Any, observations: list[Any]) -> None:
        np.testing.assert_array_equal(np.asarray(results), np.stack(observations))

    same(many.reset(seed=5)[0], [one.reset(seed=5 + i)[0] for i, one in enumerate(ones)])
    for i, env in enumerate(theirs):
        env.reset(seed=5 + i)
    for action in np.random.default_rng(0).uniform(-1.2, 1.2, (4, 2, *ones[0].action_space.shape)).astype(np.float32):  # type: ignore[misc]
        results = many.step(torch.from_numpy(action) if output == "torch" else action)
        steps = [one.step(row) for one, row in zip(ones, action, strict=True)]
        for (_, *rest), env, row in zip(steps, theirs, action, strict=True):
            observation, *others = env.step(row.reshape(env.action_space.shape))  # type: ignore[arg-type]
            assert data_equivalence(rest, others, exact=True)
            np.testing.assert_array_equal(steps[theirs.index(env)][0], expected(observation))
        last = results[4]["final_obs"] if "final_obs" in results[4] else results[0]
        same(np.stack([np.asarray(row) for row in last]), [step[0] for step in steps])
        for of_many, of_ones in zip(results[1:4], list(zip(*steps, strict=True))[1:4], strict=True):
            np.testing.assert_array_equal(np.asarray(of_many), of_ones)
    assert many.single_observation_space == space
    assert all(observation in space for observation in np.asarray(results[0]))


@every_id
def test_survives_json_and_processes(id: str) -> None:
    env = gym.make(id, size=3, flat=False)
    for same in (gym.make(EnvSpec.from_json(env.spec.to_json())), cloudpickle.loads(cloudpickle.dumps(env))):  # type: ignore[union-attr]
        assert data_equivalence(env.reset(seed=0), same.reset(seed=0), exact=True)
        assert same.observation_space.task == env.observation_space.task == LEARNING_ENVIRONMENTS[id][0]  # type: ignore[attr-defined]


@for_each("make", [gym.make, lambda id, **options: gym.make_vec(id, 2, **options)])
@for_each(
    ("options", "action", "message"),
    [
        ({"flat": 1}, None, "flat must be True or False"),
        ({"n_channels": 2}, None, "n_channels must be 1 where actions are the path alone, got 2"),
        ({"size": 3}, np.full(25, np.nan), "must be finite"),
        ({"size": 3}, np.full(25, np.inf), "must be finite"),
        ({"size": 3, "flat": False}, np.zeros(25), "must have shape"),
        ({"size": 3}, np.zeros((1, 5, 5)), "must have shape"),
    ],
)
def test_bad_input(make: Any, options: dict[str, Any], action: Any, message: str) -> None:
    def play() -> None:
        env = make("MazeShortestPathRL-v0", **options)
        env.reset(seed=0)
        env.step(np.stack([action] * 2) if hasattr(env, "num_envs") else action)

    refused(message, play)
