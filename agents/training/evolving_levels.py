"""Training levels that evolve against the model (paper, section "Adversarial data generation").

Batches are drawn from a population of levels, and training on a batch also measures how hard its levels are. Every few
updates, if the model does well on the population, mutated levels are scored without gradients, and the hardest of them
replace the easiest members.
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
from ..rollouts.iterating import rollout
from ..rollouts.scores import Batch
from .config import TrainingConfig
from .data import LevelStream, concatenate
from .device_batch import DeviceBatch
from .processes import Workers


@dataclass(eq=False)
class EvolvingLevels:
    """A population of training levels, and the statistics that decide when it evolves.

    Attributes:
        population: the levels. The clock of the population counts updates.
        regret: the mean regret of a batch divided by the regret of empty paths (or not divided, with
            `evolve_absolute`), summed over all batches since `evolve` last decided on a round of offspring.
        n_rounds: the number of rounds of offspring so far.
        seconds: the time spent on the population in all sessions.
    """

    population: LevelPopulation
    regret: float = 0.0
    n_rounds: int = 0
    seconds: float = 0.0

    @classmethod
    def start(cls, stream: LevelStream) -> EvolvingLevels:
        """Return the first population: the `n_levels` levels of the configuration, or by default as many fresh levels
        as the population can contain.

        The initial regret of a level is the regret of an empty path, because the paths of an untrained model are hardly
        better.

        Raises:
            ValueError: nearly all levels of this size are held out.
        """
        options = {field.name: getattr(stream.config, field.name) for field in fields(PopulationConfig)}
        population = LevelPopulation(PopulationConfig(**options))
        levels = population.fresh(stream.fixed.tiles)
        population.insert(levels, levels.targets.mean(axis=(1, 2)), np.zeros(len(levels)))
        return cls(population)

    def replay(self, config: TrainingConfig, update: int, newcomers: Batch) -> tuple[NDArray[np.int64], Batch]:
        """Draw the members of the population that an update trains on.

        The draw depends only on the seed in the configuration, on the number of the update and on the population.

        Args:
            config: the configuration of the run.
            update: the number of the update.
            newcomers: the new levels of the update, which fill the rest of the batch.

        Returns:
            The (M,) int64 indices of the members, and the batch: the M members, followed by the newcomers.
        """
        with self._timed():
            rng = rng_for(config.seed, "replay", update)
            members = self.population.sample(rng, config.batch_size - len(newcomers))
            replayed = Batch(self.population.tiles[members], self.population.targets[members])
            return members, concatenate([replayed, newcomers])

    def note(
        self, members: NDArray[np.int64], batch: Batch, path: Tensor, workers: Workers, absolute: bool = False
    ) -> None:
        """Record how hard the levels of an update were. Newcomers that are hard enough enter the population.

        Args:
            members: the indices that `replay` returned. No level may have entered the population since then.
            batch: the batch that `replay` returned.
            path: (B, H, W) paths after the last iteration, on the share of the batch that belongs to this worker.
            workers: the workers that share the batch.
            absolute: whether the regret itself is added to `regret`, instead of its ratio to the regret of empty paths.
        """
        with self._timed():
            share = batch[workers.rank :: workers.size]
            measured = _in_order(measured_by(self.population.config, path, share), workers)
            newcomers = batch.tiles[len(members) :]
            self.population.tick()
            self.population.update(members, *measured[: len(members)].T)
            if len(newcomers):
                self.population.insert(self.population.fresh(newcomers), *measured[len(members) :].T)
            # relative to the loss of empty paths; the smallest loss of a path with a tile avoids a division by zero
            whole = 1 if absolute else max(float(batch.target.mean()), 1 / batch.target.size)
            self.regret += float(measured[:, 0].mean() / whole)

    def evolve(self, model: Policy, config: TrainingConfig, update: int, workers: Workers) -> None:
        """Make a round of offspring, which compete with the members, if a round is due and the model does well.

        Args:
            model: the model after the update.
            config: the configuration of the run.
            update: the number of updates so far.
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
    """Return the regret of each path, and 1 if the path is complete or else 0, (B, 2) float64 on the CPU.

    Args:
        config: the configuration with the field `measure`, the error that counts as regret (`members.measure_levels`).
        path: (B, H, W) floats on any device, the path channel after the last iteration.
        batch: the B levels with their canonical solutions.
    """
    paths = read_back(path.detach().float())
    measured = measure_levels(config.measure, batch.tiles, paths, batch.target, config.problem.judge)
    return torch.from_numpy(np.stack(measured, axis=1))


@torch.no_grad()
def score_levels(model: Policy, levels: Batch, config: TrainingConfig, workers: Workers) -> NDArray[np.float64]:
    """Run a model for an episode on each of N levels, without gradients, and measure its paths.

    The workers share the levels, and each worker returns the values of all levels.

    Args:
        model: the model, on the workers' device.
        levels: the N levels.
        config: the configuration of the run, of which iterations, batch size, precision and measure are used.
        workers: the workers that share the levels.

    Returns:
        (N, 2) float64: the regret of each level, and 1 if its path is complete or else 0.
    """
    if not len(levels):
        return np.zeros((0, 2))
    n_each = -(-len(levels) // workers.size)
    # the indices wrap around, so that all workers have equally many levels, as `gather` requires
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
    """Return the (N, 2) measurements of all workers in the order of the levels.

    Args:
        share: (N / size, 2) measurements of this worker. Worker r has the levels r, r + size, r + 2 size ...
        workers: the workers that share the levels.
    """
    if workers.size == 1:
        return share.numpy()
    shares = workers.gather(share.to(workers.device)).view(workers.size, -1, 2)
    return read_back(shares.transpose(0, 1).flatten(0, 1))
