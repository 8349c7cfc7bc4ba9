"""Levels that keep their states from update to update, so that a policy learns to hold and to repair a solution.

(Persistent states as in Mordvintsev et al., "Growing Neural Cellular Automata".)

Wrong states tend to stay wrong, because the gradient of one update does not reach back to the cause. Therefore, with
`pool_retry`, levels that are due and wrong restart from an empty state. Levels that are due and correct are replaced
first. So the pool collects hard levels instead of stuck states.
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

from ..rollouts import Batch
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
        per_tile: iterations for each tile of its solution.
        more: further iterations, whatever the length of the solution.
        any_optimum: whether any optimal path counts as solved, instead of only the canonical path.
    """

    per_tile: float
    more: int
    any_optimum: bool = False

    @classmethod
    def of(cls, config: TrainingConfig) -> Patience | None:
        """Return the patience of a run: `pool_retry`, plus the longest update's iterations, or None without retries."""
        if config.pool_retry is None:
            return None
        return cls(config.pool_retry, config.pool_steps[1], config.nearest_solution > 0)


@dataclass(eq=False)
class StatePool:
    """Levels of one size, their solutions, and their current states, all on one device.

    No method waits for the device, except edits and `Patience.any_optimum`, which are computed on the CPU.

    Attributes:
        levels: P levels.
        states: (P, C, H, W) float32.
        ages: (P,) int64, iterations since the level entered, restarted, or was edited (then less the edit's grace).
        patience: the time until a level is due; None means forever.
    """

    levels: DeviceBatch
    states: Tensor
    ages: Tensor
    patience: Patience | None = None

    @classmethod
    def fresh(cls, levels: DeviceBatch, n_channels: int, patience: Patience | None = None) -> StatePool:
        """Return P levels with empty states, (P, n_channels, H, W) float32 zeros."""
        n, height, width = levels.tiles.shape
        states = torch.zeros(n, n_channels, height, width, dtype=torch.float32, device=levels.tiles.device)
        return cls(levels.copy(), states, torch.zeros(n, dtype=torch.int64, device=states.device), patience)

    def _due(self, places: Tensor, patience: Patience) -> Tensor:
        """Return whether the members at these places should be solved by now, (n,) bool."""
        lengths = solution_lengths(self.levels.target[places]).double()
        return self.ages[places] >= patience.per_tile * lengths + patience.more

    def draw(self, rng: np.random.Generator, n: int, newcomers: DeviceBatch) -> Tensor:
        """Draw n members, at most P, and replace the first of them by the newcomers; return the indices of all, (n,)
        int64.

        Members that are due come first: they are replaced first, and then edited first.
        """
        places = upload(rng.permutation(len(self.states))[:n], self.states.device)
        if self.patience is not None:
            places = places[(~self._due(places, self.patience)).byte().argsort(stable=True)]  # CUDA cannot sort bool
        replaced = places[: len(newcomers)]
        self.levels.put(replaced, newcomers)
        self.ages.index_fill_(0, replaced, 0)  # a number in `[replaced] = 0` would be sent there, which waits
        self.states.index_fill_(0, replaced, 0)
        return places

    def edit(self, rng: np.random.Generator, places: Tensor, task: Task, edits: str) -> None:
        """Edit the levels at these (n,) int64 indices, each by one of `editing.EDITS`; their states stay.

        Edits that would produce a level of a test set are skipped. Edits that would leave no answer are skipped too,
        unless the edit `cuts`. The CPU waits for the device, because the choice of levels depends on the levels that
        the previous update solved.
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
        """Store the (n, C, H, W) states of the members at these (n,) int64 indices, after `n_steps` more iterations.

        Members with exploded states restart, because their losses would outweigh all others for many updates. Members
        that are due and wrong restart too.
        """
        states = states.detach().float()
        self.ages[places] += n_steps
        anew = ~(states.abs().flatten(1).amax(dim=1) <= LARGEST)
        if self.patience is not None:
            paths = answer_of(states, self.levels.target) > 0.5
            solved = (paths == self.levels.target[places]).flatten(1).all(dim=1)
            if self.patience.any_optimum:  # of a level without a solution no path is: the empty one is correct above
                correct = is_optimal(read_back(self.levels.tiles[places]), read_back(paths))
                solved |= upload(np.asarray(correct), self.states.device)
            anew |= self._due(places, self.patience) & ~solved
        self.states[places] = torch.where(anew[:, None, None, None], 0.0, states)
        self.ages[places] = torch.where(anew, 0, self.ages[places])

    def tensors(self) -> dict[str, Tensor]:
        """Return the attributes as tensors by name, for a checkpoint; `from_tensors` reads them back.

        States are stored sparsely: the (K,) entries that are not 0, and a bit mask of where they are. About half are 0,
        and all of a level that no update has drawn yet.
        """
        states = read_back(self.states)
        held = states.view(np.int32) != 0  # compares bits: -0.0 is stored too, so that states return bit for bit
        bits = torch.from_numpy(np.packbits(held.reshape(*held.shape[:2], -1), axis=2))
        levels = {"tiles": self.levels.tiles, "target": self.levels.target}
        return {**levels, "held": bits, "values": torch.from_numpy(states[held]), "ages": self.ages}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], config: TrainingConfig, device: torch.device) -> StatePool:
        """Return the pool of a run.

        Args:
            tensors: the result of `tensors`, on the CPU.
            config: the configuration of the run, from which the guidance and the patience follow.
            device: the device of the pool.
        """
        tiles, target, ages = (tensors[name] for name in ("tiles", "target", "ages"))
        height, width = tiles.shape[1:]
        held = np.unpackbits(tensors["held"].numpy(), axis=2, count=height * width)
        states = torch.zeros(held.shape, dtype=torch.float32)
        states[torch.from_numpy(held.view(np.bool_))] = tensors["values"]
        levels = DeviceBatch.of(Batch(tiles.numpy(), target.numpy()), device, config.guide).copy()
        states = states.view(*held.shape[:2], height, width).to(device)
        return cls(levels, states, ages.to(device, copy=True), Patience.of(config))
