# %% [markdown]
# # Exercise: train a network, and break it
#
# You train a tiny network on tiny mazes, and then look for what it has not learned: other sizes, other borders, damage.
# **Write down what you expect before you run a cell.** There are three gaps, `...`, to fill in. You need the
# [package](../install.md) and Jupyter; it takes about 45 minutes, of which the training is one.
#
# On the site, the page of this sheet ends with two notebooks, one with the gaps and one with the solutions. There, each
# solution can be unfolded below its gap, and so can what cells show. Do so when you have an answer of your own.
#
# ## 1. Train
#
# The network is a cellular automaton with 16 numbers at each tile. It sees random mazes of 6 x 6 tiles with a border
# around them. After 8 to 16 iterations, channel 0 should show the shortest path. Nobody tells it how.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image

from maze_nca_gym.agents import load, rollout, train
from maze_nca_gym.mazes import generate, has_border, one_hot, shortest_path, solvers
from maze_nca_gym.rendering import captioned, contact_sheet, draw_level

shape = {"sizes": (6,), "n_channels": 16, "n_iterations": 16, "n_updates": 600, "batch_size": 64}
speed = {"optimiser": "soap", "learning_rate": 6e-3, "validate_every": 100, "threads": 1, "device": "cpu"}
yours = train("fast", out="runs/class", **shape, **speed)
proven = {"exact": load("nca-shortest-path-hinted"), "healing": load("nca-shortest-path-healing-hinted")}
policies = {"yours": yours, **proven}
Image.open("runs/class/curves.png")

# %% [markdown]
# Beside yours there are two networks that come with the package. `exact` does what an automaton does that is proven
# correct on every maze; `healing` is too, and begins again when it finds a contradiction.
#
# These functions run a network and count how many of its paths are as short as can be.


# %%
def run(policy, mazes, iterations, state=None):
    """Return the state after some iterations, from zeros or from another state."""
    with torch.no_grad():
        return rollout(policy, torch.from_numpy(one_hot(mazes)), iterations, state)


def solved(mazes, state):
    """Return for each maze whether the path in channel 0 is a shortest one."""
    return solvers.is_optimal(mazes, state[:, 0].numpy() > 0.5)


def show(mazes, state):
    """Draw the first six mazes with the path of a state in blue, and outlines around the shortest path."""
    drawn = zip(mazes[:6], state[:6, 0].numpy(), shortest_path(mazes[:6]), solved(mazes, state), strict=False)
    frames = [captioned(draw_level(m, p, 16, s), "solved" if correct else "wrong") for m, p, s, correct in drawn]
    return Image.fromarray(contact_sheet(frames, columns=6))


mazes = generate(np.random.default_rng(1), n=300, size=6)
states = {name: run(policy, mazes, 64) for name, policy in policies.items()}
for name, state in states.items():
    print(f"{name:8} solves {solved(mazes, state).mean():.0%}")

# %% [markdown]
# ## 2. Size
#
# The network is the same at each tile, so it runs on mazes of any size. Is it correct there? A long path takes many
# iterations: give it 16 at first, and then enough of them. **How many are enough** for a path of L moves, if nothing
# can move faster than a tile an iteration, and has to go there and back?


# %% [gap]
def enough(longest):
    """Return how many iterations suffice if the longest path has so many tiles."""
    return ...


# %% [solution]
def enough(longest):
    """Return how many iterations suffice if the longest path has so many tiles."""
    return 2 * longest + 16


# %%
SIZES = (4, 6, 8, 12, 16)
_, axis = plt.subplots(figsize=(5, 3), layout="constrained")
for label, iterations in {"16 iterations": lambda longest: 16, "enough": enough}.items():
    shares = []
    for size in SIZES:
        larger = generate(np.random.default_rng(2), n=200, size=size)
        longest = int(shortest_path(larger).sum(axis=(1, 2)).max())
        shares.append(solved(larger, run(yours, larger, iterations(longest))).mean())
    axis.plot(SIZES, shares, "o-", label=label)
axis.set(xlabel="size", ylabel="solved", ylim=(0, 1.05), xticks=SIZES)
legend = axis.legend()

