"""Step through the environment with random actions, which are random next states of an automaton.

Accuracy is 1 for the exact path, 0 for an empty path, and negative for a path that is worse than an empty path.
"""

import gymnasium as gym

import maze_nca_gym  # noqa: F401  (registers the environments)

env = gym.make("MazeShortestPath-v0", size=16, max_episode_steps=20)
observation, info = env.reset(seed=0)
env.action_space.seed(0)
print(f"maze {observation['maze'].shape}, state {observation['state'].shape}, both channels first")
print(f"the shortest path has {info['solution_length']} tiles")

episode_return, done = 0.0, False
while not done:
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    episode_return += reward
    done = terminated or truncated
print(f"return {episode_return:.3f}, which is the final accuracy {info['accuracy']:.3f}; optimal: {info['optimal']}")
env.close()
