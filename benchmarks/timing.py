"""Time our work and the peer's work in turns, so that a busy machine slows both sides of a ratio alike."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from .job import Effort, Job, Work


@dataclass(frozen=True)
class Comparison:
    """The times of one peer compared with ours.

    Attributes:
        peer: name of the peer.
        seconds: median time of the peer for a unit, or None if the peer is missing.
        ratios: ratios of the peer's time to ours, one for each pair of samples.
        target: the intended ratio, or None if there is no intention.
        missing: the reason why the peer was not timed, or an empty text.
    """

    peer: str
    seconds: float | None
    ratios: tuple[float, ...]
    target: float | None
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """The median ratio, or None without any."""
        return median(self.ratios) if self.ratios else None

    @property
    def reached(self) -> bool | None:
        """Whether the median ratio reaches the target, or None if either is missing."""
        return None if self.target is None or self.ratio is None else self.ratio >= self.target


@dataclass(frozen=True)
class Result:
    """The measurements of one job.

    Attributes:
        row, name, unit, limit: the same as in `Job`.
        seconds: our median time for a unit, over all samples.
        comparisons: a comparison with each peer.
    """

    row: str
    name: str
    unit: str
    limit: float | None
    seconds: float
    comparisons: tuple[Comparison, ...]

    @property
    def reached(self) -> bool | None:
        """Whether our time is within the limit, or None without a limit."""
        return None if self.limit is None else self.seconds <= self.limit


def measure(job: Job, effort: Effort) -> Result:
    """Time a job in turns with each of its peers, or alone if no peer is installed."""
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
            sample(ours, 0)  # the first runs fill caches
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
    """Return the seconds for a unit, as the mean over the runs that take `seconds` together, but at least one run."""
    elapsed, n_runs = 0.0, 0
    while n_runs == 0 or elapsed < seconds:
        work.prepare()
        start = perf_counter()
        work.run()
        elapsed += perf_counter() - start
        n_runs += 1
    return elapsed / (n_runs * work.units)
