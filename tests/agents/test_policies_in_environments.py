"""Every policy, run by the environments, by `rollout` and by Stable-Baselines3."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from fresh_models import FRESH_MLP

from maze_nca_gym import ENVIRONMENTS
from maze_nca_gym.agents import list_policies, load, rollout, trace
from maze_nca_gym.agents.learned import NCA
from maze_nca_gym.generation import generate
from maze_nca_gym.levels import clear_endpoints, parse

LEVEL = parse("""
    #######
    #S..#T#
    #.#.#.#
    #.#...#
    #######
""")
SOLVERS = ["shortest-path-bfs", "diameter"]


def environment_id(task: str) -> str:
    return next(name for name, (of_task, _) in ENVIRONMENTS.items() if of_task == task)


def level_for(policy):
    """One of its task, and of its size if it is built for one."""
    size = policy.size
    level = LEVEL if size is None else generate(np.random.default_rng(0), 1, size)[0]
    return level if policy.n_tiles == 4 else clear_endpoints(level)


@pytest.mark.parametrize("name", [*list_policies(all=True), FRESH_MLP])
def test_a_rollout_equals_stepping_the_environment(name):
    policy = load(name)
    level = level_for(policy)
    env = gym.make(environment_id(policy.task), levels=level, n_channels=policy.n_channels + 2)
    observation, _ = env.reset(seed=0)
    maze, zeros = (torch.from_numpy(observation[key].copy())[None] for key in ("maze", "state"))
    counters = None
    with torch.no_grad():
        for expected in list(trace(policy, maze, min(40, policy.most_iterations or 40), zeros))[1:]:
            action, counters = policy.predict(observation, counters)
            observation, _, terminated, truncated, _ = env.step(action)
            np.testing.assert_array_equal(observation["state"], expected[0].numpy())
            if terminated or truncated:
                break
    env.close()


@pytest.mark.parametrize("name", [*list_policies(all=True), FRESH_MLP])
def test_a_rollout_equals_stepping_a_vector_environment(name):
    policy = load(name)
    env = gym.make_vec(environment_id(policy.task), 3, size=policy.size or 5, n_channels=policy.n_channels)
    observation, _ = env.reset(seed=1)
    start = {key: torch.from_numpy(array.copy()) for key, array in observation.items()}
    counters, running = None, np.ones(3, bool)
    for step in range(1, 9):
        action, counters = policy.predict(observation, counters)
        observation, _, terminated, truncated, _ = env.step(action)
        with torch.no_grad():
            expected = rollout(policy, start["maze"], step, start["state"]).numpy()
        np.testing.assert_array_equal(observation["state"][running], expected[running])
        running &= ~(terminated | truncated)
    env.close()


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


@pytest.mark.parametrize("name", SOLVERS)
def test_the_exact_policies_solve_generated_levels(name):
    policy = load(name)
    env = gym.make(environment_id(policy.task), size=6, n_channels=policy.n_channels)
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        counters, total, done, info = None, 0.0, False, {}
        while not done:
            action, counters = policy.predict(observation, counters)
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            done = terminated or truncated
        assert terminated
        assert info["complete"]
        assert total == pytest.approx(1)
    env.close()


def test_stable_baselines_evaluates_a_policy():
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(gym.make("MazeShortestPath-v0", size=4))
    mean, deviation = evaluation.evaluate_policy(load("shortest-path-bfs"), env, n_eval_episodes=4, warn=False)
    assert mean == pytest.approx(1)
    assert deviation == pytest.approx(0)
