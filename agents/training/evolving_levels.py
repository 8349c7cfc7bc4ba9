"""Training levels that evolve against the model (paper, section "Adversarial data generation").

Batches are drawn from a population, and training on them measures how hard their levels are. Every few updates, if the
model does well on them, mutated levels are scored without gradients and replace the easiest members.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maze_nca_gym.mazes.benchmark_sets import held_out
from maze_nca_gym.mazes.population import LevelPopulation, PopulationConfig
from maze_nca_gym.mazes.population.members import measure_levels
from maze_nca_gym.support.random_streams import rng_for
from maze_nca_gym.support.transfer import read_back

from ..policies.policy import PATH, Policy
from ..policies.precision import tf32
from ..rollouts import Batch, rollout
from .config import TrainingConfig
from .data import LevelStream, concatenate
from .device_batch import DeviceBatch
from .processes import Workers


@dataclass(eq=False)
class EvolvingLevels:
    """A population of training levels, and the statistics that decide when it evolves.

    Attributes:
        population: the levels. Its clock counts updates.
        regret: the mean regret of a batch divided by the regret of empty paths, summed over the batches since a
            round was last considered.
        n_rounds: the number of rounds of offspring so far.
        seconds: the time spent on the population, over all sessions.
    """

    population: LevelPopulation
    regret: float = 0.0
    n_rounds: int = 0
    seconds: float = 0.0

    @classmethod
    def start(cls, stream: LevelStream) -> EvolvingLevels:
        """Return the first population: the run's fixed training set or, without one, fresh levels that fill it.

        Their regret is the regret of an empty path: an untrained model draws hardly anything better.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        options = {field.name: getattr(stream.config, field.name) for field in fields(PopulationConfig)}
        population = LevelPopulation(PopulationConfig(**options))
        levels = population.fresh(stream.fixed.tiles)
        population.insert(levels, levels.targets.mean(axis=(1, 2)), np.zeros(len(levels)))
        return cls(population)

    def replay(self, config: TrainingConfig, update: int, newcomers: Batch) -> tuple[NDArray[np.int64], Batch]:
        """Draw members of the population for an update; return their (M,) indices, and the levels of the update: the
        members, then the newcomers. The draw depends on the seed in the configuration and on the update alone."""
        with self._timed():
            rng = rng_for(config.seed, "replay", update)
            members = self.population.sample(rng, config.batch_size - len(newcomers))
            replayed = Batch(self.population.tiles[members], self.population.targets[members])
            return members, concatenate([replayed, newcomers])

    def note(
        self, members: NDArray[np.int64], batch: Batch, path: Tensor, workers: Workers, absolute: bool = False
    ) -> None:
        """Record how hard the levels of an update were; newcomers that are hard enough enter the population.

        Args:
            members: the members from `replay`; nothing has entered since.
            batch: the levels from `replay`.
            path: this worker's share (B, H, W) of their paths after the last iteration.
            workers: the workers that share the batch.
            absolute: whether the regret itself counts, instead of its ratio to the regret of empty paths.
        """
        with self._timed():
            share = batch[workers.rank :: workers.size]
            measured = _in_order(measured_by(self.population.config, path, share), workers)
            newcomers = batch.tiles[len(members) :]
            self.population.tick()
            self.population.update(members, *measured[: len(members)].T)
            if len(newcomers):
                self.population.insert(self.population.fresh(newcomers), *measured[len(members) :].T)
            # as a part of the loss of empty paths, which is at least that of a single tile: no zero
            whole = 1 if absolute else max(float(batch.target.mean()), 1 / batch.target.size)
            self.regret += float(measured[:, 0].mean() / whole)

    def evolve(self, model: Policy, config: TrainingConfig, update: int, workers: Workers) -> None:
        """Let offspring compete with the members, if a round is due and the model does well on the members.

        Args:
            model: the model after the update.
            config: the configuration of the run.
            update: the number of updates made so far.
            workers: the workers that share the scoring.
        """
        if update % config.evolve_every:
            return
        mean, self.regret = self.regret / config.evolve_every, 0.0
        if not config.is_due(config.evolve_every, lambda: mean):
            return
        with self._timed():
            self.population.breed(
                rng_for(config.seed, "offspring", update),
                config.n_offspring,
                config.parents,
                lambda tiles, targets: tuple(score_levels(model, Batch(tiles, targets), config, workers).T),
                held_out(self.population.tiles.shape[1] - 2, config.problem),
            )
            self.n_rounds += 1

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began


def measured_by(config: PopulationConfig, path: Tensor, batch: Batch) -> Tensor:
    """Return for each path its regret and whether it is complete, as 1 or 0, (B, 2) float64 on the CPU.

    Args:
        config: the configuration whose `measure` says which error counts as regret, see `members.measure_levels`.
        path: (B, H, W) floats on any device, the path channel after the last iteration.
        batch: the levels of the paths, with their canonical solutions.
    """
    paths = read_back(path.detach().float())
    measured = measure_levels(config.measure, batch.tiles, paths, batch.target, config.problem.judge)
    return torch.from_numpy(np.stack(measured, axis=1))


@torch.no_grad()
def score_levels(model: Policy, levels: Batch, config: TrainingConfig, workers: Workers) -> NDArray[np.float64]:
    """Run a model on N levels for an episode, without gradients; return the regret and the completeness of each level,
    (N, 2) float64. The workers share the levels, and each of them returns the values of all levels.

    Args:
        model: the model, on the workers' device.
        levels: the levels.
        config: the configuration of the run: iterations, batch size, precision and measure.
        workers: the workers that share the work.
    """
    if not len(levels):
        return np.zeros((0, 2))
    n_each = -(-len(levels) // workers.size)
    # wraps around, so that every worker has as many: a gather needs shares of one size
    places = (np.arange(n_each) * workers.size + workers.rank) % len(levels)
    at_once = config.batch_size // workers.size
    n_steps, measured = config.n_iterations, []
    assert n_steps is not None
    for start in range(0, n_each, at_once):
        part = levels[places[start : start + at_once]]
        low = torch.autocast(workers.device.type, torch.bfloat16, enabled=config.precision == "bfloat16")
        with tf32(config.precision == "tf32", workers.device), low:
            maze = DeviceBatch.of(part, workers.device).one_hot(model.n_tiles)
            path = rollout(model, maze, n_steps, n_returned=PATH + 1)[:, PATH]
        measured.append(measured_by(config, path, part))
    return _in_order(torch.cat(measured), workers)[: len(levels)]


def _in_order(share: Tensor, workers: Workers) -> NDArray[np.float64]:
    """Return the measurements of all workers in the order of the levels; each worker has every `workers.size`-th."""
    if workers.size == 1:
        return share.numpy()
    shares = workers.gather(share.to(workers.device)).view(workers.size, -1, 2)
    return read_back(shares.transpose(0, 1).flatten(0, 1))
