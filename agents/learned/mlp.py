"""The learned multi-layer perceptron (paper, sections "Experimental setup" and "Model architecture")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym.generation import Size, check_size

from ..policy import Policy
from .arguments import TASK_OF_TILES, check_count, check_shape, names_of_channels

LARGEST_SIDE = 2**10
"""A bound for files that ask for absurd sizes."""


class MLP(Policy):
    """Two dense layers, each followed by a ReLU, over all tiles at once: for mazes of one size.

    With the maze m, (B, T, H, W), and the state x, (B, C, H, W), both flattened channel by channel,

        h_t = relu(b_1 + E [m, max(x_t, 0)]),    x_{t+1} = relu(b_2 + D h_t),    x_0 = 0,

    with the encoder E, (K, (T + C) H W), and the decoder D, (C H W, K); for a batch, with the mazes as the rows of M
    and X,

        X_{t+1} = relu(relu([M, max(X_t, 0)] E' + 1 b_1') D' + 1 b_2').

    The last iteration, that of `step` n_layers - 1, has no ReLU after the decoder; what follows it is as in `NCA`. All
    iterations share their weights, as the paper's do: its counts, K H W (T + 2 C) with the border within H and W, are
    the same for every number of layers. Alone or in a batch, a maze's states agree but for rounding, since a matrix
    product may add in another order.

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels; the first is the predicted path.
        size: of the mazes without their border, one number or (rows, cols) as in the environments: 16 gives
            H = W = 18.
        n_nodes: K.
        n_layers: iterations of an episode. None for episodes without a last iteration: each ends with the ReLU.
        channel_names: of the C channels, "path" first; made up by default.
        generator: draws the initial weights and biases, uniform within +-1 / sqrt(inputs of their layer); by default a
            fresh one with seed 0.

    Attributes:
        encoder, encoder_bias: E, and b_1, (K,).
        decoder, decoder_bias: D, and b_2, (C H W,).

    Raises:
        ValueError: an argument of the wrong type or out of range.
    """

    def __init__(
        self,
        n_tiles: int,
        n_channels: int,
        size: Size = 16,
        n_nodes: int = 256,
        n_layers: int | None = 64,
        *,
        channel_names: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        check_shape(n_tiles, n_channels, True, n_layers)
        check_count("n_nodes", n_nodes, 1)
        rows, cols = check_size(size)
        if max(rows, cols) > LARGEST_SIDE:
            raise ValueError(f"size must be at most {LARGEST_SIDE}, got {size!r}")
        super().__init__(TASK_OF_TILES[n_tiles], n_tiles, names_of_channels(channel_names, n_channels))
        self.size = (rows, cols)
        self.n_nodes = n_nodes
        self.n_layers = n_layers
        self.uses_step = n_layers is not None
        area = (rows + 2) * (cols + 2)
        self.encoder = nn.Parameter(torch.empty(n_nodes, (n_tiles + n_channels) * area))
        self.encoder_bias = nn.Parameter(torch.empty(n_nodes))
        self.decoder = nn.Parameter(torch.empty(n_channels * area, n_nodes))
        self.decoder_bias = nn.Parameter(torch.empty(n_channels * area))
        self._draw(generator or torch.Generator().manual_seed(0))

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for weight, bias in ((self.encoder, self.encoder_bias), (self.decoder, self.decoder_bias)):
            bound = 1 / math.sqrt(weight.shape[1])
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make a network of this shape: JSON-serialisable."""
        return {
            "n_tiles": self.n_tiles,
            "n_channels": self.n_channels,
            "size": list(self.size),
            "n_nodes": self.n_nodes,
            "n_layers": self.n_layers,
            "channel_names": list(self.channel_names),
        }

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """One iteration.

        Raises:
            ValueError: mazes of another size than the network is built for.
        """
        return self.advance(self.share(maze), state, step)

    @property
    def same_share(self) -> bool:
        """That `share` is the same at every step."""
        return True

    def share(self, maze: Tensor, step: int = 0) -> Tensor:
        """What the maze and the bias add to the encoder, (B, K), the same at every step.

        Compute it once a rollout and call `advance`, and the states are the same to the bit.

        Raises:
            ValueError: mazes of another size than the network is built for.
        """
        (rows, cols), (height, width) = self.size, maze.shape[2:]
        if (height, width) != (rows + 2, cols + 2):
            raise ValueError(
                f"this network is built for mazes of size {rows} x {cols}, which are {rows + 2} x {cols + 2} tiles "
                f"with their border, got {height} x {width} tiles"
            )
        kernel = self.encoder[:, : self.n_tiles * height * width]
        return F.linear(maze.flatten(1), kernel.to(maze.dtype), self.encoder_bias.to(maze.dtype))

    def advance(self, share: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """The next state, from the maze's `share` and the (B, C, H, W) state."""
        kernel = self.encoder[:, self.n_tiles * state.shape[2] * state.shape[3] :].to(state.dtype)
        hidden = (share + F.linear(state.clamp(min=0).flatten(1), kernel)).relu().to(state.dtype)
        decoded = F.linear(hidden, self.decoder.to(state.dtype), self.decoder_bias.to(state.dtype))
        if self.n_layers is None or step != self.n_layers - 1:
            decoded = decoded.relu()
        return decoded.to(state.dtype).view_as(state)
