# %% [markdown]
# # Write a task
#
# A task is a question about a maze, and the answer is a set of tiles. The package has two tasks: the shortest path and
# the diameter. Here is a third: *which tiles can be reached from the source?*

# %%
from maze_nca_gym import register_environment
from maze_nca_gym.mazes import Task, register_task, solvers


def solve(tiles):
    """Return the tiles that can be reached from the source, (N, H, W) bool."""
    return solvers.distances(tiles) >= 0


register_task(
    Task(
        name="reachable",
        n_channels=2,
        solve=solve,
        is_optimal=lambda tiles, path: (path == solve(tiles)).all(axis=(1, 2)),
        usual_length=128,
        default_steps=48,
    )
)
register_environment("MazeReachable-v0", "reachable", max_episode_steps=256)

# %% [markdown]
# That is all. Environments, scores, training and evaluation now take the name `reachable`. `register_task` has already
# tried both functions on two tiny levels. If the answer may have no tiles at all, like the dead ends of an open room,
# say `may_be_empty=True`; otherwise a level with an empty answer is refused as unsolvable.

# %%
import gymnasium as gym

env = gym.make("MazeReachable-v0", size=8, generator="random", wall_probability=0.4, render_mode="rgb_array")
observation, info = env.reset(seed=1)
print(info["solution_length"], "tiles can be reached")

# %% [markdown]
# ## Solve it by hand
#
# A flood takes a few lines of PyTorch: a tile is wet if it or a neighbour was wet, and it is not a wall.

# %%
import torch

from maze_nca_gym.agents import Policy
from maze_nca_gym.mazes import Tile


class Flood(Policy):
    """A flood from the source; exact after as many iterations as the farthest tile has moves."""

    def __init__(self, task="reachable"):
        super().__init__(task, n_tiles=4, channel_names=("path", "unused"))

    def update(self, maze, state, step):
        """Return the next state, (B, 2, H, W)."""
        wet = torch.maximum(state[:, :1], maze[:, [Tile.SOURCE]])
        across = torch.nn.functional.max_pool2d(wet, (1, 3), stride=1, padding=(0, 1))
        along = torch.nn.functional.max_pool2d(wet, (3, 1), stride=1, padding=(1, 0))
        wet = torch.maximum(across, along) * (1 - maze[:, [Tile.WALL]])
        return torch.cat([wet, torch.zeros_like(wet)], dim=1)


policy, n_steps, done = Flood(), 0, False
while not done:
    observation, reward, terminated, truncated, info = env.step(policy.predict(observation)[0])
    n_steps, done = n_steps + 1, terminated or truncated
print(f"after {n_steps} iterations: {info}")
env.unwrapped

# %% [markdown]
# ## Learn it
#
# Training asks the task for its targets, so a network learns this answer like any other.

# %%
from maze_nca_gym.agents import evaluate, train

learned = train(
    "fast",
    out="runs/reachable",
    task="reachable",
    sizes=(6,),
    n_channels=8,
    n_iterations=16,
    n_updates=300,
    batch_size=64,
    optimiser="soap",
    learning_rate=6e-3,
    validate_every=100,
    threads=1,
    device="cpu",
)
for name, model in {"flood": Flood(), "learned": learned}.items():
    (result,) = evaluate({name: model}, families="random", sizes=6, n=500, steps=24)
    print(f"{name:8} complete {result.metrics.complete.value:.1%}, accuracy {result.metrics.accuracy.value:.3f}")

# %% [markdown]
# On the command line, `--import MODULE` first imports your module, which registers the task. A network of your own
# learns it too, if its constructor takes the name as `task` and keeps it among its `arguments`, as in [example
# 10](../../examples/10_new_architecture.py). One that takes none is refused for any task but its own.

# %% [markdown]
# ## Tiles of its own
#
# The levels of a task may have more than walls, a source and a target. `kinds` names the kinds of tile, each with a
# letter and a colour, and `mark` puts them on the levels of any generator. Here some tiles are toll gates, and the
# question is *which gates can be reached?* `of_each` makes a function of many levels from one of a single level, so
# `solve` may be a plain search in Python.

