"""Every policy, run by the environments, by `rollout` and by Stable-Baselines3."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

from maze_nca_gym.agents import load
from maze_nca_gym.agents.learned import NCA


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_iterations_are_counted_from_the_first_state_of_an_episode(mode):
    policy = NCA(4, 6, n_iterations=3, shared_weights=False, generator=torch.Generator().manual_seed(0))
    env = policy.make_env(2, size=5, autoreset_mode=mode)
    observation, _ = env.reset(seed=1)
    counters, starts, n_episodes = None, np.ones(2, bool), 0
    for _ in range(12):
        action, counters = policy.predict(observation, counters, starts)
        before, (observation, _, terminated, truncated, _) = observation, env.step(action)
        for i in np.flatnonzero(~before["state"].any(axis=(1, 2, 3))):
            n_episodes += 1
            maze, zeros = (torch.from_numpy(before[key][[i]]) for key in ("maze", "state"))
            np.testing.assert_allclose(action[i], policy(maze, zeros, 0)[0].detach(), atol=1e-5)
            assert counters[0][i] == 1
        starts = terminated | truncated
    assert n_episodes >= 6
    env.close()


def test_stable_baselines_evaluates_a_policy():
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(gym.make("MazeShortestPath-v0", size=4))
    mean, deviation = evaluation.evaluate_policy(load("shortest-path-bfs"), env, n_eval_episodes=4, warn=False)
    assert mean == pytest.approx(1)
    assert deviation == pytest.approx(0)
