"""Levels evolve against an agent: here a hand-coded solver that has too few steps for long paths.

Levels on which the solver fails stay in the population and have offspring, so paths become too long for the solver.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np

from maze_nca_gym.agents import load  # this import registers the environments too
from maze_nca_gym.mazes import shortest_path
from maze_nca_gym.rendering import contact_sheet, draw_level, save_png

N_ENVS = 64
SHOWN = [0, 40, 80, 120, 160, 199]
policy = load("shortest-path-bfs")  # it takes twice as many steps as the path has tiles
envs = gym.make_vec(
    "MazeShortestPathEvolving-v0",
    num_envs=N_ENVS,
    size=10,
    max_episode_steps=24,
    capacity=200,
    n_initial=200,
    replay_probability=0.3,  # for an agent that learns, most episodes should replay; the default is 0.8
    evolve_every=0,
    evolve_below=None,  # offspring from the beginning, at any performance of the agent
)
observation, info = envs.reset(seed=0)
state, episode_start, first_tiles = None, np.ones(N_ENVS, bool), None
n_episodes, n_shown = 0, 0
while n_episodes < 4000:
    action, state = policy.predict(observation, state, episode_start)
    observation, reward, terminated, truncated, info = envs.step(action)
    episode_start = terminated | truncated
    n_episodes += int(episode_start.sum())
    if first_tiles is None and len(envs.population) == envs.population.config.capacity:
        first_tiles = envs.population.tiles[SHOWN].copy()
    if n_episodes // 500 > n_shown:
        n_shown = n_episodes // 500
        means = envs.population.statistics()
        print(
            f"{n_episodes:5,} episodes: solutions of {means['mean_solution_length']:4.1f} tiles, "
            f"regret {means['mean_fitness']:.2g}, generation {means['mean_generation']:.1f}"
        )
envs.close()

Path("runs").mkdir(exist_ok=True)
levels = np.concatenate([first_tiles, envs.population.tiles[SHOWN]])
pictures = [draw_level(tiles, path) for tiles, path in zip(levels, shortest_path(levels), strict=True)]
picture = save_png("runs/evolution.png", contact_sheet(pictures, columns=6))
print(f"picture of six levels before, above, and of the six in their places after evolution: {picture}")