# %%
import numpy as np

from maze_nca_gym.mazes import KINDS, Kind, of_each

GATE = len(KINDS)


def mark(rng, tiles):
    """Make every eighth free tile a gate."""
    gates = (tiles == Tile.EMPTY) & (rng.random(tiles.shape) < 0.125)
    return np.where(gates, np.uint8(GATE), tiles)


@of_each
def gates(level):
    """Return the gates of one level that can be reached from its source, (H, W) bool."""
    return (level == GATE) & (solvers.distances(level) >= 0)


register_task(
    Task(
        name="gates",
        kinds=(*KINDS, Kind("gate", "g", "#cc79a7")),
        mark=mark,
        n_channels=2,
        solve=gates,
        is_optimal=lambda tiles, path: (path == gates(tiles)).all(axis=(1, 2)),
        usual_length=16,
        default_steps=48,
        may_be_empty=True,
    )
)
register_environment("MazeGates-v0", "gates", max_episode_steps=256)
env = gym.make("MazeGates-v0", size=8, generator="random", wall_probability=0.4, render_mode="ansi")
env.reset(seed=1)
print(env.render())

# %% [markdown]
# A task may also declare how many tiles of a kind each level has, such as `counts={"gate": "at least one"}`. Then the
# package refuses every other level, and proofs may rely on the number.
#
# The one-hot maze has five channels now. Pictures, windows, level files, test sets, training and evaluation take the
# levels as they are, and so does evolution: own kinds stay where they are, or move with `--mutation swaps`, and an
# offspring counts if `solve` has an answer to it. Two complete examples train networks: [the nearest of several
# targets](../../examples/16_nearest_of_several_targets.py), and [weighted
# terrain](../../examples/17_weighted_terrain.py) with Dijkstra's algorithm as the exact solution. The latter brings
# `guidance` too, channels in which a solver shows every tile its next move; with `--guidance 1` networks learn them.
# An automaton that reads such tiles becomes a network that is proven correct, in [your own world in an
# hour](your_own_world.py). `maze-nca-gym export MODEL --import MODULE --out mine.html` writes [a
# page](../playground.md) on which you draw such tiles while a network runs.

# %% [markdown]
# ## Answers of several channels
#
# One set of tiles cannot say everything: the way to a key and the way back from it may overlap. A task names the
# channels of its answer, and each is a set of tiles. Here the first is the shortest path, and the second all tiles that
# can be reached. `solve` returns (N, 2, H, W), `is_optimal` takes paths of that shape, and the first two channels of a
# state draw the answer.


# %%
def solve_both(tiles):
    """Return the shortest path, and the tiles that can be reached, (N, 2, H, W) bool."""
    return np.stack([solvers.shortest_path(tiles), solve(tiles)], axis=1)


register_task(
    Task(
        name="path-and-room",
        answers=("path", "room"),
        n_channels=8,
        solve=solve_both,
        is_optimal=lambda tiles, paths: (
            solvers.is_optimal(tiles, paths[:, 0]) & (paths[:, 1] == solve(tiles)).all(axis=(1, 2))
        ),
        usual_length=160,
        default_steps=96,
    )
)
register_environment("MazePathAndRoom-v0", "path-and-room", max_episode_steps=512)
env = gym.make("MazePathAndRoom-v0", size=6, generator="random", wall_probability=0.4, render_mode="ansi")
observation, info = env.reset(seed=1)
action = np.zeros(env.action_space.shape, np.float32)
action[:2] = info["target"]
print(env.step(action)[-1])
print(env.render())

# %% [markdown]
# Scores add up errors and tiles of all channels, and an answer is complete if every channel is. Pictures show the
# second channel as squares within the tiles. What knows one channel only refuses such a task: evolution, `symmetrised`
# and `PathAction`.
#
# [A key and a door](../../examples/19_key_and_door.py) is a complete example: two legs by breadth-first search, with
# guidance for both. After the 600 updates that it makes, a network of 12,960 weights finds both legs on 53 % of 1,000
# random test levels of 8 x 8 tiles (interval 50 to 56), and on 33 % (30 to 36) of perfect mazes, which it never saw.
