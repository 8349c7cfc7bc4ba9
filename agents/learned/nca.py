"""The learned neural cellular automaton (paper, sections "Experimental setup" and "Architectural modifications")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maze_nca_gym.names import unknown_name

from ..policy import Policy
from .arguments import TASK_OF_TILES, check_ceiling, check_count, check_flags, check_shape, names_of_channels
from .precision import computing_dtype, convolve_exactly, is_low

Activation: TypeAlias = Callable[[Tensor], Tensor]
"""Elementwise, any shape; its values are those of a ReLU, its derivative may differ (`surrogate`)."""

LARGEST_KERNEL = 63
"""A bound for files that ask for absurd sizes."""
POOLED = ("map_max", "channel_max")
"""Names of the last channels with `max_pool`."""


class NCA(Policy):
    """One convolution over the maze and the state, then a ReLU.

    With the maze m, (B, T, H, W), and the state x, (B, C, H, W), at tile p, and with the taps d of the kernel,

        x_{t+1}(p) = relu(b + sum_d W_d [m(p + d), max(x_t(p + d), 0)]),    x_0 = 0,

    where everything outside the map is 0. The last iteration of an episode, that of `step` n_layers - 1, has no ReLU,
    so that the loss sees by how much a path tile falls short. An episode that runs on takes the negative values which
    that leaves for zeros, so it goes on as if the ReLU had been there; one that ends earlier ends with a ReLU. With a
    `ceiling` c every iteration's result is cut off there: min(..., c), so that nothing can grow for ever.

    An `exact` network refuses dtypes in which it would not be exact, autocast to them included. Where float32 sums are
    not certain, as on a GPU, it convolves in float64 (`precision`).

    Args:
        n_tiles: T, 4 for the shortest path or 2 for the diameter.
        n_channels: C, hidden channels; the first is the predicted path.
        kernel_size: side of the kernel, odd: 3 or 5 in the paper.
        cut_corners: keep only the taps at most kernel_size // 2 moves away: 5 of 9, or 13 of 25. There are no weights
            for the other taps, so none can become anything but zero.
        shared_weights: the same weights at every iteration; otherwise each of n_layers has its own, chosen by `step`.
        n_layers: iterations of an episode. None, with shared weights only, for episodes without a last iteration:
            each ends with the ReLU.
        max_pool: after each iteration the last channel but one becomes its own maximum over the map at every tile, and
            the last one the maximum over all channels at its tile.
        skip_connections: the maze is fed in at every iteration, not only at the first.
        ceiling: the largest number that an iteration leaves, above 1/2, where a path begins; None for no bound.
        channel_names: of the C channels, "path" first; made up by default.
        activation: in place of the ReLU, with the same values; for other gradients. Not saved with a model.
        generator: draws the initial weights and biases, uniform within +-1 / sqrt((T + C) taps); by default a fresh
            one with seed 0.

    Attributes:
        weights: one or n_layers parameters, (C, T + C, taps), the taps row by row.
        biases: as many, (C,).

    Raises:
        ValueError: an argument of the wrong type or out of range.
    """

    _taps: Tensor

    def __init__(
        self,
        n_tiles: int,
        n_channels: int,
        kernel_size: int = 3,
        cut_corners: bool = False,
        shared_weights: bool = True,
        n_layers: int | None = 64,
        max_pool: bool = False,
        skip_connections: bool = True,
        ceiling: float | None = None,
        *,
        channel_names: Sequence[str] | None = None,
        activation: Activation = torch.relu,
        generator: torch.Generator | None = None,
    ) -> None:
        check_flags(cut_corners=cut_corners, max_pool=max_pool, skip_connections=skip_connections)
        check_shape(n_tiles, n_channels, shared_weights, n_layers, least_channels=3 if max_pool else 1)
        check_count("kernel_size", kernel_size, 1, LARGEST_KERNEL)
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, got {kernel_size}")
        names = names_of_channels(channel_names, n_channels, POOLED if max_pool else ())
        super().__init__(TASK_OF_TILES[n_tiles], n_tiles, names)
        self.kernel_size = kernel_size
        self.cut_corners = cut_corners
        self.shared_weights = shared_weights
        self.n_layers = n_layers
        self.max_pool = max_pool
        self.skip_connections = skip_connections
        self.ceiling = None if ceiling is None else check_ceiling(ceiling)
        self.activation = activation
        self.uses_step = n_layers is not None or not skip_connections
        taps = _live_taps(kernel_size, cut_corners)
        self.register_buffer("_taps", torch.tensor(taps), persistent=False)
        shape = (n_channels, n_tiles + n_channels, len(taps))
        n_kernels = 1 if n_layers is None or shared_weights else n_layers
        self.weights = nn.ParameterList(torch.empty(shape) for _ in range(n_kernels))
        self.biases = nn.ParameterList(torch.empty(n_channels) for _ in range(n_kernels))
        self._draw(generator or torch.Generator().manual_seed(0))

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = 1 / math.sqrt(weight.shape[1] * weight.shape[2])
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)

    @classmethod
    def from_handcoded(cls, name: str) -> NCA:
        """A network whose weights are written by hand and solve every maze exactly.

        Args:
            name: "shortest-path" or "diameter", see the modules of `handwritten`.

        Raises:
            ValueError: unknown name; the message lists the known ones.
        """
        from .handwritten import NETWORKS, network  # here, because it imports this module

        if name not in NETWORKS:
            raise ValueError(unknown_name("hand-coded network", name, NETWORKS))
        return network(name)

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments that make a network of this shape: JSON-serialisable."""
        return {
            "n_tiles": self.n_tiles,
            "n_channels": self.n_channels,
            "kernel_size": self.kernel_size,
            "cut_corners": self.cut_corners,
            "shared_weights": self.shared_weights,
            "n_layers": self.n_layers,
            "max_pool": self.max_pool,
            "skip_connections": self.skip_connections,
            "ceiling": self.ceiling,
            "channel_names": list(self.channel_names),
        }

    def kernel(self, step: int = 0) -> Tensor:
        """The (C, T + C, k, k) kernel of an iteration, zero at the corners that are cut.

        Raises:
            ValueError: weights are not shared, and there are none for this step.
        """
        weight = self._of_layer(self.weights, step)
        dense = weight.new_zeros(*weight.shape[:2], self.kernel_size**2).index_copy(2, self._taps, weight)
        return dense.view(*weight.shape[:2], self.kernel_size, self.kernel_size)

    @torch.no_grad()
    def set_kernel(self, kernel: Tensor, bias: Tensor, step: int = 0) -> None:
        """Write the (C, T + C, k, k) kernel and the (C,) bias of an iteration.

        Raises:
            ValueError: another shape, or a weight on a corner that is cut.
        """
        weight, old_bias = self._of_layer(self.weights, step), self._of_layer(self.biases, step)
        shape = (*weight.shape[:2], self.kernel_size, self.kernel_size)
        if kernel.shape != shape or bias.shape != old_bias.shape:
            raise ValueError(
                f"kernel and bias must have shapes {shape} and {tuple(old_bias.shape)}, "
                f"got {tuple(kernel.shape)} and {tuple(bias.shape)}"
            )
        live = kernel.flatten(2)[:, :, self._taps]
        if live.count_nonzero() != kernel.count_nonzero():
            raise ValueError("the kernel has weights on corners that this network cuts")
        weight.copy_(live)
        old_bias.copy_(bias)

    def _of_layer(self, parameters: nn.ParameterList, step: int) -> Tensor:
        if self.shared_weights:
            return parameters[0]
        if not 0 <= step < len(parameters):
            raise ValueError(
                f"this network has weights for {len(parameters)} iterations, steps 0 to {len(parameters) - 1}; "
                f"there are none for step {step}"
            )
        return parameters[step]

    def update(self, maze: Tensor, state: Tensor, step: int) -> Tensor:
        """One iteration.

        Raises:
            ValueError: weights are not shared, and there are none for this step; or the network is exact, but not in
                the dtype of the state or of autocast.
        """
        return self.advance(self.share(maze, step), state, step)

    @property
    def same_from(self) -> int | None:
        """The step after the one without ReLU, and after the first, which alone may see the maze."""
        if not self.uses_step:
            return 0
        return max(1, self.n_layers or 1) if self.shared_weights else None

    @property
    def same_share(self) -> bool:
        """Whether `share` is the same at every step."""
        return self.shared_weights and self.skip_connections

    def share(self, maze: Tensor, step: int = 0) -> Tensor:
        """What the maze and the bias add to the convolution, (B, C, H, W), or (C, 1, 1) where no maze is fed in.

        Where it is the same at every step, compute it once a rollout and call `advance`, and the states are the same
        to the bit.
        """
        self.check_precision(maze)
        bias = self._of_layer(self.biases, step).to(maze.dtype)
        if step and not self.skip_connections:
            return bias[:, None, None]
        kernel = self.kernel(step)[:, : self.n_tiles].to(maze.dtype)
        return self._convolve(maze, kernel, bias)

    def advance(self, share: Tensor, state: Tensor, step: int = 0) -> Tensor:
        """The next state, from the maze's `share` and the (B, C, H, W) state."""
        self.check_precision(state)
        kernel = self.kernel(step)[:, self.n_tiles :].to(state.dtype)
        convolved = self._convolve(state.clamp(min=0), kernel)
        convolved = (convolved + share).to(state.dtype)  # under autocast a convolution returns another dtype
        return self.bounded(convolved, self.n_layers is None or step != self.n_layers - 1)

    def _convolve(self, values: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
        padding = self.kernel_size // 2
        if self.exact:
            return convolve_exactly(values, kernel, bias, padding)
        return F.conv2d(values, kernel, bias, padding=padding)

    def check_precision(self, values: Tensor) -> None:
        """Check that (B, ..., H, W) mazes or states are of a dtype in which an exact network stays so.

        Raises:
            ValueError: the network is exact, but not in their dtype, nor in that of autocast or of the weights.
        """
        if not self.exact:
            return
        for dtype in (computing_dtype(values), self.weights[0].dtype):
            if is_low(dtype) and not self._stays_exact(dtype, values.shape[-2] * values.shape[-1]):
                raise ValueError(
                    f"this network is exact in float32, and {dtype} rounds too much on mazes of {values.shape[-2]} x "
                    f"{values.shape[-1]} tiles; give it float32 weights, mazes and states, outside of autocast"
                )

    def _stays_exact(self, dtype: torch.dtype, n_tiles: int) -> bool:
        """Whether it holds small integers, as the networks written by hand do."""
        from .handwritten import stays_exact  # here, because it imports this module

        return stays_exact(self, dtype, n_tiles)

    def bounded(self, convolved: Tensor, below: bool = True) -> Tensor:
        """What an iteration leaves of its (B, C, H, W) convolution; negative numbers too, where not `below`."""
        if below:
            convolved = self.activation(convolved)
        if self.ceiling is not None:
            convolved = convolved.clamp(max=self.ceiling)
        return _pool(convolved) if self.max_pool else convolved


def _pool(state: Tensor) -> Tensor:
    """The last two channels become the maximum over the map of the first of them, and that over all channels."""
    over_map = state[:, -2:-1].amax(dim=(2, 3), keepdim=True).expand_as(state[:, :1])
    return torch.cat([state[:, :-2], over_map, state.amax(dim=1, keepdim=True)], dim=1)


def _live_taps(kernel_size: int, cut_corners: bool) -> list[int]:
    """Row-major places in the kernel that have weights: all, or the diamond."""
    reach = kernel_size // 2
    return [
        row * kernel_size + col
        for row in range(kernel_size)
        for col in range(kernel_size)
        if not cut_corners or abs(row - reach) + abs(col - reach) <= reach
    ]
