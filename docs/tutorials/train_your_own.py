# %% [markdown]
# # Train your own
#
# A tiny network learns to draw shortest paths in tiny mazes, in less than a minute on one core. For a useful network,
# make the same call with a preset as it is, and be patient: [training](../training.md) says how long each preset takes.

# %%
from maze_nca_gym.agents import train

policy = train(
    "fast",
    out="runs/tiny",
    sizes=(6,),
    n_channels=16,
    n_iterations=16,
    n_updates=600,
    batch_size=64,
    optimiser="soap",
    learning_rate=6e-3,
    validate_every=100,
    threads=1,
    device="cpu",
)
print(f"{policy.n_weights:,} weights")

# %% [markdown]
# Each update draws fresh mazes, none of which is in a test set. The run's folder has the model, the log and these
# curves. If the run is stopped, the same call continues it.

# %%
from PIL import Image

Image.open("runs/tiny/curves.png")

# %% [markdown]
# How good is it? A test set of the same kind of mazes tells, with confidence intervals.

# %%
from maze_nca_gym.agents import evaluate

for name, model in {"tiny": policy, "nca-shortest-path": "nca-shortest-path"}.items():
    (result,) = evaluate(model, families="random", sizes=6, n=500)
    complete = result.metrics.complete
    print(f"{name:18} {complete.value:.1%} complete ({complete.low:.1%} to {complete.high:.1%})")

# %% [markdown]
# The network on a new maze, as an animation:

# %%
import numpy as np

from maze_nca_gym.agents import animate
from maze_nca_gym.mazes import generate

animate(policy, generate(np.random.default_rng(3), n=1, size=6), n_iterations=16, fps=4)

# %% [markdown]
# Every command takes the file `runs/tiny/model.safetensors` in place of a policy's name: `maze-nca-gym play
# runs/tiny/model.safetensors`. Next: [an agent that learns from rewards](train_an_agent.py).
