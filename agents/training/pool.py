"""Levels that keep their states from update to update, so that a policy learns to hold and to repair a solution.

(Persistent states as in Mordvintsev et al., "Growing Neural Cellular Automata".)

States that have gone wrong tend to stay so, and nothing in an update leads back to what made them wrong. So where
levels are tried again, those that are due and wrong restart from an empty state. Those that are due and stayed are
solved, and are replaced first. So hard levels gather, not stuck states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.levels import as_tiles
from maze_nca_gym.solvers import is_optimal

from ..policy import PATH
from .config import TrainingConfig
from .data import Batch, is_held_out, solutions
from .editing import EDITS

LARGEST = 100.0
"""Largest value of a state in the pool; those of networks that learn well mostly stay below 10."""


@dataclass(frozen=True)
class Patience:
    """How many iterations a level has to be solved: some for each tile of its solution, and some more; and whether any
    optimal solution will do."""

    per_tile: float
    more: int
    any_optimum: bool = False

    @classmethod
    def of(cls, config: TrainingConfig) -> Patience | None:
        """Return the patience of a run: `pool_retry`, and another update after that; None if levels are not tried
        again."""
        if config.pool.pool_retry is None:
            return None
        return cls(config.pool.pool_retry, config.pool.pool_steps[1], config.loss.leniency > 0)


@dataclass(eq=False)
class StatePool:
    """Levels of one size, their solutions, and their current states.

    Attributes:
        tiles: (P, H, W) uint8, on the CPU like all of it.
        target: (P, H, W) bool.
        states: (P, C, H, W) float32.
        ages: (P,) int64, the iterations of the states since the level came, restarted, or was edited, less some grace.
        patience: the time until a level is due; None means forever.
    """

    tiles: NDArray[np.uint8]
    target: NDArray[np.bool_]
    states: Tensor
    ages: NDArray[np.int64]
    patience: Patience | None = None

    @classmethod
    def fresh(cls, batch: Batch, n_channels: int, patience: Patience | None = None) -> StatePool:
        """Return (P, H, W) levels with empty states, (P, n_channels, H, W) float32 zeros."""
        n, height, width = batch.tiles.shape
        states = torch.zeros(n, n_channels, height, width)
        return cls(batch.tiles.copy(), batch.target.copy(), states, np.zeros(n, np.int64), patience)

    def _due(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the members at these places should be solved by now."""
        if self.patience is None:
            return np.zeros(len(places), bool)
        lengths = self.target[places].sum(axis=(1, 2))
        return cast(NDArray[np.bool_], self.ages[places] >= self.patience.per_tile * lengths + self.patience.more)

    def _solved(self, places: NDArray[np.int64], paths: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether (n, H, W) paths are solutions of the members at these places."""
        if self.patience is not None and self.patience.any_optimum:
            return cast(NDArray[np.bool_], is_optimal(self.tiles[places], paths))
        return cast(NDArray[np.bool_], (paths == self.target[places]).all(axis=(1, 2)))

    def draw(self, rng: np.random.Generator, n: int, newcomers: Batch) -> NDArray[np.int64]:
        """Return (n,) places of n members, at most P; the first of them give theirs to the newcomers, at most n.

        Those that are due come first, so that they are replaced first, and the next of them edited.
        """
        places = rng.permutation(len(self.tiles))[:n]
        places = places[np.argsort(~self._due(places), kind="stable")]
        replaced = places[: len(newcomers)]
        self._replace(replaced, newcomers)
        self.states[torch.from_numpy(replaced)] = 0
        return places

    def edit(self, rng: np.random.Generator, places: NDArray[np.int64], task: str, edits: str) -> None:
        """Edit the levels at these (n,) places in one of the ways of `editing.EDITS`; their states stay.

        Edits that would result in levels of test sets are not made.
        """
        way = EDITS[edits]
        edited = way.edit(rng, self.tiles[places], self.tiles)
        allowed = ~is_held_out(edited, task)
        self._replace(places[allowed], Batch(edited[allowed], solutions(edited[allowed], task)))
        self.ages[places[allowed]] = -way.grace

    def _replace(self, places: NDArray[np.int64], batch: Batch) -> None:
        self.tiles[places], self.target[places], self.ages[places] = batch.tiles, batch.target, 0

    def take(self, places: NDArray[np.int64]) -> tuple[Batch, Tensor, Tensor]:
        """Return the n levels at these places, their (n, C, H, W) states and (n,) ages."""
        levels = Batch(self.tiles[places], self.target[places])
        return levels, self.states[torch.from_numpy(places)], torch.from_numpy(self.ages[places])

    def put(self, places: NDArray[np.int64], states: Tensor, n_steps: int) -> None:
        """Store the (n, C, H, W) states of the members at these places after `n_steps` more iterations.

        Members whose states have exploded restart: their part of a loss would exceed all others' for long. So do those
        that are due and wrong.
        """
        states = states.detach().cpu().float()
        exploded = ~(states.abs().flatten(1).amax(dim=1) <= LARGEST).numpy()
        self.ages[places] += n_steps
        anew = exploded | (self._due(places) & ~self._solved(places, (states[:, PATH] > 0.5).numpy()))
        self.states[torch.from_numpy(places)] = torch.where(torch.from_numpy(anew)[:, None, None, None], 0.0, states)
        self.ages[places[anew]] = 0

    def tensors(self) -> dict[str, Tensor]:
        """Return the attributes (P, ...) as tensors by name, for a checkpoint; `from_tensors` reads them back."""
        return {
            "tiles": torch.from_numpy(self.tiles),
            "target": torch.from_numpy(self.target),
            "states": self.states,
            "ages": torch.from_numpy(self.ages),
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], config: TrainingConfig, update: int) -> StatePool:
        """Return the pool of the (P, ...) tensors that `tensors` returned after an update of a run.

        Raises:
            ValueError: a value that no pool has then.
        """
        tiles, target, states, ages = (tensors[name].clone() for name in ("tiles", "target", "states", "ages"))
        if not np.array_equal(solutions(as_tiles(tiles.numpy()), config.task), target.numpy()):
            raise ValueError("the targets of a pool are not the solutions of its levels")
        if (states.abs() > LARGEST).any():
            raise ValueError(f"the states of a pool must lie within +-{LARGEST:g}, got {states.abs().max().item():g}")
        least, most = -max(way.grace for way in EDITS.values()), update * config.pool.pool_steps[1]
        if ages.min() < least or ages.max() > most:
            raise ValueError(f"the ages of a pool must lie in [{least}, {most}], got {ages.min()} to {ages.max()}")
        return cls(tiles.numpy(), target.numpy(), states, ages.numpy(), Patience.of(config))
