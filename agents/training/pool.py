"""Levels that keep their states from update to update, so that a policy learns to hold and to mend a solution.

(Persistent states as in Mordvintsev et al., "Growing Neural Cellular Automata".)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .data import Batch


@dataclass(eq=False)
class StatePool:
    """Levels of one size, their solutions, and the states that they have come to.

    Attributes:
        tiles: (P, H, W) uint8, on the CPU like all of it.
        target: (P, H, W) bool.
        states: (P, C, H, W) float32.
    """

    tiles: NDArray[np.uint8]
    target: NDArray[np.bool_]
    states: Tensor

    @classmethod
    def fresh(cls, batch: Batch, n_channels: int) -> StatePool:
        """Levels with empty states."""
        n, height, width = batch.tiles.shape
        return cls(batch.tiles.copy(), batch.target.copy(), torch.zeros(n, n_channels, height, width))

    def take(self, rng: np.random.Generator, n: int, newcomers: Batch) -> tuple[NDArray[np.int64], Batch, Tensor]:
        """Draw members; the first of them give their places to the newcomers.

        Args:
            rng: draws which.
            n: how many, at most P.
            newcomers: at most n fresh levels.

        Returns:
            (n,) places in the pool, their levels, and (n, C, H, W) states.
        """
        places = rng.permutation(len(self.tiles))[:n]
        replaced = places[: len(newcomers)]
        self.tiles[replaced], self.target[replaced] = newcomers.tiles, newcomers.target
        self.states[torch.from_numpy(replaced)] = 0
        return places, Batch(self.tiles[places], self.target[places]), self.states[torch.from_numpy(places)]

    def put(self, places: NDArray[np.int64], states: Tensor) -> None:
        """Keep the (n, C, H, W) states that the members at these places have come to."""
        self.states[torch.from_numpy(places)] = states.detach().cpu().float()

    def tensors(self) -> dict[str, Tensor]:
        """By name, for a checkpoint; `from_tensors` reads them back."""
        return {
            "tiles": torch.from_numpy(self.tiles),
            "target": torch.from_numpy(self.target),
            "states": self.states,
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> StatePool:
        """The pool of what `tensors` gave."""
        tiles, target = tensors["tiles"].to(torch.uint8, copy=True), tensors["target"].to(torch.bool, copy=True)
        return cls(tiles.numpy(), target.numpy(), tensors["states"].to(torch.float32, copy=True))
