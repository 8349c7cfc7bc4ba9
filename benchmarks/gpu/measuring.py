"""Timing on a device, what it can do at most, and how often it is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch

from maze_nca_gym.agents.precision import tf32

PRECISIONS = ("fp32", "tf32", "bf16")
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
"""Calls of the driver that give the GPU work; their names may go on, as in cudaLaunchKernelExC."""


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
        samples: times of which the median counts.
        seconds: the shortest sample.
        side: rows and columns of the matrices that show the peak.
        copied: bytes of the copy that shows the bandwidth.
    """

    samples: int
    seconds: float
    side: int
    copied: int


FULL = Effort(samples=5, seconds=0.1, side=8192, copied=2**30)
QUICK = Effort(samples=1, seconds=0.0, side=64, copied=2**16)


@dataclass(frozen=True)
class Peaks:
    """What the device did at most, measured: products and sums in a second by precision, and bytes in a second."""

    products: dict[str, float]
    bandwidth: float


@contextmanager
def computing(precision: str, device: torch.device) -> Iterator[None]:
    """Compute in a precision of `PRECISIONS` within the block."""
    with tf32(precision == "tf32"), torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
        yield


def seconds_of(run: Callable[[], object], device: torch.device, effort: Effort) -> float:
    """Return the median time of a run, after one that is not counted."""
    run()
    wait(device)
    return median(_sample(run, device, effort.seconds) for _ in range(effort.samples))


def _sample(run: Callable[[], object], device: torch.device, shortest: float) -> float:
    n_runs, elapsed = 1, 0.0
    while True:
        start = perf_counter()
        for _ in range(n_runs):
            run()
        wait(device)
        elapsed = perf_counter() - start
        if elapsed >= shortest:
            return elapsed / n_runs
        n_runs *= 2


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def launches_of(run: Callable[[], object], device: torch.device) -> int | None:
    """Return how often a run gives the GPU work; None without a GPU."""
    if device.type != "cuda":
        return None
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        wait(device)
    return sum(event.count for event in profile.key_averages() if event.key.startswith(LAUNCHES))


def peaks(device: torch.device, effort: Effort) -> Peaks:
    """Measure the products of large square matrices, and a large copy, which reads and writes."""
    products = {}
    for precision in PRECISIONS:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        matrix = torch.ones(effort.side, effort.side, dtype=dtype, device=device)
        with tf32(precision == "tf32"):
            seconds = seconds_of(lambda matrix=matrix: matrix @ matrix, device, effort)
        products[precision] = 2 * effort.side**3 / seconds
    source = torch.zeros(effort.copied, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return Peaks(products, 2 * effort.copied / seconds_of(lambda: target.copy_(source), device, effort))