# %% [markdown]
# **Question A**: which part of the loss is for want of time, and which is not? The exact network loses nothing. What
# may it have that yours has not?
#
# ## 3. Borders
#
# All mazes so far had walls around them. `generate(..., border=False)` makes mazes without. Make 300 of them with as
# many tiles as the others have with their border, 8 x 8.

# %% [gap]
without = ...

# %% [solution]
without = generate(np.random.default_rng(3), n=300, size=8, border=False)

# %%
assert without.shape == mazes.shape, f"8 x 8 tiles are expected, got {without.shape}"
assert not has_border(without).any(), "some of these mazes have a border"
for name, policy in policies.items():
    print(f"{name:8} solves {solved(without, run(policy, without, 64)).mean():.0%} without a border")
show(without, run(yours, without, 64))

# %% [markdown]
# **Question B**: beyond the edge a network reads zeros in all channels: no wall, no empty tile. Which tiles did that in
# the training, and which do so now? What would you change in the training?
#
# ## 4. Damage
#
# The networks have solved the mazes with a border. Now set all channels to 0 in a square of 3 x 3 tiles in the middle,
# as if it had been cut out, and let them go on. **Which of the three will be correct again?**


# %% [gap]
def damaged(state):
    """Return a copy of (N, C, H, W) states with zeros in a square in the middle."""
    copy = state.clone()
    ...
    return copy


# %% [solution]
def damaged(state):
    """Return a copy of (N, C, H, W) states with zeros in a square in the middle."""
    copy = state.clone()
    copy[:, :, 2:5, 2:5] = 0
    return copy


# %%
def recover(broken, times=(0, 1, 4, 16, 64, 128)):
    """Draw how many mazes each network has solved at some times after its state was broken."""
    _, axis = plt.subplots(figsize=(5, 3), layout="constrained")
    for name, state in broken.items():
        shares = [solved(mazes, run(policies[name], mazes, t, state)).mean() for t in times]
        axis.plot(range(len(times)), shares, "o-", label=name)
    axis.set(xlabel="iterations after the damage", ylabel="solved", ylim=(0, 1.05))
    axis.set_xticks(range(len(times)), times)
    axis.legend()


broken = {name: damaged(state) for name, state in states.items()}
for name, state in broken.items():
    assert (state != states[name]).any(dim=1)[:, 2:5, 2:5].any(), "nothing is damaged, or the original is too"
recover(broken)

# %%
show(mazes, run(policies["exact"], mazes, 64, broken["exact"]))

# %% [markdown]
# Worse than a hole is a state that makes sense, but for another maze. `state.flip(0)` gives the first maze the state of
# the last one, and so on: as if the walls had been moved over night.

# %%
recover({name: state.flip(0) for name, state in states.items()})

# %% [markdown]
# **Question C**: the network that is proven correct on every maze recovers worst. Is the proof wrong? What does it say?
#
# **Question D**: nobody damaged yours in the training. Why may it recover all the same?
#
# **Further**: train again with `borderless=0.5`, on `sizes=(6, 8)` or for longer, in another folder, and run all of
# this again. What is cured, and what is not? How is it on mazes with long winding ways (`generator="perfect"`)?
#
# <details markdown><summary>Answers</summary>
#
# - **A**: the line of 16 iterations falls because a long path cannot be drawn in that time. What is lost with enough of
#   them is something else: the network goes wrong at some places, and a larger maze has more of them. The exact network
#   goes wrong at no kind of place, which is what its proof says.
# - **B**: in the training, walls alone lay at the edge, and a wall need not know anything. Now free tiles do, and what
#   the weights make of them was never trained. With `borderless=0.5`, half of the mazes in the training have no border.
# - **C**: no. The proof says what happens if all signals are off at first and the maze stays as it is; of other states
#   it says nothing. The flood has passed and does not pass again, so what is missing in the hole stays missing.
# - **D**: it was trained to show the path after several numbers of iterations, hence to keep it. If what keeps the path
#   also makes it, from whatever is there, damage is repaired. Nobody asked for that and nothing proves it, as some
#   mazes stay wrong.
#
# </details>
#
# Next: [prove a rule wrong, and another correct](prove_a_rule.py).
