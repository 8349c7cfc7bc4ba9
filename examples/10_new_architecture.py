"""A new architecture in 30 lines: a richer update, trained and saved like those of the package.

    python examples/10_new_architecture.py [updates]

The 60 updates by default take less than a minute on one core. They show that it trains, and complete no level yet. A
line every 25 updates says how far it is. Stop it with Ctrl-C and run it again: it goes on where it was.
"""

import sys

import torch
from torch import Tensor, nn

from maze_nca_gym.agents import Policy, evaluate, train
from maze_nca_gym.agents.weights import register_model


@register_model
class TwoLayerNCA(Policy):
    """x_{t+1} = relu(V relu(W [m, x_t])): a 3x3 convolution, then one layer more at every tile."""

    def __init__(
        self, n_tiles: int, n_channels: int, n_iterations: int = 32, n_hidden: int = 64, generator=None
    ) -> None:
        super().__init__("shortest-path", n_tiles, ["path", *(f"hidden_{i}" for i in range(1, n_channels))])
        self.arguments = {"n_tiles": n_tiles, "n_channels": n_channels, "n_hidden": n_hidden}
        self.perceive = nn.Conv2d(n_tiles + n_channels, n_hidden, 3, padding=1)
        self.act = nn.Conv2d(n_hidden, n_channels, 1)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1, generator)

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """One iteration."""
        return torch.relu(self.act(torch.relu(self.perceive(torch.cat([maze, state], dim=1)))))


n_updates = int(sys.argv[1]) if len(sys.argv) > 1 else 60
options = {"model": "TwoLayerNCA", "n_channels": 16, "n_iterations": 16, "learning_rate": 4e-3, "n_updates": n_updates}
try:
    policy = train("fast", out=f"runs/two-layer-{n_updates}", device="cpu", threads=1, **options)
except KeyboardInterrupt as interruption:
    sys.exit(str(interruption))
scores = evaluate(policy, families="random", sizes=16, n=1024, steps=16, stability=False)[0].metrics
print(f"{policy.n_weights:,} weights: accuracy {scores.accuracy.value:.3f}, complete {scores.complete.value:.1%}")
