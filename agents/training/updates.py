"""One update of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maze_nca_gym.random_streams import rng_for, torch_rng_for
from maze_nca_gym.solvers import best_path

from ..policy import PATH
from ..rollouts import unroll
from .data import Batch, LevelStream
from .losses import guidance, guidance_losses, had_time, loss_steps, path_losses
from .optimisers import SCHEDULES
from .pool import Patience, StatePool
from .processes import Workers
from .state import TrainingState

TINY = 1e-12
"""Small number that keeps a gradient of zeros zero when it is divided by its norm."""
EXPLODED = 1e4
"""Largest loss of a run that still trains: an empty path loses at most 1 wherever the loss is taken."""


class Diverged(RuntimeError):
    """The loss or its gradient is not finite any more, or the loss has exploded."""


def update(state: TrainingState, batch: Batch, stream: LevelStream, workers: Workers) -> float:
    """Make one update, after which the levels may evolve; return the loss before it, averaged over the workers.

    Args:
        state: the state of the run, which is changed.
        batch: the (n_fresh, H, W) levels of this update; with a pool or a population, its newcomers.
        stream: fills new pools.
        workers: the workers that share the batch.

    Raises:
        Diverged: raised on every worker; the weights are as they were.
    """
    config, evolution = state.config, state.evolution
    if evolution is None:
        return _learn(state, batch, stream, workers)[0]
    replay = evolution.replay(config, state.update, batch)
    loss, path = _learn(state, replay.batch, stream, workers)
    evolution.note(replay, path, workers, config.evolve_absolute)
    evolution.evolve(state.model, config, state.update, workers)
    return loss


def _learn(state: TrainingState, batch: Batch, stream: LevelStream, workers: Workers) -> tuple[float, Tensor]:
    """Change the weights; also returns the (B, H, W) paths of this worker's share after the last iteration."""
    config = state.config
    rate = config.optimiser.learning_rate * SCHEDULES[config.optimiser.schedule](state.update / config.n_updates)
    for group in state.optimiser.param_groups:
        group["lr"] = rate
    state.optimiser.zero_grad()
    roll_out = _pooled if config.pool.pool_size else _from_zeros
    loss, after = roll_out(state, batch, stream, workers)
    gradients = [p.grad for p in state.model.parameters() if p.grad is not None]
    workers.average([*gradients, loss])
    _check(float(loss), gradients, state.update + 1)
    if config.optimiser.normalise_gradients:
        normalise(gradients)
    state.optimiser.step()
    state.update += 1
    if state.average is not None:
        _follow(state.average, state.model, min(config.optimiser.ema_decay, state.update / (state.update + 9)))
    return float(loss), after[:, PATH]


def _check(loss: float, gradients: Iterable[Tensor], number: int) -> None:
    norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
    if not math.isfinite(norm) or not loss <= EXPLODED:
        raise Diverged(f"before update {number} the loss was {loss:.3g}, the norm of its gradient {norm:.3g}")


def _from_zeros(state: TrainingState, batch: Batch, stream: LevelStream, workers: Workers) -> tuple[Tensor, Tensor]:
    config = state.config
    assert config.model.n_iterations is not None
    share = batch[workers.rank :: workers.size]
    return _backward(state, share, None, torch.zeros(len(share)), config.model.n_iterations, workers.device)


def _pooled(state: TrainingState, newcomers: Batch, stream: LevelStream, workers: Workers) -> tuple[Tensor, Tensor]:
    """Roll out from the states in the pool, and store those reached."""
    config = state.config
    rng = rng_for(config.seed, "pool", state.update)
    pool = _pool(state, stream, newcomers.tiles.shape[1] - 2)
    places = pool.draw(rng, config.batch_size, newcomers)
    n_edited = round(config.pool.pool_edited * config.batch_size)
    if n_edited:
        pool.edit(rng, places[len(newcomers) :][:n_edited], config.task, config.pool.pool_edits)
    n_steps = int(rng.integers(config.pool.pool_steps[0], config.pool.pool_steps[1] + 1))
    part = slice(workers.rank, None, workers.size)
    batch, states, ages = pool.take(places)
    if config.pool.state_noise:
        generator = torch_rng_for(config.seed, "noise", state.update)
        states = states + config.pool.state_noise * torch.randn(states.shape, generator=generator)
    loss, after = _backward(state, batch[part], states[part], ages[part], n_steps, workers.device)
    order = [places[rank :: workers.size] for rank in range(workers.size)]
    for members, reached in zip(order, workers.gather(after).chunk(workers.size), strict=True):
        pool.put(members, reached, n_steps)
    return loss, after


def _pool(state: TrainingState, stream: LevelStream, size: int) -> StatePool:
    if size not in state.pools:
        rng = rng_for(state.config.seed, "pool of size", size)
        levels = stream.draw(rng, state.config.pool.pool_size, size)
        state.pools[size] = StatePool.fresh(levels, state.config.model.n_channels, Patience.of(state.config))
    return state.pools[size]


def _backward(
    state: TrainingState, batch: Batch, start: Tensor | None, ages: Tensor, n_steps: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the loss of a rollout and its last state, the path alone without a pool; the parameters get their
    gradients."""
    config = state.config
    maze = batch.one_hot(state.model.n_tiles, device)
    start = None if start is None else start.to(device)
    n_returned = None if config.pool.pool_size else config.n_shown  # a pool keeps whole states
    marks = loss_steps(config.loss.loss_at, n_steps)
    with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        growth = math.inf if config.optimiser.gradient_growth is None else config.optimiser.gradient_growth
        states = unroll(state.model, maze, n_steps, marks, start, n_returned=n_returned, growth=growth)
        wanted = batch.target if not config.loss.leniency else _nearest_optima(batch, states[-1], config.loss.leniency)
        target = torch.from_numpy(wanted).to(device, torch.float32, non_blocking=True)
        counted = had_time(target, torch.stack([ages + mark for mark in marks]).to(device), config.loss.loss_after)
        losses = path_losses(config.loss.loss, states, target, counted, damped=config.pool.pool_size > 0)
        if config.loss.guidance:
            losses = losses + config.loss.guidance * _of_guidance(states, batch, ages, marks, device)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    return losses.detach().sum(), states[-1].detach()


def _nearest_optima(batch: Batch, state: Tensor, leniency: float) -> NDArray[np.bool_]:
    """Return (B, H, W) optimal solutions, see `TrainingConfig.leniency`."""
    path = state[:, PATH].detach().float().clamp(0, 1).nan_to_num().cpu().numpy()
    return best_path(batch.tiles, path + (1 - leniency) * batch.target)


def _of_guidance(
    states: Sequence[Tensor], batch: Batch, ages: Tensor, marks: Sequence[int], device: torch.device
) -> Tensor:
    """Return losses of the first steps from all tiles which anything from the target could have reached."""
    of_batch = guidance(batch.tiles)
    steps, distances = (torch.from_numpy(array).to(device) for array in (of_batch.steps, of_batch.distances))
    reached = torch.stack([(ages + mark).to(device)[:, None, None] >= distances for mark in marks])
    return guidance_losses(states, steps.float(), reached)


@torch.no_grad()
def normalise(gradients: Iterable[Tensor]) -> None:
    """Divide gradients, each (...) float32, by their norms in place, as the paper's code does, but not its text."""
    for gradient in gradients:
        gradient /= gradient.norm() + TINY


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
        mean.lerp_(weight, 1 - decay)
