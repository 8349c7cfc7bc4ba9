"""1,024 mazes step in one call. When an episode has ended, a new episode begins automatically."""

import time

import numpy as np

from maze_nca_gym.agents import load

N_ENVS, N_STEPS = 1024, 50

policy = load("shortest-path-bfs")
envs = policy.make_env(num_envs=N_ENVS)
observation, info = envs.reset(seed=0)

state, episode_start = None, np.ones(N_ENVS, bool)
n_solved, env_seconds, start = 0, 0.0, time.perf_counter()
for _ in range(N_STEPS):
    action, state = policy.predict(observation, state, episode_start)
    begin = time.perf_counter()
    observation, reward, terminated, truncated, info = envs.step(action)
    env_seconds += time.perf_counter() - begin
    episode_start = terminated | truncated
    n_solved += int(terminated.sum())
print(f"{n_solved} mazes solved in {N_STEPS} steps of {N_ENVS} environments")
seconds = time.perf_counter() - start
total = N_ENVS * N_STEPS
print(f"{total / seconds:,.0f} steps per second; of the environments alone, {total / env_seconds:,.0f}")
envs.close()
