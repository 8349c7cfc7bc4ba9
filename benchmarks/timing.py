"""Timing in turns: ours, the peer's, ours, the peer's …, so that a busy machine slows both sides of a ratio alike."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from .job import Effort, Job, Work


@dataclass(frozen=True)
class Comparison:
    """What was measured against one peer.

    Attributes:
        peer: its name.
        seconds: its median time for a unit; None where it is missing.
        ratios: of its time to ours, a pair of samples each.
        target: the ratio that we aim at; None for information.
        missing: why it was not timed; empty where it was.
    """

    peer: str
    seconds: float | None
    ratios: tuple[float, ...]
    target: float | None
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """The median ratio."""
        return median(self.ratios) if self.ratios else None

    @property
    def reached(self) -> bool | None:
        """Whether the target is; None where there is none, or nothing to compare with."""
        return None if self.target is None or self.ratio is None else self.ratio >= self.target


@dataclass(frozen=True)
class Result:
    """What was measured of one job.

    Attributes:
        row, name, unit, limit: as of the job.
        seconds: our median time for a unit, over all samples.
        comparisons: a peer each.
    """

    row: str
    name: str
    unit: str
    limit: float | None
    seconds: float
    comparisons: tuple[Comparison, ...]

    @property
    def reached(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        return None if self.limit is None else self.seconds <= self.limit


def measure(job: Job, effort: Effort) -> Result:
    """Time a job against each of its peers, or alone where there are none."""
    ours = job.ours()
    comparisons: list[Comparison] = []
    samples: list[float] = []
    collected = gc.isenabled()
    gc.disable()  # as in `timeit`
    try:
        for peer in job.peers:
            try:
                theirs = peer.work()
            except ImportError as error:
                comparisons.append(Comparison(peer.name, None, (), peer.target, missing=str(error)))
                continue
            sample(ours, 0)  # first runs fill caches
            sample(theirs, 0)
            pairs = [(sample(ours, effort.seconds), sample(theirs, effort.seconds)) for _ in range(effort.rounds)]
            our_times, their_times = zip(*pairs, strict=True)
            ratios = tuple(their_time / our_time for our_time, their_time in pairs)
            comparisons.append(Comparison(peer.name, median(their_times), ratios, peer.target))
            samples += our_times
        if not samples:
            sample(ours, 0)
            samples = [sample(ours, effort.seconds) for _ in range(effort.rounds)]
    finally:
        if collected:
            gc.enable()
    return Result(job.row, job.name, job.unit, job.limit, median(samples), tuple(comparisons))


def sample(work: Work, seconds: float) -> float:
    """Seconds a unit, over as many runs as fill `seconds`, at least one."""
    elapsed, n_runs = 0.0, 0
    while n_runs == 0 or elapsed < seconds:
        work.prepare()
        start = perf_counter()
        work.run()
        elapsed += perf_counter() - start
        n_runs += 1
    return elapsed / (n_runs * work.units)
