"""A single update of the weights."""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor

from maze_nca_gym.mazes.solvers import best_path
from maze_nca_gym.support.random_streams import rng_for, torch_rng_for
from maze_nca_gym.support.transfer import read_back, upload

from ..policies.policy import PATH
from ..policies.precision import tf32
from ..rollouts.engines import preferring
from ..rollouts.iterating import rollout
from ..rollouts.scores import Batch
from .device_batch import DeviceBatch, solution_lengths
from .losses import counted_iterations, guidance_losses, path_losses
from .optimisers import SCHEDULES
from .pool import Patience, StatePool
from .processes import Workers
from .state import TrainingState

TINY = 1e-12
"""Added to norms before a division, so that a gradient of zeros stays zero."""
EXPLODED = 1e4
"""Loss above which a run counts as diverged. In comparison, an empty path has a loss of at most 1 at each of
`loss_steps`."""


class Diverged(RuntimeError):
    """Raised when the loss or its gradient is not finite, or the loss exceeds `EXPLODED`."""


def update(state: TrainingState, batch: Batch, workers: Workers) -> Tensor:
    """Make an update of the weights. If levels evolve, the population may change afterwards.

    The function does not wait for a GPU, unless levels evolve, are edited or have several optimal solutions
    (`nearest_solution`), because the CPU then needs the paths.

    Args:
        state: the state of the run, which is changed. The loss and the norm of its gradient are appended to `unread`.
        batch: the (n_fresh, H, W) new levels of this update: the whole batch, or with a pool or a population the
            newcomers.
        workers: the workers that share the batch.

    Returns:
        The loss with the weights before the update, averaged over the workers, () float32 on the workers' device.

    Raises:
        Diverged: the loss or its gradient is not finite, or the loss has exploded. On a CPU, every worker raises this
            error, and the weights are unchanged. On a GPU, `read_losses` raises this error later.
    """
    config, model, evolution = state.config, state.model, state.evolution
    n_before, n_updates = state.update - state.begin, config.n_updates - state.begin
    rate = config.learning_rate * SCHEDULES[config.schedule](n_before / n_updates)
    for group in state.optimiser.param_groups:
        group["lr"] = rate
    state.optimiser.zero_grad()
    if config.pool_size:
        loss, after = _pooled(state, batch, workers)
    else:
        assert config.n_iterations is not None
        if evolution is not None:
            members, batch = evolution.replay(config, state.update, batch)
        share = DeviceBatch.of(batch[workers.rank :: workers.size], workers.device, config.guide)
        ages = torch.zeros(len(share), dtype=torch.float32, device=workers.device)
        loss, after = compute_gradients(state, share, None, ages, config.n_iterations)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    workers.average([*gradients, loss])
    norms = torch._foreach_norm(gradients)
    norm = torch.stack(norms).norm()
    if loss.is_cpu:  # on a GPU, reading the loss would wait for it
        _check(float(loss), float(norm), state.update + 1)
    if config.normalise_gradients:
        # the paper's code normalises gradients, although the paper's text does not mention this
        torch._foreach_div_(gradients, torch._foreach_add(norms, TINY))
    if config.weight_decay:
        # before the step, as in AdamW, so that the weights decay from the values at which the gradients were computed
        weights = [p.detach() for p in model.parameters() if p.ndim > 1]
        torch._foreach_mul_(weights, 1 - rate * config.weight_decay)
    state.optimiser.step()
    state.update += 1
    state.unread.append(torch.stack([loss, norm]))
    if state.average is not None:
        decay = min(config.ema_decay, (n_before + 1) / (n_before + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(state.average.parameters()), list(model.parameters()), 1 - decay)
    if evolution is not None:
        evolution.note(members, batch, after[:, PATH], workers, config.evolve_absolute)
        evolution.evolve(model, config, state.update, workers)
    return loss


def read_losses(state: TrainingState) -> None:
    """Move the losses in the `unread` of a state to its `losses`, as floats. This waits for a GPU.

    Raises:
        Diverged: a loss has exploded, or a loss or its gradient is not finite.
    """
    if state.unread:
        rows = read_back(torch.stack(state.unread)).tolist()
        state.unread = []
        for number, (loss, norm) in enumerate(rows, state.update - len(rows) + 1):
            _check(loss, norm, number)
        state.losses += [loss for loss, _ in rows]


def _check(loss: float, norm: float, number: int) -> None:
    if not math.isfinite(norm) or not loss <= EXPLODED:
        raise Diverged(f"before update {number} the loss was {loss:.3g}, the norm of its gradient {norm:.3g}")


def _pooled(state: TrainingState, newcomers: Batch, workers: Workers) -> tuple[Tensor, Tensor]:
    """Compute the gradients of a rollout from states in the pool, and store the states after the rollout in the pool.

    Args:
        state: the state of the run. A pool of this size is added if `state.pools` has no such pool.
        newcomers: the (n_fresh, H, W) levels that replace others in the pool.
        workers: the workers that share the batch.

    Returns:
        The loss and this worker's share of the states after the rollout, as from `compute_gradients`.
    """
    config, size = state.config, newcomers.tiles.shape[1] - 2
    rng = rng_for(config.seed, "pool", state.update)
    if size not in state.pools:
        levels = state.stream.draw(rng_for(config.seed, "pool of size", size), config.pool_size, size)
        members = DeviceBatch.of(levels, workers.device, config.guide)
        state.pools[size] = StatePool.fresh(members, state.model.n_channels, Patience.of(config))
    pool = state.pools[size]
    fresh = DeviceBatch.of(newcomers, workers.device, config.guide)
    places = pool.draw(rng, config.batch_size, fresh)
    n_edited = round(config.pool_edited * config.batch_size)
    if n_edited:
        pool.edit(rng, places[len(newcomers) :][:n_edited], config.problem, config.pool_edits)
    n_steps = int(rng.integers(config.pool_steps[0], config.pool_steps[1] + 1))
    part = slice(workers.rank, None, workers.size)
    batch, states, ages = pool.take(places)
    if config.state_noise:
        # drawn on the device of the states, so that the noise differs between CPUs and GPUs
        generator = torch_rng_for(config.seed, "noise", state.update, device=states.device)
        noise = torch.randn(states.shape, generator=generator, dtype=states.dtype, device=states.device)
        states = states + config.state_noise * noise
    loss, after = compute_gradients(state, batch[part], states[part], ages[part], n_steps)
    order = [places[rank :: workers.size] for rank in range(workers.size)]
    for own_places, reached in zip(order, workers.gather(after).chunk(workers.size), strict=True):
        pool.put(own_places, reached, n_steps)
    return loss, after


def compute_gradients(
    state: TrainingState, batch: DeviceBatch, start: Tensor | None, ages: Tensor, n_steps: int
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of the loss of a rollout, and store them in the parameters of the model.

    Args:
        state: the state of the run. Only the gradients of its model change.
        batch: B levels on the device of the model.
        start: (B, C, H, W) initial states of the rollout, or None for zeros.
        ages: (B,) numbers of iterations before these states.
        n_steps: number of iterations of the rollout.

    Returns:
        The loss, () float32, summed over `loss_steps`, and the state after the rollout, (B, C, H, W). The state has all
        channels if the run has a pool, or else only the channels that the loss reads.
    """
    config = state.config
    maze = batch.one_hot(state.model.n_tiles)
    n_returned = None if config.pool_size else config.n_shown  # a pool keeps whole states
    marks = counted_iterations(config.loss_steps, n_steps)
    with tf32(config.precision == "tf32", maze.device):
        with torch.autocast(maze.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            growth = math.inf if config.gradient_growth is None else config.gradient_growth
            with nullcontext() if state.graphs is None else preferring(state.graphs):
                states = rollout(state.model, maze, marks, start, n_returned=n_returned, growth=growth)
            wanted = batch.target
            if config.nearest_solution:
                wanted = _nearest_optima(batch, states[-1], config.nearest_solution, config.problem.order)
            had = torch.stack([ages + mark for mark in marks])
            # a signal moves one tile an iteration, so a loss on longer solutions would teach the model to guess
            counted = had >= config.loss_after * solution_lengths(batch.target)
            losses = path_losses(config.loss, states, wanted.float(), counted, damped=config.pool_size > 0)
            if config.guidance:
                assert batch.guidance is not None
                assert batch.after is not None
                of_tiles = had[:, :, None, None] >= batch.after
                first = config.n_shown - batch.guidance.shape[1]
                hinted = guidance_losses(states, batch.guidance.float(), of_tiles, first)
                losses = losses + config.guidance * hinted
        losses.sum().backward()  # type: ignore[no-untyped-call]
    return losses.detach().sum(), states[-1].detach()


def _nearest_optima(batch: DeviceBatch, state: Tensor, nearest_solution: float, order: str) -> Tensor:
    """Return the target of each level, (B, H, W) bool: the optimal solution that is nearest to the path in a state, as
    the option `nearest_solution` describes. The solutions are computed on the CPU.

    Args:
        batch: B levels with their canonical solutions.
        state: (B, C, H, W) states at the end of a rollout.
        nearest_solution: the value of the option, in (0, 1].
        order: the order of directions. If several solutions are equally near, the first in this order is chosen.
    """
    path = read_back(state[:, PATH].detach().float().clamp(0, 1).nan_to_num())
    tiles, target = read_back(batch.tiles), read_back(batch.target)
    return upload(best_path(tiles, path + (1 - nearest_solution) * target, order), state.device)
