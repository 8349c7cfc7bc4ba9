"""Write your own policy: two floods start from the source and the target, and the path is where their sum is largest.

The strength of a flood falls by one from tile to tile, so the strength encodes the distance. On the tiles of shortest
paths, the sum of the two strengths is largest.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from maze_nca_gym.agents import Policy, rollout
from maze_nca_gym.mazes import Tile, generate, one_hot, score, shortest_path

STRENGTH = 10_000.0


class TwoFloods(Policy):
    """A policy that is exact after L steps on a maze with only one shortest path, of L moves."""

    def __init__(self) -> None:
        super().__init__("shortest-path", n_tiles=4, channel_names=("path", "from_source", "from_target"))

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """Return the state after one iteration: (B, 4, H, W), (B, 3, H, W) -> (B, 3, H, W)."""
        free, ends = 1 - maze[:, [Tile.WALL]], maze[:, [Tile.SOURCE, Tile.TARGET]]
        floods = state[:, 1:]
        across = F.max_pool2d(floods, (1, 3), stride=1, padding=(0, 1))
        along = F.max_pool2d(floods, (3, 1), stride=1, padding=(1, 0))
        reached = torch.relu(torch.maximum(across, along) - 1)
        floods = torch.maximum(torch.maximum(floods, reached), STRENGTH * ends) * free
        both = floods.sum(dim=1, keepdim=True) * (floods > 0).all(dim=1, keepdim=True)
        path = (both > 0) & (both == both.amax(dim=(2, 3), keepdim=True))
        return torch.cat([path.float(), floods], dim=1)


policy = TwoFloods()
tiles = generate(np.random.default_rng(0), n=256, size=15, generator="perfect")
with torch.no_grad():
    state = rollout(policy, torch.from_numpy(one_hot(tiles)), 150)
scores = score(tiles, state[:, policy.channel_names.index("path")].numpy(), shortest_path(tiles))
print(f"{scores.optimal.sum()} of {len(tiles)} perfect mazes solved")

env = policy.make_env(size=15, generator="perfect")
observation, info = env.reset(seed=0)
n_steps, done = 0, False
while not done:
    observation, reward, terminated, truncated, info = env.step(policy.predict(observation)[0])
    n_steps, done = n_steps + 1, terminated or truncated
print(f"in the environment: optimal {info['optimal']} after {n_steps} steps")
