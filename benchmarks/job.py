"""A job to time: the work of this package and the work of its peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Work:
    """A function to time.

    Attributes:
        run: function that does `units` units of the job.
        units: number of units that a run does. If a run does only a part of a unit, `units` is that fraction, and the
            time is scaled up.
        prepare: function that is called before every run and is not timed.
    """

    run: Callable[[], object]
    units: float = 1
    prepare: Callable[[], object] = _nothing


@dataclass(frozen=True)
class Peer:
    """An alternative to this package.

    Attributes:
        name: name in the tables.
        work: function that returns the peer's work, or raises ImportError if the peer is not installed.
        target: the intended ratio of the peer's time to ours, or None if there is no intention.
    """

    name: str
    work: Callable[[], Work]
    target: float | None = None


@dataclass(frozen=True)
class Job:
    """A line of the results.

    Attributes:
        row: the group of the job, such as "A1".
        name: description of the job.
        unit: name of a unit of the job, such as "path".
        ours: function that returns this package's work.
        peers: the alternatives that are timed too.
        limit: the intended largest number of seconds for a unit, or None if only the ratios count.
    """

    row: str
    name: str
    unit: str
    ours: Callable[[], Work]
    peers: tuple[Peer, ...] = ()
    limit: float | None = None


@dataclass(frozen=True)
class Effort:
    """The time to spend on a job.

    Attributes:
        rounds: number of pairs of samples for each peer.
        seconds: smallest duration of a sample. A sample has at least one run of the work.
        share: fraction of the usual number of levels or environments.
    """

    rounds: int
    seconds: float
    share: float = 1.0

    def count(self, usual: int) -> int:
        """Return the number of levels or environments to take instead of `usual`, at least 2."""
        return max(2, round(usual * self.share))


FULL = Effort(rounds=31, seconds=0.01)
QUICK = Effort(rounds=5, seconds=0.005)
