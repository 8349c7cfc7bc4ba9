# %% [markdown]
# # First steps
#
# A maze, an automaton that solves it one iteration at a time, and the environment in which it does so.

# %% [markdown]
# ## A level
#
# Levels are arrays of tiles. The easiest way to make one is to draw it: `#` is a wall, `.` is empty, `S` is the source
# and `T` the target.

# %%
from maze_nca_gym.mazes import parse

LEVEL = """
    S...#....
    .##.#.##.
    .#..#..#.
    .#.###.#.
    ...#.....
    ##.#.###.
    .......#T
"""
tiles = parse(LEVEL)
tiles.shape, tiles.dtype

# %% [markdown]
# A solver finds the exact solution. Where several paths are shortest, it returns the canonical one, which takes the
# first of up, left, down, right that is on any of them.

# %%
from maze_nca_gym.mazes import shortest_path

path = shortest_path(tiles)
print(int(path.sum()), "tiles on the path")

# %% [markdown]
# ## A policy and its environment
#
# A policy maps the maze and a state to the next state. `make_env` makes an environment with the policy's task and
# channels. Without `levels`, it draws a new maze for each episode.

# %%
from maze_nca_gym.agents import load

policy = load("shortest-path-bfs")
env = policy.make_env(levels=LEVEL, render_mode="rgb_array")
observation, info = env.reset(seed=0)
{name: array.shape for name, array in observation.items()}

# %% [markdown]
# The action **is** the next state. Channel 0 of the state is the predicted path, and the reward is the gain in
# accuracy, so an episode's return is its final accuracy.

# %%
state, done, total, n_steps = None, False, 0.0, 0
while not done:
    action, state = policy.predict(observation, state)
    observation, reward, terminated, truncated, info = env.step(action)
    done = terminated or truncated
    total, n_steps = total + reward, n_steps + 1
print(f"return {total:.3f} after {n_steps} iterations")
info

# %% [markdown]
# In a notebook, an environment shows its current picture.

# %%
env.unwrapped

# %% [markdown]
# ## Many mazes at once
#
# `solve` runs a policy on as many fresh mazes as you like, and `evaluate` measures it on test sets that are the same
# for everybody. Both are commands, too. Here is a trained network on 200 mazes without loops.

# %%
from maze_nca_gym.agents import evaluate

(result,) = evaluate("nca-shortest-path", families="perfect", sizes=16, n=200)
complete = result.metrics.complete
print(f"{complete.value:.1%} complete, between {complete.low:.1%} and {complete.high:.1%} with 95 % confidence")

# %% [markdown]
# `maze-nca-gym policies list` lists the [policies](../policies.md). Next: [train one](train_your_own.py).
