"""Levels that keep their states from update to update, so that a policy learns to hold and to repair a solution.

(Persistent states as in Mordvintsev et al., "Growing Neural Cellular Automata".)

Wrong states tend to stay wrong, because the gradient of an update does not reach back to the iterations that caused the
error. With `pool_retry`, the pool therefore collects hard levels instead of stuck states: after some iterations, a
level is due. Levels that are due and not solved restart from an empty state. Levels that are due and solved are
replaced first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from maze_nca_gym.mazes.scoring import answer_of
from maze_nca_gym.mazes.solvers import is_optimal
from maze_nca_gym.mazes.tasks import Task
from maze_nca_gym.support.transfer import read_back, upload

from ..rollouts.scores import Batch
from .config import TrainingConfig
from .data import is_held_out
from .device_batch import DeviceBatch, solution_lengths
from .editing import EDITS

LARGEST = 100.0
"""Largest absolute value of a state in the pool. In networks that learn well, most states stay below 10."""


@dataclass(frozen=True)
class Patience:
    """The time after which a level of the pool should be solved, and the solutions that count.

    Attributes:
        per_tile: number of iterations for each tile of the solution.
        more: number of further iterations for every level.
        any_optimum: whether every optimal path counts as solved, instead of only the canonical path.
    """

    per_tile: float
    more: int
    any_optimum: bool = False

    @classmethod
    def of(cls, config: TrainingConfig) -> Patience | None:
        """Return the patience of a run: `pool_retry` iterations per tile, and the iterations of the longest update.
        Return None if the run has no `pool_retry`."""
        if config.pool_retry is None:
            return None
        return cls(config.pool_retry, config.pool_steps[1], config.nearest_solution > 0)


@dataclass(eq=False)
class StatePool:
    """P levels of the same size with their solutions and current states, all on the same device.

    The methods do not wait for the device, except `edit`, and `put` with `Patience.any_optimum`, because edits and
    optimal paths are computed on the CPU.

    Attributes:
        levels: the P levels, also called members.
        states: (P, C, H, W) float32, the current states.
        ages: (P,) int64, the number of iterations since a level entered, restarted or was edited. An edit sets the age
            to minus its grace.
        patience: the time until a level is due, or None if levels are never due.
    """

    levels: DeviceBatch
    states: Tensor
    ages: Tensor
    patience: Patience | None = None

    @classmethod
    def fresh(cls, levels: DeviceBatch, n_channels: int, patience: Patience | None = None) -> StatePool:
        """Return a pool of P levels, with (P, n_channels, H, W) float32 zeros as their states."""
        n, height, width = levels.tiles.shape
        states = torch.zeros(n, n_channels, height, width, dtype=torch.float32, device=levels.tiles.device)
        return cls(levels.copy(), states, torch.zeros(n, dtype=torch.int64, device=states.device), patience)

    def _due(self, places: Tensor, patience: Patience) -> Tensor:
        """Return whether the members at these (n,) int64 indices should be solved by now, (n,) bool."""
        lengths = solution_lengths(self.levels.target[places]).double()
        return self.ages[places] >= patience.per_tile * lengths + patience.more

    def draw(self, rng: np.random.Generator, n: int, newcomers: DeviceBatch) -> Tensor:
        """Draw n random members, replace the first of them by the newcomers, and return the (n,) int64 indices of all.

        The drawn members that are due come first, so that they are replaced first, and then edited first.

        Args:
            rng: the random generator.
            n: number of members to draw, at most P.
            newcomers: at most n levels, which start from states of zeros.
        """
        places = upload(rng.permutation(len(self.states))[:n], self.states.device)
        if self.patience is not None:
            places = places[(~self._due(places, self.patience)).byte().argsort(stable=True)]  # CUDA cannot sort bool
        replaced = places[: len(newcomers)]
        self.levels.put(replaced, newcomers)
        self.ages.index_fill_(0, replaced, 0)  # `[replaced] = 0` would copy the number to the device, and wait
        self.states.index_fill_(0, replaced, 0)
        return places

    def edit(self, rng: np.random.Generator, places: Tensor, task: Task, edits: str) -> None:
        """Edit the levels at some indices, without changing their states.

        An edit that produces a held-out level is skipped. An edit that leaves no solution is skipped too, unless the
        kind of edit `cuts`. The CPU waits for the device, because the choice of levels depends on the levels that the
        previous update solved.

        Args:
            rng: the random generator.
            places: (n,) int64 indices.
            task: the task of the levels.
            edits: the kind of edits, a name in `editing.EDITS`.
        """
        way, device = EDITS[edits], self.states.device
        edited = way.edit(rng, read_back(self.levels.tiles[places]), read_back(self.levels.tiles), task)
        target = task.solve(edited)
        allowed = np.flatnonzero(~is_held_out(edited, task) & (task.is_answer(target) | way.cuts))
        places = places[upload(allowed, device)]
        batch = Batch(edited[allowed], target[allowed])
        guide = None if self.levels.guidance is None else task.guide
        self.levels.put(places, DeviceBatch.of(batch, device, guide))
        self.ages.index_fill_(0, places, -way.grace)

    def take(self, places: Tensor) -> tuple[DeviceBatch, Tensor, Tensor]:
        """Return the levels at these (n,) int64 indices, their (n, C, H, W) float32 states and (n,) int64 ages."""
        return self.levels[places], self.states[places], self.ages[places]

    def put(self, places: Tensor, states: Tensor, n_steps: int) -> None:
        """Store the states of members after a rollout.

        Members with exploded states (above `LARGEST`) restart, because their losses would outweigh all other losses for
        many updates. Members that are due and not solved restart too.

        Args:
            places: (n,) int64 indices of the members.
            states: (n, C, H, W) floats, their states.
            n_steps: number of iterations of the rollout.
        """
        states = states.detach().float()
        self.ages[places] += n_steps
        anew = ~(states.abs().flatten(1).amax(dim=1) <= LARGEST)
        if self.patience is not None:
            paths = answer_of(states, self.levels.target) > 0.5
            solved = (paths == self.levels.target[places]).flatten(1).all(dim=1)
            if self.patience.any_optimum:  # if there is no solution, no path is optimal, but the empty path is solved
                correct = is_optimal(read_back(self.levels.tiles[places]), read_back(paths))
                solved |= upload(np.asarray(correct), self.states.device)
            anew |= self._due(places, self.patience) & ~solved
        self.states[places] = torch.where(anew[:, None, None, None], 0.0, states)
        self.ages[places] = torch.where(anew, 0, self.ages[places])

    def tensors(self) -> dict[str, Tensor]:
        """Return the pool as tensors by name, for a checkpoint. `from_tensors` restores the pool.

        States are stored sparsely, as the (K,) entries that are not 0 and a bit mask of their positions, because about
        half of the entries are 0, and all entries of levels that no update has drawn yet.
        """
        states = read_back(self.states)
        held = states.view(np.int32) != 0  # compares bits: -0.0 is stored too, so that states return bit for bit
        bits = torch.from_numpy(np.packbits(held.reshape(*held.shape[:2], -1), axis=2))
        levels = {"tiles": self.levels.tiles, "target": self.levels.target}
        return {**levels, "held": bits, "values": torch.from_numpy(states[held]), "ages": self.ages}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], config: TrainingConfig, device: torch.device) -> StatePool:
        """Return the pool that `tensors` has stored.

        Args:
            tensors: the result of `tensors`, on the CPU.
            config: the configuration of the run, which determines the guidance and the patience.
            device: the device for the pool.
        """
        tiles, target, ages = (tensors[name] for name in ("tiles", "target", "ages"))
        height, width = tiles.shape[1:]
        held = np.unpackbits(tensors["held"].numpy(), axis=2, count=height * width)
        states = torch.zeros(held.shape, dtype=torch.float32)
        states[torch.from_numpy(held.view(np.bool_))] = tensors["values"]
        levels = DeviceBatch.of(Batch(tiles.numpy(), target.numpy()), device, config.guide).copy()
        states = states.view(*held.shape[:2], height, width).to(device)
        return cls(levels, states, ages.to(device, copy=True), Patience.of(config))
