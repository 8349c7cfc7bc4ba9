"""torchrl on the environments: it detects by errors which keywords they accept."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from tables import for_each

import maze_nca_gym

pytest.importorskip("torchrl", reason="install torchrl")

from torchrl.envs import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

STATE = "observation"
"""torchrl's name of the key `state` of observations."""


@pytest.mark.parametrize(
    "id", [*maze_nca_gym.ENVIRONMENTS, *maze_nca_gym.EVOLVING_ENVIRONMENTS, *maze_nca_gym.LEARNING_ENVIRONMENTS]
)
def test_the_checker_of_the_library_reports_nothing(id: str) -> None:
    check_env_specs(GymEnv(id, size=3, n_channels=1))


@for_each("frame_skip", [1, 2])
def test_its_rollout_agrees_with_gymnasium(frame_skip: int) -> None:
    env = GymEnv("MazeShortestPath-v0", size=3, n_channels=1, frame_skip=frame_skip)
    env.set_seed(0)
    rollout, ours = env.rollout(3), gym.make("MazeShortestPath-v0", size=3, n_channels=1)
    ours.reset(seed=0)  # `set_seed` resets with this seed too
    ours.reset()
    for action, state, reward in zip(rollout["action"], rollout["next", STATE], rollout["next", "reward"], strict=True):
        results = [ours.step(action.numpy()) for _ in range(frame_skip)]
        np.testing.assert_array_equal(state.numpy(), results[-1][0]["state"])
        assert reward.item() == pytest.approx(sum(result[1] for result in results), abs=1e-5)


def test_a_misspelt_keyword_is_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_chanels'"):
        GymEnv("MazeShortestPath-v0", n_chanels=1)


def test_it_runs_a_vector_environment() -> None:
    """torchrl resets episodes itself, so SAME_STEP also fails with Gymnasium's own vector of these environments."""
    options = {"size": 3, "n_channels": 1, "max_episode_steps": 3}
    envs = GymWrapper(gym.make_vec("MazeShortestPath-v0", 2, autoreset_mode="Disabled", **options))
    rollout = envs.rollout(5, break_when_any_done=False)
    assert rollout["next", STATE].shape == (2, 5, 1, 5, 5)
    assert rollout["next", "truncated"].squeeze(-1).tolist() == [[False, False, True, False, False]] * 2
