"""The option `compile=auto`, which measures each way to compile a run's updates on the run's own device."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Literal

import torch

from maze_nca_gym.support.options import check
from maze_nca_gym.support.random_streams import rng_for

from ..rollouts.engines import PYTORCH, engine_for
from .device_batch import DeviceBatch
from .processes import Workers
from .state import TrainingState
from .updates import compute_gradients

ENOUGH = 1.1
"""Least speed-up for which updates are compiled. Smaller speed-ups are within the noise of the measurement."""
WARM_UPS, ROUNDS = 2, 5
"""Number of untimed rounds, which compile, and number of timed rounds. The second untimed round is necessary because
PyTorch then compiles again, for levels of varying size."""
NAMES: dict[bool | str, str] = {False: "plain PyTorch", True: "torch.compile", "graphs": "CUDA graphs"}
"""Value of the option `compile` -> its name in reports."""


def ways_of(workers: Workers) -> list[Literal[True, "graphs"]]:
    """Return the values of the option `compile` to try. "graphs" is among them only for a single process on a CUDA GPU,
    because CUDA graphs need both."""
    return [True, "graphs"] if workers.device.type == "cuda" and workers.size == 1 else [True]


def check_compile(wanted: bool | str, workers: Workers) -> None:
    """Check that the workers support a value of the option `compile`.

    Raises:
        ValueError: `wanted` is "graphs", but there are several processes or no CUDA GPU.
    """
    here = f"{workers.size} processes on {workers.device}" if workers.size > 1 else str(workers.device)
    needs = "compile=graphs records CUDA graphs, which need a CUDA GPU and a single process"
    is_possible = wanted != "graphs" or wanted in ways_of(workers)
    check(is_possible, f"{needs}; on {here} it can be True, False or auto")


def compile_if_faster(state: TrainingState, workers: Workers) -> str:
    """Measure each way to compile a run's updates, choose a way, and return a text with the times for the user.

    The fastest way is chosen if it is at least `ENOUGH` times as fast as plain PyTorch. Otherwise nothing is compiled.
    If several workers share the run, all of them compile if at least one of them measures this speed-up.

    Args:
        state: the run before its next update. Compiling changes how its model runs, but no weights.
        workers: the workers that share the batches of the run.
    """
    config = state.config
    levels = (state.stream.draw(rng_for(config.seed, "compile"), config.batch_size, size) for size in config.sizes)
    batches = [DeviceBatch.of(batch[workers.rank :: workers.size], workers.device, config.guide) for batch in levels]
    maze = batches[0].one_hot(state.model.n_tiles)
    with torch.autocast(maze.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        engine = engine_for(state.model, maze)
    if engine is not PYTORCH:
        return f"not compiled: PyTorch does not run this model, but the engine {type(engine).__name__}"
    runs: dict[bool | Literal["graphs"], TrainingState] = {False: replace(state, model=copy.deepcopy(state.model))}
    ready: dict[bool | Literal["graphs"], str] = {}
    for way in ways_of(workers):
        run, began = replace(state, model=copy.deepcopy(state.model)), time.perf_counter()
        try:
            run.compile(way)
            for _ in range(WARM_UPS):
                _seconds(run, batches)
        except Exception as error:  # a missing compiler can raise any class of error
            ready[way] = f"{NAMES[way]} failed: {str(error).strip().partition(chr(10))[0]}"
        else:
            runs[way] = run
            ready[way] = f"{NAMES[way]} took {time.perf_counter() - began:.0f} s to get ready"
    # the fastest of several rounds counts, because other programs on the machine can only make a round slower
    rounds = [{way: _seconds(run, batches) for way, run in runs.items()} for _ in range(ROUNDS)]
    times = {way: min(seconds[way] for seconds in rounds) / len(batches) for way in runs}
    best = min(times, key=times.__getitem__)
    factor = times[False] / times[best]
    if workers.any(factor >= ENOUGH):
        # if another worker measured the speed-up, plain PyTorch (`best` is False) may have been fastest here
        state.compile(best or True)
    measured = ", ".join(f"{1000 * seconds:.0f} ms by {NAMES[way]}" for way, seconds in times.items())
    gain = f", {factor:.2f} times as fast" if state.compiled else ""
    return f"updates by {NAMES[state.compiled]}{gain}; one takes {measured}; {', '.join(ready.values())}"


def _seconds(run: TrainingState, batches: list[DeviceBatch]) -> float:
    """Return the seconds that rollout, loss and gradients take for a batch of each size. On a GPU, the time ends when
    the GPU has finished."""
    n_steps = run.config.pool_steps[1] if run.config.pool_size else run.config.n_iterations
    assert n_steps is not None
    began = time.perf_counter()
    for batch in batches:
        run.model.zero_grad()
        ages = torch.zeros(len(batch), dtype=torch.float32, device=batch.tiles.device)
        loss, _ = compute_gradients(run, batch, None, ages, n_steps)
        float(loss)
    return time.perf_counter() - began
