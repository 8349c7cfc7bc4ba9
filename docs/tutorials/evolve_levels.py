# %% [markdown]
# # Evolve levels
#
# Which mazes does a policy fail on? Start from random ones, change the hardest a little, and keep what is harder still.

# %%
from maze_nca_gym.agents import evolve

population = evolve(
    "nca-shortest-path-small",
    n=64,
    rounds=60,
    n_offspring=32,
    size=10,
    seed=0,
    out="runs/evolved",
)
print(len(population), "levels")

# %% [markdown]
# The fitness of a level is the policy's regret: the loss of its path against the nearest optimal one.

# %%
{name: round(value, 3) for name, value in population.statistics().items()}

# %% [markdown]
# Four random levels like those at the start, each with its shortest path:

# %%
import numpy as np
from IPython.display import Image

from maze_nca_gym.generation import generate
from maze_nca_gym.rendering import contact_sheet, draw_level, png_bytes
from maze_nca_gym.solvers import shortest_path


def sheet(levels):
    solved = zip(levels, shortest_path(levels), strict=True)
    pictures = [draw_level(tiles, path, cell=12) for tiles, path in solved]
    return Image(png_bytes(contact_sheet(pictures, columns=4)))


sheet(generate(np.random.default_rng(0), n=4, size=10))

# %% [markdown]
# And the four on which the policy fails most. They resemble each other: offspring of one hard level are hard too.

# %%
sheet(population.tiles[np.argsort(-population.members["fitness"])[:4]])

# %% [markdown]
# Which of these levels can be solved at all, and by whom? A policy that was trained on more kinds of maze, and a
# hand-coded one, for comparison:

# %%
from maze_nca_gym.agents import load
from maze_nca_gym.agents.rollouts import run_until_solved

for name in ("nca-shortest-path-small", "nca-shortest-path", "shortest-path-bfs"):
    result = run_until_solved(load(name), population.tiles, 200)
    print(f"{name:24} solves {int(result.solved.sum())} of {len(population)}")

# %% [markdown]
# [Levels that evolve](../evolution.md) has larger runs, and says what training on such levels buys. The environments
# with [evolving levels](../environments/MazeShortestPathEvolving-v0.md) do this while an agent plays.
