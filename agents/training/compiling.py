"""Whether `torch.compile` makes the updates of a run faster, measured where they run."""

from __future__ import annotations

import copy
import time
from dataclasses import replace

import torch

from maze_nca_gym.support.random_streams import rng_for

from ..rollouts.engines import PYTORCH, engine_for
from .data import LevelStream
from .device_batch import DeviceBatch
from .processes import Workers
from .state import TrainingState
from .updates import backward

ENOUGH = 1.1
"""Least factor by which compiled updates must be faster; smaller ones are within the noise of the measurement."""
WARM_UPS, ROUNDS = 2, 5
"""Rounds that compile, the second for sizes that vary; and rounds that are timed."""


def check_compile(wanted: bool | str, device: torch.device) -> None:
    """Check that a device can do what the option `compile` asks for.

    Raises:
        ValueError: CUDA graphs are asked for elsewhere than on a CUDA GPU.
    """
    if wanted == "reduce-overhead" and device.type != "cuda":
        raise ValueError(
            "compile=reduce-overhead makes CUDA graphs, which need a CUDA GPU; "
            f"on {device} it can be True, False or auto"
        )


def compile_if_faster(state: TrainingState, workers: Workers) -> str:
    """Compile the model of a run if that makes its updates faster; return in words what was measured.

    Of several workers all compile if one of them would.

    Args:
        state: the run before its next update; only its model can change.
        workers: the workers that share its batches.
    """
    config, stream = state.config, LevelStream(state.config)
    levels = [stream.draw(rng_for(config.seed, "compile"), config.batch_size, size) for size in config.levels.sizes]
    parts = [each[workers.rank :: workers.size] for each in levels]
    batches = [DeviceBatch.of(part, workers.device, config.guide) for part in parts]
    maze = batches[0].one_hot(state.model.n_tiles)
    with torch.autocast(maze.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        engine = engine_for(state.model, maze)
    if engine is not PYTORCH:
        return f"not compiled: PyTorch does not run this model, but the engine {type(engine).__name__}"
    plain, compiled = (replace(state, model=copy.deepcopy(state.model)) for _ in range(2))
    compiled.compile()
    began, factor = time.perf_counter(), 0.0
    try:
        for _ in range(WARM_UPS):
            _seconds(compiled, batches)
    except Exception as error:  # the compiler is missing or fails, in whatever way
        measured = f"torch.compile fails here: {str(error).strip().partition(chr(10))[0]}"
    else:
        spent = time.perf_counter() - began
        # the fastest of several rounds counts, since other programs only make a round slower
        rounds = [[_seconds(run, batches) for run in (plain, compiled)] for _ in range(ROUNDS)]
        slow, fast = (min(times) / len(batches) for times in zip(*rounds, strict=True))
        factor = slow / fast
        each = f"{1000 * slow:.0f} ms an update without it, {1000 * fast:.0f} ms with it"
        measured = f"{factor:.2f} times as fast ({each}, after {spent:.0f} s of compiling)"
    if workers.any(factor >= ENOUGH):
        state.compile()
    return f"{'compiled' if state.compiled else 'not compiled'}: {measured}"


def _seconds(run: TrainingState, batches: list[DeviceBatch]) -> float:
    """Return the time of rollout, loss and gradients on a batch of each size, on a GPU until it has finished."""
    n_steps = run.config.pool.pool_steps[1] if run.config.pool.pool_size else run.config.model.n_iterations
    assert n_steps is not None
    began = time.perf_counter()
    for batch in batches:
        run.model.zero_grad()
        loss, _ = backward(run, batch, None, torch.zeros(len(batch), device=batch.tiles.device), n_steps)
        float(loss)
    return time.perf_counter() - began
