# %% [markdown]
# # Evolve levels
#
# On which mazes does a policy fail? Start with random ones, change them a little, and keep whatever is harder.

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
from PIL import Image

from maze_nca_gym.mazes import generate, shortest_path
from maze_nca_gym.rendering import contact_sheet, draw_level


def sheet(levels):
    solved = zip(levels, shortest_path(levels), strict=True)
    pictures = [draw_level(tiles, path, cell=12) for tiles, path in solved]
    return Image.fromarray(contact_sheet(pictures, columns=4))


sheet(generate(np.random.default_rng(0), n=4, size=10))

# %% [markdown]
# And the four on which the policy does worst. They look alike, because the offspring of a hard level tend to be hard
# too.

# %%
sheet(population.tiles[np.argsort(-population.members["fitness"])[:4]])

# %% [markdown]
# How many of these levels does each policy solve? For comparison, there are a network that was trained on more kinds of
# maze, and a hand-coded automaton:

# %%
from maze_nca_gym.agents import solve

for name in ("nca-shortest-path-small", "nca-shortest-path", "shortest-path-bfs"):
    solved = solve(name, levels=population.tiles, steps=200).metrics["solved"]
    print(f"{name:24} solves {solved:.0%} of {len(population)} levels")

# %% [markdown]
# [Levels that evolve](../evolution.md) has larger runs, and what training on such levels is good for. The environments
# with [evolving levels](../environments/MazeShortestPathEvolving-v0.md) evolve them while an agent acts.
