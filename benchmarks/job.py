"""What is timed: a job, this package's work on it and the peers' work on the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Work:
    """Something to time.

    Attributes:
        run: does `units` of the job.
        units: how many; a fraction where less than one is done and the time is scaled up.
        prepare: is called before every run and not timed.
    """

    run: Callable[[], object]
    units: float = 1
    prepare: Callable[[], object] = _nothing


@dataclass(frozen=True)
class Peer:
    """What a user would pick instead.

    Attributes:
        name: for the tables.
        work: makes its work; raises ImportError where the peer is not installed.
        target: how many times its speed we aim at; None where it is there for information.
    """

    name: str
    work: Callable[[], Work]
    target: float | None = None


@dataclass(frozen=True)
class Job:
    """A line of the results.

    Attributes:
        row: the group that it belongs to, such as "A1".
        name: what is done.
        unit: what one unit is.
        ours: makes this package's work.
        peers: whom it is compared with.
        limit: seconds a unit that we aim at; None where only the ratios count.
    """

    row: str
    name: str
    unit: str
    ours: Callable[[], Work]
    peers: tuple[Peer, ...] = ()
    limit: float | None = None


@dataclass(frozen=True)
class Effort:
    """How much time to spend.

    Attributes:
        rounds: pairs of samples for each peer.
        seconds: length of a sample, at least; one run of the work is the least.
        share: of the usual number of levels or environments.
    """

    rounds: int
    seconds: float
    share: float = 1.0

    def count(self, usual: int) -> int:
        """How many levels or environments to take where `usual` are usual; 2 is the least."""
        return max(2, round(usual * self.share))


FULL = Effort(rounds=31, seconds=0.01)
QUICK = Effort(rounds=5, seconds=0.005)
